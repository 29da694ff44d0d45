"""The least noise on every released answer that meets a target: one audit, and a root.

Fresh noise of variance v on the answer cannot help the attacker (data processing), so that each
unit's measure falls as v rises, and the least v is a root of the worst unit's measure.  A unit that
meets the target at one v meets it at every larger one: the search carries only those that do not.
It ends at a variance that is enough in closed form (:meth:`UnitLaws.enough_variance`).
"""

from __future__ import annotations

import numpy as np

from leakscope.advising.audit_target import AuditTarget
from leakscope.advising.unit_laws import UnitLaws
from leakscope.errors import InputError

# The variance is found to this relative width; the end that meets the target is returned.
WIDTH = 1e-6

# The squares of larger variances leave float64.
LARGEST = 1e150


def least_output_noise(laws: UnitLaws, target: AuditTarget, reach: float | None = None) -> float:
    """The least variance of noise on every answer at which the worst unit meets the target.

    With ``reach`` (see :meth:`UnitLaws.noised`) one question anywhere is allowed for.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> from leakscope.advising import AuditTarget, UnitLaws, least_output_noise
    >>> laws = lood.all_records(np.eye(2), np.array([0.0, 2.0]), noise_variance=1.0)
    >>> units, target = UnitLaws.of(laws), AuditTarget("advantage", 0.2)
    >>> variance = least_output_noise(units, target)
    >>> round(variance, 3), round(float(units.noised(variance).measured(target).max()), 6)
    (3.21, 0.2)
    """
    found = sought_output_noise(laws, target, reach)
    if found is None:
        raise InputError(
            f"{unresolved(target, largest_output_noise(laws, target, reach))} Choose a larger one."
        )
    return found


def largest_output_noise(laws: UnitLaws, target: AuditTarget, reach: float | None = None) -> float:
    """Where the search ends: a variance that is enough by a bound, or the largest in float64."""
    return min(laws.enough_variance(target.enough_advantage, reach), LARGEST)


def sought_output_noise(
    laws: UnitLaws, target: AuditTarget, reach: float | None = None
) -> float | None:
    """As :func:`least_output_noise`; None where the measure is not resolved so finely."""
    active = _above(laws, target, 0.0, reach)
    if not len(active.sizes):
        return 0.0
    enough = largest_output_noise(active, target, reach)
    low, high = 0.0, min(laws.noise_variance, enough)
    # Powers of ten up, or down, to a bracket; then halve it on a logarithmic scale.
    while len(_above(active, target, high, reach).sizes):
        if high >= enough:
            return None
        low, high = high, min(10.0 * high, enough)
    if low == 0.0:
        low = 0.1 * high
        while not len(_above(active, target, low, reach).sizes):
            low, high = 0.1 * low, low
    active = _above(active, target, low, reach)
    while high > low * (1.0 + WIDTH):
        middle = float(np.sqrt(low) * np.sqrt(high))
        left = _above(active, target, middle, reach)
        if len(left.sizes):
            low, active = middle, left
        else:
            high = middle
    return high


def unresolved(target: AuditTarget, enough: float) -> str:
    """What is to be said where the measure is above the target at the end of the search."""
    sigma = f"noise of standard deviation {np.sqrt(enough):.4g}"
    if enough >= LARGEST:
        return f"{sigma} does not meet {target.words}, and the square of more leaves float64."
    words = f"float64 does not resolve {target.label} so finely that {target.words} could be shown"
    return f"{words}; by a bound (Pinsker) {sigma} does."


def _above(laws: UnitLaws, target: AuditTarget, variance: float, reach: float | None) -> UnitLaws:
    """The laws, without noise, of the units that noise of this variance leaves above the target."""
    values = laws.noised(variance, reach).measured(target)
    return laws.some(np.flatnonzero(values > target.value))
