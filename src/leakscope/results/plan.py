"""The result files of ``leakscope plan``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from leakscope.results.document import Number, ResultDocument


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
    >>> from leakscope.results.plan import LinearPlanDocument
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


class LassoChoiceEntry(BaseModel):
    """The private LASSO that answers a question; null where none does."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    goal: str
    divergence: str
    mechanism: str
    target: Number
    met: bool
    lam: Number
    sigma_eta: Number
    generalization_error: Number
    onavg_kl: Number
    guarantee: str


class LassoPlanDocument(ResultDocument):
    """The result of ``leakscope plan lasso``: null stands for what has no value when unstable.

    Examples
    --------
    >>> from leakscope.results.plan import LassoPlanDocument
    >>> LassoPlanDocument.model_fields["kind"].default
    'plan_lasso'
    """

    kind: Literal["plan_lasso"] = "plan_lasso"
    mechanism: Literal["objective", "output"]
    method: str
    stable: bool
    stability_ratio: Number
    generalization_error: Number
    training_error: Number
    error_ratio: Number
    active_fraction: Number
    overlap_error: Number
    cw_onavg_kl: Number
    cw_onavg_kl_paper: Number
    joint_onavg_kl_limit: Number
    joint_onavg_kl: Number
    joint_onavg_kl_stderr: Number
    auc: Number
    advantage: Number
    epsilon_at_delta: dict[str, Number]
    worst_case_epsilon: Number
    simulated: dict[str, Any] | None
    advice: str | None
    guarantee: str
    sigma_eta_opt: Number = None
    optimum: LassoChoiceEntry | None = None
    curve: dict[str, list[Number]] | None = None
    targets: tuple[LassoChoiceEntry, ...] = ()
