"""The two laws of every unit in one batch, with the check that each unit passed.

Whatever kind of model was examined, its laws come as :class:`UnitLaws`: batches of pairs, measured
one way for all.  Where the numbers are posterior means, so are all of them: the type says it
(:class:`PosteriorLaws`), and the ROC, the AUC and the KL are of the same posterior as the table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws.distributions import Law
from leakscope.laws.pair import LawPair, Provenance
from leakscope.measures.pair_measures import RocCurve, table_measures
from leakscope.results.advice import Target
from leakscope.results.audit import EXPOSED_ABOVE, FPRS
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


def measured_at_once(pair: LawPair) -> dict[str, FloatArray]:
    """`MEASURES` of a batch of pairs, in one pass."""
    found, tpr = table_measures(pair, list(FPRS))
    found |= {name: tpr[fpr] for fpr, name in FPRS.items()}
    return {name: found[name] for name in MEASURES}


def summed_up(
    pair: LawPair, confirmed: NDArray[np.bool_], columns: Mapping[str, NDArray[Any]] | None = None
) -> dict[str, Any]:
    """The largest and the median over all records, how many are exposed and how many unconfirmed.

    ``columns`` are the pair's measures where a table has them already.
    """
    names = ("advantage", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001")
    found = {name: columns[name] if columns else MEASURES[name](pair) for name in names}
    return {
        **{f"largest_{name}": float(values.max()) for name, values in found.items()},
        "median_advantage": float(np.median(found["advantage"])),
        "exposed": int(np.count_nonzero(found["advantage"] >= EXPOSED_ABOVE)),
        "unconfirmed": int(np.count_nonzero(~confirmed)),
    }


def measure_of(target: Target) -> Measure:
    """The measure that a target limits, of a batch of pairs."""
    if target.measure == "advantage":
        return MEASURES["advantage"]
    if target.measure == "tpr":
        return lambda pair: exact(measures.tpr_at_fpr(pair, target.fpr or 0.0))
    return lambda pair: exact(measures.epsilon_at_delta(pair, target.delta or 0.0))


def column_of(target: Target) -> str:
    """Where a table has what a target limits."""
    return FPRS.get(target.fpr or 0.0, target.measure)


@dataclass(frozen=True)
class Exposure:
    """How exposed the units are by a target's measure: the worst and the median.

    ``known`` is whether it is known that the target is met, or that it is not; ``low`` and ``high``
    are the ends of the worst unit's interval, where it has one.
    """

    worst: float
    median: float
    known: bool = True
    low: float | None = None
    high: float | None = None


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
    def confirmed(self) -> NDArray[np.bool_]:
        """Whether a check was made for the unit and passed."""
        return self.trust.confirmed

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether the unit is confirmed, or its intervals hold."""
        return self.trust.known

    @property
    def unconfirmed(self) -> int:
        """How many units have passed no check."""
        return int(np.count_nonzero(~self.confirmed))

    @property
    def unknown(self) -> int:
        """Of how many units nothing is known, not even an interval."""
        return int(np.count_nonzero(~self.known))

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

    @property
    def lawless(self) -> NDArray[np.bool_]:
        """(U,) units of which the advantage alone is known: their pairs are no laws of theirs."""
        return np.zeros(self.units, dtype=np.bool_)

    def own_errors(self, units: Rows) -> tuple[FloatArray, FloatArray]:
        """Of some units: how far shift and log sd without the unit are known; zero if computed."""
        return np.zeros(len(units)), np.zeros(len(units))

    @property
    def takes_noise(self) -> bool:
        """Whether answers are numbers, to which noise can be added."""
        return True

    @property
    def first_noise(self) -> float:
        """A variance at which to begin a search for noise on the answers."""
        return float(np.median(self.spread)) ** 2

    def enough_noise(self, advantage: float) -> float:
        """A variance of noise with which no unit's advantage is above this one, by a bound."""
        return np.inf

    def least_noise(self, target: Target) -> float | None:
        """The least variance of noise on each answer with which all units meet a target.

        None where no noise was found.
        """
        return least_variance(self, measure_of(target), target.value, self.most_noise(target))

    def most_noise(self, target: Target) -> float:
        """Where a search for noise ends: a variance that is enough, or the largest in float64."""
        return min(self.enough_noise(target.enough_advantage), LARGEST_VARIANCE)

    def exposures(self, target: Target, noises: Sequence[float] = (0.0,)) -> list[Exposure]:
        """How exposed the units are, for each of some standard deviations of noise on answers."""
        return [self._exposure(target, noise) for noise in noises]

    def _exposure(self, target: Target, noise: float) -> Exposure:
        laws = self.noised(noise)
        values, ends = laws.measured_for(target), laws.ends_for(target)
        low, high = (values, values) if ends is None else ends
        # One unit that is above the target for sure settles it; otherwise all must be below.
        below = self.known.all() and np.all(high <= target.value)
        known = below or np.any(low[self.known] > target.value)
        if ends is None:
            known = self.known.all() or known
        worst = int(np.argmax(values))
        found = () if ends is None else (float(low[worst]), float(high[worst]))
        return Exposure(float(values[worst]), float(np.median(values)), bool(known), *found)

    def ends_for(self, target: Target) -> tuple[FloatArray, FloatArray] | None:
        """(U,) between which what a target limits lies; None where it is computed, not estimated.

        The numbers of units that are not known have no interval that holds.
        """
        return None

    def highest(self, measure: Measure) -> FloatArray:
        """(U,) the upper ends of a measure; the measure itself where it is computed."""
        return self.measured(measure)

    def measured_for(self, target: Target) -> FloatArray:
        """(U,) the measure that a target limits."""
        return self.measured(measure_of(target))

    def measured(self, measure: Measure) -> FloatArray:
        """(U,) a measure of every unit's pair."""
        found = np.empty(self.units)
        for units, pair in self.batches():
            found[units] = measure(pair)
        return found

    def ends(self, column: str) -> tuple[FloatArray, FloatArray]:
        """(U,) between which a measure lies: twice itself, where it is known."""
        value = self.measured(MEASURES[column])
        return value, value

    def chance_above(self, threshold: float, advantage: FloatArray) -> FloatArray:
        """(U,) how likely a unit's advantage is this or more; of known ones it is or is not."""
        return (advantage >= threshold).astype(np.float64)

    def measures(self) -> dict[str, FloatArray]:
        """Every measure that a table has, by column."""
        found = {name: np.empty(self.units) for name in MEASURES}
        for units, pair in self.batches():
            for name, values in measured_at_once(pair).items():
                found[name][units] = values
        return found

    def pair(self) -> LawPair:
        """The pairs of all units in one batch."""
        found = list(self.batches())
        if len(found) == 1:
            return found[0][1]
        from leakscope.laws.pair import concatenate

        order = np.argsort(np.concatenate([units for units, _ in found]), kind="stable")
        return concatenate([pair for _, pair in found]).take(order)

    def roc(self, unit: int) -> RocCurve:
        """The best test's ROC of one unit."""
        _, pair = next(self.some(np.array([unit])).batches())
        curve = measures.roc(pair)
        return RocCurve(curve.fpr, curve.tpr.reshape(-1), curve.provenance)


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
    def takes_noise(self) -> bool:
        """Whether the laws can be built again with noise."""
        return self.with_noise is not None

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
    already, by column.  ``counted`` are units whose advantage alone is known: their draws have
    that advantage, and are no laws of theirs.
    """

    draws: Callable[[Rows], LawPair]
    values: Mapping[str, FloatArray]
    centre: LawPair
    sd_without: FloatArray
    counted: NDArray[np.bool_]

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
            counted=self.counted[units],
        )

    @property
    def takes_noise(self) -> bool:
        """What noise does to answers is known where their law is."""
        return not self.counted.any()

    def noised(self, sd: float) -> PosteriorLaws:
        """The same with noise on every answer."""
        if sd == 0.0:
            return self
        draws = self.draws
        return replace(
            self,
            draws=lambda rows: _noised(draws(rows), sd),
            values={},
            columns={},
            centre=_noised(self.centre, sd),
            sd_without=np.hypot(self.sd_without, sd),
        )

    @property
    def lawless(self) -> NDArray[np.bool_]:
        """(U,) those whose advantage was counted."""
        return self.counted

    def own_errors(self, units: Rows) -> tuple[FloatArray, FloatArray]:
        """Standard deviations of the posterior."""
        drawn = self.draws(units)
        inside: Any = drawn.member
        outside: Any = drawn.nonmember
        shift, log_sd = inside.mean - outside.mean, np.log(outside.sigma)
        return np.std(shift, axis=1), np.std(log_sd, axis=1)

    @property
    def spread(self) -> FloatArray:
        """(U,) the standard deviation of an answer without the unit, at the posterior's centre."""
        return self.sd_without

    def ends(self, column: str) -> tuple[FloatArray, FloatArray]:
        """(U,) ends of the posterior's interval of 95% of a measure.

        Of counted units any law of their advantage A is allowed: the AUC lies between (1 + A)/2 and
        1 - (1 - A)^2 / 2, and the KL is at least 2 A^2 (Pinsker).
        """
        low, high = self._quantiles(MEASURES[column])
        if self.counted.any() and "advantage_low" in self.columns:
            least, most = (self.columns[f"advantage_{end}"] for end in ("low", "high"))
            if column == "auc":
                low = np.where(self.counted, 0.5 + 0.5 * least, low)
                high = np.where(self.counted, 1.0 - 0.5 * (1.0 - most) ** 2, high)
            elif column != "advantage":
                low = np.where(self.counted, 2.0 * least**2, low)
                high = np.where(self.counted, np.inf, high)
        return low, high

    def _quantiles(self, measure: Measure) -> FloatArray:
        """(2, U) ends of the posterior's interval of 95%."""
        found = np.empty((2, self.units))
        for start in range(0, self.units, AT_ONCE):
            rows = np.arange(start, min(start + AT_ONCE, self.units))
            drawn = self.draws(rows)
            flat = measure(drawn.reshape(int(np.prod(drawn.batch_shape))))
            found[:, rows] = np.quantile(
                flat.reshape(drawn.batch_shape), [0.025, 0.975], axis=1, method="nearest"
            )
        return found

    def ends_for(self, target: Target) -> tuple[FloatArray, FloatArray]:
        """(U,) as the table has them, where it has; else of the posterior."""
        names = [f"{column_of(target)}_{end}" for end in ("low", "high")]
        if all(name in self.columns for name in names):
            return self.columns[names[0]], self.columns[names[1]]
        low, high = self._quantiles(measure_of(target))
        return low, high

    def highest(self, measure: Measure) -> FloatArray:
        """(U,) the upper ends of the posterior's intervals."""
        return np.asarray(self._quantiles(measure)[1])

    def chance_above(self, threshold: float, advantage: FloatArray) -> FloatArray:
        """(U,) the posterior's chance of an advantage of this or more."""
        measure = MEASURES["advantage"]
        return self.measured(lambda pair: (measure(pair) >= threshold).astype(np.float64))

    def measured(self, measure: Measure) -> FloatArray:
        """(U,) the posterior mean of a measure."""
        found = np.empty(self.units)
        for start in range(0, self.units, AT_ONCE):
            rows = np.arange(start, min(start + AT_ONCE, self.units))
            drawn = self.draws(rows)
            flat = drawn.reshape(int(np.prod(drawn.batch_shape)))
            found[rows] = measure(flat).reshape(drawn.batch_shape).mean(axis=1)
        return found

    def measured_for(self, target: Target) -> FloatArray:
        """(U,) as the table has it, where it has."""
        known = self.values.get(column_of(target))
        return super().measured_for(target) if known is None else known

    def measures(self) -> dict[str, FloatArray]:
        """Every measure's posterior mean."""
        return {
            name: self.values[name] if name in self.values else self.measured(measure)
            for name, measure in MEASURES.items()
        }

    def roc(self, unit: int) -> RocCurve:
        """The posterior mean of the best test's ROC, at each false-positive rate."""
        drawn = self.draws(np.array([unit]))
        curve = measures.roc(drawn.reshape(drawn.batch_shape[1]))
        return RocCurve(curve.fpr, curve.tpr.mean(axis=0), curve.provenance)


# Units whose posterior is drawn at once.
AT_ONCE = 500


def _noised(pair: LawPair, sd: float) -> LawPair:
    from leakscope.laws.distributions import Normal

    sides = [
        Normal(law.mean, np.hypot(law.sigma, sd))  # type: ignore[attr-defined]
        for law in (pair.member, pair.nonmember)
    ]
    return LawPair(sides[0], sides[1], pair.provenance)


# The squares of larger variances leave float64, and no search begins below the smallest.
LARGEST_VARIANCE, SMALLEST_VARIANCE = 1e150, 1e-60

# The variance is found to this relative width; the end that meets the limit is returned.
WIDTH = 1e-6


def least_variance(
    laws: UnitLaws, measure: Measure, limit: float, most: float = LARGEST_VARIANCE
) -> float | None:
    """The least variance of noise on each answer that brings a measure of every unit to a limit.

    Noise cannot help the attacker (data processing): a unit within the limit stays there, and the
    search carries only those that are not.  None where ``most`` does not do it, or answers take no
    noise.
    """

    def above(variance: float) -> Rows:
        values = active.noised(float(np.sqrt(variance))).highest(measure)
        return np.flatnonzero(values > limit)

    active = laws
    rows = above(0.0)
    if not rows.size:
        return 0.0
    if not laws.takes_noise:
        return None
    active = active.some(rows)
    # Powers of ten up, or down, to a bracket; then halve it on a logarithmic scale.
    low, high = 0.0, min(max(active.first_noise, SMALLEST_VARIANCE), most)
    while above(high).size:
        if high >= most:
            return None
        low, high = high, min(10.0 * high, most)
    if low == 0.0:
        low = 0.1 * high
        while not above(low).size:
            low, high = 0.1 * low, low
    active = active.some(above(low))
    while high > low * (1.0 + WIDTH):
        middle = float(np.sqrt(low) * np.sqrt(high))
        rows = above(middle)
        if rows.size:
            low, active = middle, active.some(rows)
        else:
            high = middle
    return high


def noise_for(laws: UnitLaws, measure: Measure, limit: float) -> float | None:
    """The least standard deviation of noise that brings every unit to a limit, to two digits.

    Zero where none is needed, None where no noise does it or answers take none.
    """
    found = least_variance(laws, measure, limit)
    return None if found is None else rounded_up(float(np.sqrt(found)), 2)


def rounded_up(value: float, digits: int | None) -> float:
    """So many digits, rounded up; as it is without a number of them."""
    if digits is None or value == 0.0:
        return value
    unit = 10.0 ** (np.floor(np.log10(value)) - (digits - 1.0))
    return float(f"{np.ceil(value / unit) * unit:.{digits}g}")
