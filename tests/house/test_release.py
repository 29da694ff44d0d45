"""One version, wherever it stands."""

from __future__ import annotations

import re
import tomllib

from project import ROOT


def test_the_version_and_its_date_are_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    newest, date = re.findall(r"^## \[(\d\S*)\] - (\d{4}-\d\d-\d\d)$", changes, re.MULTILINE)[0]
    assert project["version"] == newest
    assert f"\nversion: {newest}\n" in citation
    assert f"\ndate-released: {date}\n" in citation
    # What is not released yet stands first.
    assert changes.index("## [Unreleased]") < changes.index(f"## [{newest}]")


def test_the_readme_fits_two_screens_and_its_count_of_trust_is_the_page_s() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 95
    assert readme.count("![") == 1
    page = (ROOT / "docs" / "benchmarks" / "trust.md").read_text(encoding="utf-8")
    row = r"^\| (\d+) of [^|]*\|[^|]*\| ([\d,]+) / (\d+) \|$"
    rows = re.findall(row, page, re.MULTILINE)
    counted = [[int(number.replace(",", "")) for number in numbers] for numbers in rows]
    settings, confirmed, off = (sum(column) for column in zip(*counted, strict=True))
    assert f"{settings} settings made to break it" in readme
    assert f"of {confirmed:,} confirmed records {off} were surely off" in readme
    paper = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    assert f"{settings} settings were made to break this" in paper
