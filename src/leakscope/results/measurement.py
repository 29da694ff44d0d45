"""The result file of ``leakscope measure``."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from leakscope.results.document import Number, ResultDocument
from leakscope.results.shown import Short, digits


class MeasureInterval(BaseModel):
    """The interval of a number that was estimated from scores; an infinite end is null.

    Examples
    --------
    >>> import leakscope
    >>> found = leakscope.measure([2.0, 3.0, 1.5, 4.0], [0.0, 1.0, 2.5, 0.5])
    >>> found.intervals["auc"].low < found.auc
    True
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    low: Number
    high: Number
    confidence: float
    method: str
    bias: str


class Measurement(ResultDocument):
    """The result of ``leakscope measure``: one pair of laws, or of samples of scores.

    Attributes
    ----------
    kl, kl_reverse
        KL(nonmember || member), and the other direction.
    tpr_at_fpr, epsilon_at_delta, delta_at_epsilon, renyi
        By the false-positive rate, delta, epsilon or order, as text.
    intervals
        Of scores, by the name of the number, such as ``tpr_at_fpr_0.01``.
    infinite
        The names of the numbers that are null because they are infinite; others that are null
        are not known.

    Examples
    --------
    >>> import leakscope
    >>> found = leakscope.measure("normal:1,1", "normal:0,1")
    >>> found.kl, round(found.auc, 3)
    (0.5, 0.76)
    """

    kind: Literal["measure"] = "measure"
    advantage: Number
    kl: Number
    kl_reverse: Number
    auc: Number
    tpr_at_fpr: dict[str, Number]
    epsilon_at_delta: dict[str, Number]
    delta_at_epsilon: dict[str, Number] = Field(default_factory=dict)
    epsilon_direction: str = "both"
    epsilon_note: str = ""
    overlap: Number = None
    renyi: dict[str, Number] = Field(default_factory=dict)
    intervals: dict[str, MeasureInterval] = Field(default_factory=dict)
    infinite: list[str] = Field(default_factory=list)

    def in_short(self) -> Short:
        """The advantage and the AUC in words, every number in the table."""
        entries: list[tuple[str, str, float | None]] = [
            ("advantage", "advantage (best TPR - FPR)", self.advantage),
            ("auc", "AUC", self.auc),
            ("kl", "KL(nonmember || member)", self.kl),
            ("kl_reverse", "KL(member || nonmember)", self.kl_reverse),
        ]
        for name, label, values in (
            ("tpr_at_fpr", "TPR at FPR", self.tpr_at_fpr),
            ("epsilon_at_delta", "epsilon at delta", self.epsilon_at_delta),
        ):
            entries += [(f"{name}_{at}", f"{label} {at}", value) for at, value in values.items()]

        def told(name: str, value: float | None) -> str:
            return digits(value, infinite=name in self.infinite, most=6)

        headings: tuple[str, ...] = ("measure", "value")
        rows = [[label, told(name, value)] for name, label, value in entries]
        if self.intervals:
            headings += (f"{self.settings['confidence']:.0%} interval",)
            for row, (name, _, _) in zip(rows, entries, strict=True):
                ends = self.intervals.get(name)
                row.append(
                    ""
                    if ends is None
                    else f"[{told(f'{name}_low', ends.low)}, {told(f'{name}_high', ends.high)}]"
                )
        sentence = (
            f"An attacker's advantage is {digits(self.advantage, most=3)} (best TPR - FPR) and the "
            f"AUC {digits(self.auc, most=3)}."
        )
        given = f"{self.settings.get('member')} against {self.settings.get('nonmember')}"
        title = f"Members and non-members: {given}"
        return Short(title, (sentence,), headings, rows, tuple(self.warnings))
