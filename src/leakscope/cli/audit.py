"""``leakscope audit``: a dataset in, every record's leakage out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli.audit_page import page
from leakscope.cli.derived_options import Options, with_options
from leakscope.cli.help_sections import KERNEL, READING
from leakscope.cli.options import DatasetFile, Example, JsonPath, RunDirectory, dataset_from
from leakscope.cli.output import STDOUT, cells_bar, emit_json, require_writable, say, show, stages
from leakscope.cli.streamed_page import exceeded, is_streamed, stream, streamed_page
from leakscope.errors import InputError
from leakscope.settings import AuditSettings, DataSettings, ModelSettings, TrainingSettings

if TYPE_CHECKING:
    from leakscope.auditing import AuditedRecords
    from leakscope.data import Dataset
    from leakscope.results import ResultDocument

SUMMARY = "A dataset in, every record's leakage out."
# What the status says to a pipeline: a limit is exceeded.
EXCEEDED = 3

# The options under headings, by the names of their parameters; the others follow the first ones.
SECTIONS = {
    "Options": (
        "example",
        "target",
        "id_column",
        "task",
        "model",
        "C",
        "alpha",
        "train",
        "models",
        "by",
        "top",
        "explain",
        "run_dir",
        "json_path",
    ),
    "How the data are read": (*READING, "group_column"),
    "More about --model": ("gamma", "question", "fraction", "observes"),
    "More about --train": ("time_limit", "keep", "workers", "scheduler"),
    "A Gaussian process instead of a fitted model": (
        *KERNEL,
        "noise_variance",
        "fit_kernel_scale",
        "sensitivity",
        "route",
        "inducing",
    ),
    "Pipelines, and files larger than memory": ("fail_above", "seed", "streamed", "cluster"),
}

EPILOG = "Example: leakscope audit --example diabetes --top 5"


@with_options(
    data=Options(DataSettings),
    # --explain says why; how many are explained goes by --top.
    settings=Options(AuditSettings, without=("explain",)),
    chosen=Options(ModelSettings),
    training=Options(TrainingSettings),
)
def audit(
    *,
    file: DatasetFile = None,
    example: Example = None,
    data: DataSettings,
    settings: AuditSettings,
    chosen: ModelSettings,
    training: TrainingSettings,
    top: Annotated[int, typer.Option(help="How many records to print.", metavar="COUNT")] = 10,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say why each printed record is exposed.")
    ] = False,
    fail_above: Annotated[
        list[str] | None,
        typer.Option(
            help="Exit with status 3 where a record exceeds it: advantage=NUMBER, auc=NUMBER or "
            "kl=NUMBER.",
            metavar="LIMIT",
            show_default=False,
        ),
    ] = None,
    streamed: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream",
            help="Read .parquet and .arrow files in blocks, in bounded memory (--kernel linear). A "
            "run that was stopped goes on with its --run-dir.  [default: where it would not fit]",
            show_default=False,
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Stream on the Dask cluster at this address, such as tcp://10.0.0.1:8786.",
            metavar="ADDRESS",
            show_default=False,
        ),
    ] = None,
    json_path: JsonPath = None,
    run_dir: RunDirectory = None,
) -> None:
    """How much each record of a dataset is exposed by a model that was trained on it.

    For every record: what the model would answer about it, trained with the record and without it,
    and how well an attacker can tell the two apart.  Name the model (--model), or your own training
    (--train: a few models are trained on halves of the records).  Without either, ridge or logistic
    regression stands in; with --kernel or --noise-variance a Gaussian process does.
    """
    from leakscope import auditing
    from leakscope.results import default_run_directory, require_free

    above = auditing.gate_limits(fail_above)
    if top < 0:
        raise InputError(f"--top must be zero or more, but it is {top}.")
    auditing.require_one_subject(settings, chosen, training)
    require_writable(json_path, file)
    if is_streamed(file, streamed, cluster):
        assert file is not None
        place = run_dir or default_run_directory("audit", file.stem)
        document = stream(file, data, settings, chosen, place, cluster)
        if json_path is not None and json_path != STDOUT:
            emit_json(document, json_path)
        _finished(document, streamed_page(document, top), place, json_path)
        return _judged(exceeded(document, above))
    if run_dir is not None:
        require_free(run_dir)
    dataset = _dataset(data, settings, chosen, training, file, example)
    place = run_dir or default_run_directory("audit", dataset.name)
    if explain:
        settings = settings.model_copy(update={"explain": max(settings.explain, top)})
    result: AuditedRecords
    if training.train is not None:
        with cells_bar() as on_model:
            result = auditing.audit_trained_dataset(
                dataset, training, settings, on_progress=on_model
            )
    else:
        cost = auditing.audit_cost(dataset, settings, chosen)
        if cost is not None:
            say(cost)
        with stages(auditing.audit_stages(dataset, settings, chosen)) as on_stage:
            result = auditing.audit_by_settings(dataset, settings, chosen, on_stage=on_stage)
    # Before the run, so that nothing is left where it fails; stdout may break after it.
    if json_path is not None and json_path != STDOUT:
        emit_json(result.to_document(), json_path)
    directory = result.write(place, dataset=dataset)
    text = page(result, top, explain=explain, threshold=above.get("advantage"))
    for sentence in result.warnings:
        say(f"warning: {sentence}")
    _finished(result.to_document(), text, directory, json_path)
    _judged(auditing.gate_failures(result, above))


def _finished(document: ResultDocument, text: str, directory: Path, json_path: str | None) -> None:
    """On stdout the result as JSON, where it is wanted there, or else the page for people."""
    if json_path == STDOUT:
        emit_json(document, json_path)
    else:
        show(f"{text}\n\nRun directory: {directory}\n")


def _judged(failures: list[str]) -> None:
    """Say which limits are exceeded, and end with the status for that."""
    for sentence in failures:
        say(f"leakscope: {sentence}")
    if failures:
        raise typer.Exit(EXCEEDED)


def _dataset(
    data: DataSettings,
    settings: AuditSettings,
    chosen: ModelSettings,
    training: TrainingSettings,
    file: Path | None,
    example: str | None,
) -> Dataset:
    """The dataset; its target is classes where the model, or the stand-in, takes it so."""
    from leakscope.auditing import classifies, trains_classes

    unsaid = data.task is None and example is None
    if unsaid and (classifies(chosen) or trains_classes(training)):
        data = data.model_copy(update={"task": "classification"})
    stand_in = chosen.model is None and not settings.of_process()
    return dataset_from(data, file, example, two_values_are_classes=stand_in)
