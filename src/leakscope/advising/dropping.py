"""Dropping the most exposed units, with the others audited again after each batch.

To leave out the records B changes the inverse of M = K + s2 I on the others by a downdate,

    [M_RR]^{-1} = A_RR - A_RB [A_BB]^{-1} A_BR,    a_R -> a_R - A_RB [A_BB]^{-1} a_B,    A = M^{-1},

O(n^2 b) for b records instead of a factorisation.  What was hidden by a neighbour is exposed when
the neighbour goes, so that the list of the first audit is not the list to drop: each batch is taken
from the laws of what is left.  A dropped unit is not in the model, and its answers do not depend on
it; the choice to drop it does, and that is not counted here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope.advising.audit_target import AuditTarget
from leakscope.advising.audited_model import AuditedModel
from leakscope.advising.unit_laws import UnitLaws
from leakscope.errors import InputError
from leakscope.lood.all_records import factorise

Rows = NDArray[np.intp]

# A batch is this share of all units, and at least one; measures of many outputs take longer.
SHARE, SHARE_SEVERAL_OUTPUTS = 200, 40


@dataclass(frozen=True)
class DropStep:
    """What is left after a batch: units gone so far, worst and median of the rest, their laws.

    ``more_exposed`` of the units left are more exposed than before any was dropped, and
    ``newly_exposed`` of those dropped met the target as long as all were there.
    """

    dropped: int
    worst: float
    median: float
    laws: UnitLaws
    more_exposed: int
    newly_exposed: int


@dataclass(frozen=True)
class DropPath:
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
    >>> from leakscope import kernels
    >>> from leakscope.advising import AuditedModel, AuditTarget, drop_exposed
    >>> X, y = np.array([[0.0], [0.1], [0.2], [4.0]]), np.array([1.0, 1.0, 1.0, -1.0])
    >>> model = AuditedModel(X, y, kernels.rbf(1.0), noise_variance=0.5)
    >>> path = drop_exposed(model, AuditTarget("advantage", 0.3))
    >>> path.met, path.rows(model, dropped=1).tolist()
    (True, [0, 1, 2, -1])
    """

    order: Rows
    steps: tuple[DropStep, ...]
    met: bool

    @property
    def best(self) -> DropStep:
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

    def rows(self, model: AuditedModel, dropped: int) -> Rows:
        """(n,) the training row of each record with the first ``dropped`` units gone, or -1."""
        kept = ~np.isin(model.labels, self.order[:dropped])
        return np.where(kept, np.cumsum(kept) - 1, -1)


def drop_exposed(
    model: AuditedModel,
    target: AuditTarget,
    *,
    most: float = 0.5,
    batch: int | None = None,
) -> DropPath:
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
    >>> from leakscope import kernels
    >>> from leakscope.advising import AuditedModel, AuditTarget, drop_exposed
    >>> X = np.append(np.linspace(0.0, 1.0, 30), 9.0)[:, None]
    >>> model = AuditedModel(X, np.cos(X[:, 0]), kernels.rbf(1.0), noise_variance=0.1)
    >>> path = drop_exposed(model, AuditTarget("advantage", 0.3))
    >>> path.order.tolist(), path.met, path.more_exposed
    ([30], True, 0)
    """
    if not 0.0 < most < 1.0:
        raise InputError(f"the largest share to drop must lie between 0 and 1, but it is {most:g}.")
    share = SHARE if model.targets.shape[1] == 1 else SHARE_SEVERAL_OUTPUTS
    batch = max(1, model.units // share) if batch is None else batch
    if batch < 1:
        raise InputError(f"a batch must hold at least one, but it is {batch}.")
    inverse, a = _inverse(model)
    alive = np.ones(model.units, dtype=bool)
    order: list[int] = []
    first = model.laws().measured(target)

    def step(values: FloatArray, laws: UnitLaws) -> DropStep:
        more = values > first[alive] * (1.0 + 1e-9)
        return DropStep(
            dropped=len(order),
            worst=float(np.max(values)),
            median=float(np.median(values)),
            laws=laws,
            more_exposed=int(np.count_nonzero(more)),
            newly_exposed=int(np.count_nonzero(first[order] <= target.value)) if order else 0,
        )

    values, steps = first, [step(first, model.laws())]
    limit = int(most * model.units)
    while not target.met(steps[-1].worst) and len(order) < limit:
        left = np.flatnonzero(alive)
        above = np.argsort(-values, kind="stable")
        above = above[values[above] > target.value][: min(batch, limit - len(order))]
        gone = left[above]
        _downdate(inverse, a, np.flatnonzero(np.isin(model.labels, gone)))
        alive[gone] = False
        order += gone.tolist()
        laws = _laws(model, inverse, a, alive)
        values = laws.measured(target)
        steps.append(step(values, laws))
    return DropPath(
        order=np.array(order, dtype=np.intp),
        steps=tuple(steps),
        met=target.met(steps[-1].worst),
    )


def _inverse(model: AuditedModel) -> tuple[FloatArray, FloatArray]:
    """A = M^{-1}, whole, and a = M^{-1} y."""
    matrix = model.matrix.copy()
    matrix[np.diag_indices_from(matrix)] += model.noise_variance
    factor = factorise(matrix, model.noise_variance, overwrite=True)
    a = cholesky.solve(factor, model.targets)
    packed = cholesky.inverse(factor, overwrite=True).packed
    lower = np.tril(packed)
    return lower + np.tril(lower, -1).T, np.array(a)


def _downdate(inverse: FloatArray, a: FloatArray, gone: Rows) -> None:
    """Take the records out, in place; their rows and columns become zero, or nearly."""
    columns = inverse[:, gone]
    solved = linalg.solve(columns[gone], columns.T, assume_a="pos", check_finite=False)
    own = a[gone].copy()
    inverse -= columns @ solved
    a -= solved.T @ own


def _laws(
    model: AuditedModel, inverse: FloatArray, a: FloatArray, alive: NDArray[np.bool_]
) -> UnitLaws:
    entries = []
    for units, rows in model.blocks():
        left = alive[units]
        if left.any():
            own = rows[left]
            entries.append((units[left], own, inverse[own[:, :, None], own[:, None, :]]))
    return UnitLaws.from_inverse(entries, a, model.noise_variance)
