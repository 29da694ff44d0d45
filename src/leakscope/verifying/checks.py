"""A prediction against a measurement: z-scores, verdicts, correlations, which records to check."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.keys import Key, as_key
from leakscope.data.datasets import RecordId
from leakscope.errors import InputError

Verdict = Literal["agrees", "differs", "inconclusive"]

# How many false alarms are allowed over all the checks of one verification, on average.
FALSE_ALARMS = 0.01


@dataclass(frozen=True)
class NumberCheck:
    """One number of a law: what was predicted, what was measured, and what to make of it.

    Parameters
    ----------
    law
        Which law, for example ``"record 17, with it"``.
    quantity
        Which of its numbers.
    predicted, measured
        The two values.
    stderr
        Standard error of their difference.
    resolution
        The largest standard error with which the check says anything: beyond it, agreeing would
        be no evidence.
    score
        The z-score, where the difference in standard errors is not normal, as of few answers
        (:func:`mean_score`, :func:`spread_score`): the normal number of the same tail.

    Examples
    --------
    >>> from leakscope.verifying.checks import NumberCheck
    >>> check = NumberCheck("record 3", "mean", 1.0, 1.1, stderr=0.05, resolution=0.2)
    >>> round(check.z, 3), check.verdict()
    (2.0, 'agrees')
    >>> check.verdict(threshold=1.9)
    'differs'
    """

    law: str
    quantity: str
    predicted: float
    measured: float
    stderr: float
    resolution: float
    score: float | None = None

    @property
    def z(self) -> float:
        """(measured - predicted) / standard error; infinite where they differ without one."""
        if self.score is not None:
            return self.score
        difference = self.measured - self.predicted
        if self.stderr > 0.0:
            return difference / self.stderr
        return 0.0 if difference == 0.0 else math.copysign(math.inf, difference)

    def verdict(self, threshold: float = 3.5) -> Verdict:
        """In words; the threshold is :func:`threshold_for` the number of checks made together."""
        if not (math.isfinite(self.predicted) and math.isfinite(self.measured)):
            return "inconclusive"
        if abs(self.z) > threshold:
            return "differs"
        return "agrees" if self.stderr <= self.resolution else "inconclusive"


def threshold_for(count: int, false_alarms: float = FALSE_ALARMS) -> float:
    """The |z| beyond which a check differs, when ``count`` are made and none should by chance.

    Examples
    --------
    >>> from leakscope.verifying.checks import threshold_for
    >>> round(threshold_for(1), 2), round(threshold_for(100), 2)
    (2.58, 3.89)
    """
    from scipy.special import ndtri

    return float(-ndtri(0.5 * false_alarms / max(count, 1)))


def mean_score(difference: float, stderr: float, freedom: float) -> float:
    """The z-score of a mean whose standard error was itself estimated (Student's t).

    Examples
    --------
    >>> from leakscope.verifying.checks import mean_score
    >>> round(mean_score(3.0, 1.0, 10.0), 2), round(mean_score(3.0, 1.0, 1e9), 2)
    (2.47, 3.0)
    """
    from scipy.stats import t

    if not stderr > 0.0:
        return 0.0 if difference == 0.0 else math.copysign(math.inf, difference)
    return _normal_score(t.logsf(abs(difference) / stderr, freedom), difference)


def spread_score(predicted: float, measured: float, freedom: float) -> float:
    """The z-score of a standard deviation of so many degrees of freedom, if ``predicted`` is right.

    The square of the measured one over the predicted one, times the degrees, is chi-squared: far
    from symmetric where they are few.

    Examples
    --------
    >>> from leakscope.verifying.checks import spread_score
    >>> round(spread_score(1.0, 0.5, 9.0), 2), round(spread_score(1.0, 1.5, 9.0), 2)
    (-2.22, 2.13)
    """
    from scipy.stats import chi2

    if not predicted > 0.0:
        return 0.0 if measured == 0.0 else math.inf
    square = freedom * (measured / predicted) ** 2
    # The smaller tail has the digits.
    if square > chi2.median(freedom):
        return _normal_score(chi2.logsf(square, freedom), 1.0)
    return _normal_score(chi2.logcdf(square, freedom), -1.0)


def _normal_score(log_tail: float, sign: float) -> float:
    """The normal number beyond which lies a tail, on the side of ``sign``."""
    from scipy.special import ndtri_exp

    size = -float(ndtri_exp(log_tail)) if log_tail > -math.inf else math.inf
    return math.copysign(size, sign) if size > 0.0 else 0.0


def counted(checks: Sequence[NumberCheck]) -> dict[Verdict, int]:
    """How many agree, differ, and are inconclusive.

    Examples
    --------
    >>> from leakscope.verifying.checks import NumberCheck, counted
    >>> counted([NumberCheck("a", "mean", 0.0, 9.0, 1.0, 1.0)])
    {'agrees': 0, 'differs': 1, 'inconclusive': 0}
    """
    verdicts = [check.verdict(threshold_for(len(checks))) for check in checks]
    return {
        "agrees": verdicts.count("agrees"),
        "differs": verdicts.count("differs"),
        "inconclusive": verdicts.count("inconclusive"),
    }


@dataclass(frozen=True)
class Outcome:
    """The checks that were made, how, in words and as settings, and what to beware of.

    ``borne_out`` are units that the audit does not know and whose every check agrees.
    """

    checks: list[NumberCheck]
    how: str
    settings: dict[str, Any]
    agreement: dict[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    borne_out: tuple[RecordId, ...] = ()


# With fewer, an interval of a correlation says nothing.
LEAST_RECORDS = 8


@dataclass(frozen=True)
class Interval:
    """A number and the 95% interval that belongs to it.

    Examples
    --------
    >>> from leakscope.verifying import Interval
    >>> Interval(0.5, 0.4, 0.6).value
    0.5
    """

    value: float
    low: float
    high: float


def correlation(predicted: ArrayLike, measured: ArrayLike, *, ranks: bool = False) -> Interval:
    """How well predictions (n,) follow measurements (n,) of the same records, with 95% intervals.

    Pearson's correlation, or Spearman's with ``ranks``.  The interval is Fisher's with Bonett and
    Wright's variance; the measurement's own noise lowers the correlation.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.verifying import correlation
    >>> predicted = np.arange(10.0)
    >>> correlation(predicted, predicted**2, ranks=True).value
    1.0
    """
    from scipy.special import ndtri
    from scipy.stats import rankdata

    x, y = (np.asarray(column, dtype=np.float64) for column in (predicted, measured))
    if x.shape != y.shape or x.ndim != 1 or len(x) < LEAST_RECORDS:
        raise InputError(
            f"a correlation needs a prediction and a measurement of {LEAST_RECORDS} records or "
            f"more, but the shapes are {x.shape} and {y.shape}."
        )
    if not np.isfinite(x + y).all():
        raise InputError("a correlation needs finite predictions and measurements.")
    if ranks:
        x, y = rankdata(x), rankdata(y)
    if np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return Interval(math.nan, -1.0, 1.0)
    value, count = float(np.corrcoef(x, y)[0, 1]), len(x)
    inner = np.clip(value, -1.0 + 1.0 / count, 1.0 - 1.0 / count)
    half = float(ndtri(0.975)) * np.sqrt((1.0 + 0.5 * inner**2) / (count - 3))
    low, high = np.tanh(np.arctanh(inner) + np.array([-half, half]))
    return Interval(value, min(float(low), value), max(float(high), value))


def rows_to_check(
    names: Sequence[RecordId],
    predicted: ArrayLike,
    count: int,
    wanted: Sequence[RecordId] = (),
    *,
    random_state: int = 0,
) -> list[int]:
    """Rows of the records in ``wanted``, or of ``count`` that :func:`choose_records` draws."""
    if not wanted:
        return [int(row) for row in choose_records(predicted, count, random_state=random_state)]
    rows = {str(name): row for row, name in enumerate(names)}
    for name in wanted:
        if str(name) not in rows:
            raise InputError(
                f"the result has no record {name!r}; the first of {len(names)} is {names[0]!r}."
            )
    return list(dict.fromkeys(rows[str(name)] for name in wanted))


def choose_records(
    predicted: ArrayLike, count: int, *, random_state: int | np.random.Generator | Key | None = None
) -> NDArray[np.intp]:
    """Rows of ``count`` records, one drawn at random from each of ``count`` strata of leakage.

    The records are sorted by predicted leakage and cut into strata of equal size (to within one),
    so that the whole range is checked and a correlation is not one of the extremes only.

    Parameters
    ----------
    predicted
        Predicted leakage of every record, finite.
    count
        How many to choose; all where there are no more.
    random_state
        Seed of the draw.

    Examples
    --------
    >>> from leakscope.verifying import choose_records
    >>> choose_records([0.1, 0.9, 0.5, 0.2, 0.7, 0.3], 3, random_state=0).tolist()
    [0, 1, 5]
    """
    leakage = np.asarray(predicted, dtype=np.float64)
    if leakage.ndim != 1 or not len(leakage):
        raise InputError(f"predicted leakage must be one number per record, not {leakage.shape}.")
    if not np.isfinite(leakage).all():
        row = int(np.argmax(~np.isfinite(leakage)))
        raise InputError(f"the predicted leakage of row {row} is {leakage[row]}.")
    if count < 1:
        raise InputError(f"the number of records to check must be 1 or more, but it is {count}.")
    if count >= len(leakage):
        return np.arange(len(leakage))
    generator = as_key(random_state).generator()
    strata = np.array_split(np.argsort(leakage, kind="stable"), count)
    return np.sort([int(generator.choice(stratum)) for stratum in strata])
