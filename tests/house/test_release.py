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
