"""The two laws of every unit in one batch, with the check that each unit passed.

Whatever kind of model was examined, its laws come as :class:`UnitLaws`: batches of pairs, measured
one way for all.  Where the numbers are posterior means, so are all of them: the type says it
(:class:`PosteriorLaws`), and the ROC, the AUC and the KL are of the same posterior as the table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws import Law, LawPair, Provenance
from leakscope.results.audit import FPRS
from leakscope.results.trust import Trust

Rows = NDArray[np.intp]
Measure = Callable[[LawPair], FloatArray]


def exact(found: FloatArray | measures.Estimate) -> FloatArray:
    """A measure of known laws, which is never an estimate."""
    if isinstance(found, measures.Estimate):
        raise TypeError("an audit's laws are known, but a measure of them came out as an estimate")
    return np.asarray(found)


# What every table says of a unit, by column.
MEASURES: dict[str, Measure] = {
    "kl": lambda pair: exact(measures.kl(pair)),
    "kl_reverse": lambda pair: exact(measures.kl(pair, "member_to_nonmember")),
    "advantage": lambda pair: exact(measures.advantage(pair)),
    "auc": lambda pair: exact(measures.auc(pair)),
    **{
        name: (lambda pair, level=fpr: exact(measures.tpr_at_fpr(pair, level)))  # type: ignore[misc]
        for fpr, name in FPRS.items()
    },
}


@dataclass(frozen=True, eq=False, kw_only=True)
class UnitLaws(ABC):
    """The laws of what an attacker sees with and without each unit.

    ``columns`` are numbers of the kind's own, by the names of
    :mod:`leakscope.results.columns`; ``arrays`` more of them, for the run's ``arrays.npz``.
    """

    trust: Trust
    provenance: Provenance
    warnings: tuple[str, ...] = ()
    # How far a measure that was tabulated may lie from one that is computed.
    tolerance: float = 0.0
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def units(self) -> int:
        """How many records, or groups, can leave."""
        return len(self.trust.passed)

    @property
    def trusted(self) -> NDArray[np.bool_]:
        """Whether a check was made for the unit and passed."""
        return self.trust.trusted

    @abstractmethod
    def batches(self) -> Iterator[tuple[Rows, LawPair]]:
        """Some units at a time, with the batch of their pairs."""

    @abstractmethod
    def some(self, units: Rows) -> UnitLaws:
        """Those of some units, in the order given."""

    @abstractmethod
    def noised(self, sd: float) -> UnitLaws:
        """The same where every answer gets fresh normal noise of this standard deviation."""

    @property
    @abstractmethod
    def spread(self) -> FloatArray:
        """(U,) how far an answer without the unit varies: the scale of noise that could hide it."""

    def measured(self, measure: Measure) -> FloatArray:
        """(U,) a measure of every unit's pair."""
        found = np.empty(self.units)
        for units, pair in self.batches():
            found[units] = measure(pair)
        return found

    def measures(self) -> dict[str, FloatArray]:
        """Every measure that a table has, by column."""
        found = {name: np.empty(self.units) for name in MEASURES}
        for units, pair in self.batches():
            for name, measure in MEASURES.items():
                found[name][units] = measure(pair)
        return found

    def pair(self) -> LawPair:
        """The pairs of all units in one batch."""
        found = list(self.batches())
        if len(found) == 1:
            return found[0][1]
        from leakscope.laws import concatenate

        order = np.argsort(np.concatenate([units for units, _ in found]), kind="stable")
        return concatenate([pair for _, pair in found]).take(order)

    def roc(self, unit: int) -> measures.RocCurve:
        """The best test's ROC of one unit."""
        _, pair = next(self.some(np.array([unit])).batches())
        curve = measures.roc(pair)
        return measures.RocCurve(curve.fpr, curve.tpr.reshape(-1), curve.provenance)


@dataclass(frozen=True, eq=False, kw_only=True)
class PairLaws(UnitLaws):
    """Laws that come as one batch of pairs; ``with_noise`` builds them again with noise."""

    member: Law
    nonmember: Law
    with_noise: Callable[[float], LawPair] | None = None
    sd_without: FloatArray | None = None

    def batches(self) -> Iterator[tuple[Rows, LawPair]]:
        """All units at once."""
        yield np.arange(self.units), LawPair(self.member, self.nonmember, self.provenance)

    def some(self, units: Rows) -> PairLaws:
        """Those of some units."""
        again = self.with_noise
        return replace(
            self,
            trust=self.trust.take(units),
            columns={name: values[units] for name, values in self.columns.items()},
            arrays={},
            member=self.member.take(units),
            nonmember=self.nonmember.take(units),
            sd_without=None if self.sd_without is None else self.sd_without[units],
            with_noise=None if again is None else lambda sd: again(sd).take(units),
        )

    def noised(self, sd: float) -> PairLaws:
        """The same with noise on every answer, where answers are numbers."""
        if sd == 0.0:
            return self
        if self.with_noise is None:
            raise InputError("such answers take no normal noise.")
        pair, again = self.with_noise(sd), self.with_noise
        return replace(
            self,
            member=pair.member,
            nonmember=pair.nonmember,
            with_noise=lambda more: again(float(np.hypot(sd, more))),
        )

    @property
    def spread(self) -> FloatArray:
        """(U,) the standard deviation of an answer without the unit."""
        if self.sd_without is None:
            raise InputError("such answers take no normal noise.")
        return self.sd_without


@dataclass(frozen=True, eq=False, kw_only=True)
class PosteriorLaws(UnitLaws):
    """Laws that are known up to a posterior: every number is the mean over its draws.

    ``draws(units)`` gives a batch of pairs, units by draws; ``values`` are the means that are known
    already, by column.
    """

    draws: Callable[[Rows], LawPair]
    values: Mapping[str, FloatArray]
    centre: LawPair
    sd_without: FloatArray

    def batches(self) -> Iterator[tuple[Rows, LawPair]]:
        """The pairs at the posterior's centre, for simulation; no table is made of them."""
        yield np.arange(self.units), self.centre

    def some(self, units: Rows) -> PosteriorLaws:
        """Those of some units."""
        draws = self.draws
        return replace(
            self,
            trust=self.trust.take(units),
            columns={name: values[units] for name, values in self.columns.items()},
            arrays={},
            draws=lambda rows: draws(units[rows]),
            values={name: values[units] for name, values in self.values.items()},
            centre=self.centre.take(units),
            sd_without=self.sd_without[units],
        )

    def noised(self, sd: float) -> PosteriorLaws:
        """The same with noise on every answer."""
        if sd == 0.0:
            return self
        draws = self.draws
        return replace(
            self,
            draws=lambda rows: _noised(draws(rows), sd),
            values={},
            centre=_noised(self.centre, sd),
            sd_without=np.hypot(self.sd_without, sd),
        )

    @property
    def spread(self) -> FloatArray:
        """(U,) the standard deviation of an answer without the unit, at the posterior's centre."""
        return self.sd_without

    def measured(self, measure: Measure) -> FloatArray:
        """(U,) the posterior mean of a measure."""
        found = np.empty(self.units)
        for start in range(0, self.units, AT_ONCE):
            rows = np.arange(start, min(start + AT_ONCE, self.units))
            drawn = self.draws(rows)
            flat = drawn.reshape(int(np.prod(drawn.batch_shape)))
            found[rows] = measure(flat).reshape(drawn.batch_shape).mean(axis=1)
        return found

    def measures(self) -> dict[str, FloatArray]:
        """Every measure's posterior mean."""
        return {
            name: self.values[name] if name in self.values else self.measured(measure)
            for name, measure in MEASURES.items()
        }

    def roc(self, unit: int) -> measures.RocCurve:
        """The posterior mean of the best test's ROC, at each false-positive rate."""
        drawn = self.draws(np.array([unit]))
        curve = measures.roc(drawn.reshape(drawn.batch_shape[1]))
        return measures.RocCurve(curve.fpr, curve.tpr.mean(axis=0), curve.provenance)


# Units whose posterior is drawn at once.
AT_ONCE = 500


def _noised(pair: LawPair, sd: float) -> LawPair:
    from leakscope.laws import Normal

    sides = [
        Normal(law.mean, np.hypot(law.sigma, sd))  # type: ignore[attr-defined]
        for law in (pair.member, pair.nonmember)
    ]
    return LawPair(sides[0], sides[1], pair.provenance)


def noise_for(laws: UnitLaws, measure: Measure, limit: float) -> float | None:
    """The least sd of noise on each answer that brings a measure of every unit to a limit.

    Two digits, rounded up.  Zero where none is needed, None where no noise does it or answers
    take none.
    """
    # Noise cannot help the attacker: who is within the limit stays there.
    rows = np.flatnonzero(laws.measured(measure) > limit)
    if not rows.size:
        return 0.0

    def above(noise: float) -> Rows:
        return rows[laws.some(rows).noised(noise).measured(measure) > limit]

    try:
        low = high = float(np.median(laws.spread[rows]))
        left = above(high)
    except InputError:
        return None
    while left.size:
        low, rows, high = high, left, 2.0 * high
        if high > 1e100:
            return None
        left = above(high)
    if low == high:
        low = 0.5 * high
        while not above(low).size:
            low, high = 0.5 * low, low
    while high > low * 1.001:
        middle = float(np.sqrt(low * high))
        left = above(middle)
        low, high, rows = (middle, high, left) if left.size else (low, middle, rows)
    unit = 10.0 ** (np.floor(np.log10(high)) - 1.0)
    return float(f"{np.ceil(high / unit) * unit:.2g}")
