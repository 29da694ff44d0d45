"""The question of known others: the fit with the record and the fit without it, two points.

Noise on the answers or on the coefficients, or a posterior draw, makes laws of them again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope.fitted.leave_one_out import leave_one_out
from leakscope.fitted.losses import LOSSES
from leakscope.fitted.problem import ConvexProblem
from leakscope.fitted.scalar_laws import PredictionLaws


def known_others(problem: ConvexProblem) -> PredictionLaws:
    """Both scores of every record; nothing is random, so the standard deviations are zero."""
    found = leave_one_out(problem)
    inside, outside = found.prediction, found.without
    yield_out = None
    if found.leverage is not None:
        h = problem.sample_weights * LOSSES[problem.loss].curvature(inside, problem.y)
        yield_out = found.leverage / np.maximum(1.0 - h * found.leverage, 1e-12)
    if problem.loss == "softmax":
        inside, outside = (own_log_odds(z, problem.y) for z in (inside, outside))
    zero = np.zeros(problem.records)
    return PredictionLaws(
        mean_in=inside,
        sd_in=zero,
        mean_out=outside,
        sd_out=zero,
        rounds=1,
        change=found.last_step,
        converged=found.last_step <= 1e-6,
        smoothing_gap=0.0,
        largest_share=np.full(problem.records, np.nan),
        yield_in=found.leverage,
        yield_out=yield_out,
        moved=found.moved,
    )


def own_log_odds(z: FloatArray, y: npt.NDArray[Any]) -> FloatArray:
    """log p(own label) - log(1 - p), from the logits of all classes (the last axis)."""
    rows = np.arange(z.shape[-2])
    codes = y.astype(int)
    own = z[..., rows, codes]
    others = np.array(z, dtype=np.float64)
    others[..., rows, codes] = -np.inf
    top = others.max(axis=-1)
    return np.asarray(own - top - np.log(np.exp(others - top[..., None]).sum(axis=-1)))
