"""docs/commands.md is made from the help pages; every console example of a page runs as written.

``RENEW_SCREENS=1 pytest tests/house/test_commands.py`` makes docs/commands.md anew.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import typer
from project import PAGES, ROOT, blocks, console_examples, run_command, same_output

from leakscope.cli import app

REFERENCE = ROOT / "docs" / "commands.md"
PAGES_WITH_EXAMPLES = [p for p in PAGES if any(b.language == "console" for b in blocks(p))]

OPENING = """# Commands

This page is made from the help pages (`tests/house/test_commands.py`); examples stand on the page
of each verb. Exit status: 0 done; 2 the input cannot be used, with one sentence on stderr and
nothing written; 3 a limit is exceeded, a number differs or the second run is worse, for certain;
4 that cannot be told; 130 interrupted; 1 anything unforeseen, with its traceback.

In Python a verb is a function of the same name, and an option `--some-name` is the parameter
`some_name`; `--group` is `groups`, and `--id` is `record_ids`.
"""


def commands() -> dict[str, str]:
    """Every verb, and every part of one, with its help page."""
    group: Any = typer.main.get_command(app)
    names = [
        f"{name} {part}".strip()
        for name, verb in group.commands.items()
        for part in ("", *getattr(verb, "commands", ()))
    ]
    return {name: run_command(f"leakscope {name} --help")[1] for name in names}


def test_the_reference_is_the_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    parts = [OPENING]
    for name, text in commands().items():
        assert "Example: leakscope" in text, name
        level = "##" if " " not in name else "###"
        parts.append(f"{level} leakscope {name}\n\n```text\n{text}```\n")
    page = "\n".join(parts)
    if os.environ.get("RENEW_SCREENS"):
        REFERENCE.write_text(page, encoding="utf-8")
    assert page == REFERENCE.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES_WITH_EXAMPLES, ids=lambda page: str(page.relative_to(ROOT)))
def test_console_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    status = 0
    for block in blocks(page):
        if block.title:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
        if block.language != "console":
            continue
        for command, written in console_examples(block):
            if command == "echo $?":
                got = f"{status}\n"
            elif command.startswith("make "):
                continue
            else:
                status, got = run_command(command)
            assert same_output(written, got), f"{page.name}: $ {command}\n{got}"
