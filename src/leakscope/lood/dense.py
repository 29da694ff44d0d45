"""The dense route: every record at its own point, from one factorisation.

All n pairs of the paper's Def. C.3, each queried at its own record, cost one Cholesky
factorisation M = L L^T and one triangular inverse W = L^{-1}, because [M^{-1}]_ii is the squared
length of a column of W (:mod:`leakscope.lood.separation` has the formulas).  No query reveals more
about record i than x_i itself.

**Digits.**  The leverage h_i = 1 - s2 m_i loses its digits only where the noise dominates and h_i
is near 0; it is then summed from K_ij [M^{-1}]_ij, which costs the rest of the inverse.  What is
left is the error of W, estimated for each record and turned into a flag.
"""

from __future__ import annotations

import numpy as np

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.lood.inputs import checked_problem
from leakscope.lood.separation import (
    EPS,
    SMALL_LEVERAGE,
    Leverages,
    Route,
    Separation,
    laws_from_leverages,
)

# The share of eps ||M|| that rounding really uses; benchmarks/lood_accuracy.py calibrates it.
ERROR_SHARE = 0.02

# Fixed random signs z give ||M^{-1} e_i||^2 as the average of (M^{-1} z)_i^2, to a third or so.
PROBES = 16


def all_records(
    kernel_matrix: FloatArray,
    y: FloatArray,
    *,
    noise_variance: float,
    overwrite: bool = False,
) -> Separation:
    """The laws with and without each record, at that record, for all records at once.

    Parameters
    ----------
    kernel_matrix
        K, n by n, symmetric.
    y
        Targets, (n,) or (n, C).  They are used as they are; the process's prior mean is zero.
    noise_variance
        s2, in squared units of the target.
    overwrite
        Use the kernel matrix's memory for the factorisation.  What is left of the matrix is its
        strict upper (C-ordered: lower) triangle.

    Raises
    ------
    InputError
        Where shapes do not fit, a record has no variance of its own, or K + s2 I is not positive
        definite to working precision.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> result = lood.all_records(np.eye(2), np.array([0.0, 2.0]), noise_variance=1.0)
    >>> result.mean_with.round(12).tolist(), result.variance_with.round(12).tolist()
    ([0.0, 1.0], [0.5, 0.5])
    >>> result.mean_without.round(12).tolist(), result.variance_without.round(12).tolist()
    ([0.0, 0.0], [1.0, 1.0])
    """
    matrix, targets = checked_problem(kernel_matrix, y, noise_variance)
    prior = np.diagonal(matrix).copy()
    factor = factorise(matrix, noise_variance, overwrite=overwrite)
    outputs = targets.reshape(len(targets), -1)
    solved = cholesky.solve(factor, np.column_stack([outputs, probes(len(targets))]))
    condition_number = cholesky.condition_number(factor)
    half = cholesky.inverse_factor(factor, overwrite=True)
    m = half.inverse_diagonal()
    leverage, leverage_error = _leverage(half, m, prior, noise_variance, factor.norm)
    return laws_from_leverages(
        _with_errors(leverage, leverage_error, m, solved, noise_variance, factor.norm),
        targets,
        noise_variance=noise_variance,
        condition_number=condition_number,
        route="dense",
    )


def probes(size: int) -> FloatArray:
    """The same random signs every time, (size, PROBES)."""
    signs = np.random.default_rng(0).integers(0, 2, size=(size, PROBES))
    return np.asarray(2.0 * signs - 1.0)


def _with_errors(
    leverage: FloatArray,
    leverage_error: FloatArray,
    m: FloatArray,
    solved: FloatArray,
    noise_variance: float,
    norm: float,
) -> Leverages:
    """What was computed, with what rounding can have done to it.

    ``leverage_error`` is the rounding error of how h_i was read off, ``solved`` M^{-1} times the
    targets and the `probes` beside them, ``norm`` the 1-norm of M.
    """
    a, reach = solved[:, :-PROBES], np.mean(solved[:, -PROBES:] ** 2, axis=1)
    error_matrix = ERROR_SHARE * EPS * norm
    # A change E of M changes m_i by at most ||E|| ||M^{-1} e_i||^2 and a_i by at most
    # ||E|| ||M^{-1} e_i|| ||a||; both are eps times the condition number at worst, and far less
    # for a record that the ill-conditioned directions do not touch.
    relative_m = error_matrix * reach / m
    return Leverages(
        leverage=leverage,
        m=m,
        a=a,
        relative_error_h=(leverage_error + relative_m * noise_variance * m) / leverage,
        relative_error_m=relative_m,
        error_a=error_matrix * np.sqrt(reach) * np.linalg.norm(a),
    )


def laws_by_difference(
    m: FloatArray,
    solved: FloatArray,
    prior: FloatArray,
    targets: FloatArray,
    *,
    noise_variance: float,
    norm: float,
    condition_number: float,
    route: Route,
) -> Separation:
    """The laws with h_i = 1 - s2 m_i, for routes that never hold M^{-1}.

    ``m`` is the diagonal of M^{-1}, ``solved`` M^{-1} times the targets and the `probes` beside
    them, ``prior`` K_ii and ``norm`` the 1-norm of M.
    """
    leverage = _bounded(1.0 - noise_variance * m, prior, noise_variance, norm)
    error = EPS * noise_variance * m
    return laws_from_leverages(
        _with_errors(leverage, error, m, solved, noise_variance, norm),
        targets,
        noise_variance=noise_variance,
        condition_number=condition_number,
        route=route,
    )


def factorise(
    kernel_matrix: FloatArray, noise_variance: float, *, overwrite: bool = False
) -> cholesky.Factor:
    """Factorise M = K + s2 I, or say what to do where it is not positive definite."""
    matrix = kernel_matrix
    if not overwrite or not matrix.flags.writeable:
        matrix = matrix.copy()
    matrix[np.diag_indices(len(matrix))] += noise_variance
    try:
        return cholesky.factorise(matrix, overwrite=True)
    except np.linalg.LinAlgError as error:
        raise not_positive_definite(noise_variance, error) from error


def not_positive_definite(noise_variance: float, why: object) -> InputError:
    """The sentence for a matrix that cannot be factorised."""
    return InputError(
        f"the kernel matrix with noise_variance {noise_variance:g} on its diagonal is not "
        f"positive definite in float64 ({why}): raise noise_variance, or check for repeated "
        "records."
    )


def _leverage(
    half: cholesky.InverseFactor,
    m: FloatArray,
    prior: FloatArray,
    noise_variance: float,
    norm: float,
) -> tuple[FloatArray, FloatArray]:
    """h_i = [K M^{-1}]_ii by the better of two exact forms, with a bound on its rounding error."""
    leverage = 1.0 - noise_variance * m
    error = EPS * noise_variance * m
    if np.min(leverage) < SMALL_LEVERAGE:
        inverse = cholesky.inverse(half, overwrite=True)
        off_diagonal, magnitude = inverse.off_diagonal_products()
        products_error = EPS * (prior * m + magnitude)
        better = products_error < error
        leverage = np.where(better, prior * m + off_diagonal, leverage)
        error = np.where(better, products_error, error)
    return _bounded(leverage, prior, noise_variance, norm), error


def _bounded(
    leverage: FloatArray, prior: FloatArray, noise_variance: float, norm: float
) -> FloatArray:
    # x/(x + s2) over the spectrum of K is concave and at least x/||M||: rounding cannot be
    # allowed to leave these bounds, or a variance would come out negative.
    return np.clip(leverage, prior / norm, prior / (prior + noise_variance))
