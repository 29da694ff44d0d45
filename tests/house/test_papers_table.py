"""The tables of the papers' items in docs/reproduce.md: what they name exists."""

from __future__ import annotations

import dataclasses
import importlib
import re
import shlex
from functools import cache
from typing import Any

import pytest
import typer
from project import ROOT

from leakscope.cli import app
from papers import figures

PAGE = ROOT / "docs" / "reproduce.md"
HEADING = "## Every numbered item, and where it is"


def tables() -> dict[str, list[list[str]]]:
    """The rows of each paper's table, cells as text."""
    section = PAGE.read_text(encoding="utf-8").split(HEADING)[1]
    section = re.split(r"\n## ", section)[0]
    found: dict[str, list[list[str]]] = {}
    for part in re.split(r"\n### ", section)[1:]:
        name, *lines = part.splitlines()
        rows = [line for line in lines if line.startswith("| ") and "---" not in line]
        cells = [re.split(r"(?<!\\) \| ", row.strip("| ")) for row in rows]
        found[name.strip()] = cells[1:]
    return found


TABLES = tables()
NAMED = sorted({(paper, name) for paper, rows in TABLES.items() for row in rows
                for name in re.findall(r"`([^`]+)`", " ".join(row[2:]))})  # fmt: skip


@cache
def commands() -> Any:
    return typer.main.get_command(app)


def missing(name: str) -> str | None:
    """What of a name does not exist; None where all of it does."""
    if name.startswith(("tests/", "benchmarks/", "docs/", "papers/")):
        return None if (ROOT / name).exists() else f"there is no file {name}"
    if name.startswith("leakscope "):
        return _missing_command(shlex.split(name)[1:])
    if "." not in name:
        # an attribute of the name before it, told in words
        return None
    return _missing_name(name.split("."))


def _missing_command(words: list[str]) -> str | None:
    command = commands()
    given = list(words)
    while given and hasattr(command, "commands"):
        found = command.commands.get(given[0])
        if found is None:
            return f"there is no command {given[0]!r}"
        command = found
        del given[0]
    options = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    for word in given:
        if word.startswith("-") and word not in options:
            return f"{' '.join(words)} has no option {word}"
    if command.name == "reproduce":
        unknown = set(given) - {figure.name for figure in figures()}
        return f"there is no figure {unknown}" if unknown else None
    return None


def _missing_name(parts: list[str]) -> str | None:
    here: Any = importlib.import_module("leakscope" if parts[0] == "leakscope" else
                                        f"leakscope.{parts[0]}")  # fmt: skip
    for part in parts[1:]:
        fields = {one.name for one in dataclasses.fields(here)} if dataclasses.is_dataclass(
            here
        ) else set(getattr(here, "model_fields", ()))  # fmt: skip
        if part in fields:
            return None
        if not hasattr(here, part):
            return f"{'.'.join(parts)}: there is no {part}"
        here = getattr(here, part)
    return None


@pytest.mark.parametrize(("paper", "name"), NAMED)
def test_what_a_table_names_exists(paper: str, name: str) -> None:
    assert missing(name) is None


def test_every_row_says_where_and_by_what() -> None:
    assert {"relu", "lood"} <= set(TABLES)
    for paper, rows in TABLES.items():
        assert len(rows) > 20, paper
        assert all(len(row) == 4 and all(cell.strip() for cell in row) for row in rows), paper


def test_every_figure_of_a_paper_is_in_its_table() -> None:
    for paper, rows in TABLES.items():
        told = " ".join(" ".join(row) for row in rows)
        for figure in figures():
            if figure.paper == paper:
                assert f"leakscope reproduce {figure.name}`" in told, figure.name


def test_the_test_finds_what_is_not_there() -> None:
    assert missing("relu.margin_bounds") is None
    for wrong in (
        "relu.no_such_name",
        "lood.SelfInfluence.nothing",
        "leakscope attack nobody",
        "leakscope attack membership --nothing",
        "leakscope reproduce relu-1000",
        "tests/relu/test_nothing.py",
    ):
        assert missing(wrong) is not None, wrong
