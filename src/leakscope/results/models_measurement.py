"""The result file of ``leakscope measure --logits``."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from leakscope.results.document import Number, ResultDocument


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
    advantage: Number
    advantage_low: Number
    advantage_high: Number
    tpr_at_fpr: dict[str, Number]
    tpr_low: dict[str, Number]
    tpr_high: dict[str, Number]
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
    mean_advantage: Number
    mean_tpr_at_fpr: dict[str, Number]
    records: list[MeasuredRecord]
