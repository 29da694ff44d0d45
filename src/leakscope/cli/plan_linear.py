"""``leakscope plan linear``: least squares or ridge before training, and what meets a target."""

from __future__ import annotations

import sys
import textwrap
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leakscope.cli.options import (
    LARGEST,
    JsonPath,
    fractions,
    numbers,
    one_of,
    require_reachable,
)
from leakscope.cli.output import STDOUT, emit_json, number, require_writable, standard_error, table
from leakscope.errors import InputError
from leakscope.settings import MEASURE_DEFAULTS, in_text

if TYPE_CHECKING:
    from leakscope.linear import GaussianDesign, OutputNoise
    from leakscope.planning import LinearAnswer, TargetFound, TradeOff
    from leakscope.results.plan import LinearPlanDocument

SUMMARY = "Least squares or ridge on Gaussian records."
EPILOG = "Example: leakscope plan linear --n 100 --p 400 --dim 3000 --sigma 1"

METHODS = ("exact", "asymptotic", "simulated")
ATTACKERS = ("label_known", "label_hidden")
# A ridge above this leaves nothing of the fit within the digits of float64.
MOST_RIDGE = 1e6
STANDS_IN = (
    "The measures are of whole matrices; the numbers below them are of the exact law, from designs "
    "of its own, and differ by about the standard errors."
)
KNOBS = {"p": "features", "ridge": "ridge", "noise": "noise", "answers": "answers"}


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
        one_of(curve, tuple(KNOBS), "--curve")
    elif settings is not None:
        raise InputError("--settings belongs to --curve: name the knob, such as --curve p.")
    if seed < 0:
        raise InputError(f"--seed must be zero or above, but it is {seed}.")
    levels = fractions(fpr, "--fpr")
    along_settings = numbers(settings, "--settings")
    require_reachable(
        n=n,
        p=p,
        dim=dim,
        sigma=sigma,
        output_noise=output_noise,
        answers=answers,
        target_advantage=target_advantage,
    )
    require_reachable(ridge=ridge, most=MOST_RIDGE)
    for entry in along_settings or ():
        require_reachable(settings=entry, most=MOST_RIDGE if curve == "ridge" else LARGEST)
    require_writable(json_path)
    from leakscope.linear import GaussianDesign, OutputNoise

    design = GaussianDesign(n=n, p=p, dim=dim, sigma=sigma, ridge=ridge)
    noise = OutputNoise(output_noise, answers=answers, memoised=memoise)
    start = time.perf_counter()
    from leakscope.planning import plan_linear

    answer = plan_linear(
        design,
        method=method,  # type: ignore[arg-type]
        noise=noise if output_noise > 0.0 else None,
        fpr=levels or (),
        draws=draws,
        random_state=seed,
    )
    # --draws of whole matrices is not how many designs the exact law, which stands in, needs
    designs = None if method == "simulated" else draws
    targets = None
    if target_advantage is not None:
        targets = _targets(design, noise, target_advantage, attacker, method, designs, seed)
    along = None
    if curve is not None:
        along = _curve(design, noise, curve, along_settings, method, designs, seed)
    if json_path is not None:
        spent = time.perf_counter() - start
        emit_json(_document(answer, noise, targets, along, seed, spent), json_path)
    if json_path != STDOUT:
        sys.stdout.write(_page(answer, noise, targets, along) + "\n")


def _targets(
    design: GaussianDesign,
    noise: OutputNoise,
    target: float,
    attacker: Any,
    method: Any,
    draws: int | None,
    seed: int,
) -> tuple[TargetFound, TargetFound]:
    from leakscope.planning import largest_p, least_noise

    given = noise if noise.sigma > 0.0 else None
    return (
        largest_p(
            design,
            target,
            attacker=attacker,
            method=method,
            noise=given,
            draws=draws,
            random_state=seed,
        ),
        least_noise(
            design,
            target,
            attacker=attacker,
            method=method,
            answers=noise.answers,
            memoised=noise.memoised,
            draws=draws,
            random_state=seed,
        ),
    )


def _curve(
    design: GaussianDesign,
    noise: OutputNoise,
    name: str,
    settings: tuple[float, ...] | None,
    method: str,
    draws: int | None,
    seed: int,
) -> TradeOff:
    from leakscope.planning import trade_off_curve

    if name == "answers" and noise.sigma == 0.0:
        raise InputError("A curve over answers needs --output-noise above 0.")
    if name == "answers" and noise.memoised:
        raise InputError("A memoised answer is one answer however often it is asked for.")
    if name in ("p", "answers") and any(entry != int(entry) for entry in settings or ()):
        raise InputError(f"--settings of {name} must be whole numbers.")
    return trade_off_curve(
        design,
        KNOBS[name],  # type: ignore[arg-type]
        settings or _settings(design, name),
        # whole matrices are dear: the exact law stands in for them
        method="asymptotic" if method == "asymptotic" else "exact",
        sigma_output=noise.sigma,
        noise=noise if noise.sigma > 0.0 or name == "noise" else None,
        draws=draws,
        random_state=seed,
    )


def _settings(design: GaussianDesign, name: str) -> tuple[float, ...]:
    """A range for each knob; p keeps clear of n, where least squares has no second moment."""
    if name == "ridge":
        return (0.0, 0.01, 0.1, 1.0, 10.0)
    if name == "noise":
        return (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
    if name == "answers":
        return (1.0, 3.0, 10.0, 30.0, 100.0)
    sizes = {round(design.n * share) for share in (0.1, 0.25, 0.5, 0.8, 1.25, 2, 3, 5, 10, 20)}
    sizes.add(design.dim)
    return tuple(float(p) for p in sorted(sizes) if 1 <= p <= design.dim and abs(p - design.n) > 1)


def _document(
    answer: LinearAnswer,
    noise: OutputNoise,
    targets: tuple[TargetFound, TargetFound] | None,
    curve: TradeOff | None,
    seed: int,
    seconds: float,
) -> LinearPlanDocument:
    from dataclasses import asdict

    from leakscope import __version__
    from leakscope.results.plan import LinearPlanDocument

    return LinearPlanDocument.model_validate(
        {
            "leakscope_version": __version__,
            "settings": {**asdict(answer.design), "noise": asdict(noise), "seed": seed},
            **answer.to_dict(),
            "targets": [found.to_dict() for found in targets or ()],
            "curve": None if curve is None else curve.to_dict(),
            "timing": {"plan": seconds},
            "warnings": [],
        }
    )


def _page(
    answer: LinearAnswer,
    noise: OutputNoise,
    targets: tuple[TargetFound, TargetFound] | None,
    curve: TradeOff | None,
) -> str:
    design = answer.design
    rows = [
        [
            "advantage, label hidden",
            number(answer.advantage),
            standard_error(answer.advantage_stderr),
        ],
        [
            "advantage, label known",
            number(answer.advantage_label_known),
            standard_error(answer.advantage_label_known_stderr),
        ],
        ["AUC, label hidden", number(answer.measures.auc), ""],
        ["KL(nonmember || member)", number(answer.measures.kl), ""],
    ]
    rows += [
        [f"TPR at FPR {level:g}", number(value), ""]
        for level, value in answer.measures.tpr_at_fpr.items()
    ]
    rows += [
        [
            "generalisation error",
            number(answer.generalization_error),
            standard_error(answer.generalization_error_stderr),
        ],
        ["sd of a member's prediction", number(answer.sigma_member), ""],
        ["sd of a non-member's", number(answer.sigma_nonmember), ""],
    ]
    kind = "least squares" if design.ridge == 0.0 else f"ridge {design.ridge:g}"
    lines = [
        f"{kind}, n = {design.n}, p = {design.p} of {design.dim} features, sigma = "
        f"{design.sigma:g}: {answer.provenance.method}",
        *([_noise_words(noise)] if noise.sigma > 0.0 else []),
        "",
        table(["measure", "value", "std. error"], rows),
    ]
    if targets is not None:
        lines += ["", _targets_table(targets)]
    if curve is not None:
        lines += ["", _curve_table(curve)]
    if answer.provenance.method == "simulated" and (targets is not None or curve is not None):
        lines += ["", *textwrap.wrap(STANDS_IN, width=92)]
    words = (
        "For Gaussian records and this data model; no trained model was examined. The label-hidden "
        "attacker sees the record's features and the prediction; one who knows its label too is "
        "the second line, and a small first line does not make the second one small."
    )
    lines += ["", *textwrap.wrap(words, width=92)]
    return "\n".join(lines)


def _noise_words(noise: OutputNoise) -> str:
    if noise.memoised:
        times = "the same answer to a repeated question"
    else:
        times = f"{noise.answers} fresh answer{'s' if noise.answers > 1 else ''}"
    return f"noise of standard deviation {noise.sigma:g} on every answer, {times}"


def _curve_table(curve: TradeOff) -> str:
    name = next(name for name, knob in KNOBS.items() if knob == curve.knob)
    columns = (curve.advantage, curve.advantage_label_known, curve.generalization_error)
    rows = [
        [f"{setting:g}", *(number(float(column[k])) for column in columns)]
        for k, setting in enumerate(curve.settings)
    ]
    return table([name, "label hidden", "label known", "error"], rows)


def _targets_table(targets: tuple[TargetFound, TargetFound]) -> str:
    rows = []
    for found in targets:
        setting = "none meets it" if found.setting is None else f"{found.setting:.6g}"
        rows.append(
            [
                found.knob,
                setting,
                "" if found.advantage is None else number(found.advantage),
                "" if found.advantage_stderr is None else standard_error(found.advantage_stderr),
                "" if found.generalization_error is None else number(found.generalization_error),
            ]
        )
    first = targets[0]
    title = f"advantage {first.target:g} or less ({first.attacker.replace('_', ' ')})"
    return table([title, "setting", "advantage", "std. error", "error"], rows)
