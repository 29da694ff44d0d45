"""The result files of ``leakscope plan``, and what they say: the screen and the report show it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from leakscope.errors import InputError
from leakscope.results.document import DatasetEntry, Entry, Number, ResultDocument
from leakscope.results.sections import LineChart, Section
from leakscope.results.shown import Short, certain, counted, digits

STANDS_IN = (
    "The measures are of whole matrices; the numbers below them are of the exact law, from designs "
    "of its own, and differ by about the standard errors."
)

# The worlds of linear's Section 5, by the name that --model gives them.
WORLDS = {"latent": "latent space", "fourier": "Fourier series", "relu": "random ReLU features"}

MEASURE = ("measure", "value", "std. error")


class LinearTarget(Entry):
    """The setting of one knob that meets a target, and what it costs; null where none does."""

    knob: str
    target: float
    attacker: Literal["label_known", "label_hidden"]
    setting: Number
    advantage: Number
    advantage_stderr: Number
    generalization_error: Number


class LinearCurve(Entry):
    """Privacy against utility over one knob, one entry per setting."""

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
        words = [
            "An attacker who sees the record's features and the prediction gains an advantage of "
            f"{_finite(self.advantage)} (best TPR - FPR), one who knows its label too "
            f"{_finite(self.advantage_label_known)}; the generalisation error is "
            f"{_finite(self.generalization_error)}.",
            *self._target_words(),
            "For this data model; no trained model was examined. A small advantage without the "
            "label does not make the one with it small.",
        ]
        rows = [
            _row("advantage, label hidden", self.advantage, self.advantage_stderr),
            _row(
                "advantage, label known",
                self.advantage_label_known,
                self.advantage_label_known_stderr,
            ),
            _row("AUC, label hidden", self.auc),
            _row("KL(nonmember || member)", self.kl),
            *(_row(f"TPR at FPR {level}", value) for level, value in self.tpr_at_fpr.items()),
            _row(
                "generalisation error", self.generalization_error, self.generalization_error_stderr
            ),
            _row("sd of a member's prediction", self.sigma_member, self.sigma_member_stderr),
            _row("sd of a non-member's", self.sigma_nonmember, self.sigma_nonmember_stderr),
        ]
        return Short(self._title(), tuple(words), MEASURE, rows, tuple(self.warnings))

    def _title(self) -> str:
        world = WORLDS.get(str(self.settings.get("model")))
        if world:
            names = ("n", "p", "latent", "times", "dim", "sigma", "records", "designs")
            values = [f"{name} = {_set(self, name)}" for name in names if name in self.settings]
            title = f"{world}, {', '.join(values)}: least squares"
        else:
            n, p, dim, sigma, ridge = (_set(self, k) for k in ("n", "p", "dim", "sigma", "ridge"))
            fit = "least squares" if ridge == "0" else f"ridge {ridge}"
            title = f"{fit}, n = {n}, p = {p} of {dim} features, sigma = {sigma}: {self.method}"
        noise = _noise(self)
        if not noise.get("sigma"):
            return title
        times = counted(noise.get("answers", 1), "fresh answer")
        if noise.get("memoised"):
            times = "the same answer to a repeated question"
        whose = "non-members' answers only" if noise.get("to") == "nonmembers" else "every answer"
        return f"{title}; noise of standard deviation {noise['sigma']:g} on {whose}, {times}"

    def _target_words(self) -> list[str]:
        if not self.targets:
            return []
        first = self.targets[0]
        asked = f"an advantage of {first.target:g} or less ({first.attacker.replace('_', ' ')})"
        ways = [
            f"{'p = ' if target.knob == 'features' else target.knob + ' of '}"
            f"{target.setting:.4g} (error {_finite(target.generalization_error)})"
            for target in self.targets
            if target.setting is not None
        ]
        return [f"For {asked}: {', or '.join(ways)}." if ways else f"No setting keeps to {asked}."]

    def sections(self) -> tuple[Section, ...]:
        """The settings that meet the target, the curve as a table, and a chart of every curve."""
        sections = []
        headings: tuple[str, ...]
        if self.targets:
            first = self.targets[0]
            title = f"advantage {first.target:g} or less ({first.attacker.replace('_', ' ')})"
            headings = (title, "setting", "advantage", "std. error", "error")
            rows = [_target_row(target) for target in self.targets]
            sections.append(Section("What meets the target", tables=[(headings, rows)]))
        if self.curve is not None:
            curve = self.curve
            name = "p" if curve.knob == "features" else curve.knob
            columns = (curve.advantage, curve.advantage_label_known, curve.generalization_error)
            values = zip(*columns, strict=True)
            rows = [
                [f"{setting:g}", *map(_finite, row)]
                for setting, row in zip(curve.settings, values, strict=True)
            ]
            headings = (name, "label hidden", "label known", "error")
            sections.append(Section("Along the curve", tables=[(headings, rows)]))
        if sections and self.method == "simulated" and self.settings.get("model") not in WORLDS:
            last = sections.pop()
            sections.append(Section(last.title, (STANDS_IN,), last.tables))
        curves = self.curves or (() if self.curve is None else (self.curve,))
        return (*sections, *(self._charts(curve) for curve in curves))

    def _charts(self, curve: LinearCurve) -> Section:
        """Leakage and error over one knob; the one in use and the target are drawn."""
        name, x, noise = KNOBS.get(curve.knob, curve.knob), curve.settings, _noise(self)
        used = {
            "features": self.settings.get("p"),
            "ridge": self.settings.get("ridge"),
            "noise": noise.get("sigma"),
            "answers": noise.get("answers"),
        }.get(curve.knob)
        leakage = [
            ("label known", x, curve.advantage_label_known),
            ("label hidden", x, curve.advantage),
        ]
        target = self.targets[0].target if self.targets else None
        errors = [("generalisation error", x, curve.generalization_error)]
        return Section(
            f"Over {name}",
            charts=[
                LineChart(f"leakage_{curve.knob}", name, "advantage", leakage, used, target=target),
                LineChart(f"error_{curve.knob}", name, "generalisation error", errors, used),
            ],
        )


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


def _target_row(target: LinearTarget) -> list[str]:
    if target.setting is None:
        return [target.knob, "none meets it", "", "", ""]
    _, value, stderr = _row("", target.advantage, target.advantage_stderr)
    error = _finite(target.generalization_error)
    return [target.knob, f"{target.setting:.6g}", value, stderr, error]


def _set(plan: ResultDocument, name: str) -> str:
    """A number of the settings; a file's settings may be anything."""
    value = plan.settings.get(name)
    return f"{value:g}" if isinstance(value, (int, float)) else "?"


def _noise(plan: ResultDocument) -> dict[str, Any]:
    noise = plan.settings.get("noise")
    return noise if isinstance(noise, dict) else {}


def _row(name: str, value: float | None, stderr: float | None = None) -> list[str]:
    """A line of a plan's table; a standard error of nothing is none."""
    return [name, _finite(value), f"{stderr:.1g}" if stderr else ""]


def _finite(value: float | None) -> str:
    return digits(value, infinite=True)


class LassoChoice(Entry):
    """A private LASSO that answers a question, and what it gives; ``met`` is false if none does.

    ``zero_vector_error`` is the error of predicting zero, rho sigma_beta^2 + sigma_xi^2, which
    gives nothing away; ``better_than_nothing`` is false where this answer does not do better.
    ``measure`` is what was bounded, or made least: the KL, or the advantage or epsilon of an
    attacker who sees the whole estimate, and then ``measured`` is its value.
    """

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


class LassoCurve(Entry):
    """Error and leakage of a private LASSO over one knob, one entry per setting.

    Beyond the stability edge there are no numbers.
    """

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
    and sees the whole estimate, over typical pairs.  With Laplace noise in the
    objective there is no ``cw_onavg_kl``.  ``advice`` says what to change where the setting is
    unstable.  ``zero_vector_error`` is what predicting zero costs, which gives nothing away.
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
        """
        if coefficients < 1:
            raise InputError(f"coefficients must be 1 or more, but it is {coefficients}.")
        return (
            None if self.cw_onavg_kl is None else math.sqrt(2.0 * self.cw_onavg_kl / coefficients)
        )

    def in_short(self) -> Short:
        """The answer and what it is worth beside releasing nothing, and every number."""
        names = {"alpha": "alpha", "rho": "rho", "sigma_xi": "sigma_xi", "lam": "lambda"}
        names["sigma_eta"] = "sigma_eta"
        values = ", ".join(f"{words} = {_set(self, name)}" for name, words in names.items())
        law = "Laplace " if self.settings.get("noise") == "laplace" else ""
        title = f"LASSO with {law}{self.mechanism} perturbation, {values}"
        nothing, error, words = self.zero_vector_error, self.generalization_error, []
        if self.stable:
            words.append(
                "An attacker who knows two records and sees the whole estimate tells which of them "
                f"was used with an advantage of {_finite(self.advantage)} (best TPR - FPR); the "
                f"generalisation error is {_finite(error)}."
            )
        scale = self.settings.get("data_scale")
        if scale is not None:
            lam, noise = (float(self.settings[name]) for name in ("lam", "sigma_eta"))
            noise = noise * scale if self.mechanism == "objective" else noise / scale
            words.append(
                "Estimated from your table, columns and target standardised: its rows have length "
                f"{digits(scale)}, so that lambda is {digits(lam * scale)} and sigma_eta "
                f"{digits(noise)} in its units."
            )
        words += [self.advice] if self.advice is not None else []
        if nothing is not None and error is not None and error >= nothing:
            words.append(
                f"Releasing nothing does better: predicting zero has the error {nothing:.4g} and "
                "gives nothing away."
            )
        words += [_lasso_target(self.targets)] if self.targets else []
        words.append(
            "For Gaussian features and this data model, in the limit of many records; no fitted "
            f"model was examined. {self.guarantee}"
        )
        rows = self._measured() if self.stable else []
        return Short(title, tuple(words), MEASURE, rows, tuple(self.warnings))

    def _measured(self) -> list[list[str]]:
        levels = [(f"TPR at FPR {level}", value) for level, value in self.tpr_at_fpr.items()]
        levels += [(f"average epsilon at delta {d}", v) for d, v in self.epsilon_at_delta.items()]
        component_wise = [("on-average KL, component-wise", self.cw_onavg_kl)]
        if self.settings.get("noise") == "laplace" and self.mechanism == "objective":
            component_wise = []
        entries = [
            ("generalisation error", self.generalization_error),
            ("error of predicting zero", self.zero_vector_error),
            ("training error", self.training_error),
            ("share of non-zero estimates", self.active_fraction),
            ("noise, of what it can bear", self.stability_ratio),
            ("overlap error, E12", self.overlap_error),
            ("on-average KL, joint", self.joint_onavg_kl_limit),
            *component_wise,
            ("on-average KL, as printed", self.cw_onavg_kl_paper),
            ("advantage", self.advantage),
            ("AUC", self.auc),
            *levels,
        ]
        return [*(_row(*entry) for entry in entries), ["worst-case epsilon", "none", ""]]

    def sections(self) -> tuple[Section, ...]:
        """The optimum, what meets the target, and charts over the noise and the penalty."""
        sections = []
        if self.optimum is not None:
            best = self.optimum
            rows = [
                ["sigma_eta", digits(best.sigma_eta)],
                ["generalisation error", digits(best.generalization_error)],
                [f"on-average KL, {best.divergence.replace('_', '-')}", digits(best.onavg_kl)],
            ]
            headings: tuple[str, ...] = ("nearest to the origin", "value")
            sections.append(Section("Noise nearest to the origin", tables=[(headings, rows)]))
        if self.targets:
            goal = self.targets[0].goal.replace("_", " ")
            headings = (goal, "lambda", "sigma_eta", "error", _MEASURED[self.targets[0].measure])
            rows = [_choice_row(choice) for choice in self.targets]
            sections.append(Section("What meets the target", tables=[(headings, rows)]))
        if len(self.curves) == 1:
            curve = self.curves[0]
            columns = (curve.generalization_error, curve.joint_onavg_kl, curve.advantage)
            rows = [
                [f"{setting:.4g}", *("unstable" if v is None else digits(v) for v in values)]
                for setting, *values in zip(curve.settings, *columns, strict=True)
            ]
            name = "lambda" if curve.knob == "lam" else curve.knob
            headings = (name, "error", "KL", "advantage")
            sections.append(Section("Along the curve", tables=[(headings, rows)]))
        return (*sections, *map(self._charts, self._curves()))

    def _curves(self) -> tuple[LassoCurve, ...]:
        """The curves, or the trade-off curve of ``--optimize``, less its end at the edge."""
        columns = [(self.curve or {}).get(name) or [] for name in _TRADE_OFF]
        if self.curves or not all(columns):
            return self.curves
        # Near the edge of stability the error has no limit.
        edge = 0.97 * (columns[0][-1] or 0.0) if self.mechanism == "objective" else math.inf
        kept = [row for row in zip(*columns, strict=False) if row[0] is not None and row[0] <= edge]
        x, error, kl = (list(column) for column in zip(*kept, strict=True))
        curve = LassoCurve(
            knob="sigma_eta",
            settings=x,
            generalization_error=error,
            joint_onavg_kl=kl,
            advantage=[],
        )
        return (curve,)

    def _charts(self, curve: LassoCurve) -> Section:
        """Error and leakage over the noise or the penalty, at the setting's other numbers."""
        name, x, used = KNOBS[curve.knob], curve.settings, self.settings.get(curve.knob)
        asked = self.targets[0] if self.targets else None
        targets: dict[str, float | None] = {} if asked is None else {asked.measure: asked.target}
        if asked is not None and asked.goal == "least_kl":
            targets = {"error": asked.target}
        errors = [("generalisation error", x, curve.generalization_error)]
        if self.zero_vector_error is not None:
            errors.append(("predicting zero", x, [self.zero_vector_error] * len(x)))
        kls = [("on-average KL, joint", x, curve.joint_onavg_kl)]
        drawn = [
            ("error", "generalisation error", errors),
            ("kl", "on-average KL, joint", kls),
            ("advantage", "advantage", [("advantage", x, curve.advantage)]),
        ]
        charts = [
            LineChart(f"{key}_{curve.knob}", name, y, series, used, target=targets.get(key))
            for key, y, series in drawn
            if series[0][2]
        ]
        return Section(f"Over the {name}", charts=charts)


# Of the trade-off curve: the noise, the error and the leakage.
_TRADE_OFF = ("sigma_eta", "generalization_error", "joint_onavg_kl")


class PlannedNetwork(Entry):
    """What one network would give away about the records, each at its own point.

    ``record_id`` is the most exposed one; ``error`` that of each label from the others, root mean
    square, as a share of the labels' own deviation; ``prior_variance`` the mean k(x, x) before any
    scaling; ``unconfirmed`` how many records float64 does not resolve.
    """

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
    unconfirmed: int


class NetworkPlan(ResultDocument):
    """The result of ``leakscope plan network``: infinitely wide networks on the user's records."""

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
