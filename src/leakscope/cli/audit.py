"""``leakscope audit``: a dataset in, every record's leakage out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli.audit_page import page
from leakscope.cli.options import (
    KERNEL,
    READING,
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
    as_typed,
    cells_bar,
    end_judged,
    say,
    show,
    stages_and_models,
    standing,
    with_json,
    wrapped,
)
from leakscope.errors import InputError
from leakscope.settings import AuditSettings, ModelSettings
from leakscope.settings.audit import TrainingSettings
from leakscope.settings.data import DataSettings
from leakscope.settings.decide import Thresholds

if TYPE_CHECKING:
    from leakscope.data import Dataset
    from leakscope.data.datasets import Task
    from leakscope.results import Audit
    from leakscope.subjects import Asked
    from leakscope.subjects.stream.costs import StreamCost

SUMMARY = "A dataset in, every record's leakage out."

# The options under headings, by the names of their parameters; the others follow the first ones.
SECTIONS = {
    "Options": (
        "target",
        "model",
        "group_column",
        "run_dir",
        "example",
        "id_column",
        "task",
        "missing",
        "ignore",
        "top",
        "explain",
        "json_path",
    ),
    "Thresholds: what is acceptable": (
        "threshold_advantage",
        "threshold_tpr",
        "threshold_ppv",
        "prior",
        "fail_above",
    ),
    "Of a fitted model": (
        "C",
        "alpha",
        "gamma",
        "weight_decay",
        "question",
        "fraction",
        "observes",
        "answer_noise",
        "secret",
        "secret_prior",
        "secret_within",
        "secret_values",
    ),
    "Of a training, such as of a forest or a network": (
        "train",
        "models",
        "minutes",
        "time_limit",
        "keep",
        "workers",
        "scheduler",
    ),
    "How the data are read": (
        *(name for name in READING if name not in ("missing", "ignore")),
        "by",
        "streamed",
        "cluster",
    ),
    "Rarely used: a Gaussian process instead of a fitted model, seeds": (
        *KERNEL,
        "noise_variance",
        "fit_kernel_scale",
        "sensitivity",
        "route",
        "inducing",
        "error",
        "seed",
    ),
}

EPILOG = "Example: leakscope audit --example diabetes --top 5"


@with_options(
    data=Options(DataSettings),
    # --explain says why; how many are explained goes by --top.
    settings=Options(AuditSettings, without=("explain",)),
    chosen=Options(ModelSettings),
    training=Options(TrainingSettings),
    thresholds=Options(Thresholds),
)
def audit(
    *,
    file: DatasetFile = None,
    example: Example = None,
    data: DataSettings,
    settings: AuditSettings,
    chosen: ModelSettings,
    training: TrainingSettings,
    thresholds: Thresholds,
    top: Annotated[int, typer.Option(help="How many records to print.", metavar="COUNT")] = 10,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say why each printed record is exposed.")
    ] = False,
    fail_above: Annotated[
        list[str] | None,
        typer.Option(
            help="In short: advantage=0.2, tpr=, auc= or kl=.",
            metavar="LIMIT",
            show_default=False,
        ),
    ] = None,
    streamed: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream",
            help="Read .parquet in blocks.  [default: if too large]",
            show_default=False,
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Stream on the Dask cluster at this address.",
            metavar="ADDRESS",
            show_default=False,
        ),
    ] = None,
    json_path: JsonPath = None,
    run_dir: RunDirectory = None,
) -> None:
    """How much each record is exposed by a model that was trained on it.

    Name any model (--model): the best method there is for it is taken, and the first line says
    which.  With a threshold the exit status is 3 where a record is above it, 4 where that cannot be
    told.  docs/commands.md says more of every option.
    """
    from leakscope import auditing
    from leakscope.auditing.audit import asked_by_settings, expected
    from leakscope.auditing.gate import gate_thresholds, judged
    from leakscope.results.run_directory import default_run_directory, require_free

    above = gate_thresholds(thresholds, fail_above)
    if top < 0:
        raise InputError(f"--top must be zero or more, but it is {top}.")
    asked = asked_by_settings(settings, chosen, training)
    cost = _stream_cost(file, streamed, cluster, asked)
    if cost is not None:
        assert file is not None
        place = run_dir or standing(default_run_directory("audit", file.stem))
        found = _streamed(file, cost, data, asked, place, cluster)
    else:
        if run_dir is not None:
            require_free(run_dir)
        dataset = _dataset(data, asked, file, example)
        place = run_dir or standing(default_run_directory("audit", dataset.name))
        if explain:
            settings = settings.model_copy(update={"explain": max(settings.explain, top)})
        names, words = expected(asked, dataset)
        if words is not None:
            say(words)
        with stages_and_models(names) as (on_stage, on_progress):
            found = auditing.audit(
                dataset,
                settings=settings,
                chosen=chosen,
                training=training,
                on_stage=on_stage,
                on_progress=on_progress,
            )
    with with_json(found, json_path):
        if cost is None:
            found.write(place, dataset=dataset)
        for sentence in found.warnings:
            say(f"warning: {sentence}")
    if json_path != STDOUT:
        text = page(found, top, explain=explain, threshold=above.get("advantage"))
        show(f"{text}\n\nRun directory: {place}\n")
    end_judged(*judged(found, above))


def _dataset(data: DataSettings, asked: Asked, file: Path | None, example: str | None) -> Dataset:
    """The dataset; its target is classes where the model, or the stand-in, takes it so."""
    from leakscope.auditing.audit import dataset_for

    if example is not None:
        return dataset_from(data, file, example)

    def read(task: Task | None, two_values_are_classes: bool) -> Dataset:
        wanted = data.model_copy(update={"task": task})
        return dataset_from(wanted, file, None, two_values_are_classes=two_values_are_classes)

    return dataset_for(read, data.task, asked)


def _stream_cost(
    file: Path | None, stream: bool | None, cluster: str | None, asked: Asked
) -> StreamCost | None:
    """What streaming costs, where records are to be read in blocks: as asked, or by their size."""
    from leakscope.subjects.stream.costs import stream_cost

    cost = None if file is None or stream is False else stream_cost(file)
    if cost is None and (stream or cluster is not None):
        raise InputError("--stream and --cluster are for .parquet files and for folders of them.")
    if cost is None or not (stream or cluster is not None or cost.too_large()):
        return None
    if asked.of_process:
        raise InputError(
            f"{file} is too much for a Gaussian process, which needs all records in memory: with a "
            "linear kernel it is ridge regression, which is streamed (--model ridge); for another "
            "audit a sample (--sample)."
        )
    return cost


def _streamed(
    file: Path,
    cost: StreamCost,
    data: DataSettings,
    asked: Asked,
    place: Path,
    cluster: str | None,
) -> Audit:
    """Say what it costs, and do it."""
    from leakscope import auditing
    from leakscope.data.files import is_there
    from leakscope.results.run_directory import require_free
    from leakscope.running.cells import cluster_client

    if is_there(place / "result.json"):
        require_free(place)  # before a cost is stated that nobody will pay
    if asked.trains:
        raise InputError(
            f"{file} is streamed, and a training is examined in memory only; audit a sample."
        )
    with cluster_client(scheduler=cluster) as client, cells_bar() as on_progress:
        workers = None if client is None else max(1, sum(client.nthreads().values()))
        words = cost.sentence(asked.chosen, workers)
        told = f"{words} If it stops, go on with --run-dir {place}"
        for line in wrapped(as_typed(told)).splitlines():
            say(line)
        return auditing.audit_streamed(
            file,
            directory=place,
            settings=asked.settings,
            chosen=asked.chosen,
            client=client,
            on_progress=on_progress,
            **dict(data),
        )
