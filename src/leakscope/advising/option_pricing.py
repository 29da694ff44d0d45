"""From a setting that was found to an option with its price, on the same folds for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leakscope.advising.applied_defence import Defence, touched
from leakscope.advising.audit_target import AuditTarget
from leakscope.advising.released_error import Folds, HeldOut, ReleasedError
from leakscope.data import RecordId
from leakscope.lood import Process, Separation
from leakscope.results import AdviceOption, AdvicePoint

DOES_NOT_MEET = "Does not meet"


@dataclass(frozen=True)
class PricedSetting:
    """A setting with its leakage and what it costs.

    ``trusted`` is whether the laws of every unit there are.
    """

    setting: Mapping[str, float]
    worst: float
    median: float
    released: ReleasedError
    trusted: bool = True

    def point(self) -> AdvicePoint:
        """As a point of a curve."""
        return AdvicePoint(
            setting=dict(self.setting),
            worst=self.worst,
            median=self.median,
            error=self.released.error,
        )


@dataclass(frozen=True)
class Priced(PricedSetting):
    """The same with the defence to apply."""

    defence: Defence = field(kw_only=True)


@dataclass(frozen=True)
class Terms:
    """What every option is told against: the target, the price of changing nothing, and words.

    ``loss`` names the error, ``whose`` says whose accuracy it is, ``doubt`` why a unit is not
    trusted, and ``variance`` is the target's, for R²; None where the error is no squared one.
    """

    target: AuditTarget
    own: PricedSetting
    unit: str
    variance: float | None
    loss: str = "the released answers' squared error"
    whose: str = "their"
    doubt: str = "float64 does not resolve every {unit} there"

    def option(
        self,
        name: str,
        found: PricedSetting,
        words: str,
        curve: Sequence[PricedSetting],
        notes: tuple[str, ...] = (),
        verdict: str = DOES_NOT_MEET,
        **more: Any,
    ) -> AdviceOption:
        """The option, with its sentence; ``words`` say what to do, ``verdict`` that it fails."""
        cost, stderr, split = found.released.cost(self.own.released)
        meets = found.trusted and self.target.met(found.worst)
        own, shown = self.own.released, self.target.shown(found.worst)
        if meets:
            result = f"the worst {self.unit} then has {self.target.label} {shown}"
        elif not found.trusted:
            result = f"Not known to meet {self.target.words}: "
            result += self.doubt.format(unit=self.unit)
        else:
            result = (
                f"{verdict} {self.target.words}: the best setting tried leaves the worst "
                f"{self.unit} at {shown}"
            )
        price = f"{self.loss} goes from {own.error:.4g} to "
        price += f"{found.released.error:.4g} ({cost:+.2g}, standard error {stderr:.1g})"
        if found.released.accuracy is not None and own.accuracy is not None:
            price += (
                f", {self.whose} accuracy from {own.accuracy:.1%} to {found.released.accuracy:.1%}"
            )
        start = f"{words}: " if meets else ""
        # What changes nothing, as where no record is dropped, has no price.
        ending = "." if cost == 0.0 and stderr == 0.0 else f"; {price}."
        return AdviceOption(
            name=name,
            setting=dict(found.setting),
            meets=meets,
            worst=found.worst,
            median=found.median,
            error=found.released.error,
            stderr=found.released.stderr,
            cost=cost,
            cost_stderr=stderr,
            split_stderr=split,
            r_squared=1.0 - found.released.error / self.variance if self.variance else None,
            accuracy=found.released.accuracy,
            sentence=f"{start}{result}, and {price}." if meets else f"{result}{ending}",
            curve=[point.point() for point in curve],
            trusted=found.trusted,
            notes=list(notes),
            **more,
        )


@dataclass(frozen=True, eq=False)
class Pricing:
    """What all options share: the model, the target, the audit's laws, folds and own price.

    ``names`` are the ids of what can leave; ``points`` is how many settings a curve is refitted at;
    ``reach`` is given where noise on the answers must do for one question anywhere.
    """

    model: Process
    names: Sequence[RecordId]
    target: AuditTarget
    folds: Folds
    points: int
    reach: float | None = None
    laws: Separation = field(init=False)
    own_held_out: HeldOut = field(init=False)
    own: Priced = field(init=False)

    def __post_init__(self) -> None:
        defence = Defence(self.model.noise_variance)
        object.__setattr__(self, "laws", self.model.separation())
        object.__setattr__(self, "own_held_out", defence.held_out(self.model, self.folds))
        priced = self.of_laws({}, self.laws, defence, self.own_held_out)
        object.__setattr__(self, "own", priced)

    def held_out(self, defence: Defence) -> HeldOut:
        """Predictions with the defence applied."""
        return defence.held_out(self.model, self.folds)

    def of_laws(
        self,
        setting: Mapping[str, float],
        laws: Separation,
        defence: Defence,
        held: HeldOut | None = None,
    ) -> Priced:
        """A setting whose laws, before any output noise, are these."""
        seen = laws.noised(defence.output_variance, self.reach)
        values = seen.measured(self.target.measured)
        return self.of_measures(
            setting,
            float(np.max(values)),
            float(np.median(values)),
            defence,
            held,
            trusted=bool(seen.trusted.all()),
        )

    def of_measures(
        self,
        setting: Mapping[str, float],
        worst: float,
        median: float,
        defence: Defence,
        held: HeldOut | None = None,
        *,
        trusted: bool,
    ) -> Priced:
        """A setting whose worst and median unit are known."""
        held = self.held_out(defence) if held is None else held
        released = held.released(defence.output_variance)
        return Priced(setting, worst, median, released, trusted, defence=defence)

    def option(
        self,
        name: str,
        found: Priced,
        words: str,
        curve: Sequence[Priced],
        notes: tuple[str, ...] = (),
        verdict: str = DOES_NOT_MEET,
    ) -> AdviceOption:
        """The option, with its sentence; ``words`` say what to do, ``verdict`` that it fails."""
        dropped, merged = touched(found.defence, self.model, self.names)
        noised = found.defence.output_variance > 0.0 and self.reach is None
        terms = Terms(self.target, self.own, self.model.unit, self.model.total_variance)
        return terms.option(
            name,
            found,
            words,
            curve,
            notes,
            verdict,
            questions="own" if noised else "any",
            dropped=dropped,
            merged=merged,
        )
