"""The house's one-way imports: this table is the only place where they are written for machines."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest
from project import PACKAGE, ROOT

# room: rooms that it may import directly; it may also import whatever those may.
HOUSE: dict[str, tuple[str, ...]] = {
    "_numerics": (),
    "laws": ("_numerics",),
    "measures": ("laws", "settings"),
    "kernels": ("_numerics", "settings"),
    "linear": ("laws", "measures"),
    "lood": ("laws", "kernels", "measures", "settings", "trust"),
    "single_fit": ("laws",),
    "recipes": ("data", "single_fit", "settings"),
    "trust": ("measures",),
    "halves": ("measures", "recipes", "running", "settings"),
    "fitted": ("single_fit", "halves", "measures", "settings", "recipes", "trust"),
    "lasso": ("laws", "measures"),
    "relu": ("laws", "measures"),
    "data": ("_numerics", "settings"),
    "settings": (),
    "results": ("data", "settings"),
    "running": ("results",),
    "subjects": ("lood", "fitted", "halves", "kernels", "measures", "data", "recipes", "running"),
    "auditing": ("subjects", "data", "results", "settings"),
    "planning": ("linear", "lasso", "lood", "measures", "results", "settings"),
    "attacking": ("auditing", "subjects", "relu"),
    "measuring": ("fitted", "measures", "results", "settings"),
    "verifying": ("auditing", "subjects", "planning", "attacking"),
    "advising": ("auditing", "subjects"),
    "comparing": ("auditing", "subjects"),
    "erasing": ("data", "results", "subjects"),
    # A filed record's pages are checked by making them again.
    "deciding": ("auditing", "reporting", "subjects"),
    "reporting": ("data", "results"),
    "serving": ("data", "results", "settings"),
    "estimators": ("auditing", "subjects"),
    "cli": (
        "advising",
        "attacking",
        "auditing",
        "comparing",
        "deciding",
        "erasing",
        "measuring",
        "planning",
        "reporting",
        "serving",
        "verifying",
    ),
}

# Not rooms: the error type, which all may raise, and the package's own version.
EVERYWHERE = {"errors", "__version__"}


def allowed(room: str) -> set[str]:
    reached: set[str] = {room}
    queue = list(HOUSE[room])
    while queue:
        name = queue.pop()
        if name not in reached:
            reached.add(name)
            queue += HOUSE[name]
    return reached


def imported_rooms(source: str) -> list[tuple[int, str]]:
    """Every ``leakscope.X`` a file imports, with the line; imports inside functions count."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative imports hide the direction"
            module = node.module or ""
            names = (
                [f"leakscope.{alias.name}" for alias in node.names]
                if module == "leakscope"
                else [module]
            )
        else:
            continue
        for name in names:
            if name.startswith("leakscope."):
                found.append((node.lineno, name.split(".")[1]))
    return found


def test_every_room_is_in_the_table() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert rooms <= set(HOUSE)


@pytest.mark.parametrize("room", HOUSE)
def test_room_imports_only_what_it_may(room: str) -> None:
    wrong = []
    for path in (PACKAGE / room).rglob("*.py"):
        for line, target in imported_rooms(path.read_text(encoding="utf-8")):
            if target not in allowed(room) | EVERYWHERE:
                wrong.append(f"{path.relative_to(PACKAGE)}:{line} imports {target}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("room", [name for name in HOUSE if name not in ("_numerics", "cli")])
def test_every_room_has_a_door(room: str) -> None:
    """What users call stands in ``__all__``, and is there; rooms import from the file itself."""
    door = importlib.import_module(f"leakscope.{room}")
    assert [name for name in door.__all__ if not hasattr(door, name)] == []
    assert len(set(door.__all__)) == len(door.__all__)


def test_measures_know_no_model() -> None:
    assert not {"linear", "lood", "lasso", "relu"} & allowed("measures")


def test_the_check_sees_a_wrong_import() -> None:
    source = "def f():\n    from leakscope import lood\n    import leakscope.cli.audit\n"
    assert imported_rooms(source) == [(2, "lood"), (3, "cli")]


def test_errors_imports_nothing() -> None:
    assert imported_rooms(Path(PACKAGE / "errors.py").read_text(encoding="utf-8")) == []


def test_the_map_says_the_same() -> None:
    """docs/architecture.md: every room, with what it may import."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`\w+/`(?:, )?)+) \|.*\| (.*) \|$", page, re.MULTILINE)
    told = {
        room: tuple(re.findall(r"`(\w+)`", may))
        for rooms, may in rows
        for room in re.findall(r"`(\w+)/`", rooms)
    }
    assert told == HOUSE
