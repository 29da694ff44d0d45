"""Interpolating a time series from its first p frequencies (Section 5 of **linear**, Fig. 5b)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.laws import Assumption
from leakscope.linear.data_model import Convention, DataModel, Query, gaussian_moments

IntArray = NDArray[np.int64]

# x with x^4 = x + 1: its powers make a Kronecker sequence of three coordinates
_GOLDEN = 1.2207440846057596


@dataclass(frozen=True)
class FourierSeries(DataModel):
    """A signal of cosines observed without noise at n of the times 0, ..., times - 1.

    ``"text"``: the signal has D = ``times`` frequencies 2 pi k/(2D - 1), of which the model fits
    the first p.  ``"published"``: p and D are swapped in the call, so the signal has p frequencies
    2 pi k/(2p - 1), and the model fits them all.

    Then the signal repeats itself with period 2p - 1: times t, 2p - 1 - t, 2p - 1 + t, ... have the
    same row of features.  A non-member whose row another time already brought is predicted exactly,
    and the probability of that is known (`settled`).  Rows that repeat are equal on paper only; in
    float64 they differ by rounding, ``lstsq`` takes some of the differences for features, and
    Fig. 5b depends on it.  ``rounding`` keeps that (rows computed as cos(t (2 pi k/M)), NumPy's
    cut-off for the rank); without it repeated rows are equal.

    Examples
    --------
    >>> from leakscope.linear import FourierSeries
    >>> model = FourierSeries(n=128, p=256, convention="published")
    >>> round(model.settled(model.query(0)), 3)  # three other times have the record's row
    0.331
    """

    n: int
    p: int
    times: int = 1024
    convention: Convention = "text"
    rounding: bool = True

    def __post_init__(self) -> None:
        if not 2 <= self.n < self.times or not 1 <= self.p <= self.times:
            raise InputError("A Fourier series needs 2 <= n < times and 1 <= p <= times.")

    @property
    def frequencies(self) -> int:
        """How many frequencies the signal has."""
        return self.p if self.convention == "published" else self.times

    @property
    def period(self) -> int:
        """M = 2D - 1: the time after which the signal repeats itself."""
        return 2 * self.frequencies - 1

    def query(self, random_state: int | np.random.Generator | Key | None = None) -> Query:
        """A time."""
        time = as_key(random_state).generator().integers(self.times)
        return Query(np.array([float(time)]), np.empty(0))

    def label_variance(self, query: Query) -> float:
        """||x0||^2 divided by the number of frequencies; there is no label noise."""
        record = self._rows(query.features.astype(np.int64))[0]
        return float(np.dot(record, record)) / self.frequencies

    def settled(self, query: Query) -> float:
        """One minus the probability that n of the other times miss all of the record's class."""
        missing = self.times - 1 - self._others(query).size
        free = self.times - 1.0 - np.arange(self.n)
        return float(1.0 - np.prod(np.maximum(free - missing, 0.0) / free))

    def moments(
        self, query: Query, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Variance ||X'w||^2 divided by the number of frequencies, over times of other classes."""
        chosen = generator.choice(self._others(query), self.n, replace=False)
        return self._moments_at(query, chosen)

    def draw(self, query: Query, designs: int, key: Key) -> tuple[FloatArray, FloatArray]:
        """Designs spread evenly over where the three training times nearest to the record are.

        Those times decide most of a prediction.  Their ranks by distance come from a shifted
        Kronecker sequence instead of independent uniforms, the other times from chance, so every
        design has the model's law.  A standard error for independent designs is an upper bound.
        """
        others = self._others(query)
        nearest = others[np.argsort(np.abs(others - query.features[0]), kind="stable")]
        steps = _GOLDEN ** -np.arange(1.0, min(3, self.n) + 1.0)
        shift = key.child(0).generator().random(steps.size)
        found = []
        for k in range(designs):
            generator = key.child(1, k).generator()
            first = _first_ranks((shift + k * steps) % 1.0, nearest.size, self.n)
            beyond = np.arange(first[-1] + 1, nearest.size)
            rest = generator.choice(beyond, self.n - len(first), replace=False)
            # the row that a member replaces must be any of them
            ranks = generator.permutation(np.concatenate([first, rest]))
            found.append(self._moments_at(query, nearest[ranks]))
        member, nonmember = (np.concatenate(side, axis=1) for side in zip(*found, strict=True))
        return member, nonmember

    def _moments_at(self, query: Query, chosen: IntArray) -> tuple[FloatArray, FloatArray]:
        record = self._rows(query.features.astype(np.int64))[0]
        rows = self._rows(chosen)
        nonmember = self._moments(rows, record)
        if self.p == self.frequencies:
            # the model holds the whole signal, so what it was trained on it repeats
            return np.full((2, 1), self.label_variance(query)), nonmember
        rows[0] = record
        return self._moments(rows, record), nonmember

    def _others(self, query: Query) -> IntArray:
        """Times whose row of features is not the record's."""
        every = self._folded(np.arange(self.times))
        return np.flatnonzero(every != every[int(query.features[0])])

    def _folded(self, at: IntArray) -> IntArray:
        """The first time with the same row."""
        phase = at % self.period
        return np.minimum(phase, self.period - phase)

    def _rows(self, at: IntArray) -> FloatArray:
        times = at if self.rounding else self._folded(at)
        angle = np.outer(times, np.arange(self.frequencies) * (2.0 * np.pi) / self.period)
        return np.asarray(np.cos(angle) / np.sqrt(self.period + 2.0))

    def _moments(self, rows: FloatArray, record: FloatArray) -> FloatArray:
        # lstsq, not normal equations: the low frequencies alone are nearly dependent
        found = np.linalg.lstsq(rows[:, : self.p].T, record[: self.p, None], rcond=None)[0]
        weights = np.asarray(found, dtype=np.float64)
        return gaussian_moments(rows, record[:, None], weights, 1.0 / record.size, 0.0)

    def assumptions(self) -> tuple[Assumption, ...]:
        """What is fixed and known."""
        return (
            Assumption("coefficients of the frequencies are normal and there is no label noise"),
            Assumption("the attacker knows the time in question, not the other times"),
            Assumption(
                "rows of features that repeat are kept apart by rounding alone, as in the figure",
                holds=self.rounding,
                evidence="lstsq decides the rank",
            ),
            Assumption(f"convention: {self.convention}"),
        )


def _first_ranks(uniforms: FloatArray, total: int, wanted: int) -> list[int]:
    """The smallest ranks, in order, of ``wanted`` of ``total`` things chosen without replacement.

    With L left and m to choose, the next s are all passed over with probability
    prod_{a < s} (L - a - m)/(L - a).
    """
    ranks: list[int] = []
    before = -1
    for done, uniform in enumerate(uniforms):
        left, choose = total - before - 1, wanted - done
        free = np.arange(left, choose - 1.0, -1.0)
        passed = np.cumprod((free - choose) / free)
        before += 1 + int(np.searchsorted(-passed, -uniform))
        ranks.append(before)
    return ranks
