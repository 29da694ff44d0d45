"""The laws of every record, or group, in two numbers a coordinate, and what noise does to them.

In the coordinates of :mod:`leakscope.lood.sufficient` the value of a record (coordinate i, output
c) has the law N(sqrt(x_i) t_ic, 1) with it and N(0, 1 + x_i) without it: ``excess`` x_i and
``score`` t_ic are all there is to know.  With s2 the noise variance, M = K + s2 I, a = M^{-1} y and
m = [M^{-1}]_ii (for a group: the eigenvalues of that block, and a turned into its eigenvectors),

    x = 1/(s2 m) - 1,        t = a/sqrt(m).

Before scaling the two variances are s2 x/(1 + x) and s2 x.  Fresh noise of variance v on every
answer adds v to both, and the shift stays.  This is again a pair of the same form, with the same
score and the excess

    x' = x W/(W + v (1 + x)),        W = s2 x, the variance at the record without it.

Noise on the answers does nothing else: it lowers every excess.

**Questions elsewhere.**  Without noise no question tells more of a record than its own point.  With
noise one may, where the function varies more.  At a question q with variance w without the record,
and c the covariance of f(q) and f(x_i) then, the score is the same and the excess
u^2/(w - u^2 + v), where u^2 = c^2/(s2 (1 + x)), and c^2 <= w s2 x by Cauchy and Schwarz.  So it is
at most the x' above with W = w, which rises with w, and w is at most the kernel's largest value
k(q, q): with W that value, the ``reach``, x' bounds what one question can tell, wherever it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.advising.audit_target import AuditTarget
from leakscope.laws import LawPair, MultivariateNormal, Normal
from leakscope.lood import LeaveGroupsOut, LeaveOneOut

Rows = NDArray[np.intp]

# Numbers in the covariances of the pairs that are measured at once.
NUMBERS_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class UnitLaws:
    """What tells members from others, for every unit (a record or a group).

    Attributes
    ----------
    excess, score
        (N,) x_i and (N, C) t_ic, unit after unit.
    sizes
        (U,) coordinates of each unit, which are its records.
    noise_variance
        s2, in squared units of the target.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> from leakscope.advising import AuditTarget, UnitLaws
    >>> laws = lood.all_records(np.eye(2), np.array([0.0, 2.0]), noise_variance=1.0)
    >>> units = UnitLaws.of(laws)
    >>> target = AuditTarget("advantage", 0.2)
    >>> units.measured(target).round(3).tolist()
    [0.166, 0.458]
    >>> units.noised(1.0).measured(target).round(3).tolist()
    [0.069, 0.3]
    """

    excess: FloatArray
    score: FloatArray
    sizes: Rows
    noise_variance: float

    @classmethod
    def of(cls, laws: LeaveOneOut | LeaveGroupsOut) -> UnitLaws:
        """From an audit's laws."""
        s2 = laws.noise_variance
        if isinstance(laws, LeaveGroupsOut):
            return cls(laws.excess, laws.score, laws.sizes, s2)
        excess = laws.variance_without / s2
        shift = laws.mean_shift.reshape(len(excess), -1)
        # shift = sqrt(s2/(1 + x)) x t
        score = shift * (np.sqrt((1.0 + excess) / s2) / excess)[:, None]
        return cls(excess, score, np.ones(len(excess), dtype=np.intp), s2)

    @classmethod
    def from_inverse(
        cls,
        blocks: Sequence[tuple[Rows, Rows, FloatArray]],
        a: FloatArray,
        noise_variance: float,
    ) -> UnitLaws:
        """From blocks of M^{-1}, one entry a size of units, in the order of the units' numbers.

        An entry holds (u,) numbers of units, (u, g) rows of their records and (u, g, g) blocks;
        ``a`` is (n, C).
        """
        excess, score, sizes = [], [], []
        for _, rows, block in blocks:
            if rows.shape[1] == 1:
                m, turned = block[:, :, 0], a[rows]
            else:
                m, vectors = np.linalg.eigh(block)
                turned = np.swapaxes(vectors, 1, 2) @ a[rows]
            # The eigenvalues lie between 0 and 1/s2, which rounding may overstep.
            m = np.clip(m, np.finfo(np.float64).tiny, 1.0 / noise_variance)
            excess.append((1.0 / (noise_variance * m) - 1.0).ravel())
            score.append((turned / np.sqrt(m)[:, :, None]).reshape(-1, a.shape[1]))
            sizes.append(np.full(len(rows), rows.shape[1], dtype=np.intp))
        found = cls(
            np.concatenate(excess), np.concatenate(score), np.concatenate(sizes), noise_variance
        )
        if len(blocks) == 1:
            return found
        return found.some(np.argsort(np.concatenate([units for units, _, _ in blocks])))

    def noised(self, variance: float, reach: float | None = None) -> UnitLaws:
        """The laws when every answer gets fresh noise of this variance.

        With ``reach``, the largest prior variance that any question meets, they bound what one
        question anywhere can tell of a record; otherwise the record's own point is asked.
        """
        if variance == 0.0:
            return self
        x, spread = self.excess, self._spread(reach)
        return replace(self, excess=x * (spread / (spread + variance * (1.0 + x))))

    def enough_variance(self, advantage: float, reach: float | None = None) -> float:
        """A variance of noise on the answers with which no unit's advantage is above this one.

        In closed form.  With w = W x/(1 + x) the excess is at most w/v, and where that is at most 1
        a unit's divergence KL(with || without) is at most sum_i w_i (C/2 + |t_i|^2)/(2 v).  The
        advantage is at most sqrt(KL/2) (Pinsker).  What float64 does not hold is infinite.

        Examples
        --------
        >>> import numpy as np
        >>> from leakscope import lood
        >>> from leakscope.advising import AuditTarget, UnitLaws
        >>> laws = lood.all_records(np.eye(2), np.array([0.0, 2.0]), noise_variance=1.0)
        >>> units, target = UnitLaws.of(laws), AuditTarget("advantage", 1e-6)
        >>> enough = units.enough_variance(1e-6)
        >>> bool(units.noised(enough).measured(target).max() <= 1e-6)
        True
        """
        x, spread = self.excess, self._spread(reach)
        starts = np.cumsum(self.sizes) - self.sizes
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            most = spread * (x / (1.0 + x))
            share = 0.5 * self.score.shape[1] + np.sum(self.score**2, axis=1)
            sums = np.add.reduceat(most * share, starts)
            found = max(float(np.max(most)), float(np.max(sums / advantage / advantage / 4.0)))
        return found if np.isfinite(found) else float("inf")

    def _spread(self, reach: float | None) -> FloatArray:
        """W: the variance at the record without it, or what any question can meet."""
        own = self.noise_variance * self.excess
        return own if reach is None else np.maximum(own, reach)

    def some(self, units: Rows) -> UnitLaws:
        """The laws of some units."""
        starts = np.cumsum(self.sizes) - self.sizes
        sizes = self.sizes[units]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        places = np.repeat(starts[units], sizes) + within
        return replace(self, excess=self.excess[places], score=self.score[places], sizes=sizes)

    def measured(self, target: AuditTarget) -> FloatArray:
        """The target's measure of every unit, (U,)."""
        found = np.empty(len(self.sizes))
        starts, outputs = np.cumsum(self.sizes) - self.sizes, self.score.shape[1]
        for size in np.unique(self.sizes):
            alike = np.flatnonzero(self.sizes == size)
            step = max(1, NUMBERS_AT_ONCE // (int(size) * outputs) ** 2)
            for first in range(0, len(alike), step):
                some = alike[first : first + step]
                places = starts[some][:, None] + np.arange(size)
                found[some] = target.measured(_pair(self.excess[places], self.score[places]))
        return found


def _pair(excess: FloatArray, score: FloatArray) -> LawPair:
    """The batch of pairs of units of one size: excess (b, g), score (b, g, C)."""
    shift = (np.sqrt(excess)[:, :, None] * score).reshape(len(excess), -1)
    spread = np.repeat(1.0 + excess, score.shape[2], axis=1)
    if shift.shape[1] == 1:
        return LawPair(Normal(shift[:, 0], 1.0), Normal(0.0, np.sqrt(spread[:, 0])))
    identity = np.eye(shift.shape[1])
    return LawPair(
        MultivariateNormal(shift, np.broadcast_to(identity, (len(shift), *identity.shape))),
        MultivariateNormal(np.zeros_like(shift), spread[:, :, None] * identity),
    )
