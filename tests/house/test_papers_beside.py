"""The papers' figures stand beside the package: they use its doors, and it does without them."""

from __future__ import annotations

import ast
import importlib
import tomllib
from pathlib import Path

import pytest
from project import PACKAGE, ROOT

PAPERS = sorted((ROOT / "papers").glob("*.py"))

# The one place in the package that may call them, when it runs.
CALLER = PACKAGE / "cli" / "reproduce.py"


def past_a_door(source: str) -> list[str]:
    """Imports from leakscope that are not public names of a room, with their lines."""
    wrong = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            wrong += [
                f"{node.lineno}: import {alias.name}"
                for alias in node.names
                if alias.name.startswith("leakscope.")
            ]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "leakscope":
            room = str(node.module)
            wrong += [
                f"{node.lineno}: from {room} import {alias.name}"
                for alias in node.names
                if room.count(".") > 1 or "._" in room or not _is_public(room, alias.name)
            ]
    return wrong


def _is_public(room: str, name: str) -> bool:
    door = importlib.import_module(room)
    if room == "leakscope":
        return name in door.__all__ or (PACKAGE / name / "__init__.py").exists()
    return name in getattr(door, "__all__", ())


def imports_of_papers(source: str) -> list[tuple[int, bool]]:
    """Lines that import the figures, and whether that is at import time."""
    tree = ast.parse(source)
    later = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        if any(name.split(".")[0] == "papers" for name in names):
            found.append((node.lineno, id(node) not in later))
    return sorted(found)


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_figures_use_public_names_only(path: Path) -> None:
    assert past_a_door(path.read_text(encoding="utf-8")) == []


def test_the_package_does_without_them() -> None:
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        for line, at_once in imports_of_papers(path.read_text(encoding="utf-8")):
            if path != CALLER or at_once:
                wrong.append(f"{path.relative_to(PACKAGE)}:{line}")
    assert wrong == []


def test_the_wheel_leaves_them_out() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["tool"]["setuptools"]["packages"]["find"] == {"where": ["src"]}
    assert [path.name for path in PACKAGE.parent.iterdir() if path.is_dir()
            and not path.name.endswith(".egg-info")] == ["leakscope"]  # fmt: skip


def test_the_checks_see_what_is_wrong() -> None:
    source = (
        "from leakscope import lood, nothing\n"
        "from leakscope.laws import Key, normal\n"
        "from leakscope.laws.distributions import Normal\n"
        "import leakscope._numerics.keys\n"
        "def f():\n"
        "    from papers import figures\n"
        "import papers.panels\n"
    )
    assert [entry.split(":")[0] for entry in past_a_door(source)] == ["1", "2", "3", "4"]
    assert imports_of_papers(source) == [(6, False), (7, True)]
