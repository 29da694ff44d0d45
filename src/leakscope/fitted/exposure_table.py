"""Advantage and TPR of very many pairs of normals, by tables that `leakscope.measures` fills.

A pair of normals is told apart by two numbers: the distance of the means in units of the
nonmember's standard deviation, and the ratio of the standard deviations.  Posterior draws are
millions of such pairs; the measures are smooth in the two numbers, so they are computed on a grid
and interpolated.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.interpolate import RectBivariateSpline

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope.laws import LawPair, Normal

DISTANCES, RATIOS = 321, 161
MOST_DISTANCE, MOST_LOG_RATIO = 40.0, 4.0


@lru_cache(maxsize=8)
def _table(fpr: float | None) -> RectBivariateSpline:
    place = np.linspace(0.0, np.arcsinh(MOST_DISTANCE), DISTANCES)
    log_ratio = np.linspace(-MOST_LOG_RATIO, MOST_LOG_RATIO, RATIOS)
    distance, ratio = np.meshgrid(np.sinh(place), np.exp(log_ratio), indexing="ij")
    pair = LawPair(Normal(distance, ratio), Normal(0.0, 1.0))
    if fpr is None:
        values = measures.advantage(pair)
    else:
        values = measures.tpr_at_fpr(pair, fpr)
    return RectBivariateSpline(place, log_ratio, np.asarray(values), kx=1, ky=1)


def tabulated(
    shift: FloatArray, sigma_out: FloatArray, sigma_in: FloatArray, fpr: float | None = None
) -> FloatArray:
    """The advantage, or with ``fpr`` the TPR there, of normals with these shifts and spreads."""
    place = np.arcsinh(np.minimum(np.abs(shift) / sigma_out, MOST_DISTANCE))
    log_ratio = np.clip(np.log(sigma_in / sigma_out), -MOST_LOG_RATIO, MOST_LOG_RATIO)
    return np.asarray(_table(fpr)(place, log_ratio, grid=False))
