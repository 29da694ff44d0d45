"""What can be done, one option each: searched, priced along the way on the same folds, and told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from leakscope.advising.dropping import drop_exposed
from leakscope.data.datasets import RecordId
from leakscope.errors import InputError
from leakscope.results.advice import AdviceOption, AdvicePoint, Target
from leakscope.subjects.laws import LARGEST_VARIANCE, Exposure, Rows, UnitLaws, rounded_up
from leakscope.subjects.pricing import HeldOut, ReleasedError, Unavailable, by_size
from leakscope.subjects.subject import Change, Scan, Stages, Subject, Wanted

# How many settings of a costly change are priced, by the number of records at most.
POINTS = ((1000, 9), (2500, 6))

ASKED_AGAIN = (
    "An attacker who asks m times can average the answers, which divides the noise variance by m."
)


@dataclass(frozen=True, eq=False)
class Priced:
    """A setting with its leakage and its price, None where the kind has none.

    ``changed`` gives the subject changed so, before any noise on its answers.
    """

    setting: Mapping[str, float]
    exposure: Exposure
    released: ReleasedError | None
    changed: Callable[[], Subject]
    noise: float = 0.0
    dropped: Sequence[RecordId] = ()

    @property
    def error(self) -> float:
        """What it is ranked by; infinite without a price."""
        return np.inf if self.released is None else self.released.error

    def meets(self, target: Target) -> bool:
        """Whether it is known to meet the target."""
        return self.exposure.known and target.met(self.exposure.worst)

    def point(self) -> AdvicePoint:
        """As a point of a curve."""
        return AdvicePoint(
            setting=dict(self.setting),
            worst=self.exposure.worst,
            median=self.exposure.median,
            error=None if self.released is None else self.released.error,
        )


class Advising:
    """What all options share: the subject, the target, its laws, the folds and its own price."""

    def __init__(self, subject: Subject, wanted: Wanted) -> None:
        self.subject, self.wanted, self.target = subject, wanted, wanted.target
        self.laws = subject.laws(Stages())
        self.folds = subject.folds(wanted)
        self.terms = subject.terms(wanted, self.folds)
        self.points = by_size(POINTS, subject.dataset.records, 4)
        self.no_price = ""
        self.held: HeldOut | None = None
        try:
            self.held = subject.held_out(self.folds)
        except Unavailable as error:
            self.no_price = str(error)
        (self.own,) = self.priced({}, self.laws, self.held, lambda: subject)
        self.notes: list[str] = list(self.terms.notes)

    def held_out(self, subject: Subject, kept: Rows | None = None) -> HeldOut | None:
        """Answers about records held out; None of a kind without a price."""
        if self.held is None or (subject is self.subject and kept is None):
            return self.held
        return subject.held_out(self.folds, kept)

    def priced(
        self,
        setting: Mapping[str, float],
        laws: UnitLaws,
        held: HeldOut | None,
        changed: Callable[[], Subject],
        noises: Sequence[float] | None = None,
        dropped: Sequence[RecordId] = (),
    ) -> list[Priced]:
        """A setting; and the same with each of some noises on the answers, where they are given."""
        return [
            Priced(
                setting if noises is None else {**setting, "output_sd": noise},
                exposure,
                None if held is None else held.released(noise),
                changed,
                noise,
                dropped,
            )
            for noise, exposure in zip(
                noises or (0.0,), laws.exposures(self.target, noises or (0.0,)), strict=True
            )
        ]

    # The options.

    def output_noise(self) -> list[AdviceOption]:
        """The least noise on every answer; the most where none was found."""
        laws, target = self.laws, self.target
        if not laws.takes_noise:
            return []
        sd = self.noise_needed(laws)
        told: tuple[str, ...]
        if sd is None:
            most = laws.most_noise(target)
            sd, told = float(np.sqrt(most)), (_unresolved(target, most),)
        else:
            told = self.subject.noise_notes(laws, target)
        shares = self.terms.noise_shares
        curve = self.priced(
            {}, laws, self.held, lambda: self.subject, [share * sd for share in shares]
        )
        return [
            self.option(
                "output noise",
                curve[shares.index(1.0)],
                self.terms.noise.format(sd=sd),
                curve,
                (ASKED_AGAIN, *told),
                "Was not shown to meet",
            )
        ]

    def change(self, change: Change) -> list[AdviceOption]:
        """The least change that meets the target, or the cheapest that does."""
        scan, known = self.scanned(change)
        if not scan.levels:
            return []
        if change.along is not None:
            levels = change.along(scan, self.points)
        elif scan.refined:
            falling = scan.levels[0] > scan.levels[-1]
            levels = sorted([*scan.levels, *scan.refined], reverse=falling)
        else:
            levels = scan.levels
        alone: dict[float, Priced] = {}
        noised: list[tuple[Priced, str]] = []
        changes = False
        for level in levels:
            subject = change.at(level)
            try:
                laws = known[level] if level in known else subject.laws(Stages())
                held = self.held_out(subject)
            except InputError:
                continue
            changes = changes or subject is not self.subject
            (alone[level],) = self.priced(change.of(level), laws, held, _later(change.at, level))
            noised += self.noised(alone[level], laws, held, change.words(level))
        if not changes:
            return []
        best = self.best(alone, scan.found if change.between is not None else None)
        level = next(level for level, priced in alone.items() if priced is best)
        return [
            self.option(
                change.name,
                best,
                change.words(level),
                [*alone.values()],
                (*change.told(scan), *self.cheaper(best, alone), *change.always),
                change.unmet,
            ),
            *self.pair(change.name, noised, change.always),
        ]

    def dropping(self) -> list[AdviceOption]:
        """Dropping the most exposed."""
        subject, target, most = self.subject, self.target, self.wanted.settings.most_dropped
        units = len(subject.ids)
        batch = max(1, int(units // self.terms.batches))
        try:
            path = drop_exposed(subject, self.laws, target, most=most, batch=batch)
        except Unavailable:
            return []
        places = np.linspace(0, len(path.steps) - 1, self.points).round().astype(int).tolist()
        counts = sorted({*(path.steps[place].dropped for place in places), path.best.dropped})
        alone: dict[float, Priced] = {}
        noised: list[tuple[Priced, str]] = []
        for count in counts:
            kept = path.kept(units, count)
            left = _later(subject.keep, kept) if count else lambda: subject
            try:
                # By fits of its own, however the search got there.
                laws = left().laws(Stages()) if count else self.laws
                held = self.held_out(subject, kept if count else None)
            except InputError:
                continue  # a fold has lost a class, and no price
            gone = [subject.ids[int(unit)] for unit in path.order[:count]]
            (alone[count],) = self.priced({"dropped": float(count)}, laws, held, left, dropped=gone)
            words = f"Drop {count} of {units} {subject.unit}s"
            noised += self.noised(alone[count], laws, held, words)
        best = self.best(alone, path.best.dropped)
        words = f"Drop {best.setting['dropped']:.0f} of {units} {subject.unit}s"
        notes = path.notes(units, subject.unit, target, most)
        dropping = self.option("dropping", best, words, [*alone.values()], notes)
        return [dropping, *self.pair("dropping", noised, ())]

    # How they are found.

    def scanned(self, change: Change) -> tuple[Scan, dict[float, UnitLaws]]:
        """Try the levels of a change, and refine the first that meets the target."""
        known: dict[float, UnitLaws] = {}
        worst: dict[float, float] = {}

        def met(level: float) -> bool:
            if level not in worst:
                subject = change.at(level)
                laws = self.laws if subject is self.subject else subject.laws(Stages())
                (exposure,) = laws.exposures(self.target)
                # What is not known is not shown to meet anything.
                worst[level] = exposure.worst if exposure.known else np.inf
                known[level] = laws
            return self.target.met(worst[level])

        tried, meeting = list[float](), list[bool]()
        for level in change.levels:
            try:
                meeting.append(met(level))
            except InputError as error:
                if change.between is None:
                    numbers = change.of(level).items()
                    told = ", ".join(f"{name}={value:g}" for name, value in numbers)
                    self.notes.append(f"{told} is left out: {error}")
                continue
            tried.append(level)
            enough = change.beyond is not None and True in meeting
            if enough and len(meeting) > meeting.index(True) + (change.beyond or 0):
                break
        scan = Scan(tried, [worst[level] for level in tried])
        if True not in meeting:
            return scan, known
        first = meeting.index(True)
        found, refined = tried[first], list[float]()
        if change.between is not None and first > 0:
            low = tried[first - 1]
            while (middle := change.between(low, found)) is not None:
                refined.append(middle)
                try:
                    low, found = (low, middle) if met(middle) else (middle, found)
                except InputError:
                    refined.remove(middle)
                    low = middle
        rises = not all(meeting[first:])
        return replace(scan, found=found, rises=rises, refined=refined), known

    def best(self, alone: Mapping[float, Priced], found: float | None) -> Priced:
        """What was found; else the cheapest that meets the target, or what comes nearest."""
        if found is not None and found in alone:
            return alone[found]
        meeting = [priced for priced in alone.values() if priced.meets(self.target)]
        if meeting:
            return min(meeting, key=lambda priced: priced.error)
        return min(
            alone.values(), key=lambda priced: (not priced.exposure.known, priced.exposure.worst)
        )

    def cheaper(self, best: Priced, alone: Mapping[float, Priced]) -> tuple[str, ...]:
        """More of a change than is needed may predict better still."""
        meeting = [priced for priced in alone.values() if priced.meets(self.target)]
        cheapest = min(meeting, key=lambda priced: priced.error, default=best)
        if cheapest.error >= best.error:
            return ()
        where = " and ".join(f"{level:.4g}" for level in cheapest.setting.values())
        return (f"More is cheaper still: at {where} the error is {cheapest.error:.4g}.",)

    def noise_needed(self, laws: UnitLaws) -> float | None:
        """The least standard deviation of noise on the answers, where laws are known."""
        variance = None
        if not laws.unknown and laws.takes_noise:
            variance = laws.least_noise(self.target)
        if variance is None:
            return None
        return rounded_up(float(np.sqrt(variance)), self.terms.noise_digits)

    def noised(
        self, alone: Priced, laws: UnitLaws, held: HeldOut | None, words: str
    ) -> list[tuple[Priced, str]]:
        """A setting with the least noise on the answers that it still needs, and its words."""
        sd = self.noise_needed(laws)
        if not sd or held is None:
            return []
        (priced,) = self.priced(alone.setting, laws, held, alone.changed, [sd], alone.dropped)
        return [(priced, words)]

    def pair(
        self, name: str, noised: Sequence[tuple[Priced, str]], notes: tuple[str, ...]
    ) -> list[AdviceOption]:
        """The cheapest change with noise on the answers; none where nothing but noise changes."""
        best = min(noised, key=lambda setting: setting[0].error, default=None)
        if best is None or best[0].changed() is self.subject:
            return []
        noise = self.terms.noise.format(sd=best[0].noise)
        words = f"{best[1]} and {noise[:1].lower()}{noise[1:]}"
        curve = [priced for priced, _ in noised]
        return [self.option(f"{name} + output noise", best[0], words, curve, notes)]

    # How they are told.

    def option(
        self,
        name: str,
        found: Priced,
        words: str,
        curve: Sequence[Priced],
        notes: tuple[str, ...] = (),
        unmet: str = "Does not meet",
    ) -> AdviceOption:
        """The option, with its sentence; ``words`` say what to do."""
        target, terms, unit, seen = self.target, self.terms, self.subject.unit, found.exposure
        meets, released = found.meets(target), found.released
        shown = target.shown(seen.worst)
        if meets:
            result = f"{words}: the worst {unit} then has {target.label} {shown}"
        elif not seen.known:
            result = f"Not known to meet {target.words}: {terms.unconfirmed.format(unit=unit)}"
        else:
            result = (
                f"{unmet} {target.words}: the best setting tried leaves the worst {unit} at {shown}"
            )
        if meets and seen.high is not None and not target.met(seen.high) and terms.wide:
            notes = (*notes, terms.wide.format(high=target.shown(seen.high)))
        price, cost, stderr, split = self._price(found)
        # What changes nothing, as where no record is dropped, has no price.
        nothing = cost == 0.0 and stderr == 0.0 and not meets
        ending = "" if nothing or not price else f"{', and' if meets else ';'} {price}"
        changed = found.changed()
        squared = released is not None and terms.variance
        r_squared = 1.0 - found.error / terms.variance if squared and terms.variance else None
        accuracy = None if released is None else released.accuracy
        worthless = _worthless(r_squared, accuracy, terms.commonest)
        if worthless:
            ending += f"; {worthless}"
        return AdviceOption(
            name=name,
            setting=dict(found.setting),
            meets=meets,
            confirmed=seen.known,
            worst=seen.worst,
            median=seen.median,
            worst_low=seen.low,
            worst_high=seen.high,
            error=None if released is None else released.error,
            stderr=None if released is None else released.stderr,
            cost=cost,
            cost_stderr=stderr,
            split_stderr=split,
            r_squared=r_squared,
            accuracy=accuracy,
            worthless=bool(worthless),
            questions=self.subject.holds_at(found.noise),
            sentence=f"{result}{ending}.",
            notes=list(notes),
            curve=[point.point() for point in curve],
            dropped=list(found.dropped),
            features=list(changed.features_left),
            check=changed.checked(found.noise, self.wanted) if meets else None,
        )

    def _price(self, found: Priced) -> tuple[str, float | None, float | None, float | None]:
        """What it costs in words, the cost itself and its two standard errors."""
        own, released, terms = self.own.released, found.released, self.terms
        if own is None or released is None:
            return f"what that costs is not known ({self.no_price})", None, None, None
        cost, stderr, split = released.cost(own)
        price = f"{terms.priced} goes from {own.error:.4g} to "
        price += f"{released.error:.4g} ({cost:+.2g}, standard error {stderr:.1g})"
        if released.accuracy is not None and own.accuracy is not None:
            price += f", {terms.whose} accuracy from {own.accuracy:.1%} to {released.accuracy:.1%}"
        return price, cost, stderr, split


def _worthless(
    r_squared: float | None, accuracy: float | None, commonest: float | None
) -> str | None:
    """A sentence's end where the changed model predicts no better than one that knows nothing."""
    if r_squared is not None and r_squared <= 0.0:
        return "it predicts no better than the mean of the target, so it is useless"
    if accuracy is not None and commonest is not None and accuracy <= commonest:
        return (
            "it is right no more often than always answering the commonest class "
            f"({commonest:.1%}), so it is useless"
        )
    return None


def _later(at: Callable[..., Subject], level: float | Rows) -> Callable[[], Subject]:
    """The changed subject, made again when it is asked for: many would fill the memory."""
    return lambda: at(level)


def _unresolved(target: Target, enough: float) -> str:
    """What is to be said where the measure is above the target at the end of the search."""
    sigma = f"oise of standard deviation {np.sqrt(enough):.4g}"
    if enough >= LARGEST_VARIANCE:
        return f"N{sigma} does not meet {target.words}, and more noise would overflow float64."
    words = f"Float64 has too few digits to show {target.words} directly"
    return f"{words}; by a bound (Pinsker) n{sigma} does."
