"""Turn what a user passes as a law's parameters into checked, immutable float64 arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from leakscope.errors import InputError

FloatArray = npt.NDArray[np.float64]


def as_parameter(value: Any, law: str, name: str) -> FloatArray:
    """Return ``value`` as a read-only float64 array, or say which entry is not a finite number."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{law}: {name} must be a number or an array of numbers.") from None
    require(array, np.isfinite, law, name, "finite")
    array.setflags(write=False)
    return array


def require(
    array: FloatArray,
    condition: Callable[[FloatArray], npt.NDArray[np.bool_]],
    law: str,
    name: str,
    wanted: str,
) -> None:
    """Raise an `InputError` that names the first entry of ``array`` that fails ``condition``."""
    good = condition(array)
    if np.all(good):
        return
    position = tuple(int(i) for i in np.argwhere(~good)[0])
    if position:
        where = f" at position {position[0] if len(position) == 1 else position}"
    else:
        where = ""
    value = float(array[position])
    raise InputError(f"{law}: {name} must be {wanted}, but it is {value!r}{where}.")


def positive(array: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether each entry is above zero."""
    return np.asarray(array > 0.0)


def not_negative(array: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether each entry is zero or above."""
    return np.asarray(array >= 0.0)


def broadcast(law: str, **parameters: FloatArray) -> tuple[FloatArray, ...]:
    """Broadcast the named parameters together, or say which shapes do not fit."""
    try:
        arrays = np.broadcast_arrays(*parameters.values())
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in parameters.items())
        raise InputError(f"{law}: the parameters' shapes do not fit together: {shapes}.") from None
    return tuple(arrays)
