"""``leakscope advise``: the cheapest defence that keeps every record to a target."""

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

SUMMARY = "The cheapest defence that keeps every record to a target."
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
    """Which defence keeps every record to a target, and what each costs in error.

    Give one target.  Searched: noise on the answers, training noise, fewer features, dropping or
    merging the most exposed, and pairs of these with noise on the answers.  Each is priced by
    cross-validation; the cheapest comes first.
    """
    wanted = _target(target)
    require_writable(json_path, run, data)
    if html is not None:
        from leakscope.reporting import require_report_path

        require_report_path(html)
    from leakscope.advising import ADVICE_STAGES
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
    heading = f"{found.dataset.name}: no {unit} may have {found.target_label} above "
    heading += f"{found.target.value:g}; as audited "
    if own.trusted:
        heading += f"the worst has {measured(own.worst)}, the median {measured(own.median)}."
    else:
        heading += "float64 does not resolve what they have."
    classes = own.accuracy is not None
    headings = [
        "option",
        "setting",
        "meets",
        "asked at",
        "worst",
        "median",
        "error",
        "cost",
        "+-",
        "R2",
    ]
    rows = [_row(option, classes, measured) for option in (own, *found.options)]
    parts = [wrapped(heading)]
    parts.append(table([*headings, *(["accuracy"] if classes else [])], rows))
    parts.append(wrapped(found.sentence))
    parts += [wrapped(note) for option in found.options[:1] for note in option.notes]
    if any(option.questions == "own" for option in found.options):
        parts.append(wrapped(OWN_POINT))
    unmet = [option for option in found.options if not option.meets]
    parts += [wrapped(f"{o.name}: {' '.join([o.sentence, *o.notes])}") for o in unmet]
    parts += [wrapped(note) for note in found.notes]
    return "\n\n".join(parts)


def _row(option: AdviceOption, classes: bool, measured: Callable[[float | None], str]) -> list[str]:
    row = [
        option.name,
        option.setting_words,
        _met(option),
        "own" if option.questions == "own" else "any",
        measured(option.worst),
        measured(option.median),
        _number(option.error),
        "-" if option.cost is None or not option.setting else f"{option.cost:+.3g}",
        "-" if option.cost_stderr is None or not option.setting else f"{option.cost_stderr:.1g}",
        "-" if option.r_squared is None else _r_squared(option.r_squared),
    ]
    return [*row, "-" if option.accuracy is None else f"{option.accuracy:.1%}"] if classes else row


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
