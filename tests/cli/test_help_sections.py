"""Help pages with headings: every option once, and what most people need before the rest."""

from __future__ import annotations

import re
from collections import Counter

import pytest
import typer

from leakscope.cli import app, main


@pytest.mark.parametrize("verb", ["audit", "attack query"])
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


def test_the_first_screen_has_what_one_needs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had 196 lines, and --group and --run-dir were far down."""
    for columns in ("80", "100"):
        monkeypatch.setenv("COLUMNS", columns)
        assert main(["audit", "--help"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) < 110
        screen = "\n".join(lines[:28])
        for wanted in ("FILE ", "--target ", "--model ", "--group ", "--run-dir ", "Example: "):
            assert f"\n  {wanted}" in screen


def test_what_is_rarely_used_comes_last(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--help"]) == 0
    page = capsys.readouterr().out
    options = ("--target", "--model", "--missing", "--threshold-tpr", "--C", "--train", "--header")
    places = [page.index(f"\n  {option} ") for option in options]
    assert places == sorted(places)
    assert max(places) < page.index("\nRarely used: ") < page.index("\n  --kernel ")
