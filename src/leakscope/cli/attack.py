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


# What of an audit's process the attacks on one take.
PROCESS = Options(
    AuditSettings,
    without=(
        "fit_kernel_scale",
        "sensitivity",
        "route",
        "inducing",
        "error",
        "seed",
        "explain",
    ),
    texts={"noise_variance": "The noise on the target, in squared units of it as used."},
)


@app.command("query", cls=Guarded, short_help=QUERY_SUMMARY, epilog=EPILOG)
@with_options(
    data=Options(DataSettings, without=("group_column", "by")),
    model=PROCESS,
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
    data: DataSettings,
    model: AuditSettings,
    search: QuerySettings,
    json_path: JsonPath = None,
    run_dir: RunDirectory = None,
) -> None:
    """Reconstruct a record by looking for the query that reveals most about it.

    The attacker knows every other record, and how the model's answers are spread with and without
    the one in question.  It speaks of a model family, not of your trained model.
    """
    from leakscope.attacking import attack_query
    from leakscope.results.run_directory import default_run_directory, require_free

    if not record:
        raise InputError("Which record?  Name it by its id with --record.")
    if isinstance(model.noise_variance, str):
        raise InputError(f"--noise-variance must be a number, but it is {model.noise_variance!r}.")
    model = model.model_copy(update={"sensitivity": False, "seed": search.seed})
    if run_dir is not None:
        require_free(run_dir)
    dataset = dataset_from(data, file, example, keep=tuple(record))
    place = run_dir or standing(default_run_directory("attack-query", dataset.name))
    found = attack_query(dataset, record, model, search, run_dir=place)
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
