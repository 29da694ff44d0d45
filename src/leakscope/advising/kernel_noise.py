"""The least training noise (the ridge of kernel regression) that meets a target.

One eigendecomposition K = V diag(l) V^T gives every level s2 of the noise in O(n^2):

    m_i = sum_j V_ij^2/(l_j + s2),   h_i = sum_j V_ij^2 l_j/(l_j + s2),   a = V (l + s2)^{-1} V^T y,

and for groups the blocks V_G diag(1/(l + s2)) V_G^T.  All terms are positive, so that nothing
cancels.  More noise need not expose less: a record's mean shifts less, but the answers of the
others change too.  The levels are scanned, the first crossing is refined, and what the scan saw
beyond it is told.  The scan ends at a level that is enough in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np
from scipy import linalg

from leakscope._numerics.arrays import FloatArray
from leakscope.advising.audit_target import AuditTarget
from leakscope.advising.audited_model import AuditedModel
from leakscope.advising.output_noise import LARGEST
from leakscope.advising.unit_laws import UnitLaws

PER_DECADE = 6

# Relative width to which the level is found.
WIDTH = 1e-5


class NoiseLevels:
    """The laws of every unit at any training noise, from one eigendecomposition.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels
    >>> from leakscope.advising import AuditedModel, NoiseLevels
    >>> model = AuditedModel(np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 1.0, -1.0]),
    ...                      kernels.rbf(1.0), noise_variance=0.1)
    >>> levels = NoiseLevels(model)
    >>> bool(np.allclose(levels.laws(0.1).excess, model.laws().excess))
    True
    """

    def __init__(self, model: AuditedModel) -> None:
        self._blocks = model.blocks()
        self._single = model.groups is None
        values, self._vectors = linalg.eigh(model.matrix, driver="evd", check_finite=False)
        self._values = np.maximum(values, 0.0)
        self._turned = self._vectors.T @ model.targets
        self._squares = self._vectors**2 if self._single else None
        self._largest_unit = max(rows.shape[1] for _, rows in self._blocks)

    def laws(self, noise_variance: float) -> UnitLaws:
        """The laws at one level."""
        shrunk = 1.0 / (self._values + noise_variance)
        a = self._vectors @ (self._turned * shrunk[:, None])
        if self._squares is not None:
            m, h = (self._squares @ np.column_stack([shrunk, self._values * shrunk])).T
            sizes = np.ones(len(m), dtype=np.intp)
            return UnitLaws(
                h / (noise_variance * m), a / np.sqrt(m)[:, None], sizes, noise_variance
            )
        entries = []
        for units, rows in self._blocks:
            own = self._vectors[rows]
            entries.append((units, rows, (own * shrunk) @ np.swapaxes(own, 1, 2)))
        return UnitLaws.from_inverse(entries, a, noise_variance)

    def enough(self, advantage: float) -> float:
        """A level above which no unit's advantage is above this one, in closed form.

        With l the largest eigenvalue and g the records of the largest unit, x <= l/s2 and
        |a| <= |y|/s2.  Where s2 >= l the divergence KL(with || without) of a unit is then at most
        (l/s2^2)(g C l/4 + |y|^2), and the advantage at most sqrt(KL/2) (Pinsker).  What float64
        does not hold is infinite.
        """
        top, outputs = float(self._values[-1]), self._turned.shape[1]
        with np.errstate(over="ignore", divide="ignore"):
            share = 0.25 * self._largest_unit * outputs * top + np.sum(self._turned**2)
            found = max(top, float(np.sqrt(0.5 * top * share) / np.float64(advantage)))
        return found if np.isfinite(found) else float("inf")


@dataclass(frozen=True)
class NoiseScan:
    """The worst unit over levels of training noise, and the least level that meets the target.

    Attributes
    ----------
    levels, worst
        (L,) rising levels from the audit's own, and the worst unit's measure at each.
    least
        The least level found that meets the target; None where float64 does not resolve the measure
        so finely, up to a level that is enough by a bound.
    monotone
        Whether the worst unit's measure never rose with the noise, over the levels scanned.
    rises_again
        Whether a level above ``least`` is above the target again.
    """

    levels: FloatArray
    worst: FloatArray
    least: float | None
    monotone: bool
    rises_again: bool


def least_kernel_noise(
    levels: NoiseLevels, target: AuditTarget, noise_variance: float
) -> NoiseScan:
    """Scan upwards from the audit's noise, refine the first crossing, and look a decade beyond.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels
    >>> from leakscope.advising import AuditedModel, AuditTarget, NoiseLevels, least_kernel_noise
    >>> model = AuditedModel(np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 1.0, -1.0]),
    ...                      kernels.rbf(1.0), noise_variance=0.1)
    >>> target, levels = AuditTarget("advantage", 0.2), NoiseLevels(model)
    >>> scan = least_kernel_noise(levels, target, 0.1)
    >>> round(scan.least, 2), round(float(levels.laws(scan.least).measured(target).max()), 4)
    (1.62, 0.2)
    """

    def worst_at(level: float) -> float:
        return float(np.max(levels.laws(level).measured(target)))

    tried, worst, first = [float(noise_variance)], [worst_at(noise_variance)], -1
    if target.met(worst[0]):
        first = 0
    enough = min(levels.enough(target.enough_advantage), LARGEST)
    for step in count(1):
        if tried[-1] >= enough if first < 0 else step > first + PER_DECADE:
            break
        tried.append(float(noise_variance * 10.0 ** (step / PER_DECADE)))
        worst.append(worst_at(tried[-1]))
        if first < 0 and target.met(worst[-1]):
            first = step
    found, seen = np.array(tried), np.array(worst)
    monotone = bool(np.all(np.diff(seen) <= 1e-9 * np.maximum(seen[:-1], 1e-300)))
    if first < 0:
        return NoiseScan(found, seen, None, monotone, False)
    high = found[first]
    if first > 0:
        low = found[first - 1]
        while high > low * (1.0 + WIDTH):
            middle = float(np.sqrt(low * high))
            if target.met(worst_at(middle)):
                high = middle
            else:
                low = middle
    rises = bool(np.any(seen[first:] > target.value))
    return NoiseScan(found, seen, float(high), monotone, rises)
