"""Dropping the most exposed units, with the others audited again after each batch.

What was hidden by a neighbour is exposed when the neighbour goes, so that the list of the first
audit is not the list to drop: each batch is taken from the laws of what is left.  A dropped unit is
not in the model, and its answers do not depend on it; the choice to drop it does, and that is not
counted here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.results.advice import Target
from leakscope.subjects.laws import Rows, UnitLaws, measure_of
from leakscope.subjects.pricing import Unavailable
from leakscope.subjects.subject import Stages, Subject


@dataclass(frozen=True)
class DropStep:
    """What is left after a batch: units gone so far, and the worst of the rest.

    ``more_exposed`` of the units left are more exposed than before any was dropped.
    """

    dropped: int
    worst: float
    more_exposed: int


@dataclass(frozen=True)
class DropPath:
    """Units in the order in which they were dropped, and what was left after each batch.

    The first step is before any was dropped; ``met`` is whether the last one meets the target.
    """

    order: Rows
    steps: tuple[DropStep, ...]
    met: bool

    @property
    def best(self) -> DropStep:
        """The step whose worst unit is the least exposed; the last one where the target is met."""
        return self.steps[-1] if self.met else min(self.steps, key=lambda step: step.worst)

    def kept(self, units: int, dropped: int) -> Rows:
        """The units that are left once so many are gone."""
        return np.setdiff1d(np.arange(units), self.order[:dropped])

    def notes(self, units: int, unit: str, target: Target, most: float) -> tuple[str, ...]:
        """What dropping did to the others, and whether it came to an end."""
        left, last = units - self.best.dropped, self.steps[-1]
        told = f"This makes {self.best.more_exposed} of the {left} other {unit}s more exposed."
        if self.met:
            return (told,)
        return (
            told,
            f"Dropping stopped at {last.dropped} of {units} {unit}s (at most {most:.0%} may go), "
            f"where the worst of the rest is at {target.shown(last.worst)}.",
        )


def drop_exposed(
    subject: Subject, laws: UnitLaws, target: Target, *, most: float, batch: int
) -> DropPath:
    """Batches of the most exposed, until the target is met or a share of ``most`` is gone.

    ``laws`` are those of the subject as it is.
    """

    def measured(found: UnitLaws) -> FloatArray:
        # A unit whose law is not confirmed is not known to meet any target: it goes first.
        return np.where(found.known, found.highest(measure_of(target)), np.inf)

    before = measured(laws)
    alive, order, limit = np.arange(len(before)), list[int](), int(most * len(before))

    def step(values: FloatArray) -> DropStep:
        return DropStep(
            dropped=len(order),
            worst=float(np.max(values)),
            more_exposed=int(np.count_nonzero(values > before[alive] * (1.0 + 1e-9))),
        )

    values, steps, left = before, [step(before)], subject
    while not target.met(steps[-1].worst) and len(order) < limit:
        above = np.argsort(-values, kind="stable")
        above = above[values[above] > target.value][: min(batch, limit - len(order))]
        stay = np.setdiff1d(np.arange(len(alive)), above)
        try:
            left = left.keep(stay)
            values = measured(left.laws(Stages()))
        except Unavailable:
            raise
        except InputError:
            # What would be left cannot be audited: a class is gone, or float64 gives up.
            break
        order += alive[above].tolist()
        alive = alive[stay]
        steps.append(step(values))
    return DropPath(np.array(order, dtype=np.intp), tuple(steps), target.met(steps[-1].worst))
