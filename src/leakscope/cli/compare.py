"""``leakscope compare``: two audits side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli.options import JsonPath, Options, with_options
from leakscope.cli.output import (
    STDOUT,
    end_judged,
    fraction,
    say,
    show,
    table,
    with_json,
    wrapped,
)
from leakscope.settings.compare import CompareSettings

if TYPE_CHECKING:
    from leakscope.results import Comparison
    from leakscope.results.comparison import ComparedRecord

SUMMARY = "Two audits side by side: data, kernels, before and after."
EPILOG = "Example: leakscope compare before after --html compared.html"

# Digits of a data digest and the like are cut to this many characters on the screen.
LONGEST = 40


@with_options(settings=Options(CompareSettings))
def compare(
    *,
    first: Annotated[
        Path,
        typer.Argument(
            help="A run directory of leakscope audit, or its result.json.", metavar="RUN"
        ),
    ],
    second: Annotated[Path, typer.Argument(help="The run to compare with it.", metavar="RUN")],
    top: Annotated[
        int,
        typer.Option(help="How many of the records that changed most to print.", metavar="COUNT"),
    ] = 5,
    html: Annotated[
        Path | None,
        typer.Option(help="Write it as one HTML page.", metavar="FILE.html", show_default=False),
    ] = None,
    redact: Annotated[
        bool,
        typer.Option("--redact", help="Aggregates only: no ids and no rows of single records."),
    ] = False,
    settings: CompareSettings,
    fail_if_worse: Annotated[
        bool,
        typer.Option(
            "--fail-if-worse",
            help="Exit with status 3 where the second run is worse, with 4 where that is not "
            "known.",
        ),
    ] = False,
    json_path: JsonPath = None,
) -> None:
    """What two audits share and where they differ: settings, levels, ranks.

    Records are compared one by one where the data are the same or both have an id column;
    otherwise only the distributions are.  Runs that answer different questions are refused.
    """
    from leakscope.errors import InputError

    if top < 0:
        raise InputError(f"--top must be zero or more, but it is {top}.")
    if html is not None:
        from leakscope.reporting.pages import require_report_path

        require_report_path(html)
    from leakscope.comparing import compare as compare_runs

    found = compare_runs(first, second, tolerance=settings.tolerance)
    if redact:
        found = found.aggregates_only()
    for sentence in found.warnings:
        say(f"warning: {sentence}")
    with with_json(found, json_path):
        if html is not None:
            from leakscope.reporting import write_comparison

            write_comparison(found, html)
    if json_path != STDOUT:
        show(_page(found, top) + "\n")
        if html is not None:
            kind = "aggregates only" if redact else "as sensitive as the data"
            show(f"\nComparison: {html} ({html.stat().st_size / 1e6:.1f} MB, {kind})\n")
    if fail_if_worse:
        end_judged(
            [f"{sentence}." for sentence in found.worse],
            [f"cannot tell: {sentence}." for sentence in found.unsure],
        )


def _page(found: Comparison, top: int) -> str:
    """What a person sees."""
    parts = [
        "\n".join(
            f"{place}: {side.run} ({side.dataset}, {side.units} {found.unit}s; {side.what})"
            for place, side in (("First", found.first), ("Second", found.second))
        )
    ]
    if found.differences:
        rows = [[d.what, _cut(d.first), _cut(d.second)] for d in found.differences]
        parts.append("What differs:\n\n" + table(["", "first", "second"], rows))
    else:
        parts.append("Settings, data and versions are the same.")
    parts.append(_levels(found))
    if found.not_aligned is not None:
        parts.append(wrapped(found.not_aligned))
    else:
        parts.append(_ranks(found))
        for words, records in (("increases", found.risen), ("decreases", found.fallen)):
            if records[:top]:
                parts.append(_moved(f"Largest {words}", records[:top]))
    parts.append(wrapped(found.verdict))
    return "\n\n".join(parts)


def _levels(found: Comparison) -> str:
    first, second = sides = found.first, found.second
    rows = [
        ["largest advantage", *(fraction(s.largest_advantage) for s in (first, second))],
        ["median advantage", *(fraction(s.median_advantage) for s in (first, second))],
        *(
            [
                ["largest TPR at 1%", *(fraction(s.largest_tpr_at_fpr_0_01) for s in sides)],
                ["largest TPR at 0.1%", *(fraction(s.largest_tpr_at_fpr_0_001) for s in sides)],
            ]
            if None not in (first.largest_tpr_at_fpr_0_001, second.largest_tpr_at_fpr_0_001)
            else []
        ),
        ["with 0.1 or more", *(f"{s.exposed} of {s.units}" for s in (first, second))],
        ["largest kl", *(_number(s.largest_kl) for s in (first, second))],
        ["median kl", *(_number(s.median_kl) for s in (first, second))],
    ]
    return table([f"over all {found.unit}s", "first", "second"], rows)


def _ranks(found: Comparison) -> str:
    words = [f"{found.shared} {found.unit}s are in both"]
    if found.rank_correlation is not None:
        words.append(
            f"; their rank correlation is {found.rank_correlation:.2f}, and "
            f"{found.top_ten_kept} of the {found.top_ten} most exposed "
            f"({found.top_hundredth_kept} of {found.top_hundredth} in the top hundredth) are the "
            "same"
        )
    words.append(".")
    for count, ids, verb in (
        (found.vanished, found.vanished_ids, "are in the first only"),
        (found.appeared, found.appeared_ids, "are in the second only"),
    ):
        if count:
            named = f": {', '.join(str(name) for name in ids)}" if ids else ""
            more = " and others" if ids and count > len(ids) else ""
            words.append(f" {count} {verb}{named}{more}.")
    return wrapped("".join(words))


def _moved(heading: str, records: list[ComparedRecord]) -> str:
    rows = [
        [
            str(record.record_id),
            f"{record.first_rank} -> {record.second_rank}",
            f"{fraction(record.first_advantage)} -> {fraction(record.second_advantage)}",
            f"{_number(record.first_kl)} -> {_number(record.second_kl)}",
        ]
        for record in records
    ]
    return f"{heading}:\n\n" + table(["record_id", "rank", "advantage", "kl"], rows)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _number(value: float | None) -> str:
    return "infinite" if value is None else f"{value:.4g}"
