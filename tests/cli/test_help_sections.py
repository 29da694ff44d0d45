"""Help pages with headings: every option once, and what most people need before the rest."""

from __future__ import annotations

import re
from collections import Counter

import pytest
import typer

from leakscope.cli import app, main


@pytest.mark.parametrize("verb", ["audit", "attack query", "attack influence"])
def test_every_option_stands_once(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*verb.split(), "--help"]) == 0
    page = capsys.readouterr().out
    shown = Counter(re.findall(r"^  (?:-h, )?(--[\w-]+)", page, re.MULTILINE))
    command = typer.main.get_command(app)
    for word in verb.split():
        command = command.commands[word]  # type: ignore[attr-defined]
    wanted = {p.opts[0] for p in command.params if p.param_type_name == "option"}
    assert set(shown) == wanted | {"--help"}
    assert set(shown.values()) == {1}


def test_the_model_comes_before_the_gaussian_process(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--help"]) == 0
    page = capsys.readouterr().out
    places = [page.index(f"\n  {option} ") for option in ("--target", "--model", "--train")]
    assert places == sorted(places)
    assert max(places) < page.index("\nHow the data are read:") < page.index("\n  --missing ")
    assert page.index("A Gaussian process instead of a fitted model:") < page.index("\n  --kernel ")
