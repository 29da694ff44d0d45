"""No verb asks which kind of model an audit is of: a new kind is one file and one line."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from project import PACKAGE

# The verbs and faces; subjects, and the reader of stored runs, are where kinds are known.
ROOMS = (
    "advising",
    "attacking",
    "auditing",
    "cli",
    "comparing",
    "erasing",
    "deciding",
    "estimators",
    "reporting",
    "serving",
    "verifying",
)

KINDS = {"process", "fit", "training", "stream"}
FILE_KINDS = {"audit", "audit_model", "audit_streamed"}

# What may be asked of an audit's details: what every kind has.
COMMON = {"explanations", "totals", "size", "for_everybody", "against", "secret_attribute"}

# Files that use a part of one kind for what it is, and why; none asks an audit for its kind.
PARTS: dict[str, str] = {
    "attacking/pool.py": "the attack is on a fitted model's file, which fit reads",
    "attacking/reconstruct_fit.py": "the attack is on a fitted model's file, which fit reads",
    "auditing/__init__.py": "streaming is a verb's door of its own",
    "auditing/audit.py": "a stand-in is a fitted model, and a named model says what it predicts",
    "cli/audit.py": "the cost of streaming is said before it is paid",
    "verifying/verify.py": "the query attack is on a Gaussian process, by its paper",
}


def kind_names() -> set[str]:
    """Classes that belong to one kind."""
    found = set()
    for kind in KINDS:
        for path in (PACKAGE / "subjects" / kind).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found |= {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    return found | {"PairLaws", "PosteriorLaws"}


def questions(source: str, names: set[str]) -> Iterator[tuple[int, str]]:
    """Every place where a file asks for a kind."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            asked = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            if node.func.id in ("isinstance", "issubclass") and asked & names:
                yield node.lineno, f"{node.func.id} of {', '.join(sorted(asked & names))}"
            if node.func.id in ("hasattr", "getattr") and _is_details(node.args[0]):
                yield node.lineno, f"{node.func.id} of details"
        if isinstance(node, ast.Compare):
            texts = {
                part.value
                for part in ast.walk(node)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            }
            attributes = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
            if "subject" in attributes and texts & KINDS:
                yield node.lineno, "compares the name of a kind"
            if "kind" in attributes and texts & FILE_KINDS:
                yield node.lineno, "compares the kind of a file"
        if isinstance(node, ast.Attribute) and _is_details(node.value) and node.attr not in COMMON:
            yield node.lineno, f"takes details.{node.attr}, which one kind has"
        if isinstance(node, ast.Match):
            yield node.lineno, "matches, which may be on a kind"


def _is_details(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "details"


def parts_of_kinds(source: str) -> bool:
    """Whether a file imports from inside one kind's folder."""
    return any(
        isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("leakscope.subjects.")
        and (node.module or "").split(".")[2] in KINDS
        for node in ast.walk(ast.parse(source))
    )


@pytest.mark.parametrize("room", ROOMS)
def test_no_verb_asks_for_the_kind_of_an_audit(room: str) -> None:
    names = kind_names()
    found = [
        f"{path.relative_to(PACKAGE)}:{line} {what}"
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for line, what in questions(path.read_text(encoding="utf-8"), names)
    ]
    assert not found, "\n".join(found)


def test_parts_of_one_kind_are_used_for_what_is_said() -> None:
    found = {
        str(path.relative_to(PACKAGE))
        for room in ROOMS
        for path in (PACKAGE / room).rglob("*.py")
        if parts_of_kinds(path.read_text(encoding="utf-8"))
    }
    assert found == set(PARTS), f"{found ^ set(PARTS)} differ"


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(subject, GaussianProcess)",
        "if audit.subject == 'fit': pass",
        "if 'training' in (audit.subject,): pass",
        "if document.kind in ('audit', 'audit_model'): pass",
        "hasattr(audit.details, 'models')",
        "audit.details.models",
    ],
)
def test_the_check_sees_a_question(source: str) -> None:
    assert list(questions(source, {"GaussianProcess"}))


@pytest.mark.parametrize(
    "source",
    ["isinstance(document, Audit)", "audit.details.size()", "audit.basis == 'assumed'"],
)
def test_what_is_allowed_is_not(source: str) -> None:
    assert not list(questions(source, {"GaussianProcess"}))
