"""The least noise on every released answer that meets a target: one audit, and a root.

Fresh noise of variance v on the answer cannot help the attacker (data processing), so that each
unit's measure falls as v rises, and the least v is a root of the worst unit's measure.  A unit that
meets the target at one v meets it at every larger one: the search carries only those that do not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leakscope.defences.audit_target import AuditTarget
from leakscope.defences.unit_laws import UnitLaws
from leakscope.errors import InputError

FloatArray = NDArray[np.float64]

# The variance is found to this relative width; the end that meets the target is returned.
WIDTH = 1e-6

# Noise beyond this many times the training noise is no answer.
MOST = 1e12


def least_output_noise(laws: UnitLaws, target: AuditTarget, reach: float | None = None) -> float:
    """The least variance of noise on every answer at which the worst unit meets the target.

    With ``reach`` (see :meth:`UnitLaws.noised`) one question anywhere is allowed for.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> from leakscope.defences import AuditTarget, UnitLaws, least_output_noise
    >>> laws = lood.all_records(np.eye(2), np.array([0.0, 2.0]), noise_variance=1.0)
    >>> units, target = UnitLaws.of(laws), AuditTarget("advantage", 0.2)
    >>> variance = least_output_noise(units, target)
    >>> round(variance, 3), round(float(units.noised(variance).measured(target).max()), 6)
    (3.21, 0.2)
    """
    low, high = 0.0, laws.noise_variance
    active = _above(laws, target, 0.0, reach)
    if not len(active.sizes):
        return 0.0
    # Powers of ten up, or down, to a bracket; then halve it on a logarithmic scale.
    while len(above := _above(active, target, high, reach).sizes):
        low, high = high, 10.0 * high
        if high > MOST * laws.noise_variance:
            raise InputError(f"no noise on the answers meets {target.words}; choose a larger one.")
    if low == 0.0:
        low = 0.1 * high
        while not len(above := _above(active, target, low, reach).sizes):
            low, high = 0.1 * low, low
    del above
    active = _above(active, target, low, reach)
    while high > low * (1.0 + WIDTH):
        middle = float(np.sqrt(low * high))
        left = _above(active, target, middle, reach)
        if len(left.sizes):
            low, active = middle, left
        else:
            high = middle
    return high


def _above(laws: UnitLaws, target: AuditTarget, variance: float, reach: float | None) -> UnitLaws:
    """The laws, without noise, of the units that noise of this variance leaves above the target."""
    values = laws.noised(variance, reach).measured(target)
    return laws.some(np.flatnonzero(values > target.value))
