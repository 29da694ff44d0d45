"""``leakscope plan linear``: least squares or ridge before training, and what meets a target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leakscope.cli.options import JsonPath, Options, with_options
from leakscope.cli.output import (
    STDOUT,
    emit_json,
    in_options,
    number,
    require_writable,
    show,
    standard_error,
    table,
    wrapped,
)
from leakscope.errors import InputError
from leakscope.settings.plan import LinearDesignSettings, LinearPlanSettings

if TYPE_CHECKING:
    from leakscope.results import LinearPlan
    from leakscope.results.plan import LinearCurve, LinearTarget

SUMMARY = "Least squares or ridge on Gaussian records."
EPILOG = "Example: leakscope plan linear --n 100 --p 400 --dim 3000 --sigma 1"

STANDS_IN = (
    "The measures are of whole matrices; the numbers below them are of the exact law, from designs "
    "of its own, and differ by about the standard errors."
)

DESIGN = Options(LinearDesignSettings)


@with_options(design=DESIGN, settings=Options(LinearPlanSettings))
def linear(
    *,
    design: LinearDesignSettings,
    settings: LinearPlanSettings,
    json_path: JsonPath = None,
) -> None:
    """How much least squares or ridge would give away about a typical record, and its error.

    Records and coefficients are Gaussian.  Two attackers: one sees x0 and the prediction, one the
    record's label too.
    """
    if settings.curve is None and settings.settings is not None:
        raise InputError("--settings belongs to --curve: name the knob, such as --curve p.")
    outside = [level for level in settings.fpr if not 0.0 <= level <= 1.0]
    if outside:
        raise InputError(f"--fpr takes fractions from 0 to 1, but one is {outside[0]:g}.")
    along: Any = settings.curve
    if settings.curve is not None and settings.settings is not None:
        along = {settings.curve: settings.settings}
    require_writable(json_path)
    from leakscope.linear import GaussianDesign, OutputNoise
    from leakscope.planning import plan_linear
    from leakscope.planning.reachable import require_reachable

    told = {one.option: getattr(design, one.name) for one in DESIGN.described()}
    # The ridge has a bound of its own.
    require_reachable({option: value for option, value in told.items() if option != "--ridge"})
    require_reachable({"--target-advantage": settings.target_advantage})
    noise = OutputNoise(design.output_noise, answers=design.answers, memoised=design.memoise)
    with in_options(linear):
        found = plan_linear(
            GaussianDesign(design.n, design.p, design.dim, design.sigma, ridge=design.ridge),
            method=settings.method,
            noise=noise if design.output_noise > 0.0 else None,
            fpr=settings.fpr,
            draws=settings.draws,
            target_advantage=settings.target_advantage,
            attacker=settings.attacker,
            curve=along,
            random_state=settings.seed,
        )
    if json_path is not None:
        emit_json(found, json_path)
    if json_path != STDOUT:
        show(_page(found) + "\n")


def _page(found: LinearPlan) -> str:
    told = found.settings
    rows = [
        ["advantage, label hidden", _number(found.advantage), _error(found.advantage_stderr)],
        [
            "advantage, label known",
            _number(found.advantage_label_known),
            _error(found.advantage_label_known_stderr),
        ],
        ["AUC, label hidden", _number(found.auc), ""],
        ["KL(nonmember || member)", _number(found.kl), ""],
    ]
    rows += [
        [f"TPR at FPR {level}", _number(value), ""] for level, value in found.tpr_at_fpr.items()
    ]
    rows += [
        [
            "generalisation error",
            _number(found.generalization_error),
            _error(found.generalization_error_stderr),
        ],
        ["sd of a member's prediction", _number(found.sigma_member), ""],
        ["sd of a non-member's", _number(found.sigma_nonmember), ""],
    ]
    kind = "least squares" if told["ridge"] == 0.0 else f"ridge {told['ridge']:g}"
    noise = told["noise"]
    parts = [
        f"{kind}, n = {told['n']}, p = {told['p']} of {told['dim']} features, sigma = "
        f"{told['sigma']:g}: {found.method}"
        + (f"\n{_noise_words(noise)}" if noise["sigma"] > 0.0 else ""),
        table(["measure", "value", "std. error"], rows),
    ]
    if found.targets:
        parts.append(_targets_table(found.targets))
    if found.curve is not None:
        parts.append(_curve_table(found.curve))
    if found.method == "simulated" and (found.targets or found.curve is not None):
        parts.append(wrapped(STANDS_IN))
    parts.append(
        wrapped(
            "For Gaussian records and this data model; no trained model was examined. The "
            "label-hidden attacker sees the record's features and the prediction; one who knows "
            "its label too is the second line, and a small first line does not make the second "
            "one small."
        )
    )
    return "\n\n".join(parts)


def _noise_words(noise: dict[str, Any]) -> str:
    if noise["memoised"]:
        times = "the same answer to a repeated question"
    else:
        times = f"{noise['answers']} fresh answer{'s' if noise['answers'] > 1 else ''}"
    return f"noise of standard deviation {noise['sigma']:g} on every answer, {times}"


def _curve_table(curve: LinearCurve) -> str:
    columns = (curve.advantage, curve.advantage_label_known, curve.generalization_error)
    rows = [
        [f"{setting:g}", *(_number(column[k]) for column in columns)]
        for k, setting in enumerate(curve.settings)
    ]
    name = "p" if curve.knob == "features" else curve.knob
    return table([name, "label hidden", "label known", "error"], rows)


def _targets_table(targets: tuple[LinearTarget, ...]) -> str:
    rows = []
    for found in targets:
        met = found.setting is not None
        rows.append(
            [
                found.knob,
                f"{found.setting:.6g}" if met else "none meets it",
                _number(found.advantage) if met else "",
                _error(found.advantage_stderr) if met else "",
                _number(found.generalization_error) if met else "",
            ]
        )
    first = targets[0]
    title = f"advantage {first.target:g} or less ({first.attacker.replace('_', ' ')})"
    return table([title, "setting", "advantage", "std. error", "error"], rows)


def _number(value: float | None) -> str:
    return "infinite" if value is None else number(value)


def _error(value: float | None) -> str:
    return "" if value is None else standard_error(value)
