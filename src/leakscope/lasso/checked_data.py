"""A design and its labels as the LASSO's algorithms want them, or one sentence on what is wrong."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError


def checked_data(X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """(n, p) finite design in Fortran order and (n,) finite labels, or an `InputError`."""
    design = np.asarray(X, dtype=np.float64)
    labels = np.asarray(y, dtype=np.float64)
    if design.ndim != 2 or 0 in design.shape:
        raise InputError(
            f"X must be a table of n rows and p columns, but its shape is {design.shape}."
        )
    if labels.shape != (design.shape[0],):
        raise InputError(
            f"y must be {design.shape[0]} labels, one for each row of X, but its shape is "
            f"{labels.shape}."
        )
    with np.errstate(all="ignore"):
        total = design.sum()
    # a sum reads X once and makes no copy; only where it is not finite is a closer look needed
    if not np.isfinite(total) and not np.all(np.isfinite(design)):
        row, column = np.argwhere(~np.isfinite(design))[0]
        raise InputError(f"X has a value that is not finite at row {row}, column {column}.")
    if not np.all(np.isfinite(labels)):
        raise InputError(f"y is not finite at row {int(np.argmin(np.isfinite(labels)))}.")
    return np.asfortranarray(design), labels
