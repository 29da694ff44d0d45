"""What a test's rates mean to a person: how sure an accusation is, given how likely it was before.

A test with true-positive rate TPR and false-positive rate FPR accuses some people of having been in
the training set.  How many of those were there depends on the prior: the share of members among all
whom the attacker might ask about.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws.distributions import Normal
from leakscope.laws.pair import LawPair
from leakscope.settings.measure import MEASURE_DEFAULTS

# Thresholds of a score that are tried, and records that stand for a larger number of them.
THRESHOLDS = 801
MOST_RECORDS = 5_000


def positive_predictive_value(tpr: ArrayLike, fpr: ArrayLike, prior: float) -> FloatArray:
    """The share of members among those whom the test accuses.

    Parameters
    ----------
    tpr, fpr
        Rates of the test; the false-positive rate is above zero.
    prior
        The share of members among those whom the attacker might ask about.

    Examples
    --------
    One in a hundred is a member; the test finds a tenth of them, and accuses one nonmember in a
    thousand.

    >>> from leakscope.measures import positive_predictive_value
    >>> round(float(positive_predictive_value(0.1, 0.001, prior=0.01)), 3)
    0.503
    """
    rate, false = _rates(tpr, fpr, prior)
    return np.asarray(prior * rate / (prior * rate + (1.0 - prior) * false))


def lift(tpr: ArrayLike, fpr: ArrayLike, prior: float) -> FloatArray:
    """How many times likelier than before it is that somebody accused is a member."""
    return np.asarray(positive_predictive_value(tpr, fpr, prior) / prior)


def tolerable_tpr(fpr: float, prior: float, ppv: float) -> float:
    """The largest TPR at this FPR with which no accusation is right more often than ``ppv``.

    Bayes' rule, solved for the TPR: ``fpr * ppv / (1 - ppv) * (1 - prior) / prior``, and 1 at most.

    Examples
    --------
    >>> from leakscope.measures import positive_predictive_value, tolerable_tpr
    >>> tpr = tolerable_tpr(0.001, prior=0.01, ppv=0.5)
    >>> round(tpr, 4), round(float(positive_predictive_value(tpr, 0.001, 0.01)), 6)
    (0.099, 0.5)
    """
    _rates(0.0, fpr, prior)
    if not 0.0 < ppv < 1.0:
        raise InputError(f"ppv must be between 0 and 1, but it is {ppv!r}.")
    return min(1.0, fpr * ppv / (1.0 - ppv) * (1.0 - prior) / prior)


def one_threshold(pair: LawPair, fpr: tuple[float, ...] = MEASURE_DEFAULTS.fpr) -> dict[str, float]:
    """What one threshold on the score, the same for every record, achieves over all of them.

    It is what two samples of scores show, those of members and those of nonmembers, and less than
    a test of each record's own.  The keys are ``advantage``, ``auc`` and the FPRs as text.

    Parameters
    ----------
    pair
        Normal laws of a score, one per record; beyond 5,000 records evenly spaced ones stand for
        all.
    fpr
        False-positive rates.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import one_threshold
    >>> pair = LawPair(Normal([1.0, 101.0], [1.0, 1.0]), Normal([0.0, 100.0], [1.0, 1.0]))
    >>> found = one_threshold(pair, fpr=(0.01,))
    >>> round(found["advantage"], 3), round(found["auc"], 2)
    (0.191, 0.63)
    """
    if not (isinstance(pair.member, Normal) and isinstance(pair.nonmember, Normal)):
        raise InputError("one threshold for all records needs normal laws of a score.")
    from scipy import special

    size = int(np.prod(pair.batch_shape, dtype=int))
    rows = np.unique(np.linspace(0, size - 1, min(size, MOST_RECORDS)).astype(np.intp))
    flat = pair.reshape(size).take(rows)
    sides = [
        (np.ravel(law.mean), np.ravel(law.sigma))
        for law in (flat.member, flat.nonmember)
        if isinstance(law, Normal)
    ]
    steps = np.linspace(-4.0, 4.0, 17)
    values = np.concatenate([(mean + sd * step) for mean, sd in sides for step in steps])
    cuts = np.quantile(values, np.linspace(0.0, 1.0, THRESHOLDS))
    # From the highest threshold to the lowest, so that both rates rise from 0 to 1.
    found, passed = (
        np.array([0.0, *(float(special.ndtr((mean - cut) / sd).mean()) for cut in cuts[::-1]), 1.0])
        for mean, sd in sides
    )
    return {
        "advantage": max(0.0, float(np.max(found - passed))),
        "auc": float(integrate.trapezoid(found, passed)),
        **{f"{level:g}": float(np.interp(level, passed, found)) for level in fpr},
    }


def _rates(tpr: ArrayLike, fpr: ArrayLike, prior: float) -> tuple[FloatArray, FloatArray]:
    rate, false = np.asarray(tpr, dtype=np.float64), np.asarray(fpr, dtype=np.float64)
    if not 0.0 < prior < 1.0:
        raise InputError(f"prior must be between 0 and 1, but it is {prior!r}.")
    if not (np.all(rate >= 0.0) and np.all(rate <= 1.0)):
        raise InputError("tpr must be from 0 to 1.")
    if not (np.all(false > 0.0) and np.all(false <= 1.0)):
        raise InputError("fpr must be above 0 and at most 1.")
    return rate, false
