"""``leakscope attack``: what an attacker really gets.  ``query`` is the first of its verbs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli import attack_membership, attack_reconstruct
from leakscope.cli.options import (
    DatasetFile,
    Example,
    JsonPath,
    Options,
    RunDirectory,
    dataset_from,
    with_options,
)
from leakscope.cli.output import (
    STDOUT,
    Guarded,
    emit_json,
    say,
    show,
    standing,
    table,
    wrapped,
)
from leakscope.errors import InputError
from leakscope.settings import AuditSettings, QuerySettings
from leakscope.settings.data import DataSettings
from leakscope.settings.process import PROCESSES, parameters

SUMMARY = "What an attacker really gets: records, members, revealing queries."
EPILOG = "Example: leakscope attack query --example wine --record 5"
QUERY_SUMMARY = "Reconstruct a record by looking for the query that reveals most about it."

app = typer.Typer(
    name="attack",
    help="What an attacker really gets.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _attack() -> None:
    pass


@app.command("query", cls=Guarded, short_help=QUERY_SUMMARY, epilog=EPILOG)
@with_options(
    data=Options(DataSettings, without=("group_column", "by")),
    reading=Options(
        AuditSettings,
        without=tuple(name for name in AuditSettings.model_fields if name != "scaling"),
    ),
    search=Options(QuerySettings),
)
def query(
    *,
    file: DatasetFile = None,
    record: Annotated[
        list[str] | None,
        typer.Option(
            help="The record to leave out and look for, by its id; repeat for a group.",
            metavar="ID",
            show_default=False,
        ),
    ] = None,
    example: Example = None,
    model: Annotated[str, typer.Option(help=f"{', '.join(PROCESSES)}.", metavar="NAME")] = "rbf",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A parameter of the process, such as noise_variance=0.1; repeat for others.",
            metavar="KEY=VALUE",
            show_default=False,
        ),
    ] = None,
    data: DataSettings,
    reading: AuditSettings,
    search: QuerySettings,
    json_path: JsonPath = None,
    run_dir: RunDirectory = None,
) -> None:
    """Reconstruct a record by looking for the query that reveals most about it.

    The attacker knows every other record, and how the model's answers are spread with and without
    the one in question.  It speaks of a model family, not of your trained model.
    """
    from leakscope.attacking import attack_query
    from leakscope.lood import Process
    from leakscope.results.run_directory import default_run_directory, require_free

    if not record:
        raise InputError("Which record?  Name it by its id with --record.")
    process = Process.named(model, **parameters(set_ or ()))
    if run_dir is not None:
        require_free(run_dir)
    dataset = dataset_from(data, file, example, keep=tuple(record))
    place = run_dir or standing(default_run_directory("attack-query", dataset.name))
    found = attack_query(dataset, record, process, search, scaling=reading.scaling, run_dir=place)
    for sentence in found.warnings:
        say(f"warning: {sentence}")
    emit_json(found, json_path)
    if json_path != STDOUT:
        show(page(found) + f"\n\nRun directory: {place}\n")


app.command(
    "reconstruct",
    cls=Guarded,
    short_help=attack_reconstruct.SUMMARY,
    epilog=attack_reconstruct.EPILOG,
)(attack_reconstruct.reconstruct)
app.command(
    "membership", cls=Guarded, short_help=attack_membership.SUMMARY, epilog=attack_membership.EPILOG
)(attack_membership.membership)


if TYPE_CHECKING:
    from leakscope.results import QueryAttack


def page(document: QueryAttack) -> str:
    """What a person sees."""
    about = document.dataset
    who = "record" if len(document.records) == 1 else "records"
    named = ", ".join(str(name) for name in document.records)
    opening = f"{about.name}: {who} {named} of {about.records}, {about.features} features"
    rows = [
        ["at the best query", f"{document.kl:.4g}", f"{document.advantage:.4f}"],
        [
            f"at the {who} itself" if who == "record" else "at the records themselves",
            f"{document.kl_at_record:.4g}",
            f"{document.advantage_at_record:.4f}",
        ],
    ]
    headings = ["", "kl", "advantage"]
    if document.mean_distance is not None:
        headings.append("mean distance")
        for row, value in zip(
            rows, (document.mean_distance, document.mean_distance_at_record), strict=True
        ):
            row.append(f"{value:.4g}")
    values = table(headings, rows)
    rows = [
        [
            str(j),
            str(one.nearest_record),
            f"{one.distance:.4g}",
            "-" if one.relative_distance is None else f"{one.relative_distance:.4g}",
            f"{one.cosine:.5f}",
            f"{one.prediction_kl:.4g}",
        ]
        for j, one in enumerate(document.queries)
    ]
    headings = ["query", "nearest", "distance", "/ neighbour", "cosine", "prediction_kl"]
    parts = [opening, values, table(headings, rows), wrapped(document.verdict)]
    if document.pictures:
        parts.append(f"Pictures: {', '.join(document.pictures)}")
    return "\n\n".join(parts)
