"""What ruff and mypy do not see; they are steps of their own of ``make test``."""

from __future__ import annotations

import re

from project import PACKAGE, ROOT, project_files


def test_no_path_of_one_machine() -> None:
    # Written in pieces, so that this file does not find itself.
    patterns = ["/wo" + r"rk/", "/ro" + r"ot/", "/ho" + r"me/\w+/", "/Us" + r"ers/\w+/"]
    forbidden = re.compile("|".join([*patterns, "pypi" + r"\.org", "pythonho" + r"sted\.org"]))
    found = []
    for path in project_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if forbidden.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    assert not found, "\n".join(found)


def test_no_room_is_called_utils() -> None:
    vague = {"utils", "helpers", "misc", "common", "util", "helper"}
    names = {path.stem for path in PACKAGE.rglob("*")} & vague
    assert not names
