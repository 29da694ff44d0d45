"""Area under the ROC from the size of the likelihood-ratio test alone.

With F(t) = P0(l > t), the ROC's slope at that point is exp(t), and integrating by parts

    1 - AUC = (1/2) integral of exp(t) F(t)^2 dt,

ties counting one half, atoms included.  With s = exp(t) below t = 0 and r = exp(-t) above it, both
halves are integrals over [0, 1] of functions between 0 and 1 (above, because F(t) <= exp(-t)).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

# The double-exponential rule on [0, 1]: any power at the ends of a piece is integrated well.
_STEP = np.arange(-19, 20) * 0.16
_ANGLE = 0.5 * np.pi * np.sinh(_STEP)
_NODES = 1.0 / (1.0 + np.exp(-2.0 * _ANGLE))
_WEIGHTS = 0.16 * 0.25 * np.pi * np.cosh(_STEP) / np.cosh(_ANGLE) ** 2


def auc_by_levels(
    size_of_test: Callable[[FloatArray], FloatArray], levels: FloatArray
) -> FloatArray:
    """AUC of B pairs.

    Parameters
    ----------
    size_of_test
        F at thresholds of shape (B, m).
    levels
        (B, K): where F has kinks, and enough other levels to show where l lies; the pieces of
        the integral end there.
    """
    batch = levels.shape[0]
    missed = np.zeros(batch)
    for sign in (-1.0, 1.0):
        ends = np.exp(-np.maximum(sign * levels, 0.0))
        edge = np.broadcast_to(np.array([0.0, 1.0]), (batch, 2))
        breaks = np.sort(np.concatenate([ends, edge], axis=-1), axis=-1)
        breaks = breaks[:, _used(breaks)]
        width = np.diff(breaks, axis=-1)[..., None]
        x = (breaks[:, :-1, None] + width * _NODES).reshape(batch, -1)
        weight = (width * _WEIGHTS).reshape(batch, -1)
        level = sign * -np.log(np.maximum(x, 1e-300))
        value = size_of_test(level)
        if sign > 0.0:
            value = np.minimum(value / np.maximum(x, 1e-300), 1.0)
        missed += (weight * value * value).sum(axis=-1)
    return np.asarray(1.0 - 0.5 * missed)


def _used(breaks: FloatArray) -> npt.NDArray[np.bool_]:
    """Columns that end a piece of some width in at least one row."""
    wide = (np.diff(breaks, axis=-1) > 0.0).any(axis=0)
    return np.concatenate([wide, [True]])
