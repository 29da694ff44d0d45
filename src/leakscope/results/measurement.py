"""The result file of ``leakscope measure``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from leakscope.results.document import Fraction, Number, ResultDocument
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


class MeasuredRecord(BaseModel):
    """One record: posterior means and the ends of their intervals, TPRs by the FPR as text.

    Examples
    --------
    >>> from leakscope.results.measurement import MeasuredRecord
    >>> MeasuredRecord(record=3, advantage=0.4, advantage_low=0.2, advantage_high=0.6,
    ...                tpr_at_fpr={"0.01": 0.1}, tpr_low={"0.01": 0.0}, tpr_high={"0.01": 0.2},
    ...                exposed=True).record
    3
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    record: int | str
    advantage: Fraction
    advantage_low: Fraction
    advantage_high: Fraction
    tpr_at_fpr: dict[str, Fraction]
    tpr_low: dict[str, Fraction]
    tpr_high: dict[str, Fraction]
    exposed: bool
    trusted: bool = True


def measured_records(
    found: Any, names: Sequence[int | str], rows: Iterable[int], trusted: Any, exposed: Any
) -> list[MeasuredRecord]:
    """Some records of what models showed (:class:`leakscope.fitted.few_models.FewModels`)."""
    tprs = {f"{level:g}": each for level, each in found.tpr_at_fpr.items()}
    return [
        MeasuredRecord(
            record=names[i],
            advantage=float(found.advantage.value[i]),
            advantage_low=float(found.advantage.low[i]),
            advantage_high=float(found.advantage.high[i]),
            tpr_at_fpr={level: float(each.value[i]) for level, each in tprs.items()},
            tpr_low={level: float(each.low[i]) for level, each in tprs.items()},
            tpr_high={level: float(each.high[i]) for level, each in tprs.items()},
            exposed=bool(exposed[i]),
            trusted=bool(trusted[i]),
        )
        for i in rows
    ]


class ModelsMeasurement(ResultDocument):
    """What a few models show: ``records`` has one entry per record, in the file's order.

    Examples
    --------
    >>> from leakscope.results import ModelsMeasurement
    >>> ModelsMeasurement.model_fields["kind"].default
    'measure_models'
    """

    kind: Literal["measure_models"] = "measure_models"
    models: int
    mean_advantage: Fraction
    mean_tpr_at_fpr: dict[str, Fraction]
    records: list[MeasuredRecord]

    def in_short(self, most: int = 10) -> Short:
        """How many records are exposed for certain, the mean TPRs, and the most exposed."""
        ranked = sorted(self.records, key=lambda record: -(record.advantage or 0.0))[:most]
        levels = list(self.mean_tpr_at_fpr)
        rows = [
            [
                str(record.record),
                f"{record.advantage:.3f}",
                f"[{record.advantage_low:.3f}, {record.advantage_high:.3f}]",
                *(f"{record.tpr_at_fpr[level]:.3g}" for level in levels),
            ]
            for record in ranked
        ]
        exposed = sum(record.exposed for record in self.records)
        means = ", ".join(f"{v:.3g} at FPR {k}" for k, v in self.mean_tpr_at_fpr.items())
        interval = f"{self.settings['confidence']:.0%} interval"
        return Short(
            f"{len(self.records):,} records, {self.models} models",
            (
                f"{exposed:,} of {len(self.records):,} records can be named as exposed, with at "
                "most a 5% chance that any one of them is not.",
                f"Mean advantage {self.mean_advantage:.3f}; mean TPR {means}.",
            ),
            ("record", "advantage", interval, *(f"TPR at {level}" for level in levels)),
            rows,
            tuple(self.warnings),
        )
