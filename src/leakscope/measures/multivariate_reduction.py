"""Bring two multivariate normals to coordinates in which both are independent.

With C0 = L0 L0^T and the eigenvectors U of L0^-1 C1 L0^-T, the coordinates U^T L0^-1 (x - m0)
are standard normal under the nonmember law and independent with variances lam and means mu under
the member law.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leakscope.laws import MultivariateNormal

FloatArray = npt.NDArray[np.float64]


def canonical_form(
    member: MultivariateNormal, nonmember: MultivariateNormal
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means ``mu``, ``excess`` = lam - 1 and ``lam`` of a flat batch of pairs, (B, d) each.

    Nearly equal covariances are subtracted before they are whitened, so that the excess keeps
    its digits; very different ones go through singular values of L0^-1 L1, which keep the digits
    of small variances beside large ones.
    """
    factor = nonmember.cholesky
    difference = _whiten(factor, member.covariance - nonmember.covariance)
    difference = _whiten(factor, np.swapaxes(difference, -1, -2))
    excess, vectors = np.linalg.eigh(0.5 * (difference + np.swapaxes(difference, -1, -2)))
    variance = 1.0 + excess
    far = np.abs(excess).max(axis=-1) > 0.5
    if far.any():
        left, singular, _ = np.linalg.svd(_whiten(factor[far], member.cholesky[far]))
        excess[far], variance[far] = (singular - 1.0) * (singular + 1.0), singular * singular
        vectors[far] = left
    shift = _whiten(factor, (member.mean - nonmember.mean)[..., None])
    mu = (np.swapaxes(vectors, -1, -2) @ shift)[..., 0]
    return mu, excess, variance


def _whiten(factor: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.solve(factor, right))
