"""Interpolating a time series from its first p frequencies (Section 5 of **linear**, Fig. 5b)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.laws import Assumption
from leakscope.linear.data_model import Convention, DataModel, FloatArray, Query


@dataclass(frozen=True)
class FourierSeries(DataModel):
    """A signal of cosines observed without noise at n of the times 0, ..., times - 1.

    ``"text"``: the signal has D = ``times`` frequencies 2 pi k/(2D - 1), of which the model fits
    the first p; columns are scaled by 1/sqrt(2D + 1).  ``"published"``: p and D are swapped in the
    call, so the signal has p frequencies 2 pi k/(2p - 1), the model fits them all, every row of
    features has unit norm, and a member's prediction is its measurement.

    Examples
    --------
    >>> from leakscope.linear import FourierSeries
    >>> FourierSeries(n=128, p=256, convention="published").times
    1024
    """

    n: int
    p: int
    times: int = 1024
    convention: Convention = "text"

    def __post_init__(self) -> None:
        if not 2 <= self.n < self.times or not 1 <= self.p <= self.times:
            raise InputError("A Fourier series needs 2 <= n < times and 1 <= p <= times.")

    def query(self, random_state: int | np.random.Generator | Key | None = None) -> Query:
        """A time."""
        time = as_key(random_state).generator().integers(self.times)
        return Query(np.array([float(time)]), np.empty(0))

    def variances(self, query: Query, generator: np.random.Generator) -> tuple[float, float]:
        """||X'w||^2 divided by the number of frequencies in the signal; there is no label noise."""
        time = int(query.features[0])
        others = np.delete(np.arange(self.times), time)
        chosen = generator.choice(others, self.n, replace=False)
        record = self._rows(np.array([time]))[0]
        rows = self._rows(chosen)
        nonmember = self._variance(rows, record)
        if self.convention == "published":
            return float(record @ record) / record.size, nonmember
        rows[0] = record
        return self._variance(rows, record), nonmember

    def _rows(self, at: np.ndarray[tuple[int], np.dtype[np.int64]]) -> FloatArray:
        frequencies = self.p if self.convention == "published" else self.times
        angle = np.outer(at, np.arange(frequencies)) * (2.0 * np.pi / (2 * frequencies - 1))
        rows = np.cos(angle)
        if self.convention == "published":
            return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
        return np.asarray(rows / np.sqrt(2.0 * frequencies + 1.0))

    def _variance(self, rows: FloatArray, record: FloatArray) -> float:
        # lstsq, not normal equations: the low frequencies alone are nearly dependent
        weights = np.linalg.lstsq(rows[:, : self.p].T, record[: self.p], rcond=None)[0]
        through = rows.T @ weights
        return float(through @ through) / record.size

    def assumptions(self) -> tuple[Assumption, ...]:
        """What is fixed and known."""
        return (
            Assumption("coefficients of the frequencies are normal and there is no label noise"),
            Assumption("the attacker knows the time in question, not the other times"),
            Assumption(f"convention: {self.convention}"),
        )
