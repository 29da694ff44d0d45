"""Advice on a streamed audit: the least noise on the answers, from what is stored of every record.

Each record's measure falls as the noise rises, so that the search needs only records that can be
the worst: it looks for the noise with the most exposed ones, and then asks all others whether they
meet the target there; who does not joins the search.  The price is exact by leave-one-out: what
the others predict of a record, and how surely, is among the answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.advising.audit_target import AuditTarget
from leakscope.advising.option_pricing import PricedSetting, Terms
from leakscope.advising.output_noise import (
    WIDTH,
    largest_output_noise,
    sought_output_noise,
    unresolved,
)
from leakscope.advising.ranked_options import Ranked, doubt_words
from leakscope.advising.released_error import ReleasedError
from leakscope.advising.searched_options import NOT_SHOWN
from leakscope.auditing import answered_laws
from leakscope.errors import InputError
from leakscope.lood import Separation
from leakscope.results import AssumptionEntry, StreamedAuditDocument
from leakscope.settings import AdviseSettings

# How many of the most exposed the search carries, and how many more join at a time.
CARRIED = 10_000

# Output noise along its curve, in shares of the standard deviation that is needed.
SHARES = (0.0, 0.35, 0.7, 1.0, 1.4)

# Medians are those of about so many records, evenly spaced.
SAMPLED = 100_000

# Parts that the price's standard error is over: every tenth record, from each of the first ten.
PARTS = 10

OTHERS = (
    "Training noise, fewer features, dropping and merging need all records in memory, and were not "
    "searched: to see what more training noise does, audit again with a larger --noise-variance; "
    "for the others, audit a sample."
)


@dataclass(frozen=True)
class AnsweredRun:
    """A streamed audit and its answers."""

    directory: Path
    document: StreamedAuditDocument

    def laws(self) -> Iterator[Separation]:
        """Of every record, some at a time."""
        return answered_laws(self.directory, self.document)


def streamed_options(run: AnsweredRun, target: AuditTarget, settings: AdviseSettings) -> Ranked:
    """The least noise on the answers with which every record meets the target, and its price."""
    _require_usual(settings)
    own, carried, untrusted = _as_audited(run, target)
    terms = Terms(target, own, "record", None)
    told = terms.option("as audited", own, "Change nothing", [own], questions="any")
    doubt = None
    if untrusted:
        which = f"{untrusted:,} of {run.document.dataset.records:,} records"
        doubt = doubt_words(which, run.document.noise_variance, target)
    options = []
    if doubt is None and not told.meets:
        found, curve, notes = _least(run, target, own, carried)
        sigma = found.setting["output_sd"]
        options.append(
            terms.option(
                "output noise",
                found,
                f"Add fresh noise of standard deviation {sigma:.4g}, in units of the target as "
                "used, to every released answer",
                curve,
                (
                    "An attacker who may ask m times averages the noise down to a variance of 1/m.",
                    "The noise is for questions at the records' own points; elsewhere one may tell "
                    "more, and with this kernel without bound.",
                    *notes,
                ),
                NOT_SHOWN,
                questions="own",
            )
        )
    return Ranked(told, options, None, [OTHERS], _assumptions(), doubt)


def _as_audited(run: AnsweredRun, target: AuditTarget) -> tuple[PricedSetting, Separation, int]:
    """The audit's own setting priced, the most exposed records, and how many are not trusted."""
    losses, sizes = np.zeros(PARTS), np.zeros(PARTS, dtype=np.intp)
    carried, untrusted = _Largest(), 0
    values = _Values(run.document.dataset.records)
    first = 0
    for laws in run.laws():
        measured = laws.measured(target.measured)
        values.note(measured, first)
        carried.note(laws, measured)
        untrusted += int(np.count_nonzero(~laws.trusted))
        # (y - mean)^2 + variance without the record, averaged over outputs.
        loss = np.mean(laws.residual**2, axis=1) + laws.variance_without
        part = (first + np.arange(len(loss))) % PARTS
        losses += np.bincount(part, weights=loss, minlength=PARTS)
        sizes += np.bincount(part, minlength=PARTS)
        first += len(loss)
    if not sizes.all():
        raise InputError(f"advice on a streamed audit needs at least {PARTS} records.")
    released = ReleasedError((losses / sizes)[None], sizes[None])
    return (
        PricedSetting({}, values.worst, values.median, released, untrusted == 0),
        carried.laws(),
        untrusted,
    )


def _least(
    run: AnsweredRun, target: AuditTarget, own: PricedSetting, carried: Separation
) -> tuple[PricedSetting, list[PricedSetting], tuple[str, ...]]:
    """The least noise with which all records meet the target, its curve, and what to note."""
    for attempt in count():
        sought, notes = sought_output_noise(carried, target), list[str]()
        if sought is None:
            sought = largest_output_noise(carried, target)
            words = unresolved(target, sought)
            notes.append(f"{words[0].upper()}{words[1:]}")
        # The width of the search more each time: rounding must not keep it from an end.
        variance = sought * (1.0 + WIDTH) ** attempt
        amounts = [share**2 * variance for share in SHARES]
        seen = [_Values(run.document.dataset.records) for _ in amounts]
        above, first = _Largest(), 0
        for laws in run.laws():
            for amount, values in zip(amounts, seen, strict=True):
                measured = laws.noised(amount).measured(target.measured)
                values.note(measured, first)
                if amount == variance:
                    above.note(laws, measured, target.value)
            first += laws.units
        curve = [
            PricedSetting(
                {"output_sd": float(np.sqrt(amount))},
                values.worst,
                values.median,
                replace(own.released, by_fold=own.released.by_fold + amount),
            )
            for amount, values in zip(amounts, seen, strict=True)
        ]
        found = curve[SHARES.index(1.0)]
        if notes or not above.found:
            return found, curve, tuple(notes)
        carried = _joined([carried, above.laws()])
    raise AssertionError("unreachable")


class _Values:
    """The largest of a measure over all records, and its median over some."""

    def __init__(self, records: int) -> None:
        self.step = max(1, records // SAMPLED)
        self.worst, self.some = -np.inf, [np.zeros(0)]

    def note(self, values: FloatArray, first: int) -> None:
        self.worst = max(self.worst, float(np.max(values)))
        self.some.append(values[-first % self.step :: self.step])

    @property
    def median(self) -> float:
        return float(np.median(np.concatenate(self.some)))


class _Largest:
    """The laws of the records of largest measure, at most as many as the search carries."""

    def __init__(self) -> None:
        self.found: list[tuple[Separation, FloatArray]] = []

    def note(self, laws: Separation, values: FloatArray, above: float = -np.inf) -> None:
        some: NDArray[np.intp] = np.flatnonzero(values > above)
        if len(some):
            self.found.append((laws.some(some), values[some]))
        if sum(len(each) for _, each in self.found) > 2 * CARRIED:
            self._cut()

    def laws(self) -> Separation:
        self._cut()
        return self.found[0][0]

    def _cut(self) -> None:
        values = np.concatenate([each for _, each in self.found])
        laws = _joined([laws for laws, _ in self.found])
        kept = np.argsort(-values, kind="stable")[:CARRIED]
        self.found = [(laws.some(kept), values[kept])]


def _joined(parts: list[Separation]) -> Separation:
    def of(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])

    return replace(
        parts[0],
        targets=of("targets"),
        excess=of("excess"),
        residual=of("residual"),
        kl_label_free=of("kl_label_free"),
        kl_label=of("kl_label"),
        error_estimate=of("error_estimate"),
        trusted=of("trusted"),
    )


def _require_usual(settings: AdviseSettings) -> None:
    if settings.questions != "own":
        raise InputError(
            "questions anywhere are bounded for rbf and matern kernels only, and a streamed audit "
            "has a linear one; ask for advice with questions at the records' own points."
        )
    for given, option in (
        (settings.folds, "--folds"),
        (settings.repeats, "--repeats"),
        (settings.check, "--check"),
    ):
        if given is not None:
            raise InputError(
                f"advice on a streamed audit is priced by leave-one-out, not by models trained "
                f"again: leave {option} out."
            )


def _assumptions() -> list[AssumptionEntry]:
    return [
        AssumptionEntry(
            statement="where answers carry noise, the attacker asks one question, at the record's "
            "own point",
            holds=None,
            evidence="more answers average the noise away; without noise on the answers no "
            "question or set of questions to one trained model tells more than the record's own "
            "point",
        ),
        AssumptionEntry(
            statement="the price of an option is that of data like these",
            holds=None,
            evidence=f"leave-one-out over all records; standard errors over {PARTS} parts of them",
        ),
    ]
