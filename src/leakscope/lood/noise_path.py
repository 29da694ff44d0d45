"""Every record's laws at many noise variances, from one eigendecomposition.

Symbols as in :mod:`leakscope.lood.identities`.  With K = U diag(d) U^T and s2 the noise variance,

    h_i = sum_k U_ik^2 d_k/(d_k + s2)      m_i = sum_k U_ik^2/(d_k + s2)
    a   = U diag(1/(d + s2)) U^T y,

so that a further level costs O(n^2) where the dense route costs a factorisation.  All terms of h_i
and m_i are positive: neither loses digits where the other is near 1.

One eigendecomposition costs more than ten factorisations (docs/lood.md): for a few levels
:func:`leakscope.lood.sweep_noise` is quicker.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.lood.all_records import checked_problem
from leakscope.lood.identities import EPS, Leverages, laws_from_leverages
from leakscope.lood.leave_one_out import LeaveOneOut
from leakscope.lood.real_numbers import real_numbers

# How many eps ||M|| an eigendecomposition's backward error is taken to be.  Over 470 records
# refitted at 40 digits the largest error was 0.6 of the estimate that follows, the median 0.02.
ERROR_SHARE = 2.0


def noise_path(
    kernel_matrix: FloatArray, y: FloatArray, *, noise_variances: ArrayLike
) -> Iterator[LeaveOneOut]:
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
        path_bytes(count),
        f"the eigendecomposition of a {count} x {count} matrix",
        "take fewer records, or lood.sweep_noise",
    )
    return _path(matrix, targets, levels)


def path_bytes(records: int) -> int:
    """What the decomposition needs: the matrix, its eigenvectors and LAPACK's workspace."""
    return 8 * 5 * records**2


def _path(matrix: FloatArray, targets: FloatArray, levels: FloatArray) -> Iterator[LeaveOneOut]:
    prior = np.diagonal(matrix)
    found, vectors = scipy.linalg.eigh(matrix, driver="evd", check_finite=True)
    # A kernel matrix has no negative eigenvalue; those that rounding makes are zeros.
    values = np.maximum(found, 0.0)
    outputs = targets.reshape(len(targets), -1)
    turned = vectors.T @ outputs
    squares = vectors**2
    shrunk = 1.0 / (values[:, None] + levels)
    m = squares @ shrunk
    leverage = squares @ (values[:, None] * shrunk)
    reach = squares @ shrunk**2
    for place, level in enumerate(levels.tolist()):
        norm = float(values[-1]) + level
        # The same bounds as in the dense route: rounding must not make a variance negative.
        h = np.clip(leverage[:, place], prior / norm, prior / (prior + level))
        a = vectors @ (shrunk[:, place, None] * turned)
        error_matrix = ERROR_SHARE * EPS * norm
        relative_m = error_matrix * reach[:, place] / m[:, place]
        yield laws_from_leverages(
            Leverages(
                leverage=h,
                m=m[:, place],
                a=a,
                relative_error_h=EPS + relative_m * level * m[:, place] / h,
                relative_error_m=relative_m,
                error_a=error_matrix * np.sqrt(reach[:, place]) * np.linalg.norm(a),
            ),
            targets,
            noise_variance=level,
            condition_number=norm / (float(values[0]) + level),
            route="dense",
        )
