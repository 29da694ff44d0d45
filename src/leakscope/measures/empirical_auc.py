"""Area under the ROC curve from two samples of scores."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope.measures.empirical_ranks import Floats, Ranks, by_blocks, check_confidence
from leakscope.measures.estimate import Estimate
from leakscope.settings import MEASURE_DEFAULTS

__all__ = ["auc"]

_FEW_ERRORS = 5.0


def auc(
    member: npt.ArrayLike, nonmember: npt.ArrayLike, confidence: float = MEASURE_DEFAULTS.confidence
) -> Estimate:
    """Estimate the chance that a random member outscores a random nonmember, ties one half.

    The attacker is a threshold test on the score (score high -> member).  The estimator is that
    of Mann and Whitney.  The interval is symmetric on the logit scale with the variance of DeLong
    et al. [1]_ and the Satterthwaite degrees of freedom of Brunner and Munzel [2]_.  Where fewer
    than five errors are seen (min(AUC, 1 - AUC) * min(n_member, n_nonmember) < 5), that variance
    is too uncertain and the interval is widened to its hull with the score interval of Newcombe
    [3]_ (Hanley and McNeil's variance at the tested value).  Where the variance is 0 (perfect
    separation, or all scores equal) an exact interval is used: min(n_member, n_nonmember)
    disjoint pairs are independent, and Clopper-Pearson applies to them.

    Parameters
    ----------
    member, nonmember : array_like, shapes (..., n_member) and (..., n_nonmember)
        Finite scores, at least 2 of each; leading axes are a batch and broadcast.
    confidence : float
        Confidence of the interval.

    Returns
    -------
    Estimate
        Arrays of the batch shape; no leakage is 0.5.  The value is unbiased.

    References
    ----------
    .. [1] E. DeLong, D. DeLong, D. Clarke-Pearson, Biometrics 44, 1988.
    .. [2] E. Brunner, U. Munzel, Biometrical Journal 42, 2000.
    .. [3] R. Newcombe, Statistics in Medicine 25, 2006, method 5.

    Examples
    --------
    >>> found = auc([0.9, 0.8, 0.3], [0.8, 0.2, 0.1])
    >>> print(round(float(found.value), 3), found.method)
    0.833 Mann-Whitney, DeLong on the logit scale
    """
    level = check_confidence(confidence)
    value, low, high = by_blocks(member, nonmember, lambda ranks: _auc(ranks, level))
    return Estimate(value, low, high, confidence, "Mann-Whitney, DeLong on the logit scale", "")


def _auc(ranks: Ranks, level: float) -> tuple[Floats, Floats, Floats]:
    n_member, n_nonmember = ranks.member.shape[-1], ranks.nonmember.shape[-1]
    beaten = _placements(ranks.member, np.sort(ranks.nonmember, axis=-1), ranks.size)
    beating = 1.0 - _placements(ranks.nonmember, np.sort(ranks.member, axis=-1), ranks.size)
    value = beaten.mean(axis=-1)
    part_member = beaten.var(axis=-1, ddof=1) / n_member
    part_nonmember = beating.var(axis=-1, ddof=1) / n_nonmember
    variance = part_member + part_nonmember

    smaller = min(n_member, n_nonmember)
    edge = (level / 2.0) ** (1.0 / smaller)
    separated = np.where(value > 0.75, 1.0, np.where(value < 0.25, 0.0, 0.5))
    low = np.select([separated == 1.0, separated == 0.0], [edge, 0.0], 0.5 - (1.0 - edge) / 2.0)
    high = np.select([separated == 1.0, separated == 0.0], [1.0, 1 - edge], 0.5 + (1 - edge) / 2.0)

    # Rounding can leave a variance of 1e-33 where it is 0.
    usable = variance > 1e-12 / (n_member * n_nonmember)
    safe = np.where(usable, variance, 1.0)
    freedom = safe**2 / np.where(
        usable, part_member**2 / (n_member - 1) + part_nonmember**2 / (n_nonmember - 1), 1.0
    )
    centre = np.where(usable, np.clip(value, 1e-300, 1 - 1e-16), 0.5)
    quantile = special.stdtrit(np.maximum(freedom, 1.0), 1.0 - level / 2.0)
    half = quantile * np.sqrt(safe) / (centre * (1.0 - centre))
    low = np.where(usable, special.expit(special.logit(centre) - half), low)
    high = np.where(usable, special.expit(special.logit(centre) + half), high)

    few = usable & (np.minimum(value, 1.0 - value) * smaller < _FEW_ERRORS - 1e-9)
    if few.any():
        normal = float(special.ndtri(1.0 - level / 2.0))
        outer = _score_interval(value[few], n_member, n_nonmember, normal)
        low[few] = np.minimum(low[few], outer[0])
        high[few] = np.maximum(high[few], outer[1])
    return value, np.minimum(low, value), np.maximum(high, value)


def _placements(
    scores: npt.NDArray[np.int64], reference: npt.NDArray[np.int64], size: int
) -> Floats:
    """Return the share of the reference sample that each score exceeds, ties one half."""
    rows, count = reference.shape
    offset = np.arange(rows, dtype=np.int64)[:, None] * size
    flat, query = (reference + offset).ravel(), (scores + offset).ravel()
    both = np.searchsorted(flat, query, side="left") + np.searchsorted(flat, query, side="right")
    below = both.reshape(scores.shape) - 2 * np.arange(rows)[:, None] * count
    return np.asarray(below / (2.0 * count), dtype=np.float64)


def _score_interval(
    value: Floats, n_member: int, n_nonmember: int, normal: float
) -> tuple[Floats, Floats]:
    """Return the ends of {theta : |value - theta| <= normal * sd(theta)} by bisection."""
    weight = (n_member + n_nonmember) / 2.0 - 1.0

    def outside(theta: Floats) -> npt.NDArray[np.bool_]:
        spread = 1.0 + weight * ((1.0 - theta) / (2.0 - theta) + theta / (1.0 + theta))
        variance = theta * (1.0 - theta) * spread / (n_member * n_nonmember)
        return np.asarray((value - theta) ** 2 > normal**2 * variance)

    ends = []
    for far in (0.0, 1.0):
        out, inside = np.full_like(value, far), value.copy()
        for _ in range(60):
            middle = 0.5 * (out + inside)
            beyond = outside(middle)
            out, inside = np.where(beyond, middle, out), np.where(beyond, inside, middle)
        ends.append(out)
    return ends[0], ends[1]
