"""ruff and mypy, as tests, so that one command says whether the project is in order."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from project import PACKAGE, ROOT, project_files

# Files that hold one idea in more than 400 lines, with the reason.
LONG_FILES: dict[str, str] = {}

MAX_LINES = 400


@pytest.mark.parametrize(
    "arguments",
    [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]],
    ids=" ".join,
)
def test_tool(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_file_holds_two_ideas() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for folder in (PACKAGE, ROOT / "papers")
        for path in folder.rglob("*.py")
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > MAX_LINES
    }
    surprising = {name: count for name, count in long.items() if name not in LONG_FILES}
    assert not surprising, f"over {MAX_LINES} lines: {surprising}"


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
