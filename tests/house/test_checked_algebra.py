"""Large factorisations and products are made in ``_numerics``, where they are checked.

OpenBLAS errs in its symmetric routines for many rows (docs/linear_algebra.md).  Elsewhere in the
package such a routine may be called only on what is small by its nature, for the reason given here.
"""

from __future__ import annotations

import ast

import pytest
from project import PACKAGE

# LAPACK's and BLAS's symmetric routines, by the names under which NumPy and SciPy have them.
ROUTINES = {
    *("cholesky", "cho_factor", "eigh", "eigvalsh", "inv", "pinv", "pinvh"),
    *("dpotrf", "dpotri", "dtrtri", "dlauum", "dsyrk", "dsyr2k", "dsyevd", "dsyevr"),
    "syrk of a product with itself",
}

GROUP = "a group's or a few queries' own rows"
PARAMETERS = "as many rows as the design has columns, or its support"
NETWORK = "a network's neurons, or the few points of a relu experiment"

SMALL = {
    "fitted/people.py": GROUP,
    "halves/population.py": "as many rows as trained models, or as a line has knots",
    "fitted/secret.py": "as many rows as values of the column times outputs, or as coefficients",
    "lasso/amp.py": PARAMETERS,
    "lasso/data_fit.py": PARAMETERS,
    "lasso/estimate_laws.py": PARAMETERS,
    "lasso/simulated.py": PARAMETERS,
    "lasso/solver.py": PARAMETERS,
    "lasso/stability.py": PARAMETERS,
    "linear/moments.py": PARAMETERS,
    "laws/distributions.py": "as many rows as a law has dimensions",
    "lood/distinguish.py": GROUP,
    "lood/features.py": "eight records, compared with the kernel's own matrix",
    "lood/dense.py": GROUP,
    "lood/mean_distance.py": "as many rows as features, 2,048 at most",
    "lood/query_climb.py": GROUP,
    "lood/query_search.py": GROUP,
    "measures/quadratic_forms.py": "as many rows as outputs",
    "measures/normal_divergence.py": "as many rows as outputs",
    "relu/kkt.py": NETWORK,
    "relu/margin_bounds.py": NETWORK,
    "relu/near_orthogonality.py": NETWORK,
    "single_fit/laws.py": GROUP,
    "single_fit/leave_one_out.py": GROUP,
    "single_fit/responses.py": PARAMETERS,
    "single_fit/structured.py": PARAMETERS,
    "single_fit/units.py": GROUP,
}


def routines(source: str) -> set[str]:
    """Which of the routines a module calls."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else None
            name = node.func.id if isinstance(node.func, ast.Name) else name
            found |= {name} & ROUTINES
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            left, right = ast.unparse(node.left), ast.unparse(node.right)
            if left == f"{right}.T" or right == f"{left}.T":
                found.add("syrk of a product with itself")
    return found


def callers() -> dict[str, set[str]]:
    files = sorted(PACKAGE.rglob("*.py"))
    named = {path.relative_to(PACKAGE).as_posix(): path for path in files}
    return {
        name: routines(path.read_text(encoding="utf-8"))
        for name, path in named.items()
        if not name.startswith("_numerics/")
    }


def test_only_what_is_small_by_its_nature_is_factorised_elsewhere() -> None:
    found = {name: calls for name, calls in callers().items() if calls and name not in SMALL}
    assert found == {}, "use leakscope._numerics.cholesky, eigenvectors or products"


def test_no_exception_outlives_its_call() -> None:
    found = callers()
    assert [name for name in SMALL if not found.get(name)] == []


@pytest.mark.parametrize(
    "line",
    [
        "np.linalg.cholesky(K)",
        "linalg.cho_factor(K)",
        "lapack.dpotrf(K)",
        "eigh(K)",
        "K = X @ X.T",
        "K = phi[:, 1:].T @ phi[:, 1:]",
    ],
)
def test_a_call_is_seen(line: str) -> None:
    assert len(routines(line)) == 1


@pytest.mark.parametrize("line", ["X @ Z.T", "cholesky.factorise(K)", "row_products(X)"])
def test_what_is_allowed_is_not(line: str) -> None:
    assert routines(line) == set()
