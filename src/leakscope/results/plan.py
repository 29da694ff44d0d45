"""The result files of ``leakscope plan``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from leakscope.results.document import Number, ResultDocument


class LinearTarget(BaseModel):
    """The setting of one knob that meets a target, and what it costs; null where none does.

    Examples
    --------
    >>> from leakscope.planning.linear_plan import least_noise
    >>> from leakscope.linear import GaussianDesign
    >>> found = least_noise(GaussianDesign(100, 400, 3000, 1.0), 0.3, method="asymptotic")
    >>> found.knob, round(found.setting, 2), round(found.generalization_error, 2)
    ('noise on every answer', 1.33, 4.35)
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    knob: str
    target: float
    attacker: Literal["label_known", "label_hidden"]
    setting: Number
    advantage: Number
    advantage_stderr: Number
    generalization_error: Number


class LinearCurve(BaseModel):
    """Privacy against utility over one knob, one entry per setting.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope.linear import GaussianDesign
    >>> design = GaussianDesign(100, 400, 3000, 1.0)
    >>> plan = leakscope.plan_linear(design, method="asymptotic", curve={"ridge": [0.0, 5.0]})
    >>> [round(value, 3) for value in plan.curve.advantage]
    [0.263, 0.334]
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    knob: str
    method: str
    settings: list[float]
    advantage: list[Number]
    advantage_label_known: list[Number]
    generalization_error: list[Number]


class LinearPlan(ResultDocument):
    """The result of ``leakscope plan linear``: leakage and error, averaged over records.

    ``advantage`` is the label-hidden attacker's, ``advantage_label_known`` that of one who knows
    y0 too; standard errors are those of the random designs (0 where there are none).
    ``sigma_member`` and ``sigma_nonmember`` are root mean squares of the prediction.  ``None``,
    null in the file, stands for infinite.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope.linear import GaussianDesign
    >>> plan = leakscope.plan_linear(GaussianDesign(100, 400, 3000, 1.0), method="asymptotic")
    >>> round(plan.advantage, 4), plan.advantage_label_known
    (0.2629, 1.0)
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
    targets: tuple[LinearTarget, ...] = ()
    curve: LinearCurve | None = None


class LassoChoice(BaseModel):
    """A private LASSO that answers a question, and what it gives; ``met`` is false if none does.

    Examples
    --------
    >>> from leakscope.planning import optimal_noise
    >>> from leakscope.lasso import LassoSetting
    >>> found = optimal_noise(LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=0.0))
    >>> found.met, found.divergence, round(found.sigma_eta, 4)
    (True, 'joint', 0.2129)
    """

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


class LassoPlan(ResultDocument):
    """The result of ``leakscope plan lasso``: ``None`` where there is no number.

    ``cw_onavg_kl`` is component-wise and corrected, ``cw_onavg_kl_paper`` the printed Eqs.
    (63)-(64) or (60), ``joint_onavg_kl_limit`` the joint divergence of Eq. (9) in the limit, and
    ``joint_onavg_kl`` with its standard error the same from simulated pairs, where they were asked
    for.  ``auc``, ``advantage`` and ``epsilon_at_delta`` are those of an attacker who knows both
    records and sees the whole estimate, over typical pairs.  ``worst_case_epsilon`` is ``None``:
    no guarantee holds without clipped rows and an l2 term
    (:func:`leakscope.planning.worst_case_epsilon`).  ``advice`` says what to change where the
    setting is unstable.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope.lasso import LassoSetting
    >>> plan = leakscope.plan_lasso(LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=0.2))
    >>> plan.stable, round(plan.generalization_error, 4)
    (True, 0.0971)
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
    optimum: LassoChoice | None = None
    curve: dict[str, list[Number]] | None = None
    targets: tuple[LassoChoice, ...] = ()
