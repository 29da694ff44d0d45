"""A prediction against a measurement: z-scores, verdicts, agreement, which records to check."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.data.datasets import RecordId
from leakscope.errors import InputError
from leakscope.settings.measure import MEASURE_DEFAULTS

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


def binomial_score(often: int, count: int, chance: float) -> float:
    """The z-score of how often something came, where each time it comes with this chance."""
    from scipy.stats import binomtest

    tail, gap = binomtest(often, count, chance).pvalue, often / count - chance
    if tail >= 1.0 or gap == 0.0:
        return 0.0
    # Half of the two tails together.
    return _normal_score(math.log(0.5 * tail) if tail > 0.0 else -math.inf, gap)


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


# Of the bootstrap over records.
RESAMPLES = 4000

# With fewer, an interval of a correlation says nothing.
LEAST_RECORDS = 8


@dataclass(frozen=True)
class Interval:
    """A number and the interval that belongs to it.

    Examples
    --------
    >>> from leakscope.verifying import agreement
    >>> truth = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    >>> found = agreement(truth, truth, truth, truth).spearman
    >>> found.low <= found.value <= found.high, round(found.value, 6)
    (True, 1.0)
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Agreement:
    """How well predictions agree with measurements.

    Attributes
    ----------
    predicted, measured, low, high
        One entry a record; ``low`` and ``high`` are the ends of the measurement's interval.
    pearson, spearman
        With bootstrap intervals over records.  The measurement's own noise lowers both.
    outside
        The share of records whose prediction lies outside the measured interval.
    slope
        Of measured on predicted, by least squares; 1 where the level is right too.
    confidence
        Of the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.verifying import agreement
    >>> truth = np.linspace(0.5, 1.0, 30)
    >>> noisy = truth + 0.02 * np.random.default_rng(0).normal(size=30)
    >>> found = agreement(truth, noisy, noisy - 0.04, noisy + 0.04)
    >>> bool(found.spearman.low > 0.9), bool(found.outside < 0.2)
    (True, True)
    """

    predicted: FloatArray
    measured: FloatArray
    low: FloatArray
    high: FloatArray
    pearson: Interval
    spearman: Interval
    outside: float
    slope: float
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain values, for JSON."""
        return {
            "records": len(self.predicted),
            "pearson": vars(self.pearson),
            "spearman": vars(self.spearman),
            "outside": self.outside,
            "slope": self.slope,
            "confidence": self.confidence,
        }


def agreement(
    predicted: ArrayLike,
    measured: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    *,
    confidence: float = MEASURE_DEFAULTS.confidence,
    random_state: int | np.random.Generator | Key | None = None,
) -> Agreement:
    """Compare predictions with measurements of the same records.

    Parameters
    ----------
    predicted, measured, low, high
        One number per record, at least eight records.
    confidence
        Of the intervals of the correlations.
    random_state
        Of the bootstrap.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.verifying import agreement
    >>> predicted = np.arange(10.0)
    >>> found = agreement(predicted, predicted**2, predicted**2 - 1, predicted**2 + 1)
    >>> found.spearman.value, found.outside
    (1.0, 0.8)
    """
    columns = [np.asarray(c, dtype=np.float64) for c in (predicted, measured, low, high)]
    if any(c.shape != columns[0].shape or c.ndim != 1 for c in columns) or (
        len(columns[0]) < LEAST_RECORDS
    ):
        raise InputError(
            f"agreement needs one number per record from each side, for {LEAST_RECORDS} records or "
            f"more, but the shapes are {', '.join(str(c.shape) for c in columns)}."
        )
    if not all(np.isfinite(c).all() for c in columns[:2]):
        raise InputError("agreement needs finite predictions and measurements.")
    said, found, least, most = columns
    generator = as_key(random_state).generator()
    draws = generator.integers(len(said), size=(RESAMPLES, len(said)))
    centred = said - said.mean()
    spread = float(np.sum(centred**2))
    return Agreement(
        predicted=said,
        measured=found,
        low=least,
        high=most,
        pearson=_interval(said, found, draws, confidence),
        spearman=_interval(_ranks(said), _ranks(found), draws, confidence, ranked=(said, found)),
        outside=float(np.mean((said < least) | (said > most))),
        slope=float(centred @ found / spread) if spread > 0.0 else float("nan"),
        confidence=confidence,
    )


def _interval(
    x: FloatArray,
    y: FloatArray,
    draws: NDArray[np.int64],
    confidence: float,
    ranked: tuple[FloatArray, FloatArray] | None = None,
) -> Interval:
    """The hull of the percentile bootstrap over records and of Bonett and Wright's interval.

    The bootstrap alone is far too short for few records, and a point where they rank perfectly.
    """
    value = float(_correlation(x, y))
    if ranked is None:
        resampled = _correlation(x[draws], y[draws])
    else:
        resampled = _correlation(_ranks(ranked[0][draws]), _ranks(ranked[1][draws]))
    resampled = resampled[np.isfinite(resampled)]
    if not np.isfinite(value) or not len(resampled):
        return Interval(float("nan"), -1.0, 1.0)
    from scipy.special import ndtri

    tail = 0.5 * (1.0 - confidence)
    low, high = np.quantile(resampled, [tail, 1.0 - tail])
    count = x.shape[-1]
    inner = np.clip(value, -1.0 + 1.0 / count, 1.0 - 1.0 / count)
    half = -float(ndtri(tail)) * np.sqrt((1.0 + 0.5 * inner**2) / (count - 3))
    ends = np.tanh(np.arctanh(inner) + np.array([-half, half]))
    return Interval(
        value, min(float(low), float(ends[0]), value), max(float(high), float(ends[1]), value)
    )


def _correlation(x: FloatArray, y: FloatArray) -> FloatArray:
    x, y = x - x.mean(axis=-1, keepdims=True), y - y.mean(axis=-1, keepdims=True)
    scale = np.sqrt(np.sum(x**2, axis=-1) * np.sum(y**2, axis=-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.sum(x * y, axis=-1) / scale)


def _ranks(values: FloatArray) -> FloatArray:
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=-1), dtype=np.float64)


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
