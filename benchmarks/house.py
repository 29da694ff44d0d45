"""How large the house is: lines, files, names, questions about kinds, and what one audit touches.

python benchmarks/house.py            # counts of the source
python benchmarks/house.py --trace    # and what `leakscope audit --example diabetes` runs through
"""

from __future__ import annotations

import argparse
import ast
import importlib
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "leakscope"
KINDS = (
    "AuditResult",
    "AuditDocument",
    "ModelAudit",
    "Streamed",
    "AuditedRecords",
    "AuditedDocument",
)


def sources() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


def docstring_lines(tree: ast.AST) -> tuple[int, int]:
    """Lines of docstrings, and those of examples among them."""
    whole = examples = 0
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                text = str(first.value.value)
                whole += (first.end_lineno or 0) - first.lineno + 1
                examples += sum(
                    line.strip().startswith((">>>", "...")) for line in text.splitlines()
                )
    return whole, examples


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def one_importer(texts: dict[Path, str]) -> int:
    """Files that exactly one other file imports (a door does not count)."""
    names = {module_name(path) for path in texts}
    importers: dict[str, set[Path]] = defaultdict(set)
    for path, text in texts.items():
        if path.name == "__init__.py":
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module in names:
                importers[node.module].add(path)
                for alias in node.names:
                    if f"{node.module}.{alias.name}" in names:
                        importers[f"{node.module}.{alias.name}"].add(path)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    importers[alias.name].add(path)
    doors = {module_name(p) for p in texts if p.name == "__init__.py"}
    return sum(len(found) == 1 for name, found in importers.items() if name in names - doors)


def counts() -> dict[str, int]:
    texts = sources()
    trees = {path: ast.parse(text) for path, text in texts.items()}
    docs = [docstring_lines(tree) for tree in trees.values()]
    functions = [
        node
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    sys.path.insert(0, str(PACKAGE.parent))
    doors = [importlib.import_module(module_name(p)) for p in texts if p.name == "__init__.py"]
    return {
        "lines": sum(len(text.splitlines()) for text in texts.values()),
        "files": len(texts),
        "lines of docstrings": sum(whole for whole, _ in docs),
        "lines of examples": sum(examples for _, examples in docs),
        "exported names": len({n for d in doors for n in getattr(d, "__all__", ())}),
        "tests for a kind of audit": sum(
            "isinstance(" in line and any(kind in line for kind in KINDS)
            for text in texts.values()
            for line in text.splitlines()
        ),
        "functions above 8 parameters": sum(
            len(f.args.args) + len(f.args.kwonlyargs) > 8 for f in functions
        ),
        "files with one importer": one_importer(texts),
    }


def touched() -> dict[str, int]:
    """Files and functions of leakscope that run for `leakscope audit --example diabetes`."""
    seen: set[tuple[str, str, int]] = set()

    def profile(frame: object, event: str, _argument: object) -> None:
        if event == "call":
            code = frame.f_code  # type: ignore[attr-defined]
            if str(PACKAGE) in code.co_filename and code.co_name != "<module>":
                seen.add((code.co_filename, code.co_name, code.co_firstlineno))

    from leakscope.cli import main

    with tempfile.TemporaryDirectory() as folder:
        sys.setprofile(profile)
        main(["audit", "--example", "diabetes", "--run-dir", f"{folder}/run"])
        sys.setprofile(None)
    return {
        "files touched by one audit": len({one[0] for one in seen}),
        "functions touched by one audit": len(seen),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", action="store_true")
    found = counts()
    if parser.parse_args().trace:
        found |= touched()
    for name, value in found.items():
        print(f"{name:32} {value:>7,}")


if __name__ == "__main__":
    main()
