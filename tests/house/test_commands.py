"""docs/commands.md names every command and option; every console example runs as written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer
from project import PAGES, ROOT, blocks, console_examples, run_command, same_output

from leakscope.cli import app

REFERENCE = ROOT / "docs" / "commands.md"
PAGES_WITH_EXAMPLES = [p for p in PAGES if any(b.language == "console" for b in blocks(p))]


def commands() -> dict[str, list[str]]:
    """Every verb and its options, as the command line itself knows them."""
    group: Any = typer.main.get_command(app)
    return {name: options(command) for name, command in group.commands.items()}


def options(command: Any) -> list[str]:
    """The command's own options and those of its sub-commands, if it has any."""
    parts = [command, *getattr(command, "commands", {}).values()]
    return [
        option
        for part in parts
        for parameter in part.params
        if parameter.param_type_name == "option"
        for option in parameter.opts
    ]


@pytest.mark.parametrize("verb", commands())
def test_verb_is_documented(verb: str) -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    heading = f"## leakscope {verb}\n"
    assert heading in text
    section = text.split(heading)[1].split("\n## ")[0]
    missing = [option for option in commands()[verb] if f"`{option}" not in section]
    assert not missing, f"docs/commands.md says nothing of {missing}"
    assert f"$ leakscope {verb}" in section


@pytest.mark.parametrize("verb", commands())
def test_help_shows_an_example_that_is_documented_as_run(verb: str) -> None:
    status, text = run_command(f"leakscope {verb} --help")
    assert status == 0
    example = " ".join(text.split("Example: ")[1].partition("\n\n")[0].split())
    documented = [
        command
        for page in PAGES_WITH_EXAMPLES
        for block in blocks(page)
        if block.language == "console"
        for command, _ in console_examples(block)
    ]
    assert example in documented


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
