"""The least noise on every released answer that meets a target: one audit, and a root.

Fresh noise of variance v on the answer cannot help the attacker (data processing), so that each
unit's measure falls as v rises, and the least v is a root of the worst unit's measure.  A unit that
meets the target at one v meets it at every larger one: the search carries only those that do not.
It ends at a variance that is enough in closed form (:func:`enough_variance`).
"""

from __future__ import annotations

import numpy as np

from leakscope import lood
from leakscope.advising.audit_target import AuditTarget
from leakscope.errors import InputError
from leakscope.lood import Separation

# The variance is found to this relative width; the end that meets the target is returned.
WIDTH = 1e-6

# The squares of larger variances leave float64.
LARGEST = 1e150


def least_output_noise(laws: Separation, target: AuditTarget, reach: float | None = None) -> float:
    """The least variance of noise on every answer at which the worst unit meets the target.

    With ``reach`` (see :class:`leakscope.lood.Release`) one question anywhere is allowed for.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> from leakscope.advising import AuditTarget, least_output_noise
    >>> laws = lood.all_records(np.eye(2), np.array([0.0, 2.0]), noise_variance=1.0)
    >>> target = AuditTarget("advantage", 0.2)
    >>> variance = least_output_noise(laws, target)
    >>> round(variance, 3), round(float(laws.noised(variance).measured(target.measured).max()), 6)
    (3.21, 0.2)
    """
    found = sought_output_noise(laws, target, reach)
    if found is None:
        raise InputError(
            f"{unresolved(target, largest_output_noise(laws, target, reach))} Choose a larger one."
        )
    return found


def largest_output_noise(
    laws: Separation, target: AuditTarget, reach: float | None = None
) -> float:
    """Where the search ends: a variance that is enough by a bound, or the largest in float64."""
    return min(enough_variance(laws, target.enough_advantage, reach), LARGEST)


def sought_output_noise(
    laws: Separation, target: AuditTarget, reach: float | None = None
) -> float | None:
    """As :func:`least_output_noise`; None where the measure is not resolved so finely."""
    active = _above(laws, target, 0.0, reach)
    if not active.units:
        return 0.0
    enough = largest_output_noise(active, target, reach)
    low, high = 0.0, min(laws.noise_variance, enough)
    # Powers of ten up, or down, to a bracket; then halve it on a logarithmic scale.
    while _above(active, target, high, reach).units:
        if high >= enough:
            return None
        low, high = high, min(10.0 * high, enough)
    if low == 0.0:
        low = 0.1 * high
        while not _above(active, target, low, reach).units:
            low, high = 0.1 * low, low
    active = _above(active, target, low, reach)
    while high > low * (1.0 + WIDTH):
        middle = float(np.sqrt(low) * np.sqrt(high))
        left = _above(active, target, middle, reach)
        if left.units:
            low, active = middle, left
        else:
            high = middle
    return high


def enough_variance(laws: Separation, advantage: float, reach: float | None = None) -> float:
    """A variance of noise on the answers with which no unit's advantage is above this one.

    In closed form.  With x, t and W of :mod:`leakscope.lood.release` and w = W x/(1 + x) the excess
    is at most w/v, and where that is at most 1 a unit's divergence KL(with || without) is at most
    sum_i w_i (C/2 + |t_i|^2)/(2 v).  The advantage is at most sqrt(KL/2) (Pinsker).  What float64
    does not hold is infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> from leakscope.advising import AuditTarget
    >>> from leakscope.advising.output_noise import enough_variance
    >>> laws = lood.all_records(np.eye(2), np.array([0.0, 2.0]), noise_variance=1.0)
    >>> noised = laws.noised(enough_variance(laws, 1e-6))
    >>> bool(noised.measured(AuditTarget("advantage", 1e-6).measured).max() <= 1e-6)
    True
    """
    spread = lood.Release("draw", 0.0, reach).spread(laws.variance_without)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        most = spread * laws.shares
        share = 0.5 * laws.outputs + np.sum(laws.score**2, axis=1)
        sums = np.add.reduceat(most * share, laws.starts)
        found = max(float(np.max(most)), float(np.max(sums / advantage / advantage / 4.0)))
    return found if np.isfinite(found) else float("inf")


def unresolved(target: AuditTarget, enough: float) -> str:
    """What is to be said where the measure is above the target at the end of the search."""
    sigma = f"noise of standard deviation {np.sqrt(enough):.4g}"
    if enough >= LARGEST:
        return f"{sigma} does not meet {target.words}, and the square of more leaves float64."
    words = f"float64 does not resolve {target.label} so finely that {target.words} could be shown"
    return f"{words}; by a bound (Pinsker) {sigma} does."


def _above(
    laws: Separation, target: AuditTarget, variance: float, reach: float | None
) -> Separation:
    """The laws, without noise, of the units that noise of this variance leaves above the target."""
    values = laws.noised(variance, reach).measured(target.measured)
    return laws.some(np.flatnonzero(values > target.value))
