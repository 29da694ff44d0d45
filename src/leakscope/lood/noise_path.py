"""Every record's laws at many noise variances, from one eigendecomposition of a kernel matrix."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.lood.all_records import checked_problem
from leakscope.lood.real_numbers import real_numbers
from leakscope.lood.separation import Separation
from leakscope.lood.spectrum import Spectrum, spectrum_bytes


def noise_path(
    kernel_matrix: FloatArray, y: FloatArray, *, noise_variances: ArrayLike
) -> Iterator[Separation]:
    """The laws with and without each record, at each noise variance in turn.

    What :func:`leakscope.lood.all_records` says at each level.  ``condition_number`` is in the
    2-norm here.

    Parameters
    ----------
    kernel_matrix
        K, n by n, symmetric.
    y
        Targets, (n,) or (n, C), used as they are; the prior mean is zero.
    noise_variances
        (L,) the levels, in any order, in squared units of the target.

    Raises
    ------
    InputError
        Where shapes do not fit or a level is not positive, before anything is computed.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> path = lood.noise_path(np.eye(2), np.array([0.0, 2.0]), noise_variances=[1.0, 3.0])
    >>> [laws.leverage.round(12).tolist() for laws in path]
    [[0.5, 0.5], [0.25, 0.25]]
    """
    levels = np.atleast_1d(real_numbers(noise_variances, "noise_variances"))
    if levels.ndim != 1 or levels.size == 0:
        raise InputError(f"noise_variances must be a list, but its shape is {levels.shape}.")
    for level in levels:
        matrix, targets = checked_problem(kernel_matrix, y, float(level))
    count = len(matrix)
    require_memory(
        spectrum_bytes(count),
        f"the eigendecomposition of a {count} x {count} matrix",
        "take fewer records, or lood.sweep_noise",
    )
    return Spectrum.of(matrix).path(targets, levels)
