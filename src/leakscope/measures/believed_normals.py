"""A test by normals that the attacker believes in, scored by the laws that hold.

An attacker who trains shadow models does not know the two laws of a score: he has normals whose
means and variances he estimated, or got from a wrong assumption.  His score is their log ratio,

    L(y) = log N(y; m1, s1^2) - log N(y; m0, s0^2) = a y^2 + b y + c,

and for each of his beliefs {L > t} is an interval or what is outside one, so that its probability
under normal laws is closed.  TPR and FPR are means of that over records and beliefs, at one
threshold t for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws.distributions import Normal
from leakscope.laws.pair import LawPair

# Thresholds at which the ROC is looked at before its best point is refined.
_THRESHOLDS = np.sinh(np.linspace(-4.0, 4.0, 33))
_MOST = 1e15


@dataclass(frozen=True)
class BelievedMeasures:
    """What a test by believed normals gets, with standard errors over the beliefs.

    ``threshold`` is the log ratio from which on the test with this advantage says "member".
    """

    advantage: float
    advantage_stderr: float
    threshold: float
    tpr_at_fpr: dict[float, float]
    tpr_stderr: dict[float, float]


def believed_measures(
    pair: LawPair,
    belief: LawPair,
    weights: npt.ArrayLike | None = None,
    *,
    fpr: Sequence[float] = (0.01,),
    groups: int = 1,
) -> BelievedMeasures:
    """Advantage and TPR of the likelihood ratio of ``belief`` where ``pair`` holds.

    Parameters
    ----------
    pair, belief
        Normals, (J, R): J records, R beliefs that are equally likely (and may meet a law each).
    weights
        The records' shares, (J,); equal where left out.
    groups
        The beliefs are drawn in so many independent groups of equal size, one after the other;
        standard errors are over them.  With one there are none.

    Examples
    --------
    Who believes the laws that hold has the best test; who is wrong about one spread has not.

    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures.believed_normals import believed_measures
    >>> pair = LawPair(Normal([[0.0]], 1.0), Normal([[0.0]], 2.0))
    >>> wrong = LawPair(Normal([[0.0]], 1.0), Normal([[0.5]], 1.1))
    >>> [round(believed_measures(pair, one).advantage, 4) for one in (pair, wrong)]
    [0.3227, 0.1625]
    """
    laws = (pair.member, pair.nonmember, belief.member, belief.nonmember)
    if not all(isinstance(law, Normal) for law in laws) or len(pair.batch_shape) != 2:
        raise InputError("Believed measures are of normal laws, for each record and belief.")
    true = [law for law in laws[:2] if isinstance(law, Normal)]
    (m1, s1), (m0, s0) = ((law.mean, law.sigma) for law in laws[2:] if isinstance(law, Normal))
    count = pair.batch_shape[0]
    share = np.ones(count) if weights is None else np.asarray(weights, dtype=np.float64)
    share = share / share.sum()
    a = 0.5 * (1.0 / s0**2 - 1.0 / s1**2)
    b = m1 / s1**2 - m0 / s0**2
    c = np.log(s0 / s1) + 0.5 * ((m0 / s0) ** 2 - (m1 / s1) ** 2)
    # A line is a parabola whose other root is at infinity.
    a = np.where(a == 0.0, 1e-300, a)
    outside = a > 0.0
    sign = np.where(outside, 1.0, -1.0)

    def rates(threshold: float) -> FloatArray:
        """TPR and FPR of each group, (2, groups)."""
        low, high = _roots(a, b, c - threshold)
        found = []
        for law in true:
            first, last = (low - law.mean) / law.sigma, (high - law.mean) / law.sigma
            # P(outside) = Phi(first) + Phi(-last), P(inside) = Phi(last) - Phi(first)
            above = special.ndtr(np.where(outside, first, last))
            above += sign * special.ndtr(np.where(outside, -last, first))
            above = share @ above
            found.append(above.reshape(groups, -1).mean(axis=1))
        return np.stack(found)

    def gain(threshold: float) -> float:
        return float((rates(threshold).mean(axis=1) * (1.0, -1.0)).sum())

    gains = [gain(float(threshold)) for threshold in _THRESHOLDS]
    best = int(np.argmax(gains))
    ends = _THRESHOLDS[max(best - 1, 0)], _THRESHOLDS[min(best + 1, _THRESHOLDS.size - 1)]
    # The curve is flat at its top; who stops a little beside it loses to second order.
    refined = optimize.minimize_scalar(
        lambda threshold: -gain(threshold), bounds=ends, method="bounded", options={"xatol": 1e-4}
    )
    at = float(refined.x) if -refined.fun >= gains[best] else float(_THRESHOLDS[best])
    each = rates(at)
    tpr, errors = {}, {}
    for level in fpr:
        tpr[float(level)], errors[float(level)] = _power(rates, float(level))
    return BelievedMeasures(
        max(float((each[0] - each[1]).mean()), 0.0), _stderr(each[0] - each[1]), at, tpr, errors
    )


def _power(rates: Callable[[float], FloatArray], level: float) -> tuple[float, float]:
    """TPR at the threshold whose FPR is ``level``, and its standard error with that of the FPR."""
    if level <= 0.0:
        return 0.0, 0.0
    if level >= 1.0:
        return 1.0, 0.0

    def excess(threshold: float) -> float:
        return float(np.log(max(rates(threshold)[1].mean(), 1e-300)) - np.log(level))

    low, high = -1.0, 1.0
    while excess(high) > 0.0 and high < _MOST:
        low, high = high, 4.0 * high
    while excess(low) < 0.0 and low > -_MOST:
        low = 4.0 * low
    at = float(optimize.brentq(excess, low, high, xtol=1e-7, rtol=1e-7))
    here, step = rates(at), 1e-3 * max(1.0, abs(at))
    beside = rates(at + step).mean(axis=1)
    run = beside[1] - here[1].mean()
    slope = (beside[0] - here[0].mean()) / run if run != 0.0 else 0.0
    return float(here[0].mean()), _stderr(here[0] - slope * here[1])


def _roots(a: FloatArray, b: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both roots of a y^2 + b y + c, in order; none is (0, 0): all is outside, nothing inside."""
    square = b * b - 4.0 * a * c
    some = square > 0.0
    q = -0.5 * (b + np.copysign(np.sqrt(np.maximum(square, 0.0)), b))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        first, second = q / a, np.where(q == 0.0, 0.0, c / q)
    first, second = np.where(some, first, 0.0), np.where(some, second, 0.0)
    return np.minimum(first, second), np.maximum(first, second)


def _stderr(values: FloatArray) -> float:
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else 0.0
