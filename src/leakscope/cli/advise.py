"""``leakscope advise``: the cheapest change that keeps every record below a target."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli.derived_options import Options, with_options
from leakscope.cli.options import DataNow, JsonPath
from leakscope.cli.output import (
    STDOUT,
    emit_json,
    fraction,
    require_writable,
    say,
    show,
    stages,
    table,
    wrapped,
)
from leakscope.errors import InputError
from leakscope.settings import AdviseSettings, TargetSettings

if TYPE_CHECKING:
    from leakscope.advising import AuditTarget
    from leakscope.results import Advice, AdviceOption

SUMMARY = "The cheapest change that keeps every record below a target."
EPILOG = "Example: leakscope advise diabetes-run --target-advantage 0.2"

OWN_POINT = (
    "Asked at own: met against one question at the record's own point; asked elsewhere, noisy "
    "answers may tell more (--questions any).  Asked at any: met against every set of questions, "
    "or with noise on the answers against any one."
)


@with_options(target=Options(TargetSettings), settings=Options(AdviseSettings))
def advise(
    *,
    run: Annotated[
        Path,
        typer.Argument(
            help="A run directory of leakscope audit, or its result.json.", metavar="RUN"
        ),
    ],
    target: TargetSettings,
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
    training noise), fewer features, dropping or merging the most exposed records, and each of
    these together with noise on the answers.  Cross-validation says what each costs; the cheapest
    comes first.  Of a training (audit --train): options of it that --try names, each trained as
    often as the audit did.
    """
    wanted = _target(target)
    require_writable(json_path, run, data)
    if html is not None:
        from leakscope.reporting import require_report_path

        require_report_path(html)
    from leakscope.advising import ADVICE_STAGES, parsed_tries
    from leakscope.advising import advise as advise_on

    with stages(ADVICE_STAGES) as on_stage:
        found = advise_on(
            run,
            wanted,
            data=data,
            folds=settings.folds,
            repeats=settings.repeats,
            most_dropped=settings.most_dropped,
            questions=settings.questions,
            check=settings.check,
            tries=parsed_tries(settings.tries),
            random_state=settings.seed,
            on_stage=on_stage,
        )
    for sentence in found.warnings:
        say(f"warning: {sentence}")
    if html is not None:
        from leakscope.reporting import write_advice

        write_advice(found, html)
    if json_path is not None:
        emit_json(found, json_path)
    if json_path != STDOUT:
        show(_page(found) + "\n")
        if html is not None:
            show(f"\nPage: {html} ({html.stat().st_size / 1e6:.1f} MB, names no record)\n")


def _target(target: TargetSettings) -> AuditTarget:
    given = [target.target_advantage, target.target_tpr, target.target_epsilon]
    told = [value for value in given if value is not None]
    if len(told) != 1:
        raise InputError(
            "Give one target: --target-advantage, --target-tpr or --target-epsilon"
            f"{', not several' if told else ''}."
        )
    from leakscope.advising import AuditTarget

    if target.target_advantage is not None:
        return AuditTarget("advantage", target.target_advantage)
    if target.target_tpr is not None:
        return AuditTarget("tpr", target.target_tpr, fpr=target.fpr)
    return AuditTarget("epsilon", told[0], delta=target.delta)


def _page(found: Advice) -> str:
    """What a person sees."""
    own, unit = found.own, found.unit
    measured = _number if found.target.measure == "epsilon" else _fraction
    whose = "" if found.model is None else f", {found.model.name}"
    heading = f"{found.dataset.name}{whose}: no {unit} may have {found.target_label} above "
    heading += f"{found.target.value:g}; as audited "
    if own.trusted:
        heading += f"the worst has {measured(own.worst)}, the median {measured(own.median)}."
    elif found.model is not None:
        heading += "the numbers of some are not trusted."
    else:
        heading += "float64 does not resolve what they have."
    error = "error" if found.loss == "squared error" else found.loss
    columns: dict[str, Callable[[AdviceOption], str]] = {
        "option": lambda option: option.name,
        "setting": lambda option: option.setting_words,
        "meets": _met,
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
    # Of a fitted model all are asked at the record's own point; only classes have an accuracy.
    unused = {"asked at"} if found.model is not None else set()
    unused |= {"interval"} if own.worst_high is None else set()
    unused |= {"accuracy"} if own.accuracy is None else set()
    unused |= {"R2"} if own.r_squared is None and found.model is not None else set()
    shown = {name: column for name, column in columns.items() if name not in unused}
    rows = [[column(option) for column in shown.values()] for option in (own, *found.options)]
    parts = [wrapped(heading)]
    parts.append(table(list(shown), rows))
    parts.append(wrapped(found.sentence))
    parts += [wrapped(note) for option in found.options[:1] for note in option.notes]
    parts += [wrapped(f"{o.name}: {o.check.sentence}") for o in found.options if o.check]
    if found.model is None and any(option.questions == "own" for option in found.options):
        parts.append(wrapped(OWN_POINT))
    unmet = [option for option in found.options if not option.meets]
    parts += [wrapped(f"{o.name}: {' '.join([o.sentence, *o.notes])}") for o in unmet]
    parts += [wrapped(note) for note in found.notes]
    return "\n\n".join(parts)


def _signed(option: AdviceOption, value: float | None, form: str) -> str:
    """A number of an option; of the audit's own setting there is none."""
    return "-" if value is None or not option.setting else f"{value:{form}}"


def _between(option: AdviceOption) -> str:
    """The ends of the worst record's interval."""
    low, high = option.worst_low, option.worst_high
    return "-" if low is None or high is None else f"{low:.2f} to {high:.2f}"


def _met(option: AdviceOption) -> str:
    if not option.trusted:
        return "unknown"
    return "yes" if option.meets else "no"


def _r_squared(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 1e3 else f"{value:.4g}"


def _fraction(value: float | None) -> str:
    """Four decimals, or four digits where those would hide what a small target is about."""
    return f"{value:.4g}" if value is not None and 0.0 < value < 1e-3 else fraction(value)


def _number(value: float | None) -> str:
    return "infinite" if value is None else f"{value:.4g}"
