"""The result file of ``leakscope plan linear``."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from leakscope.io.results import Number, ResultDocument


class TargetEntry(BaseModel):
    """The setting of one knob that meets a target; null where none does."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    knob: str
    target: float
    attacker: Literal["label_known", "label_hidden"]
    setting: Number
    advantage: Number
    advantage_stderr: Number
    generalization_error: Number


class CurveEntry(BaseModel):
    """Privacy against utility over one knob, one entry a setting."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    knob: str
    method: str
    settings: list[float]
    advantage: list[Number]
    advantage_label_known: list[Number]
    generalization_error: list[Number]


class LinearPlanDocument(ResultDocument):
    """The result of ``leakscope plan linear``: null stands for infinite.

    Examples
    --------
    >>> from leakscope.io.plan_results import LinearPlanDocument
    >>> LinearPlanDocument.model_fields["kind"].default
    'plan_linear'
    """

    kind: Literal["plan_linear"] = "plan_linear"
    method: Literal["exact", "asymptotic", "simulated"]
    advantage: Number
    advantage_stderr: Number
    advantage_label_known: Number
    advantage_label_known_stderr: Number
    kl: Number
    kl_reverse: Number
    auc: Number
    tpr_at_fpr: dict[str, Number]
    generalization_error: Number
    generalization_error_stderr: Number
    sigma_member: Number
    sigma_nonmember: Number
    targets: tuple[TargetEntry, ...] = ()
    curve: CurveEntry | None = None
