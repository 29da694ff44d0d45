"""Noise on the answers of a streamed audit, and its price, from what is stored of every record.

Each record's measure falls as the noise rises, so that the search needs only records that can be
the worst: it looks for the noise with the most exposed ones, and then asks all others whether they
meet the target there; who does not joins the search.  The price is exact by leave-one-out: what
the others predict of a record, and how surely, is among the answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws.pair import LawPair
from leakscope.lood.separation import Separation
from leakscope.results.advice import Target
from leakscope.settings.advise import AdviseSettings
from leakscope.subjects.laws import WIDTH, Exposure, Measure, Rows, UnitLaws, measure_of
from leakscope.subjects.pricing import ReleasedError, Terms, Unavailable, like_these
from leakscope.subjects.process.changes import MODEL_FAMILY, NOISE_WORDS, asked_once
from leakscope.subjects.process.subject import ProcessLaws, laws_of_separation

if TYPE_CHECKING:
    from leakscope.subjects.stream.subject import Stream

# How many of the most exposed the search carries, and how many more join at a time.
CARRIED = 10_000

# Medians are those of about so many records, evenly spaced.
SAMPLED = 100_000

# Parts that the price's standard error is over: every tenth record, from each of the first ten.
PARTS = 10

NOT_IN_MEMORY = (
    "the records of this audit were streamed and are not held in memory; audit a sample for that."
)

TERMS = Terms(
    priced="the released answers' squared error",
    whose="their",
    untrusted="float64 does not resolve every {unit} there",
    **NOISE_WORDS,
    noise_shares=(0.0, 0.35, 0.7, 1.0, 1.4),
    notes=(
        "Training noise, fewer features and dropping need all records in memory, and were not "
        "searched: to see what more training noise does, audit again with a larger "
        "--noise-variance; for the others, audit a sample.",
    ),
    warnings=(MODEL_FAMILY,),
    assumptions=(
        asked_once("at the record's own point"),
        like_these(f"leave-one-out over all records; standard errors over {PARTS} parts of them"),
    ),
)


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamLaws(UnitLaws):
    """The laws of more records than memory holds: some at a time, and numbers over all of them."""

    stream: Stream

    @property
    def units(self) -> int:
        """All records."""
        return self.stream.dataset.records

    @property
    def unknown(self) -> int:
        """What is not trusted has no interval here."""
        return self.untrusted

    @property
    def untrusted(self) -> int:
        """Of all records."""
        return self.stream.audit.untrusted

    def batches(self) -> Iterator[tuple[Rows, LawPair]]:
        """Some records at a time."""
        first = 0
        for laws in self.stream.blocks():
            for rows, pair in laws.batches():
                yield first + rows, pair
            first += laws.units

    def some(self, units: Rows) -> UnitLaws:
        """Single records are not looked up."""
        raise Unavailable(NOT_IN_MEMORY)

    def noised(self, sd: float) -> UnitLaws:
        """As it is without noise; with noise see ``exposures``."""
        if sd == 0.0:
            return self
        raise Unavailable(NOT_IN_MEMORY)

    def measured(self, measure: Measure) -> FloatArray:
        """Not of all records at once."""
        raise Unavailable(NOT_IN_MEMORY)

    @property
    def spread(self) -> FloatArray:
        """Not of all records at once."""
        raise Unavailable(NOT_IN_MEMORY)

    def exposures(self, target: Target, noises: Sequence[float] = (0.0,)) -> list[Exposure]:
        """All noises in one pass over the records."""
        measure, first = measure_of(target), 0
        seen = [_Seen(self.units) for _ in noises]
        for laws in self.stream.blocks():
            for noise, values in zip(noises, seen, strict=True):
                values.note(laws.noised(noise).measured(measure), laws.trusted, first)
            first += laws.units
        return [each.exposure(target, all_trusted=not self.untrusted) for each in seen]

    def least_noise(self, target: Target) -> float | None:
        """With the most exposed records, until all others meet the target too."""
        measure, carried = measure_of(target), _Largest()
        for laws in self.stream.blocks():
            carried.note(laws, laws.measured(measure))
        active = carried.laws()
        for attempt in count():
            sought = active.least_noise(target)
            if sought is None:
                return None
            # The width of the search more each time: rounding must not keep it from an end.
            variance, above = sought * (1.0 + WIDTH) ** attempt, _Largest()
            for laws in self.stream.blocks():
                noised = laws.noised(float(np.sqrt(variance)))
                above.note(laws, noised.measured(measure), target.value)
            if not above.found:
                return variance
            active = _joined([active, above.laws()])
        raise AssertionError("unreachable")

    def enough_noise(self, advantage: float) -> float:
        """The most that any block needs."""
        return max(laws.enough_noise(advantage) for laws in self.stream.blocks())


@dataclass(frozen=True)
class LeaveOneOut:
    """The squared error of draws, by parts of the records."""

    own: ReleasedError

    def released(self, noise: float = 0.0) -> ReleasedError:
        """With noise of this standard deviation on every answer."""
        return replace(self.own, by_fold=self.own.by_fold + noise**2)


def leave_one_out(blocks: Iterator[ProcessLaws]) -> LeaveOneOut:
    """What the others predict of every record, and how surely."""
    losses, sizes, first = np.zeros(PARTS), np.zeros(PARTS, dtype=np.intp), 0
    for laws in blocks:
        found = laws.separation
        # (y - mean)^2 + variance without the record, averaged over outputs.
        loss = np.mean(found.residual**2, axis=1) + found.variance_without
        part = (first + np.arange(len(loss))) % PARTS
        losses += np.bincount(part, weights=loss, minlength=PARTS)
        sizes += np.bincount(part, minlength=PARTS)
        first += len(loss)
    if not sizes.all():
        raise InputError(f"advice on a streamed audit needs at least {PARTS} records.")
    return LeaveOneOut(ReleasedError((losses / sizes)[None], sizes[None]))


def require_usual(settings: AdviseSettings) -> None:
    """Refuse what needs models that are trained again, or a bound on other questions."""
    if settings.questions != "own":
        raise InputError(
            "questions anywhere are bounded for rbf and matern kernels only, and a streamed audit "
            "has a linear one; ask for advice with questions at the records' own points."
        )
    for name in ("folds", "repeats", "check"):
        if getattr(settings, name) is not None:
            raise InputError(
                f"advice on a streamed audit is priced by leave-one-out, not by models trained "
                f"again: leave --{name} out."
            )


@dataclass
class _Seen:
    """The largest of a measure over all records, and its median over some."""

    records: int
    worst: float = -np.inf
    worst_trusted: float = -np.inf
    some: list[FloatArray] = field(default_factory=list)

    def note(self, values: FloatArray, trusted: NDArray[np.bool_], first: int) -> None:
        step = max(1, self.records // SAMPLED)
        self.worst = max(self.worst, float(np.max(values)))
        self.worst_trusted = max(
            self.worst_trusted, float(np.max(values[trusted], initial=-np.inf))
        )
        self.some.append(values[-first % step :: step])

    def exposure(self, target: Target, *, all_trusted: bool) -> Exposure:
        known = all_trusted or self.worst_trusted > target.value
        return Exposure(self.worst, float(np.median(np.concatenate(self.some))), known)


class _Largest:
    """The laws of the records of largest measure, at most as many as the search carries."""

    def __init__(self) -> None:
        self.found: list[tuple[ProcessLaws, FloatArray]] = []

    def note(self, laws: ProcessLaws, values: FloatArray, above: float = -np.inf) -> None:
        some: Rows = np.flatnonzero(values > above)
        if len(some):
            self.found.append((laws.some(some), values[some]))
        if sum(len(each) for _, each in self.found) > 2 * CARRIED:
            self._cut()

    def laws(self) -> ProcessLaws:
        self._cut()
        return self.found[0][0]

    def _cut(self) -> None:
        values = np.concatenate([each for _, each in self.found])
        laws = _joined([laws for laws, _ in self.found])
        kept = np.argsort(-values, kind="stable")[:CARRIED]
        self.found = [(laws.some(kept), values[kept])]


def _joined(parts: list[ProcessLaws]) -> ProcessLaws:
    found: list[Separation] = [part.separation for part in parts]

    def of(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in found])

    return laws_of_separation(
        replace(
            found[0],
            targets=of("targets"),
            excess=of("excess"),
            residual=of("residual"),
            kl_label_free=of("kl_label_free"),
            kl_label=of("kl_label"),
            error_estimate=of("error_estimate"),
            trusted=of("trusted"),
        )
    )
