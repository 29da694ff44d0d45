"""Whether a large product, factor or inverse is what it should be: random vectors ask it.

A linear algebra library can return wrong entries without an error (docs/linear_algebra.md has the
case that was met).  A product is therefore multiplied with a few vectors of random signs, which
costs n^2 where the product cost n^3, and the result is compared with the definition.  An error in
one entry changes one component by that error, so that it cannot hide.

What rounding may do to component i is of the order eps sqrt(n) a_i, with a_i the size of row i
times that of the vector; `MARGIN` times as much is let pass, and is still some 1e-9 of an entry.
"""

from __future__ import annotations

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError

EPS = float(np.finfo(np.float64).eps)

# How many times the error that rounding is expected to leave is still believed to be rounding.
MARGIN = 1000.0

# Below this size a product is a few blocks of the library's own, which every user of it runs.
PROBED_FROM = 1024

VECTORS = 2


class WrongProductError(InputError):
    """The linear algebra library under NumPy or SciPy gave a wrong answer, and it was noticed."""


def signs(size: int) -> FloatArray:
    """(size, `VECTORS`) random signs, always the same for one size."""
    return np.random.default_rng(size).choice([-1.0, 1.0], size=(size, VECTORS))


def require_close(got: FloatArray, wanted: FloatArray, scale: FloatArray, what: str) -> None:
    """Refuse what is further from the definition than rounding explains.

    Parameters
    ----------
    got, wanted
        (n, k) the result times the vectors, and the definition times them.
    scale
        (n,) a_i: the size of row i times that of a vector.
    what
        The computation, in words that stand after "the".
    """
    allowed = MARGIN * EPS * np.sqrt(len(got)) * scale
    wrong = ~(np.abs(got - wanted).max(axis=1) <= allowed)
    if wrong.any():
        raise WrongProductError(
            f"the {what} of {len(got)} records came out wrong in {int(wrong.sum())} rows: "
            f"{blas_in_use()} computes it wrongly on this machine; set OPENBLAS_NUM_THREADS=1 and "
            "start again."
        )


def blas_in_use() -> str:
    """Which linear algebra library this process uses, with its version and its threads."""
    from threadpoolctl import threadpool_info

    found = {
        f"{entry['internal_api']} {entry.get('version') or ''}".strip()
        + f" ({entry.get('architecture') or 'unknown kernels'}, {entry['num_threads']} threads)"
        for entry in threadpool_info()
        if entry.get("user_api") == "blas"
    }
    return " and ".join(sorted(found)) or "the linear algebra library"
