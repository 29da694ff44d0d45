"""Arrays that come in: real numbers, all of them given, as float64."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError


def require_real(values: ArrayLike, name: str) -> None:
    """Refuse complex numbers, masked entries and dates: NumPy drops part, mask and unit.

    It looks at the type only, and at a mask where there is one.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> lood.require_real(np.array([1.0, 2.0]), "targets")
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
