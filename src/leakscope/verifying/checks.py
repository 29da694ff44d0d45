"""A prediction against a measurement, as a z-score and in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["agrees", "differs", "inconclusive"]

# So many predictions err to one side by chance less than once in a hundred times.
LEAST_LEANING = 8

# And so far off on average, in standard errors: models that all records share move all of them.
LEANING_FROM = 2.0

# How many false alarms are allowed over all the checks of one verification, on average.
FALSE_ALARMS = 0.01


@dataclass(frozen=True)
class Check:
    """One number of a law: what was predicted, what was measured, and what to make of it.

    Parameters
    ----------
    law
        Which law, for example ``"record 17, with it"``.
    quantity
        Which of its numbers.
    predicted, measured
        The two values.
    stderr
        Standard error of their difference.
    resolution
        The largest standard error with which the check says anything: beyond it, agreeing would
        be no evidence.

    Examples
    --------
    >>> from leakscope.verifying import Check
    >>> check = Check("record 3", "mean", predicted=1.0, measured=1.1, stderr=0.05, resolution=0.2)
    >>> round(check.z, 3), check.verdict()
    (2.0, 'agrees')
    >>> check.verdict(threshold=1.9)
    'differs'
    """

    law: str
    quantity: str
    predicted: float
    measured: float
    stderr: float
    resolution: float

    @property
    def z(self) -> float:
        """(measured - predicted) / standard error; infinite where they differ without one."""
        difference = self.measured - self.predicted
        if self.stderr > 0.0:
            return difference / self.stderr
        return 0.0 if difference == 0.0 else math.copysign(math.inf, difference)

    def verdict(self, threshold: float = 3.5) -> Verdict:
        """In words; the threshold is :func:`threshold_for` the number of checks made together."""
        if not (math.isfinite(self.predicted) and math.isfinite(self.measured)):
            return "inconclusive"
        if abs(self.z) > threshold:
            return "differs"
        return "agrees" if self.stderr <= self.resolution else "inconclusive"


def threshold_for(count: int, false_alarms: float = FALSE_ALARMS) -> float:
    """The |z| beyond which a check differs, when ``count`` are made and none should by chance.

    Examples
    --------
    >>> from leakscope.verifying import threshold_for
    >>> round(threshold_for(1), 2), round(threshold_for(100), 2)
    (2.58, 3.89)
    """
    from scipy.special import ndtri

    return float(-ndtri(0.5 * false_alarms / max(count, 1)))


def leaning(checks: Sequence[Check]) -> str | None:
    """A sentence where the predictions of one quantity all err to one side; None where not.

    Each may agree within its own standard error and all together be off.

    Examples
    --------
    >>> from leakscope.verifying.checks import Check, leaning
    >>> print(leaning([Check(str(i), "AUC", 0.62, 0.82, 0.08, 0.1) for i in range(8)]))
    all 8 measured values of AUC lie above the predictions, by 0.2 on average: the predictions are
    too low, even where single records agree within their errors.
    """
    for quantity in dict.fromkeys(check.quantity for check in checks):
        own = [check for check in checks if check.quantity == quantity and math.isfinite(check.z)]
        # Of a shift to the left, more is more to the left.
        gaps = [math.copysign(1.0, c.predicted) * (c.measured - c.predicted) for c in own]
        if len(own) < LEAST_LEANING or min(gaps) * max(gaps) <= 0.0:
            continue
        if sum(abs(check.z) for check in own) >= LEANING_FROM * len(own):
            side, size = ("above", "low") if gaps[0] > 0.0 else ("below", "high")
            return (
                f"all {len(own)} measured values of {quantity} lie {side} the predictions, by "
                f"{abs(sum(gaps)) / len(own):.2g} on average: the predictions are too {size}, even "
                "where single records agree within their errors."
            )
    return None


def counted(checks: Iterable[Check]) -> dict[Verdict, int]:
    """How many agree, differ, and are inconclusive.

    Examples
    --------
    >>> from leakscope.verifying.checks import Check, counted
    >>> counted([Check("a", "mean", 0.0, 9.0, 1.0, 1.0)])
    {'agrees': 0, 'differs': 1, 'inconclusive': 0}
    """
    together = list(checks)
    threshold = threshold_for(len(together))
    found: dict[Verdict, int] = {"agrees": 0, "differs": 0, "inconclusive": 0}
    for check in together:
        found[check.verdict(threshold)] += 1
    return found
