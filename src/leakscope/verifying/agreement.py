"""Predicted against measured, record by record: correlations with intervals, and calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.settings import MEASURE_DEFAULTS

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

    def to_frame(self) -> Any:
        """A pandas frame, one row per record: what a calibration plot shows."""
        import pandas as pd

        return pd.DataFrame(
            {
                "predicted": self.predicted,
                "measured": self.measured,
                "low": self.low,
                "high": self.high,
                "outside": (self.predicted < self.low) | (self.predicted > self.high),
            }
        )

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
