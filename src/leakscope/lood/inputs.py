"""What comes in, as arrays that fit together, or a sentence that says what does not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.kernels.kernel import ROUNDING

# Records whose rows of a kernel matrix are compared with their columns.
COMPARED = 64


def require_real(values: ArrayLike, name: str) -> None:
    """Refuse complex numbers, masked entries and dates: NumPy drops part, mask and unit.

    It looks at the type only, and at a mask where there is one.
    """
    array = values if isinstance(values, np.ndarray) else np.asanyarray(values)
    if array.dtype.kind == "c":
        raise InputError(f"{name} must hold real numbers, but the numbers are complex.")
    if array.dtype.kind in "mM":
        raise InputError(f"{name} holds dates or times; turn them into numbers of a unit first.")
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        row = int(np.argwhere(np.ma.getmaskarray(array))[0][0]) if array.ndim else 0
        raise InputError(
            f"{name} has a masked entry in row {row} (rows count from 0): fill it or leave the "
            "record out."
        )


def real_numbers(values: ArrayLike, name: str) -> FloatArray:
    """``values`` as a float64 array, no copy where it is one; a sentence that says why not."""
    try:
        require_real(values, name)
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(f"{name} must be an array of numbers.") from problem


def checked_problem(
    kernel_matrix: ArrayLike, y: ArrayLike, noise_variance: float
) -> tuple[FloatArray, FloatArray]:
    """The matrix and the targets as float64, or a sentence that says what does not fit."""
    matrix = real_numbers(kernel_matrix, "the kernel matrix")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) == 0:
        raise InputError(f"the kernel matrix must be square, but its shape is {matrix.shape}.")
    targets = checked_targets(y, len(matrix), "the kernel matrix")
    require_positive(noise_variance, "noise_variance")
    require_prior(np.diagonal(matrix))
    # All entries of some records, against those of the other triangle, which is never read.
    some = np.unique(np.linspace(0, len(matrix) - 1, COMPARED).astype(np.intp))
    size = np.sqrt(np.diagonal(matrix))
    wrong = np.abs(matrix[some] - matrix[:, some].T) > ROUNDING * np.outer(size[some], size)
    if wrong.any():
        place, column = np.argwhere(wrong)[0]
        raise InputError(
            f"the kernel matrix is not symmetric: records {some[place]} and {column} (counting "
            "from 0) have another covariance the other way round."
        )
    return matrix, targets


def require_prior(prior: FloatArray) -> None:
    """Refuse a record without variance of its own; ``prior`` is K_ii of each."""
    empty = np.flatnonzero(~(np.isfinite(prior) & (prior > 0.0)))
    if empty.size:
        raise InputError(
            f"the kernel of the record in row {empty[0]} with itself is {prior[empty[0]]}; it "
            "must be positive and finite."
        )


def checked_targets(y: ArrayLike, records: int, what: str) -> FloatArray:
    """Targets as float64 of shape (records,) or (records, C)."""
    targets = real_numbers(y, "y")
    if targets.ndim not in (1, 2) or len(targets) != records or targets.size == 0:
        raise InputError(
            f"{what} has {records} records, but the targets' shape is {targets.shape}; it must be "
            f"({records},) or ({records}, outputs)."
        )
    if not np.isfinite(targets).all():
        row = int(np.argmax(~np.isfinite(targets.reshape(records, -1)).all(axis=1)))
        raise InputError(f"y is not finite in row {row} (rows count from 0).")
    return targets


def require_positive(value: float, name: str) -> None:
    """Refuse what is not one positive, finite number."""
    given = np.asarray(value)
    if given.ndim or given.dtype.kind not in "fiu":
        raise InputError(f"{name} must be one positive number, but it is {value!r}.")
    if not (np.isfinite(given) and given > 0.0):
        raise InputError(f"{name} must be positive and finite, but it is {value}.")


def checked_groups(groups: ArrayLike, records: int) -> NDArray[np.intp]:
    """The groups' numbers, one per record, none left out."""
    require_real(groups, "groups")
    labels = np.asarray(groups)
    if labels.shape != (records,) or labels.dtype.kind not in "iu":
        raise InputError(
            f"groups must be one whole number per record, ({records},), but it is an array of "
            f"{labels.dtype} of shape {labels.shape}."
        )
    found = np.unique(labels)
    if found[0] != 0 or found[-1] != len(found) - 1:
        raise InputError(
            f"groups must be numbered from 0 to {len(found) - 1} with none left out, but they run "
            f"from {found[0]} to {found[-1]}."
        )
    return labels.astype(np.intp)


def checked_group(leave_out: Sequence[int], records: int) -> NDArray[np.intp]:
    """The group's row numbers as an array, or a sentence that names the wrong one."""
    group = np.atleast_1d(np.asarray(leave_out))
    if group.ndim != 1 or group.size == 0 or group.dtype.kind not in "iu":
        raise InputError("leave_out must be a list of row numbers, at least one.")
    outside = group[(group < 0) | (group >= records)]
    if outside.size:
        raise InputError(f"leave_out names row {outside[0]}, but rows run from 0 to {records - 1}.")
    if np.unique(group).size != group.size:
        raise InputError("leave_out names a row twice.")
    return group.astype(np.intp)
