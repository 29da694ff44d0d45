"""Dropping the most exposed units, with the others audited again after each batch.

To leave records out changes the inverse on the others by a downdate
(:meth:`leakscope.lood.WholeInverse.without`) instead of a factorisation; under finite features the
rest is audited anew, which costs less.  What was hidden by a neighbour is exposed when the
neighbour goes, so that the list of the first audit is not the list to drop: each batch is taken
from the laws of what is left.  A dropped unit is not in the model, and its answers do not depend on
it; the choice to drop it does, and that is not counted here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.advising.audit_target import AuditTarget
from leakscope.errors import InputError
from leakscope.lood import Process, Separation, WholeInverse, separation_of_blocks

Rows = NDArray[np.intp]
Laws = TypeVar("Laws")

# A batch is this share of all units, and at least one; measures of many outputs take longer.
SHARE, SHARE_SEVERAL_OUTPUTS = 200, 40


@dataclass(frozen=True)
class DropStep(Generic[Laws]):
    """What is left after a batch: units gone so far, worst and median of the rest, their laws.

    ``more_exposed`` of the units left are more exposed than before any was dropped, and
    ``newly_exposed`` of those dropped met the target as long as all were there.
    """

    dropped: int
    worst: float
    median: float
    laws: Laws
    more_exposed: int
    newly_exposed: int


@dataclass(frozen=True)
class DropPath(Generic[Laws]):
    """Units in the order in which they were dropped, and what was left after each batch.

    Attributes
    ----------
    order
        Numbers of the units dropped, first to last.
    steps
        The first is before any was dropped.
    met
        Whether the last step meets the target.
    best
        The step whose worst unit is the least exposed; the last one where the target is met.
    more_exposed, newly_exposed
        Those of the last step.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> from leakscope.advising import AuditTarget, drop_exposed
    >>> X, y = np.array([[0.0], [0.1], [0.2], [4.0]]), np.array([1.0, 1.0, 1.0, -1.0])
    >>> model = lood.Process(X, y, kernels.rbf(1.0), noise_variance=0.5)
    >>> path = drop_exposed(model, AuditTarget("advantage", 0.3))
    >>> path.met, path.rows(model, dropped=1).tolist()
    (True, [0, 1, 2, -1])
    """

    order: Rows
    steps: tuple[DropStep[Laws], ...]
    met: bool

    @property
    def best(self) -> DropStep[Laws]:
        """The step whose worst unit is the least exposed; the last one where the target is met."""
        return self.steps[-1] if self.met else min(self.steps, key=lambda step: step.worst)

    @property
    def more_exposed(self) -> int:
        """Of the units left at the last step, how many are more exposed than at the first."""
        return self.steps[-1].more_exposed

    @property
    def newly_exposed(self) -> int:
        """Of the units dropped, how many met the target as long as all were there."""
        return self.steps[-1].newly_exposed

    def rows(self, model: Process, dropped: int) -> Rows:
        """(n,) the training row of each record with the first ``dropped`` units gone, or -1."""
        kept = ~np.isin(model.labels, self.order[:dropped])
        return np.where(kept, np.cumsum(kept) - 1, -1)


def drop_exposed(
    model: Process,
    target: AuditTarget,
    *,
    most: float = 0.5,
    batch: int | None = None,
) -> DropPath[Separation]:
    """Drop the most exposed units, a batch at a time, until the target is met or too many are gone.

    Parameters
    ----------
    model, target
        What was audited, and what the worst unit may have.
    most
        The largest share of the units to drop.
    batch
        How many at once; 1/200 of the units where left out, 1/40 with several outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> from leakscope.advising import AuditTarget, drop_exposed
    >>> X = np.append(np.linspace(0.0, 1.0, 30), 9.0)[:, None]
    >>> model = lood.Process(X, np.cos(X[:, 0]), kernels.rbf(1.0), noise_variance=0.1)
    >>> path = drop_exposed(model, AuditTarget("advantage", 0.3))
    >>> path.order.tolist(), path.met, path.more_exposed
    ([30], True, 0)
    """
    if not 0.0 < most < 1.0:
        raise InputError(f"the largest share to drop must lie between 0 and 1, but it is {most:g}.")
    share = SHARE if model.outputs.shape[1] == 1 else SHARE_SEVERAL_OUTPUTS
    batch = max(1, model.units // share) if batch is None else batch
    if batch < 1:
        raise InputError(f"a batch must hold at least one, but it is {batch}.")
    blocks = model.inverse() if model.phi is None else None

    def without(gone: Rows, alive: NDArray[np.bool_]) -> tuple[FloatArray, Separation]:
        nonlocal blocks
        if blocks is None:
            laws = model.only(np.flatnonzero(alive)).separation()
        else:
            blocks = blocks.without(np.flatnonzero(np.isin(model.labels, gone)))
            laws = _laws(model, blocks, alive)
        return laws.measured(target.measured), laws

    own = model.separation()
    first = own.measured(target.measured), own
    return dropped_until(first, without, target, most=most, batch=batch)


def dropped_until(
    first: tuple[FloatArray, Laws],
    without: Callable[[Rows, NDArray[np.bool_]], tuple[FloatArray, Laws]],
    target: AuditTarget,
    *,
    most: float,
    batch: int,
) -> DropPath[Laws]:
    """Batches of the most exposed, until the target is met or a share of ``most`` is gone.

    ``first`` has every unit's measure and the laws as they are; ``without`` audits again what is
    left, given the units that go now and which of all are left then.
    """
    before, own = first
    units = len(before)
    alive = np.ones(units, dtype=bool)
    order: list[int] = []

    def step(values: FloatArray, laws: Laws) -> DropStep[Laws]:
        more = values > before[alive] * (1.0 + 1e-9)
        return DropStep(
            dropped=len(order),
            worst=float(np.max(values)),
            median=float(np.median(values)),
            laws=laws,
            more_exposed=int(np.count_nonzero(more)),
            newly_exposed=int(np.count_nonzero(before[order] <= target.value)) if order else 0,
        )

    values, steps = before, [step(before, own)]
    limit = int(most * units)
    while not target.met(steps[-1].worst) and len(order) < limit:
        left = np.flatnonzero(alive)
        above = np.argsort(-values, kind="stable")
        above = above[values[above] > target.value][: min(batch, limit - len(order))]
        gone = left[above]
        alive[gone] = False
        order += gone.tolist()
        try:
            values, laws = without(gone, alive)
        except InputError:
            # What would be left cannot be audited: a class is gone, or float64 gives up.
            del order[-len(gone) :]
            break
        steps.append(step(values, laws))
    return DropPath(
        order=np.array(order, dtype=np.intp),
        steps=tuple(steps),
        met=target.met(steps[-1].worst),
    )


def _laws(model: Process, blocks: WholeInverse, alive: NDArray[np.bool_]) -> Separation:
    rows = np.flatnonzero(alive[model.labels])
    groups = None
    if model.groups is not None:
        groups = np.unique(model.labels[rows], return_inverse=True)[1].astype(np.intp)
    return separation_of_blocks(blocks, model.targets[rows], groups, rows=rows)
