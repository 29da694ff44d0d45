"""``leakscope compare``: two audits side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli.options import Html, JsonPath, Options, Redact, with_options
from leakscope.cli.output import STDOUT, end_judged, show, table, warn, with_json, wrapped
from leakscope.settings.compare import CompareSettings

if TYPE_CHECKING:
    from leakscope.results import Comparison
    from leakscope.results.comparison import ComparedRecord

SUMMARY = "Two audits side by side: data, kernels, before and after."
EPILOG = "Example: leakscope compare before after --html compared.html"

# Signs of a difference that the screen shows.
LONGEST = 40

# Of the records that changed most, how many are printed.
SHOWN = 5


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
    html: Html = None,
    redact: Redact = False,
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
    from leakscope.comparing import compare as compare_runs
    from leakscope.reporting.comparison_page import write_comparison
    from leakscope.reporting.pages import require_report_path

    if html is not None:
        require_report_path(html)
    found = compare_runs(first, second, tolerance=settings.tolerance)
    found = found.aggregates_only() if redact else found
    warn(found)
    with with_json(found, json_path):
        if html is not None:
            write_comparison(found, html)
    if json_path != STDOUT:
        show(_page(found) + "\n")
        if html is not None:
            show(f"\nComparison: {html}\n")
    if fail_if_worse:
        end_judged(
            [f"{sentence}." for sentence in found.worse],
            [f"cannot tell: {sentence}." for sentence in found.unsure],
        )


def _page(found: Comparison) -> str:
    """What a person sees."""
    sides = (found.first, found.second)
    parts = [
        "\n".join(
            f"{place}: {side.run} ({side.dataset}, {side.units} {found.unit}s; {side.what})"
            for place, side in zip(("First", "Second"), sides, strict=True)
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
            if records:
                parts.append(_moved(f"Largest {words}", records[:SHOWN]))
    return "\n\n".join([*parts, wrapped(found.verdict)])


def _levels(found: Comparison) -> str:
    from leakscope.results.audit import EXPOSED_ABOVE
    from leakscope.results.shown import certain, digits

    sides = (found.first, found.second)
    fractions = {
        "largest advantage": [side.largest_advantage for side in sides],
        "median advantage": [side.median_advantage for side in sides],
        "largest TPR at 1%": [side.largest_tpr_at_fpr_0_01 for side in sides],
        "largest TPR at 0.1%": [side.largest_tpr_at_fpr_0_001 for side in sides],
    }
    rows = [[k, *map(certain, v)] for k, v in fractions.items() if None not in v]
    exposed = [f"{side.exposed} of {side.units}" for side in sides]
    rows.append([f"with {EXPOSED_ABOVE:g} or more", *exposed])
    rows.append(["largest kl", *(digits(side.largest_kl, infinite=True) for side in sides)])
    rows.append(["median kl", *(digits(side.median_kl, infinite=True) for side in sides)])
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
            names = f": {', '.join(map(str, ids))}" if ids else ""
            more = " and others" if ids and count > len(ids) else ""
            words.append(f" {count} {verb}{names}{more}.")
    return wrapped("".join(words))


def _moved(heading: str, records: list[ComparedRecord]) -> str:
    from leakscope.results.shown import certain, digits

    rows = [
        [
            str(record.record_id),
            f"{record.first_rank} -> {record.second_rank}",
            f"{certain(record.first_advantage)} -> {certain(record.second_advantage)}",
            f"{digits(record.first_kl, infinite=True)} -> "
            f"{digits(record.second_kl, infinite=True)}",
        ]
        for record in records
    ]
    return f"{heading}:\n\n" + table(["record_id", "rank", "advantage", "kl"], rows)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
