"""``leakscope attack``: what an attacker really gets.  ``query`` is the first of its verbs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli import membership_attack, reconstruct_attack
from leakscope.cli.options import (
    Activation,
    BiasVariance,
    DatasetFile,
    Depth,
    Example,
    IdColumn,
    Ignore,
    JsonPath,
    KernelName,
    KernelVariance,
    LengthScale,
    Missing,
    RunDirectory,
    Scaling,
    Smoothness,
    Split,
    Target,
    Task,
    WeightVariance,
    dataset_from,
)
from leakscope.cli.output import STDOUT, emit_json, require_writable, show
from leakscope.errors import InputError

if TYPE_CHECKING:
    from leakscope.data import Dataset

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


@app.command("query", short_help=QUERY_SUMMARY, epilog=EPILOG)
def query(
    file: DatasetFile = None,
    record: Annotated[
        list[str] | None,
        typer.Option(
            help="The record to leave out and look for, by its id; again for a group.",
            metavar="ID",
            show_default=False,
        ),
    ] = None,
    example: Example = None,
    target: Target = None,
    id_column: IdColumn = None,
    task: Task = None,
    split: Split = None,
    missing: Missing = "error",
    ignore: Ignore = None,
    scaling: Scaling = "standard",
    kernel: KernelName = "rbf",
    length_scale: LengthScale = None,
    kernel_variance: KernelVariance = None,
    smoothness: Smoothness = None,
    depth: Depth = None,
    activation: Activation = None,
    weight_variance: WeightVariance = None,
    bias_variance: BiasVariance = None,
    noise_variance: Annotated[
        float, typer.Option(help="In squared units of the target as used.", metavar="NUMBER")
    ] = 0.01,
    queries: Annotated[
        int, typer.Option(help="How many queries are asked together.", metavar="COUNT")
    ] = 1,
    starts: Annotated[int, typer.Option(help="From how many places.", metavar="COUNT")] = 8,
    begin: Annotated[
        str,
        typer.Option(
            help="Where starts are drawn from: box, or records (those the attacker knows).",
            metavar="NAME",
        ),
    ] = "box",
    steps: Annotated[int, typer.Option(help="Steps of each start.", metavar="COUNT")] = 300,
    climb: Annotated[
        str,
        typer.Option(
            help="What to follow uphill: lood (the paper's way), correlation, or auto.",
            metavar="NAME",
        ),
    ] = "auto",
    method: Annotated[str, typer.Option(help="adam or l-bfgs.", metavar="NAME")] = "adam",
    box: Annotated[
        str | None,
        typer.Option(
            help="Least and largest value of a query's features in the file's units, such as "
            "0,255.  [default: each feature's range]",
            metavar="LOW,HIGH",
            show_default=False,
        ),
    ] = None,
    json_path: JsonPath = None,
    run_dir: RunDirectory = None,
    seed: Annotated[int, typer.Option(help="For the starts.", metavar="NUMBER")] = 0,
) -> None:
    """Reconstruct a record by looking for the query that reveals most about it.

    The attacker knows every other record and the laws of the model's answers with and without the
    one in question.  It speaks of a model family, not of your trained model.
    """
    from leakscope.cli import query_attack
    from leakscope.results import default_run_directory
    from leakscope.results.query import QuerySettings
    from leakscope.results.run_directory import require_free
    from leakscope.settings import AuditSettings, validated

    model = validated(
        AuditSettings,
        kernel=kernel,
        length_scale=length_scale,
        kernel_variance=kernel_variance,
        smoothness=smoothness,
        depth=depth,
        activation=activation,
        weight_variance=weight_variance,
        bias_variance=bias_variance,
        noise_variance=noise_variance,
        sensitivity=False,
        scaling=scaling,
        seed=seed,
    )
    search = validated(
        QuerySettings,
        queries=queries,
        starts=starts,
        steps=steps,
        begin=begin,
        climb=climb,
        method=method,
        box=_box(box),
        seed=seed,
    )
    require_writable(json_path, file)
    if run_dir is not None:
        require_free(run_dir)
    dataset = dataset_from(
        file, example, target, id_column, task, missing=missing, ignore=ignore, split=split
    )
    found = query_attack.searched(dataset, _rows(dataset, record), model, search)
    place = run_dir or default_run_directory("attack-query", dataset.name)
    directory = query_attack.written(found, place)
    if json_path is not None:
        emit_json(found.document, json_path)
    if json_path != STDOUT:
        show(query_attack.page(found) + f"\n\nRun directory: {directory}\n")


app.command("reconstruct", short_help=reconstruct_attack.SUMMARY, epilog=reconstruct_attack.EPILOG)(
    reconstruct_attack.reconstruct
)
app.command("membership", short_help=membership_attack.SUMMARY, epilog=membership_attack.EPILOG)(
    membership_attack.membership
)


def _rows(dataset: Dataset, record: list[str] | None) -> list[int]:
    """The rows that the ids name."""
    if not record:
        raise InputError("Which record?  Name it by its id with --record.")
    places = {str(name): row for row, name in enumerate(dataset.record_ids)}
    missing = [name for name in record if name not in places]
    if missing:
        raise InputError(f"{dataset.name} has no record with the id {missing[0]!r}.")
    return [places[name] for name in record]


def _box(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = (float(side) for side in text.split(","))
    except ValueError:
        raise InputError(f"--box must be two numbers, LOW,HIGH, but it is {text!r}.") from None
    if not low < high:
        raise InputError(f"--box must rise from LOW to HIGH, but it is {text!r}.")
    return low, high
