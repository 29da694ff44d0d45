"""How large the house is: every count of docs/benchmarks/house.md, of the files that git tracks.

python benchmarks/house.py
"""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
MOST_PARAMETERS = 8


def tracked(*patterns: str) -> list[Path]:
    """The files of the repository that match."""
    listing = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", *patterns],
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listing.stdout.split("\0") if name]


def texts(*patterns: str) -> list[str]:
    """Their contents."""
    return [path.read_text(encoding="utf-8") for path in tracked(*patterns)]


def lines(*patterns: str) -> int:
    """How many lines they have together."""
    return sum(len(text.splitlines()) for text in texts(*patterns))


def docstring_lines(tree: ast.AST) -> int:
    """Lines of the docstrings of a module, its classes and functions."""
    total = 0
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                total += (first.end_lineno or first.lineno) - first.lineno + 1
    return total


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many it takes; ``*args`` and ``**kwargs`` are one each."""
    given = function.args
    return (
        len(given.posonlyargs)
        + len(given.args)
        + len(given.kwonlyargs)
        + (given.vararg is not None)
        + (given.kwarg is not None)
    )


def numeric_constants(module: ast.Module) -> int:
    """Names in capitals that a module sets to a number; ``A, B = 1, 2`` are two."""
    total = 0
    for node in module.body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=True))
            total += sum(
                isinstance(name, ast.Name) and name.id.isupper() and is_number(value)
                for name, value in pairs
            )
    return total


def is_number(node: ast.expr) -> bool:
    """A number as it is written, with its sign."""
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def numbers_in_comparisons() -> int:
    """What ruff's PLR2004 finds in src."""
    command = [sys.executable, "-m", "ruff", "check", "--select", "PLR2004", "--isolated", "-q"]
    asked = [*command, "--output-format", "concise", str(ROOT / "src")]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False)
    return answer.stdout.count("PLR2004")


def exported_names() -> int:
    """Different names in the ``__all__`` of all rooms."""
    names: set[str] = set()
    for path in tracked("src/*__init__.py"):
        room = ".".join(path.relative_to(ROOT / "src").parent.parts)
        names |= set(getattr(importlib.import_module(room), "__all__", ()))
    return len(names)


def commands(command: Any, name: str = "") -> Iterator[tuple[str, int]]:
    """Every command with its number of options."""
    for part, each in getattr(command, "commands", {}).items():
        yield from commands(each, f"{name} {part}".strip())
    if not hasattr(command, "commands"):
        yield name, sum(each.param_type_name == "option" for each in command.params)


def counts() -> dict[str, int | float]:
    """All of them, by the words of the page."""
    import typer

    sys.path.insert(0, str(ROOT / "src"))
    from leakscope import audit
    from leakscope.cli import app

    trees = [ast.parse(text) for text in texts("src/*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    size = lines("src/*.py")
    options = dict(commands(typer.main.get_command(app)))
    pages = texts("docs/*.md")
    return {
        "lines of src": size,
        "lines of src, papers and benchmarks": lines("src/*.py", "papers/*.py", "benchmarks/*.py"),
        "statements of src": sum(isinstance(node, ast.stmt) for node in nodes),
        "docstrings, % of lines": round(100.0 * sum(map(docstring_lines, trees)) / size, 1),
        "lines of HTML, JavaScript and JSON": lines("src/*.html", "src/*.js", "src/*.json"),
        "files of src": len(trees),
        "exported names": exported_names(),
        f"functions with more than {MOST_PARAMETERS} parameters": sum(
            isinstance(node, FUNCTIONS) and parameters(node) > MOST_PARAMETERS for node in nodes
        ),
        **{f"options of {name}": number for name, number in options.items()},
        f"options of all {len(options)} commands": sum(options.values()),
        "parameters of audit()": len(inspect.signature(audit).parameters),
        "numeric constants in capitals": sum(map(numeric_constants, trees)),
        "numbers in comparisons (PLR2004)": numbers_in_comparisons(),
        "lines of tests": lines("tests/*.py"),
        "lines of documentation": sum(len(page.splitlines()) for page in pages),
        "words of documentation": sum(len(page.split()) for page in pages),
        "words of CHANGELOG.md": len(texts("CHANGELOG.md")[0].split()),
        "MB of docs/reproductions": round(
            sum(path.stat().st_size for path in tracked("docs/reproductions")) / 1e6, 1
        ),
    }


if __name__ == "__main__":
    for name, value in counts().items():
        print(f"{name:40} {value:>10,}")
