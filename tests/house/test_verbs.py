"""Verb, room, function, page: what the command line can do, Python can, and one page says how."""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from project import PACKAGE, ROOT

import leakscope
from leakscope.cli import app

# Which room a verb lives in: its gerund.
ROOMS = {
    "advise": "advising",
    "attack": "attacking",
    "audit": "auditing",
    "compare": "comparing",
    "decide": "deciding",
    "erase": "erasing",
    "measure": "measuring",
    "plan": "planning",
    "report": "reporting",
    "verify": "verifying",
}

# The papers' figures stand beside the package, in a clone; the page composes commands.
BESIDE = {"reproduce", "serve"}

CLI = PACKAGE / "cli"

# What a file of the command line may import besides rooms: it parses and prints.
THEORY = {"_numerics", "fitted", "kernels", "lasso", "laws", "linear", "lood", "measures", "relu"}
LIGHT = {"papers", "pydantic", "rich", "typer", *sys.stdlib_module_names}


def commands() -> dict[str, list[str]]:
    """Every verb of the command line, with the names of its parts where it has several."""
    whole: Any = typer.main.get_command(app)
    return {name: sorted(getattr(verb, "commands", ())) for name, verb in whole.commands.items()}


def functions() -> list[tuple[str, str]]:
    """The Python function of every command, with its verb."""
    return [
        (verb, f"{verb}_{part}" if part else verb)
        for verb, parts in commands().items()
        if verb not in BESIDE
        for part in (parts or [""])
    ]


def test_every_verb_has_a_room() -> None:
    assert set(commands()) == set(ROOMS) | BESIDE
    for room in ROOMS.values():
        assert (PACKAGE / room / "__init__.py").exists()


@pytest.mark.parametrize(("verb", "name"), functions())
def test_every_verb_is_a_function_of_its_room(verb: str, name: str) -> None:
    assert name in leakscope.__all__
    function = getattr(leakscope, name)
    assert inspect.isfunction(function)
    assert function.__module__.split(".")[1] == ROOMS[verb]
    text = inspect.getdoc(function) or ""
    for section in ("Parameters", "Examples"):
        assert f"\n{section}\n---" in text, f"leakscope.{name} has no {section}"
    for parameter in inspect.signature(function).parameters:
        assert parameter in text, f"leakscope.{name} does not say what {parameter} is"


@pytest.mark.parametrize("verb", sorted({*ROOMS, *BESIDE}))
def test_every_verb_has_a_page_and_a_place_in_the_contents(verb: str) -> None:
    assert (ROOT / "docs" / f"{verb}.md").exists()
    assert f" {verb}.md" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


@pytest.mark.parametrize(("verb", "name"), functions())
def test_a_page_shows_its_function(verb: str, name: str) -> None:
    page = (ROOT / "docs" / f"{verb}.md").read_text(encoding="utf-8")
    assert f"leakscope.{name}" in page


@pytest.mark.parametrize("path", sorted(CLI.glob("*.py")), ids=lambda path: path.stem)
def test_the_command_line_computes_nothing(path: Path) -> None:
    """No numerical library, no inside of a theory room: it parses, calls the verb, prints."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "leakscope":
                theory = len(parts) > 2 and parts[1] in THEORY
                assert not theory, f"{path.name}:{node.lineno} reaches into {name}"
            else:
                assert parts[0] in LIGHT, f"{path.name}:{node.lineno} imports {name}"


def test_a_result_is_a_stored_class() -> None:
    """What a verb returns is what is stored; only an audit keeps arrays beside its document."""
    from leakscope import results

    for verb, name in functions():
        if verb in ("audit", "report"):
            continue
        annotation = inspect.signature(getattr(leakscope, name)).return_annotation
        for part in str(annotation).split(" | "):
            stored = getattr(results, part, None)
            assert stored is not None, f"leakscope.{name} returns {annotation}"
            assert issubclass(stored, results.ResultDocument)
