"""The least training noise (the ridge of kernel regression) that meets a target.

One eigendecomposition gives every level of the noise (:mod:`leakscope.lood.spectrum`), where the
kernel has no finite features that give it at once (:mod:`leakscope.lood.features`).  More noise
need not expose less: a record's mean shifts less, but the answers of the others change too.  The
levels are scanned, the first crossing is refined, and what the scan saw beyond it is told.  The
scan ends at a level that is enough in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.advising.audit_target import AuditTarget
from leakscope.advising.output_noise import LARGEST
from leakscope.lood import Process

PER_DECADE = 6

# Relative width to which the level is found.
WIDTH = 1e-5


def enough_noise(model: Process, advantage: float) -> float:
    """A level above which no unit's advantage is above this one, in closed form.

    With l the largest eigenvalue and g the records of the largest unit, x <= l/s2 and
    |a| <= |y|/s2.  Where s2 >= l the divergence KL(with || without) of a unit is then at most
    (l/s2^2)(g C l/4 + |y|^2), and the advantage at most sqrt(KL/2) (Pinsker).  What float64
    does not hold is infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> from leakscope.advising import AuditTarget
    >>> from leakscope.advising.kernel_noise import enough_noise
    >>> model = lood.Process(np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 1.0, -1.0]),
    ...                      kernels.rbf(1.0), noise_variance=0.1)
    >>> laws = model.at_noise(enough_noise(model, 0.01))
    >>> bool(laws.measured(AuditTarget("advantage", 0.01).measured).max() <= 0.01)
    True
    """
    top = model.largest_eigenvalue
    largest_unit = 1 if model.groups is None else int(np.bincount(model.labels).max())
    with np.errstate(over="ignore", divide="ignore"):
        share = 0.25 * largest_unit * model.outputs.shape[1] * top + np.sum(model.outputs**2)
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


def least_kernel_noise(model: Process, target: AuditTarget) -> NoiseScan:
    """Scan upwards from the audit's noise, refine the first crossing, and look a decade beyond.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> from leakscope.advising import AuditTarget, least_kernel_noise
    >>> model = lood.Process(np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 1.0, -1.0]),
    ...                      kernels.rbf(1.0), noise_variance=0.1)
    >>> target = AuditTarget("advantage", 0.2)
    >>> scan = least_kernel_noise(model, target)
    >>> laws = model.at_noise(scan.least)
    >>> round(scan.least, 2), round(float(laws.measured(target.measured).max()), 4)
    (1.62, 0.2)
    """

    noise_variance = model.noise_variance

    def worst_at(level: float) -> float:
        laws = model.at_noise(level)
        # What float64 does not resolve is not shown to meet anything.
        return float(np.max(laws.measured(target.measured))) if laws.trusted.all() else np.inf

    tried, worst, first = [float(noise_variance)], [worst_at(noise_variance)], -1
    if target.met(worst[0]):
        first = 0
    enough = min(enough_noise(model, target.enough_advantage), LARGEST)
    for step in count(1):
        if tried[-1] >= enough if first < 0 else step > first + PER_DECADE:
            break
        tried.append(float(noise_variance * 10.0 ** (step / PER_DECADE)))
        worst.append(worst_at(tried[-1]))
        if first < 0 and target.met(worst[-1]):
            first = step
    found, seen = np.array(tried), np.array(worst)
    shown = seen[np.isfinite(seen)]
    monotone = bool(np.all(np.diff(shown) <= 1e-9 * np.maximum(shown[:-1], 1e-300)))
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
