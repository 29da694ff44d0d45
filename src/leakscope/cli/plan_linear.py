"""``leakscope plan linear``: least squares or ridge before training, and what meets a target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from leakscope.cli.options import JsonPath, fractions, numbers, one_of
from leakscope.cli.output import (
    STDOUT,
    emit_json,
    number,
    require_writable,
    show,
    standard_error,
    table,
    wrapped,
)
from leakscope.errors import InputError
from leakscope.settings import MEASURE_DEFAULTS, in_text

if TYPE_CHECKING:
    from leakscope.results import LinearCurve, LinearPlan, LinearTarget

SUMMARY = "Least squares or ridge on Gaussian records."
EPILOG = "Example: leakscope plan linear --n 100 --p 400 --dim 3000 --sigma 1"

METHODS = ("exact", "asymptotic", "simulated")
ATTACKERS = ("label_known", "label_hidden")
STANDS_IN = (
    "The measures are of whole matrices; the numbers below them are of the exact law, from designs "
    "of its own, and differ by about the standard errors."
)
KNOBS = ("p", "ridge", "noise", "answers")


def linear(
    n: Annotated[int, typer.Option("--n", help="Records in the training set.", metavar="COUNT")],
    p: Annotated[int, typer.Option("--p", help="Features the model uses.", metavar="COUNT")],
    dim: Annotated[int, typer.Option(help="All features there are, D.", metavar="COUNT")],
    sigma: Annotated[
        float, typer.Option(help="Standard deviation of the label noise.", metavar="NUMBER")
    ] = 1.0,
    ridge: Annotated[
        float,
        typer.Option(
            help="lambda in X'X + n lambda I; 0 is (minimum-norm) least squares.", metavar="NUMBER"
        ),
    ] = 0.0,
    method: Annotated[
        str,
        typer.Option(
            help="exact (finite n), asymptotic (Thm 3.2 and corrected Thm 4.1) or simulated (whole "
            "matrices).",
            metavar="NAME",
        ),
    ] = "exact",
    output_noise: Annotated[
        float,
        typer.Option(help="Standard deviation of noise on every answer.", metavar="NUMBER"),
    ] = 0.0,
    answers: Annotated[
        int,
        typer.Option(help="Fresh answers the attacker gets to one question.", metavar="COUNT"),
    ] = 1,
    memoise: Annotated[
        bool,
        typer.Option("--memoise", help="A repeated question gets the same answer, noise and all."),
    ] = False,
    target_advantage: Annotated[
        float | None,
        typer.Option(
            help="Find the largest p, and the least noise on every answer, that keep to it.",
            metavar="NUMBER",
            show_default=False,
        ),
    ] = None,
    attacker: Annotated[
        str,
        typer.Option(help="Whom the target is met against: label_known or label_hidden."),
    ] = "label_known",
    curve: Annotated[
        str | None,
        typer.Option(
            help="Leakage and error along a knob: p, ridge, noise (on every answer) or answers.",
            metavar="KNOB",
            show_default=False,
        ),
    ] = None,
    settings: Annotated[
        str | None,
        typer.Option(
            help="The knob's settings, with commas between.  [default: a range]",
            metavar="LIST",
            show_default=False,
        ),
    ] = None,
    fpr: Annotated[
        str, typer.Option(help="False-positive rates, with commas between.", metavar="LIST")
    ] = in_text(MEASURE_DEFAULTS.fpr),
    draws: Annotated[
        int | None,
        typer.Option(
            help="Random designs.  [default: 4000 exact, 200 simulated]",
            metavar="COUNT",
            show_default=False,
        ),
    ] = None,
    json_path: JsonPath = None,
    seed: Annotated[int, typer.Option(help="For the random designs.", metavar="NUMBER")] = 0,
) -> None:
    """How much least squares or ridge would give away about a typical record, and its error.

    Records and coefficients are Gaussian.  Two attackers: one sees x0 and the prediction, one the
    record's label too.
    """
    one_of(method, METHODS, "--method")
    one_of(attacker, ATTACKERS, "--attacker")
    if curve is not None:
        one_of(curve, KNOBS, "--curve")
    elif settings is not None:
        raise InputError("--settings belongs to --curve: name the knob, such as --curve p.")
    if seed < 0:
        raise InputError(f"--seed must be zero or above, but it is {seed}.")
    levels = fractions(fpr, "--fpr")
    along: Any = curve
    if curve is not None and settings is not None:
        along = {curve: numbers(settings, "--settings")}
    require_writable(json_path)
    from leakscope.linear import GaussianDesign, OutputNoise
    from leakscope.planning import plan_linear, require_reachable

    require_reachable({"--n": n, "--p": p, "--dim": dim, "--sigma": sigma, "--answers": answers})
    require_reachable({"--output-noise": output_noise, "--target-advantage": target_advantage})
    noise = OutputNoise(output_noise, answers=answers, memoised=memoise)
    found = plan_linear(
        GaussianDesign(n=n, p=p, dim=dim, sigma=sigma, ridge=ridge),
        method=method,  # type: ignore[arg-type]
        noise=noise if output_noise > 0.0 else None,
        fpr=levels or (),
        draws=draws,
        target_advantage=target_advantage,
        attacker=attacker,  # type: ignore[arg-type]
        curve=along,
        random_state=seed,
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
