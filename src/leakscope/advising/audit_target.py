"""What an audit's worst record must meet: a measure of its pair of laws, and its largest value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws import LawPair
from leakscope.settings import TARGET_DEFAULTS

Measure = Literal["advantage", "tpr", "epsilon"]


@dataclass(frozen=True)
class AuditTarget:
    """A measure of how exposed a record is, and the value that none may exceed.

    Every measure here falls, or stays, when noise is added to what the attacker sees.

    Parameters
    ----------
    measure
        ``advantage``; ``tpr``, the true-positive rate at the false-positive rate ``fpr``; or
        ``epsilon``, the pair's at ``delta``, the larger of both directions.
    value
        The most that the worst record may have.
    fpr, delta
        Of ``tpr`` and of ``epsilon``.

    Examples
    --------
    >>> from leakscope.advising import AuditTarget
    >>> from leakscope.laws import LawPair, Normal
    >>> target = AuditTarget("tpr", 0.01, fpr=0.001)
    >>> target.words
    'TPR at FPR 0.001 <= 0.01'
    >>> target.measured(LawPair(Normal([0.0, 1.0], 1.0), Normal(0.0, 1.0))).round(4).tolist()
    [0.001, 0.0183]
    """

    measure: Measure
    value: float
    fpr: float = TARGET_DEFAULTS.fpr
    delta: float = TARGET_DEFAULTS.delta

    def __post_init__(self) -> None:
        if self.measure not in get_args(Measure):
            raise InputError(
                f"the target's measure must be one of {', '.join(get_args(Measure))}, but it is "
                f"{self.measure!r}."
            )
        if not (0.0 < self.fpr < 1.0 and 0.0 < self.delta < 1.0):
            raise InputError(
                "a target's fpr and delta must lie between 0 and 1, both excluded, but they are "
                f"{self.fpr:g} and {self.delta:g}."
            )
        if self.measure == "epsilon":
            if not (np.isfinite(self.value) and self.value > 0.0):
                raise InputError(f"a target epsilon must be above 0, but it is {self.value:g}.")
            return
        least = self.fpr if self.measure == "tpr" else 0.0
        if not least < self.value < 1.0:
            why = ", which guessing reaches," if self.measure == "tpr" else ""
            raise InputError(
                f"a target {self.measure} must lie between {least:g}{why} and 1, both excluded, "
                f"but it is {self.value:g}."
            )

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return {
            "advantage": "advantage",
            "tpr": f"TPR at FPR {self.fpr:g}",
            "epsilon": f"epsilon at delta {self.delta:g}",
        }[self.measure]

    @property
    def words(self) -> str:
        """The target in words."""
        return f"{self.label} <= {self.value:g}"

    @property
    def enough_advantage(self) -> float:
        """An advantage with which the target is met, whatever the pair.

        No test's true-positive rate exceeds its false-positive rate by more than the advantage, and
        the advantage is delta at epsilon = 0.
        """
        if self.measure == "advantage":
            return self.value
        return self.value - self.fpr if self.measure == "tpr" else self.delta

    def shown(self, value: float) -> str:
        """A value of the measure in words: what would round to certainty is not called that.

        Examples
        --------
        >>> from leakscope.advising import AuditTarget
        >>> target = AuditTarget("advantage", 0.2)
        >>> target.shown(0.25), target.shown(0.9999999)
        ('0.25', '>0.9999')
        """
        if self.measure == "epsilon":
            return "infinite" if np.isinf(value) else f"{value:.4g}"
        return ">0.9999" if value >= 0.99995 else f"{value:.4g}"

    def measured(self, pair: LawPair) -> FloatArray:
        """The measure of every pair of a batch of known laws."""
        if self.measure == "advantage":
            found = measures.advantage(pair)
        elif self.measure == "tpr":
            found = measures.tpr_at_fpr(pair, self.fpr)
        else:
            found = measures.epsilon_at_delta(pair, self.delta)
        if isinstance(found, measures.Estimate):
            raise TypeError("a target is sought on known laws, not on samples")
        return found

    def met(self, worst: float) -> bool:
        """Whether a worst record with this measure meets the target."""
        return bool(worst <= self.value)
