"""The result file of ``leakscope measure --logits``."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from leakscope.results.document import Fraction, ResultDocument
from leakscope.results.shown import Short


class MeasuredRecord(BaseModel):
    """One record: posterior means and the ends of their intervals, TPRs by the FPR as text.

    Examples
    --------
    >>> from leakscope.results import MeasuredRecord
    >>> MeasuredRecord(record=3, advantage=0.4, advantage_low=0.2, advantage_high=0.6,
    ...                tpr_at_fpr={"0.01": 0.1}, tpr_low={"0.01": 0.0}, tpr_high={"0.01": 0.2},
    ...                exposed=True).record
    3
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    record: int
    advantage: Fraction
    advantage_low: Fraction
    advantage_high: Fraction
    tpr_at_fpr: dict[str, Fraction]
    tpr_low: dict[str, Fraction]
    tpr_high: dict[str, Fraction]
    exposed: bool


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
