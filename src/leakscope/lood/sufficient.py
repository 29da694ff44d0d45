"""The coordinates in which two posteriors differ, and everything that is computed from them.

The two laws of what the model says at q queries, with and without g left-out records, differ only
in r <= min(g, q) coordinates: with Sigma' the covariance with the records and the one without them
Sigma = Sigma' + U U^T (U is q x g), the coordinates are those of U^T Sigma'^{-1} f(Q), and
everything orthogonal to them has the same conditional law under both.  Scaled and turned,
coordinate i of output c is

    N(sqrt(x_i) t_ic, 1) with the records,    N(0, 1 + x_i) without them,

where x_i are the eigenvalues of U^T Sigma'^{-1} U, the ``excess``, and t_ic is the ``score`` of
the labels, a translation by the mean without the records being left out.  Hence, per output,

    KL(without || with) = sum_i [x_i - log(1 + x_i)]/2 + sum_i x_i t_i^2/2
    KL(with || without) = sum_i [log(1 + x_i) - u_i]/2 + sum_i u_i t_i^2/2,   u_i = x_i/(1 + x_i).

which are `leakscope.measures.kl_parts` and `kl_reverse_parts`.  For one left-out record r = 1: q
queries reduce to one `Normal` pair, exactly.
"""

from __future__ import annotations

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.laws import LawPair, MultivariateNormal, Normal, Provenance


def sufficient_pair(excess: FloatArray, score: FloatArray, provenance: Provenance) -> LawPair:
    """The pair of laws of the r x C coordinates; `Normal` where there is only one.

    Parameters
    ----------
    excess
        (r,) x_i.
    score
        (r, C) t_ic.
    provenance
        Of the laws these coordinates were taken from.
    """
    shift = np.sqrt(excess)[:, None] * score
    return coordinate_pair(shift, np.ones_like(excess), 1.0 + excess, provenance)


def coordinate_pair(
    shift: FloatArray,
    variance_with: FloatArray,
    variance_without: FloatArray,
    provenance: Provenance,
) -> LawPair:
    """The room's one builder of pairs: independent coordinates, centred at the mean without.

    Parameters
    ----------
    shift
        (..., r, C) the mean with, output by output.
    variance_with, variance_without
        (..., r), the same for every output.
    provenance
        Of the laws these coordinates were taken from.
    """
    width = shift.shape[-2] * shift.shape[-1]
    if width == 1:
        centred = shift[..., 0, 0]
        return LawPair(
            Normal(centred, np.sqrt(variance_with[..., 0])),
            Normal(np.zeros_like(centred), np.sqrt(variance_without[..., 0])),
            provenance,
        )
    mean = shift.reshape(*shift.shape[:-2], width)
    identity = np.eye(width)
    spread = (
        np.repeat(variance, shift.shape[-1], axis=-1)[..., None] * identity
        for variance in (variance_with, variance_without)
    )
    return LawPair(
        MultivariateNormal(mean, next(spread)),
        MultivariateNormal(np.zeros_like(mean), next(spread)),
        provenance,
    )
