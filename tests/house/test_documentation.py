"""Every public name has a docstring; every example in one, and in the pages, runs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from project import PAGES, ROOT, RoundedOutput, blocks, same_output

import leakscope
import papers

ROOMS = (
    "leakscope",
    "leakscope.advising",
    "leakscope.attacking",
    "leakscope.auditing",
    "leakscope.comparing",
    "leakscope.erasing",
    "leakscope.data",
    "leakscope.deciding",
    "leakscope.estimators",
    "leakscope.fitted",
    "leakscope.kernels",
    "leakscope.lasso",
    "leakscope.laws",
    "leakscope.linear",
    "leakscope.lood",
    "leakscope.measures",
    "leakscope.measuring",
    "leakscope.planning",
    "leakscope.relu",
    "leakscope.reporting",
    "leakscope.results",
    "leakscope.running",
    "leakscope.settings",
    "leakscope.subjects",
    "leakscope.verifying",
    "papers",
)


def public_names() -> list[Any]:
    return [
        pytest.param(room, name, id=f"{room}.{name}")
        for room in ROOMS
        for name in importlib.import_module(room).__all__
        if not isinstance(
            getattr(importlib.import_module(room), name), (ModuleType, str, dict, int)
        )
    ]


@pytest.mark.parametrize(("room", "name"), public_names())
def test_public_name(room: str, name: str) -> None:
    value: Any = getattr(importlib.import_module(room), name)
    text = inspect.getdoc(value) or ""
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return
    assert text, f"{room}.{name} has no docstring"


@pytest.mark.parametrize("room", [room for room in ROOMS if room.startswith("leakscope.")])
def test_every_public_name_is_on_its_page(room: str) -> None:
    """A page made from a room lacks functions that are called as their file, and says nothing."""
    page = (ROOT / "docs" / "api" / f"{room.partition('.')[2]}.md").read_text(encoding="utf-8")
    folder = ROOT / "src" / room.replace(".", "/")
    for name in importlib.import_module(room).__all__:
        value = getattr(importlib.import_module(room), name)
        if (folder / f"{name}.py").exists() and not isinstance(value, ModuleType):
            assert f"::: {value.__module__}.{name}\n" in page, name


FILES = [
    module.name
    for package in (leakscope, papers)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.ispkg
]


@pytest.mark.parametrize("name", FILES)
def test_examples_of_a_file(name: str) -> None:
    """Every example in the file's docstrings, whether a door exports the name or not."""
    module = importlib.import_module(name)
    for found in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        run_examples(found.docstring or "", found.name, required=False)


@pytest.mark.parametrize("room", ROOMS)
def test_room(room: str) -> None:
    module = importlib.import_module(room)
    assert module.__doc__
    run_examples(inspect.getdoc(module) or "", room, required=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_in_pages(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "\n".join(block.text for block in blocks(page) if block.language == "python")
    without, needs, _ = text.partition(">>> import torch\n")
    if needs and find_spec("torch") is None:
        run_examples(without, page.name, required=False)
        pytest.importorskip("torch")
    run_examples(text, page.name, required=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def run_examples(text: str, name: str, *, required: bool = True) -> None:
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert test.examples or not required, f"{name}: the Examples section shows nothing"
    report: list[str] = []
    runner = doctest.DocTestRunner(RoundedOutput(), optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


def test_no_finding_waits_to_be_measured() -> None:
    """The page of errata said for months that its numbers were still to be measured again."""
    text = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8").lower()
    assert "to be re-measured" not in text
    assert "to be measured again" not in text


def test_an_example_s_numbers_are_those_of_any_machine() -> None:
    """One in the last digit is a machine's rounding; two, another word or another line is not."""
    written = "KL 0.1905 (error\n0.08814), ... of -3.2e-05\nend\n"
    assert same_output(written, "KL 0.1905 (error 0.08814), 3.5 of -3.2e-05\nend\n")
    assert same_output(written, "KL 0.1906 (error 0.08813), 3.5 of -3.3e-05\nend\n")
    assert not same_output(written, "KL 0.1907 (error 0.08813), 3.5 of -3.2e-05\nend\n")
    assert not same_output(written, "KL 0.1906 (error 0.8813), 3.5 of -3.2e-05\nend\n")
    assert not same_output(written, "KL 0.1906 (errors 0.08813), 3.5 of -3.2e-05\nend\n")
    assert not same_output(written, "KL 0.1906 (error 0.08813), 3.5 of -3.2e-05\n")
    assert not same_output("version 0.2\n", "version 0.4\n")
    assert not RoundedOutput().check_output("a ... b 1.2", "a c b 1.3", 0)
