"""``leakscope advise``: the cheapest change that keeps every record below a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli.options import DataNow, JsonPath, Options, with_options
from leakscope.cli.output import (
    STDOUT,
    fraction,
    say,
    show,
    steps,
    table,
    with_json,
    wrapped,
)
from leakscope.errors import InputError
from leakscope.settings.advise import TARGET_DELTA, TARGET_FPR, AdviseSettings

if TYPE_CHECKING:
    from leakscope.results import Advice
    from leakscope.results.advice import AdviceOption, Target
    from leakscope.results.audit import ExaminedModel

SUMMARY = "The cheapest change that keeps every record below a target."
EPILOG = "Example: leakscope advise diabetes-run --target-advantage 0.2"

OWN_POINT = (
    "Asked at own: the target is met if the attacker asks once, about the record itself; noisy "
    "answers to other questions may tell more (--questions any). Asked at any: it is met whatever "
    "the attacker asks, or, with noise on the answers, for any one question."
)


@with_options(settings=Options(AdviseSettings))
def advise(
    *,
    run: Annotated[
        Path,
        typer.Argument(
            help="A run directory of leakscope audit, or its result.json.", metavar="RUN"
        ),
    ],
    target_advantage: Annotated[
        float | None,
        typer.Option(
            "--target-advantage",
            "--threshold-advantage",
            help="No record's advantage above this.",
            show_default=False,
        ),
    ] = None,
    target_tpr: Annotated[
        float | None,
        typer.Option(
            "--target-tpr",
            "--threshold-tpr",
            help="No record's true-positive rate at --fpr above this.",
            show_default=False,
        ),
    ] = None,
    fpr: Annotated[float, typer.Option(help="False-positive rate of --target-tpr.")] = TARGET_FPR,
    target_ppv: Annotated[
        float | None,
        typer.Option(
            "--target-ppv",
            "--threshold-ppv",
            help="No accusation at a false-positive rate of 0.1% right more often than this; needs "
            "--prior.",
            show_default=False,
        ),
    ] = None,
    prior: Annotated[
        float | None,
        typer.Option(
            help="Of --target-ppv: the share of members among those asked about.",
            show_default=False,
        ),
    ] = None,
    target_epsilon: Annotated[
        float | None,
        typer.Option(help="No record's epsilon at --delta above this.", show_default=False),
    ] = None,
    delta: Annotated[float, typer.Option(help="Delta of --target-epsilon.")] = TARGET_DELTA,
    data: DataNow = None,
    settings: AdviseSettings,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a page with the curves.", metavar="FILE.html", show_default=False),
    ] = None,
    json_path: JsonPath = None,
) -> None:
    """Which changes keep every record below a target, and what each costs in error.

    Give one target.  It tries noise on the answers, a larger penalty (of a Gaussian process: more
    training noise), fewer features, dropping the most exposed records, and each of these together
    with noise on the answers.  Cross-validation says what each costs; the cheapest comes first.
    Of a training (audit --train): options of it that --try names, each trained as often as the
    audit did.
    """
    wanted = _target(target_advantage, target_tpr, fpr, target_ppv, prior, target_epsilon, delta)
    if html is not None:
        from leakscope.reporting.pages import require_report_path

        require_report_path(html)
    from leakscope.advising import advise as advise_on

    with steps("Advice") as on_stage:
        found = advise_on(
            run,
            wanted,
            data=data,
            folds=settings.folds,
            repeats=settings.repeats,
            most_dropped=settings.most_dropped,
            questions=settings.questions,
            check=settings.check,
            tries=_tries(settings.tries),
            random_state=settings.seed,
            on_stage=on_stage,
        )
    for sentence in found.warnings:
        say(f"warning: {sentence}")
    with with_json(found, json_path):
        if html is not None:
            from leakscope.reporting.advice_page import write_advice

            write_advice(found, html)
    if json_path != STDOUT:
        show(_page(found) + "\n")
        if html is not None:
            show(f"\nPage: {html} ({html.stat().st_size / 1e6:.1f} MB, names no record)\n")


def _target(
    advantage: float | None,
    tpr: float | None,
    fpr: float,
    ppv: float | None,
    prior: float | None,
    epsilon: float | None,
    delta: float,
) -> Target:
    from leakscope.advising.advise import target_of
    from leakscope.results.advice import Target
    from leakscope.settings.decide import Thresholds
    from leakscope.settings.setting import validated

    if (advantage, tpr, ppv) == (None, None, None) and epsilon is not None:
        return Target("epsilon", epsilon, delta=delta)
    if epsilon is not None:
        raise InputError(
            "Give one target: --target-advantage, --target-tpr, --target-ppv or --target-epsilon, "
            "not several."
        )
    if advantage is not None and (tpr, ppv) == (None, None):
        return Target("advantage", advantage)
    if tpr is not None and (advantage, ppv) == (None, None):
        return Target("tpr", tpr, fpr=fpr)
    given = {"threshold_advantage": advantage, "threshold_tpr": tpr, "threshold_ppv": ppv}
    return target_of(validated(Thresholds, **given, prior=prior))


def _tries(texts: Sequence[str]) -> dict[str, list[float]]:
    """``epochs=5,10`` as a name with its values, whole numbers kept whole."""
    found: dict[str, list[float]] = {}
    for text in texts:
        name, _, values = text.partition("=")
        try:
            read = [_finite(value) for value in values.split(",")]
        except ValueError:
            read = []
        if not name.strip() or not read:
            raise InputError(
                f"--try must name an option and numbers to try, such as epochs=5,10, but it is "
                f"{text!r}."
            )
        found.setdefault(name.strip(), []).extend(read)
    return found


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return int(text) if text.strip().lstrip("+-").isdigit() else value


def _page(found: Advice) -> str:
    """What a person sees."""
    own, unit = found.own, found.unit
    measured = _number if found.target.measure == "epsilon" else _fraction
    whose = "" if found.model is None else f", {found.model.name}"
    heading = f"{found.dataset.name}{whose}: no {unit} may have {found.target_label} above "
    heading += f"{found.target.value:g}; as audited "
    if own.trusted:
        heading += f"the worst has {measured(own.worst)}, the median {measured(own.median)}."
    else:
        heading += "the numbers of some are not trusted."
    error = "error" if found.loss == "squared error" else found.loss
    columns: dict[str, Callable[[AdviceOption], str]] = {
        "option": lambda option: option.name,
        "setting": lambda option: option.setting_words,
        "meets": lambda option: option.met_words,
        "asked at": lambda option: option.questions,
        "worst": lambda option: measured(option.worst),
        "interval": _between,
        "median": lambda option: measured(option.median),
        error: lambda option: _number(option.error),
        "cost": lambda option: _signed(option, option.cost, "+.3g"),
        "+-": lambda option: _signed(option, option.cost_stderr, ".1g"),
        "R2": lambda option: "-" if option.r_squared is None else _r_squared(option.r_squared),
        "accuracy": lambda option: "-" if option.accuracy is None else f"{option.accuracy:.1%}",
    }
    everywhere = {option.questions for option in (own, *found.options)}
    # Only classes have an accuracy, and only squared errors an R2.
    unused = {"asked at"} if everywhere == {"own"} else set()
    unused |= {"interval"} if own.worst_high is None else set()
    unused |= {"accuracy"} if own.accuracy is None else set()
    unused |= {"R2"} if own.r_squared is None else set()
    unused |= {error, "cost", "+-"} if own.error is None else set()
    shown = {name: column for name, column in columns.items() if name not in unused}
    rows = [[column(option) for column in shown.values()] for option in (own, *found.options)]
    parts = [wrapped(heading)]
    parts.append(table(list(shown), rows))
    parts.append(wrapped(found.sentence))
    parts += [wrapped(note) for option in found.options[:1] for note in option.notes]
    again = "" if found.best is None else _again(found.best, found.model)
    parts += [wrapped(again)] if again else []
    parts += [wrapped(f"{o.name}: {o.check.sentence}") for o in found.options if o.check]
    if everywhere == {"own", "any"}:
        parts.append(wrapped(OWN_POINT))
    unmet = [option for option in found.options if not option.meets]
    parts += [wrapped(f"{o.name}: {' '.join([o.sentence, *o.notes])}") for o in unmet]
    parts += [wrapped(note) for note in found.notes]
    return "\n\n".join(parts)


# What an audit's own options are called.
AGAIN = {"C": "--C", "alpha": "--alpha", "output_sd": "--answer-noise"}


def _again(option: AdviceOption, model: ExaminedModel | None) -> str:
    """How to audit the changed model; nothing where that is no matter of the audit's options."""
    if not option.setting or not option.setting.keys() <= AGAIN.keys():
        return ""
    if option.worst_high is not None:
        # An interval comes of a few models, whose audit takes no noise on the answers.
        return ""
    told = " ".join(f"{AGAIN[name]} {value:.6g}" for name, value in option.setting.items())
    if model is not None and model.stand_in and option.setting.keys() & {"C", "alpha"}:
        # A penalty belongs to a model that is named.
        told = f"--model {'logistic' if 'C' in option.setting else 'ridge'} {told}"
    return f"To have it on record: audit again as before, with {told}, and decide on that run."


def _signed(option: AdviceOption, value: float | None, form: str) -> str:
    """A number of an option; of the audit's own setting there is none."""
    return "-" if value is None or not option.setting else f"{value:{form}}"


def _between(option: AdviceOption) -> str:
    """The ends of the worst record's interval."""
    low, high = option.worst_low, option.worst_high
    return "-" if low is None or high is None else f"{low:.2f} to {high:.2f}"


def _r_squared(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 1e3 else f"{value:.4g}"


def _fraction(value: float | None) -> str:
    """Four decimals, or four digits where those would hide what a small target is about."""
    return f"{value:.4g}" if value is not None and 0.0 < value < 1e-3 else fraction(value)


def _number(value: float | None) -> str:
    return "infinite" if value is None else f"{value:.4g}"
