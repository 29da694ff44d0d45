"""The result files of ``leakscope plan``, and what they say: the screen and the report show it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from leakscope.errors import InputError
from leakscope.results.document import DatasetEntry, Number, ResultDocument
from leakscope.results.sections import LineChart, Section, SpanChart
from leakscope.results.shown import Short, certain, digits

STANDS_IN = (
    "The measures are of whole matrices; the numbers below them are of the exact law, from designs "
    "of its own, and differ by about the standard errors."
)

# The worlds of linear's Section 5, by the name that --model gives them.
WORLDS = {"latent": "latent space", "fourier": "Fourier series", "relu": "random ReLU features"}

MEASURE = ("measure", "value", "std. error")


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
    null in the file, stands for infinite.  ``curves`` are those over every knob, where they were
    asked for.

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
    sigma_member_stderr: Number = None
    sigma_nonmember_stderr: Number = None
    targets: tuple[LinearTarget, ...] = ()
    curve: LinearCurve | None = None
    curves: tuple[LinearCurve, ...] = ()

    @property
    def from_data(self) -> bool:
        """Of a design; no record is behind it."""
        return False

    def in_short(self) -> Short:
        """Both attackers' advantage and the error, what meets the target, and every number."""
        told = [
            "An attacker who sees the record's features and the prediction gains an advantage of "
            f"{_finite(self.advantage)} (best TPR - FPR), one who knows its label too "
            f"{_finite(self.advantage_label_known)}; the generalisation error is "
            f"{_finite(self.generalization_error)}."
        ]
        told += [_linear_target(self.targets)] if self.targets else []
        told.append(
            "For this data model; no trained model was examined. A small advantage without the "
            "label does not make the one with it small."
        )
        return Short(self._title(), tuple(told), MEASURE, self._measured(), tuple(self.warnings))

    def _title(self) -> str:
        if self._world:
            names = ("n", "p", "latent", "times", "dim", "sigma", "records", "designs")
            told = [f"{name} = {_told(self, name)}" for name in names if name in self.settings]
            return self._with_noise(f"{WORLDS[self._world]}, {', '.join(told)}: least squares")
        n, p, dim, sigma, ridge = (_told(self, key) for key in ("n", "p", "dim", "sigma", "ridge"))
        kind = "least squares" if ridge == "0" else f"ridge {ridge}"
        title = f"{kind}, n = {n}, p = {p} of {dim} features, sigma = {sigma}: {self.method}"
        return self._with_noise(title)

    @property
    def _world(self) -> str:
        """The paper's other world that was planned; empty for Gaussian records."""
        told = self.settings.get("model")
        return told if isinstance(told, str) and told in WORLDS else ""

    def _with_noise(self, title: str) -> str:
        noise = _noise(self)
        return f"{title}; {_noise_words(noise)}" if noise.get("sigma") else title

    def _measured(self) -> list[list[str]]:
        known = (self.advantage_label_known, self.advantage_label_known_stderr)
        return [
            _row("advantage, label hidden", self.advantage, self.advantage_stderr),
            _row("advantage, label known", *known),
            _row("AUC, label hidden", self.auc),
            _row("KL(nonmember || member)", self.kl),
            *(_row(f"TPR at FPR {level}", value) for level, value in self.tpr_at_fpr.items()),
            _row(
                "generalisation error", self.generalization_error, self.generalization_error_stderr
            ),
            _row("sd of a member's prediction", self.sigma_member, self.sigma_member_stderr),
            _row("sd of a non-member's", self.sigma_nonmember, self.sigma_nonmember_stderr),
        ]

    def sections(self) -> tuple[Section, ...]:
        """The settings that meet the target, the curve as a table, and a chart of every curve."""
        found = []
        if self.targets:
            first = self.targets[0]
            title = f"advantage {first.target:g} or less ({first.attacker.replace('_', ' ')})"
            headings = (title, "setting", "advantage", "std. error", "error")
            rows = [_target_row(target) for target in self.targets]
            found.append(Section("What meets the target", tables=[(headings, rows)]))
        if self.curve is not None:
            found.append(Section("Along the curve", tables=[_curve_table(self.curve)]))
        if found and self.method == "simulated" and not self._world:
            found[-1] = Section(found[-1].title, (STANDS_IN,), found[-1].tables)
        drawn = self.curves or (() if self.curve is None else (self.curve,))
        for curve in drawn:
            found.append(_linear_charts(self, curve))
        return tuple(found)


# What a knob is called, and how its name in a design's settings reads.
KNOBS = {
    "features": "features p",
    "p": "features p",
    "ridge": "ridge lambda",
    "noise": "noise on every answer",
    "noise_nonmembers": "noise on non-members' answers",
    "answers": "fresh answers",
    "sigma_eta": "privacy noise sigma_eta",
    "lam": "penalty lambda",
}


def _linear_charts(plan: LinearPlan, curve: LinearCurve) -> Section:
    """Leakage and error over one knob; the target is drawn where the knob can meet it."""
    name, told, noise = KNOBS.get(curve.knob, curve.knob), plan.settings, _noise(plan)
    used = {
        "features": told.get("p"),
        "ridge": told.get("ridge"),
        "noise": noise.get("sigma"),
        "noise_nonmembers": noise.get("sigma"),
        "answers": noise.get("answers"),
    }.get(curve.knob)
    plain = curve.knob != "features" and 0.0 in curve.settings
    hits = [t for t in plan.targets if KNOBS.get(t.knob, t.knob) == name and t.setting is not None]
    best = errors = None
    if hits and hits[0].setting is not None and hits[0].advantage is not None:
        best = (hits[0].setting, hits[0].advantage)
        if hits[0].generalization_error is not None:
            errors = (hits[0].setting, hits[0].generalization_error)
    x = curve.settings
    marked = used if isinstance(used, (int, float)) and (used > 0.0 or plain) else None
    return Section(
        f"Over {name}",
        charts=[
            LineChart(
                f"leakage_{curve.knob}",
                name,
                "advantage",
                [
                    ("label known", x, curve.advantage_label_known),
                    ("label hidden", x, curve.advantage),
                ],
                used=marked,
                fraction=True,
                target=plan.targets[0].target if plan.targets else None,
                best=best,
                plain=plain,
            ),
            LineChart(
                f"error_{curve.knob}",
                name,
                "generalisation error",
                [("generalisation error", x, curve.generalization_error)],
                used=marked,
                best=errors,
                plain=plain,
            ),
        ],
    )


def _linear_target(targets: Sequence[LinearTarget]) -> str:
    """What meets the target, in a sentence."""
    first = targets[0]
    asked = f"an advantage of {first.target:g} or less ({first.attacker.replace('_', ' ')})"
    ways = [
        f"{'p = ' if target.knob == 'features' else target.knob + ' of '}"
        f"{target.setting:.4g} (error {_finite(target.generalization_error)})"
        for target in targets
        if target.setting is not None
    ]
    return f"No setting keeps to {asked}." if not ways else f"For {asked}: {', or '.join(ways)}."


def _target_row(found: LinearTarget) -> list[str]:
    if found.setting is None:
        return [found.knob, "none meets it", "", "", ""]
    _, value, stderr = _row("", found.advantage, found.advantage_stderr)
    return [found.knob, f"{found.setting:.6g}", value, stderr, _finite(found.generalization_error)]


def _curve_table(curve: LinearCurve) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    columns = (curve.advantage, curve.advantage_label_known, curve.generalization_error)
    rows = [
        [f"{setting:g}", *(_finite(column[k]) for column in columns)]
        for k, setting in enumerate(curve.settings)
    ]
    name = "p" if curve.knob == "features" else curve.knob
    return (name, "label hidden", "label known", "error"), rows


def _noise_words(noise: dict[str, Any]) -> str:
    if noise.get("memoised"):
        times = "the same answer to a repeated question"
    else:
        answers = noise.get("answers", 1)
        times = f"{answers} fresh answer{'' if answers == 1 else 's'}"
    whose = "non-members' answers only" if noise.get("to") == "nonmembers" else "every answer"
    return f"noise of standard deviation {_plain(noise['sigma'])} on {whose}, {times}"


def _told(plan: ResultDocument, name: str) -> str:
    """A number of the settings; a file's settings may be anything."""
    return _plain(plan.settings.get(name))


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else "?"


def _noise(plan: ResultDocument) -> dict[str, Any]:
    noise = plan.settings.get("noise")
    return noise if isinstance(noise, dict) else {}


def _row(name: str, value: float | None, stderr: float | None = None) -> list[str]:
    """A line of a plan's table; a standard error of nothing is none."""
    return [name, _finite(value), f"{stderr:.1g}" if stderr else ""]


def _finite(value: float | None) -> str:
    return digits(value, infinite=True)


class LassoChoice(BaseModel):
    """A private LASSO that answers a question, and what it gives; ``met`` is false if none does.

    ``zero_vector_error`` is the error of predicting zero, rho sigma_beta^2 + sigma_xi^2, which
    gives nothing away; ``better_than_nothing`` is false where this answer does not do better.
    ``measure`` is what was bounded, or made least: the KL, or the advantage or epsilon of an
    attacker who sees the whole estimate, and then ``measured`` is its value.

    Examples
    --------
    >>> from leakscope.planning import optimal_noise
    >>> from leakscope.lasso import LassoSetting
    >>> found = optimal_noise(LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=0.0))
    >>> found.met, found.divergence, round(found.sigma_eta, 4)
    (True, 'joint', 0.2129)
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    goal: Literal["nearest_to_origin", "least_error", "least_kl"]
    divergence: str
    mechanism: str
    target: Number
    met: bool
    lam: Number
    sigma_eta: Number
    generalization_error: Number
    onavg_kl: Number
    guarantee: str
    active_fraction: Number = None
    zero_vector_error: Number = None
    better_than_nothing: bool | None = None
    measure: Literal["kl", "advantage", "epsilon"] = "kl"
    measured: Number = None

    @property
    def level(self) -> float | None:
        """The measure that was bounded, or made least."""
        return self.onavg_kl if self.measure == "kl" else self.measured


class LassoCurve(BaseModel):
    """Error and leakage of a private LASSO over one knob, one entry per setting.

    Beyond the stability edge there are no numbers.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope.lasso import LassoSetting
    >>> setting = LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=0.2)
    >>> plan = leakscope.plan_lasso(setting, curve={"lam": [0.5, 1.0]})
    >>> [round(value, 4) for value in plan.curves[0].joint_onavg_kl]
    [0.3997, 0.0468]
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    knob: Literal["sigma_eta", "lam"]
    settings: list[float]
    generalization_error: list[Number]
    joint_onavg_kl: list[Number]
    advantage: list[Number]


class LassoPlan(ResultDocument):
    """The result of ``leakscope plan lasso``: ``None`` where there is no number.

    ``cw_onavg_kl`` is component-wise and corrected, ``cw_onavg_kl_paper`` the printed Eqs.
    (63)-(64) or (60), ``joint_onavg_kl_limit`` the joint divergence of Eq. (9) in the limit.
    ``auc``, ``advantage`` and ``epsilon_at_delta`` are those of an attacker who knows both records
    and sees the whole estimate, over typical pairs.  ``worst_case_epsilon`` is ``None``:
    no guarantee holds without clipped rows and an l2 term
    (:func:`leakscope.planning.worst_case_epsilon`).  ``advice`` says what to change where the
    setting is unstable.  ``zero_vector_error`` is what predicting zero costs, which gives nothing
    away.

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
    auc: Number
    advantage: Number
    epsilon_at_delta: dict[str, Number]
    worst_case_epsilon: Number
    advice: str | None
    guarantee: str
    zero_vector_error: Number = None
    sigma_eta_opt: Number = None
    optimum: LassoChoice | None = None
    curve: dict[str, list[Number]] | None = None
    targets: tuple[LassoChoice, ...] = ()
    tpr_at_fpr: dict[str, Number] = Field(default_factory=dict)
    curves: tuple[LassoCurve, ...] = ()

    @property
    def from_data(self) -> bool:
        """Whether the data model was read off a file; else no record is behind the plan."""
        return "data" in self.settings

    def reference_shift(self, coefficients: int) -> float | None:
        """A scale for ``cw_onavg_kl``, Eqs. (57)-(58): p normals that each move by so much.

        sqrt(2 KL/p), in standard deviations of the noise: if every one of ``coefficients`` released
        numbers moved by that, with normal noise, the divergence would be this one.

        Examples
        --------
        >>> import leakscope
        >>> from leakscope.lasso import LassoSetting
        >>> plan = leakscope.plan_lasso(LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=0.2))
        >>> round(plan.reference_shift(1000), 4)
        0.0095
        """
        if coefficients < 1:
            raise InputError(f"coefficients must be 1 or more, but it is {coefficients}.")
        return (
            None if self.cw_onavg_kl is None else math.sqrt(2.0 * self.cw_onavg_kl / coefficients)
        )

    def _of_data(self) -> list[str]:
        """The setting in the units of the table that it was read off."""
        scale = self.settings.get("data_scale")
        if scale is None:
            return []
        lam, noise = (float(self.settings[name]) for name in ("lam", "sigma_eta"))
        noise = noise * scale if self.mechanism == "objective" else noise / scale
        return [
            f"Estimated from your table, columns and target standardised: its rows have length "
            f"{digits(scale)}, so that lambda is {digits(lam * scale)} and sigma_eta "
            f"{digits(noise)} in its units."
        ]

    def in_short(self) -> Short:
        """The answer and what it is worth beside releasing nothing, and every number."""
        names = ("alpha", "rho", "sigma_xi", "lam", "sigma_eta")
        told = ", ".join(
            f"{'lambda' if name == 'lam' else name} = {_told(self, name)}" for name in names
        )
        law = "Laplace " if self.settings.get("noise") == "laplace" else ""
        title = f"LASSO with {law}{self.mechanism} perturbation, {told}"
        nothing, says = self.zero_vector_error, []
        if self.stable:
            says.append(
                "An attacker who knows two records and sees the whole estimate tells which of them "
                f"was used with an advantage of {_finite(self.advantage)} (best TPR - FPR); the "
                f"generalisation error is {_finite(self.generalization_error)}."
            )
        says += self._of_data()
        if self.advice is not None:
            says.append(self.advice)
        error = self.generalization_error
        if nothing is not None and error is not None and error >= nothing:
            says.append(
                f"Releasing nothing does better: predicting zero has the error {nothing:.4g} and "
                "gives nothing away."
            )
        if self.targets:
            says.append(_lasso_target(self.targets))
        says.append(
            "For Gaussian features and this data model, in the limit of many records; no fitted "
            f"model was examined. {self.guarantee}"
        )
        rows = self._measured() if self.stable else []
        return Short(title, tuple(says), MEASURE, rows, tuple(self.warnings))

    def _measured(self) -> list[list[str]]:
        rows = [_row("generalisation error", self.generalization_error)]
        if self.zero_vector_error is not None:
            rows.append(_row("error of predicting zero", self.zero_vector_error))
        rows += [
            _row("training error", self.training_error),
            _row("share of non-zero estimates", self.active_fraction),
            _row("noise, of what it can bear", self.stability_ratio),
            _row("overlap error, E12", self.overlap_error),
            _row("on-average KL, joint", self.joint_onavg_kl_limit),
        ]
        return [
            *rows,
            _row("on-average KL, component-wise", self.cw_onavg_kl),
            _row("on-average KL, as printed", self.cw_onavg_kl_paper),
            _row("advantage", self.advantage),
            _row("AUC", self.auc),
            *(_row(f"TPR at FPR {level}", value) for level, value in self.tpr_at_fpr.items()),
            *(
                _row(f"average epsilon at delta {level}", value)
                for level, value in self.epsilon_at_delta.items()
            ),
            ["worst-case epsilon", "none", ""],
        ]

    def sections(self) -> tuple[Section, ...]:
        """The optimum, what meets the target, and charts over the noise and the penalty."""
        found = []
        if self.optimum is not None:
            best = self.optimum
            rows = [
                ["sigma_eta", digits(best.sigma_eta)],
                ["generalisation error", digits(best.generalization_error)],
                [f"on-average KL, {best.divergence.replace('_', '-')}", digits(best.onavg_kl)],
            ]
            title = "nearest to the origin"
            found.append(Section("Noise nearest to the origin", tables=[((title, "value"), rows)]))
        if self.targets:
            measured = _MEASURED[self.targets[0].measure]
            headings = (
                self.targets[0].goal.replace("_", " "),
                "lambda",
                "sigma_eta",
                "error",
                measured,
            )
            rows = [_choice_row(choice) for choice in self.targets]
            found.append(Section("What meets the target", tables=[(headings, rows)]))
        if len(self.curves) == 1:
            found.append(Section("Along the curve", tables=[_lasso_table(self.curves[0])]))
        return (*found, *(_lasso_charts(self, curve) for curve in self._drawn()))

    def _drawn(self) -> tuple[LassoCurve, ...]:
        """The curves, or the trade-off curve of ``--optimize``, less its end at the edge."""
        told = self.curve or {}
        columns = ("sigma_eta", "generalization_error", "joint_onavg_kl")
        if self.curves or not all(told.get(name) for name in columns):
            return self.curves
        edge = told["sigma_eta"][-1] or 0.0
        objective = self.mechanism == "objective"
        kept = [
            row
            for row in zip(*(told[name] for name in columns), strict=False)
            if row[0] is not None and (row[0] <= 0.97 * edge or not objective)
        ]
        x, error, kl = (list(column) for column in zip(*kept, strict=True))
        one = LassoCurve(
            knob="sigma_eta",
            settings=x,
            generalization_error=error,
            joint_onavg_kl=kl,
            advantage=[],
        )
        return (one,)


class PlannedNetwork(BaseModel):
    """What one network would give away about the records.

    Attributes
    ----------
    name, activation, depth, form
        The network, in words and by its parts.
    largest_advantage, median_advantage, largest_kl, median_kl
        Over all records, each at its own point.
    record_id
        The most exposed one.
    error
        Of each label from the others, root mean square, as a share of the labels' own deviation.
    prior_variance
        The mean k(x, x) of the network before any scaling.
    untrusted
        How many records float64 does not resolve.

    Examples
    --------
    >>> from leakscope.results.plan import PlannedNetwork
    >>> PlannedNetwork(name="relu, 1 layer", activation="relu", depth=1, form="plain",
    ...                largest_advantage=0.5, median_advantage=0.1, largest_kl=1.0, median_kl=0.02,
    ...                record_id=3, error=0.4, prior_variance=2.0, untrusted=0).record_id
    3
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    activation: str
    depth: int
    form: str
    largest_advantage: Number
    median_advantage: Number
    largest_kl: Number
    median_kl: Number
    record_id: int | str
    error: Number
    prior_variance: Number
    untrusted: int


class NetworkPlan(ResultDocument):
    """The result of ``leakscope plan network``: infinitely wide networks on the user's records.

    Examples
    --------
    >>> from leakscope.results import NetworkPlan
    >>> NetworkPlan.model_fields["kind"].default
    'plan_network'
    """

    kind: Literal["plan_network"] = "plan_network"
    dataset: DatasetEntry
    noise_variance: float
    networks: tuple[PlannedNetwork, ...]
    verdict: str

    def in_short(self) -> Short:
        """Which network gives away least, and what each gives away and predicts."""
        rows = [
            [
                one.name,
                certain(one.largest_advantage),
                certain(one.median_advantage),
                str(one.record_id),
                digits(one.error),
            ]
            for one in self.networks
        ]
        return Short(
            f"Networks on {self.dataset.name}: {self.dataset.records} records, "
            f"{self.dataset.features} features",
            (
                self.verdict,
                f"At noise_variance {digits(self.noise_variance)}, which sets the level of every "
                "number. The error is of each label from the others, in labels' standard "
                "deviations. Networks are infinitely wide and Bayesian; none was trained. The "
                "attacker knows every other record.",
            ),
            ("network", "largest advantage", "median", "most exposed", "error"),
            rows,
            tuple(self.warnings),
        )

    def sections(self) -> tuple[Section, ...]:
        """The chart: the median and the largest advantage of each network."""
        rows = [
            (one.name, one.median_advantage or 0.0, one.largest_advantage or 0.0)
            for one in self.networks
        ]
        return (Section("Leakage by network", charts=[SpanChart("networks", rows)]),)


# Of a choice's measure, how a table and a sentence call it.
_MEASURED = {"kl": "KL", "advantage": "advantage", "epsilon": "epsilon"}


def _choice_row(found: LassoChoice) -> list[str]:
    if not found.met:
        return [found.mechanism, "none meets it", "", "", ""]
    if found.better_than_nothing is False:
        return [found.mechanism, "release nothing", "", digits(found.zero_vector_error), "0"]
    told = (found.lam, found.sigma_eta, found.generalization_error, found.level)
    return [found.mechanism, *map(digits, told)]


def _lasso_target(targets: Sequence[LassoChoice]) -> str:
    """The better answer, and whether it is worth more than releasing nothing."""
    first, nothing = targets[0], targets[0].zero_vector_error
    name = _MEASURED[first.measure]
    asked = (
        f"an error of {first.target:g}" if first.goal == "least_kl" else f"{name} {first.target:g}"
    )
    if not first.met:
        return f"No lambda and noise keep to {asked} or less."
    if first.better_than_nothing is False:
        if first.goal == "least_kl":
            return (
                f"For {asked} or less nothing need be released: predicting zero has the error "
                f"{digits(nothing)} and gives nothing away."
            )
        return (
            f"At {asked} or less no release is worth it: the best has no less error than "
            f"predicting zero ({digits(nothing)}), which gives nothing away."
        )
    return (
        f"For {asked} or less: {first.mechanism} perturbation, lambda = {digits(first.lam)}, "
        f"sigma_eta = {digits(first.sigma_eta)}, error {digits(first.generalization_error)} "
        f"(predicting zero: {digits(nothing)}), {name} {digits(first.level)}."
    )


def _lasso_table(curve: LassoCurve) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    columns = (curve.generalization_error, curve.joint_onavg_kl, curve.advantage)
    rows = [
        [f"{setting:.4g}", *("unstable" if c[k] is None else digits(c[k]) for c in columns)]
        for k, setting in enumerate(curve.settings)
    ]
    return ("lambda" if curve.knob == "lam" else curve.knob, "error", "KL", "advantage"), rows


def _lasso_charts(plan: LassoPlan, curve: LassoCurve) -> Section:
    """Error and leakage over the noise or the penalty, at the setting's other numbers."""
    name, x = KNOBS[curve.knob], curve.settings
    given = plan.settings.get(curve.knob)
    used = given if isinstance(given, (int, float)) and given > 0.0 else None
    best = plan.optimum if curve.knob == "sigma_eta" else None
    joint = best is not None and best.divergence == "joint"

    def mark(level: float | None) -> tuple[float, float] | None:
        if best is None or best.sigma_eta is None or level is None:
            return None
        return best.sigma_eta, level

    wanted = plan.targets[0] if plan.targets else None
    error = wanted.target if wanted is not None and wanted.goal == "least_kl" else None
    level = wanted.target if wanted is not None and wanted.goal == "least_error" else None
    by_kl = wanted is not None and wanted.measure == "kl"
    errors = [("generalisation error", x, curve.generalization_error)]
    if plan.zero_vector_error is not None:
        errors.append(("predicting zero", x, [plan.zero_vector_error] * len(x)))
    charts = [
        LineChart(
            f"error_{curve.knob}",
            name,
            "generalisation error",
            errors,
            used=used,
            target=error,
            best=mark(None if best is None else best.generalization_error),
        ),
        LineChart(
            f"kl_{curve.knob}",
            name,
            "on-average KL, joint",
            [("on-average KL, joint", x, curve.joint_onavg_kl)],
            used=used,
            target=level if by_kl else None,
            best=mark(None if best is None or not joint else best.onavg_kl),
        ),
        LineChart(
            f"advantage_{curve.knob}",
            name,
            "advantage",
            [("advantage", x, curve.advantage)],
            used=used,
            fraction=True,
            target=level if wanted is not None and wanted.measure == "advantage" else None,
        ),
    ]
    # The trade-off curve of --optimize has no advantage.
    return Section(f"Over the {name}", charts=charts if curve.advantage else charts[:-1])
