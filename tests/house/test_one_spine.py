"""One spine: measures are computed in `measures`, and a public name means one thing."""

from __future__ import annotations

import ast
import importlib
from collections import defaultdict
from types import ModuleType
from typing import Any

import pytest
from project import PACKAGE
from test_import_directions import HOUSE

WORDS = {
    "advantage",
    "advantages",
    "auc",
    "delta",
    "epsilon",
    "jeffreys",
    "kl",
    "renyi",
    "tpr",
}

# Where a measure may be computed: `measures` itself, and `laws` and `_numerics` below it.
SPINE = {"measures", "laws", "_numerics"}

# A function whose name says that it gives a measure, and that does not ask `measures` for it.
# Each entry says why: a file and a function, or a whole file.
ALLOWED: dict[str, str] = {
    "lasso/divergence.py:onavg_kl": "closed form for thousands of settings at once; "
    "tests/lasso/test_joint_laws.py holds it against measures.kl of joint_law_pair",
    "planning/lasso_targets.py:_error_and_kl": "the error beside lasso.onavg_kl",
    "results/advice.py:enough_advantage": "a bound on a target, from the target alone",
    "results/audit.py:kl": "a column of the table; leakscope.subjects.laws computes it",
    "results/audit.py:kl_reverse": "the same",
    "results/audit.py:advantage": "the same",
    "results/audit.py:auc": "the same",
    "results/audit.py:tpr_at_fpr": "the same",
}

# Files that use the normal law's own functions, which are what measures are made of, and for what.
NORMAL_FUNCTIONS: dict[str, str] = {
    "halves/counting.py": "the quantile of a test's chance",
    "halves/estimate.py": "the quantile beyond which a shift is claimed, over all records; the "
    "normals that stand for an advantage that was counted; a test of normality",
    "fitted/fitted_laws.py": "the chance of the right label, which is the law itself",
    "fitted/secret.py": "points that stand for a normal law",
    "lasso/noise_laws.py": "the field of an estimate, an ingredient of laws",
    "lasso/stability.py": "the stability edge",
    "linear/design.py": "quadrature nodes for a record's norm",
    "lood/separation.py": "the chance that a draw has the right class",
    "relu/near_orthogonality.py": "chances that drawn points are nearly orthogonal",
    "single_fit/laws.py": "the chance of the right label of several classes",
    "trust.py": "quantiles of thresholds, and of counts",
    "subjects/pricing.py": "the chance that a noised score names the right class",
    "subjects/fit/subject.py": "the chance of the right label, with and without the record",
    "verifying/checks.py": "the threshold of a z-score, and the interval of a correlation",
    "verifying/networks.py": "an activation function",
}

TELLTALES = {"ndtr", "log_ndtr", "ndtri", "erf", "erfc", "erfcx", "erfinv", "owens_t", "chndtr"}


def words_of(name: str) -> set[str]:
    return set(name.strip("_").lower().split("_")) & WORDS


def asks_measures(node: ast.AST, imported: set[str]) -> bool:
    """Whether a function calls something of `measures`."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            if part.value.id == "measures" or (part.value.id == "self" and part.attr in imported):
                return True
        elif isinstance(part, ast.Name) and part.id in imported:
            return True
    return False


def imported_measures(tree: ast.AST) -> set[str]:
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("leakscope.measures")
        for alias in node.names
    }


def own_measures(source: str) -> list[str]:
    """Functions that are named for a measure and do not take it from `measures`."""
    tree = ast.parse(source)
    imported = imported_measures(tree)
    # a function of this file that asks measures may be asked by others of it
    functions = [
        n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    asking = {n.name for n in functions if asks_measures(n, imported)}
    while True:
        more = {n.name for n in functions if asks_measures(n, imported | asking)} - asking
        if not more:
            break
        asking |= more
    return [n.name for n in functions if words_of(n.name) and n.name not in asking]


def normal_functions(source: str) -> set[str]:
    return {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.Attribute) and node.attr in TELLTALES)
        or (isinstance(node, ast.Name) and node.id in TELLTALES)
    }


def files() -> list[tuple[str, str]]:
    return [
        (str(path.relative_to(PACKAGE)), path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] not in SPINE
    ]


def test_no_measure_is_computed_outside_measures() -> None:
    found = [f"{name}:{function}" for name, text in files() for function in own_measures(text)]
    wrong = [one for one in found if one not in ALLOWED and one.split(":")[0] not in ALLOWED]
    assert not wrong, "computes a measure beside leakscope.measures:\n" + "\n".join(wrong)


def test_normal_laws_functions_are_used_for_what_is_said() -> None:
    found = {name for name, text in files() if normal_functions(text)}
    wrong = sorted(found - set(NORMAL_FUNCTIONS))
    assert not wrong, "say in NORMAL_FUNCTIONS what these are for:\n" + "\n".join(wrong)


def test_the_lists_are_no_longer_than_they_must_be() -> None:
    texts = dict(files())
    gone = [one for one in ALLOWED if one.split(":")[0] not in texts]
    for one in ALLOWED:
        name, _, function = one.partition(":")
        left = own_measures(texts.get(name, ""))
        if not (function in left if function else left):
            gone.append(one)
    gone += [one for one in NORMAL_FUNCTIONS if not normal_functions(texts.get(one, ""))]
    assert not gone, "no longer needed:\n" + "\n".join(gone)
    assert all(reason.strip() for reason in (*ALLOWED.values(), *NORMAL_FUNCTIONS.values()))


def public() -> dict[str, dict[str, Any]]:
    """Every public name of the rooms, with the object that each room has under it."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for room in HOUSE:
        if room.startswith("_") or room == "cli":
            continue
        module = importlib.import_module(f"leakscope.{room}")
        for name in module.__all__:
            value = getattr(module, name)
            if not isinstance(value, ModuleType):
                found[name][room] = value
    return found


def test_a_public_name_means_one_thing() -> None:
    wrong = [
        f"{name}: {', '.join(rooms)}"
        for name, rooms in sorted(public().items())
        if any(value is not next(iter(rooms.values())) for value in rooms.values())
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def kl(a):\n    return a**2\n", ["kl"]),
        ("class A:\n    def best_advantage(self):\n        return 1\n", ["best_advantage"]),
        ("from leakscope import measures\ndef kl(p):\n    return measures.kl(p)\n", []),
        ("from leakscope.measures import auc\ndef my_auc(p):\n    return auc(p)\n", []),
        ("def clear(a):\n    return a\n", []),
    ],
)
def test_the_check_sees_a_measure(source: str, found: list[str]) -> None:
    assert own_measures(source) == found
