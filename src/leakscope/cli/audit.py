"""``leakscope audit``: a dataset in, every record's leakage out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leakscope.cli.options import (
    DatasetFile,
    Example,
    JsonPath,
    Options,
    Read,
    RunDirectory,
    SetValues,
    dataset_from,
    one_of,
    with_options,
)
from leakscope.cli.output import (
    STDOUT,
    end_judged,
    say,
    show,
    steps,
    table,
    warn,
    with_json,
    wrapped,
)
from leakscope.errors import InputError
from leakscope.settings.audit import AuditSettings, ModelSettings, TrainingSettings, keys_of
from leakscope.settings.data import DataSettings, with_read
from leakscope.settings.decide import ATTACKERS, Thresholds
from leakscope.settings.setting import key_values

if TYPE_CHECKING:
    from leakscope.data import Dataset
    from leakscope.data.datasets import Task
    from leakscope.results import Audit
    from leakscope.subjects.subject import Asked

SUMMARY = "A dataset in, every record's leakage out."
EPILOG = "Example: leakscope audit --example diabetes --top 5"


@with_options(
    data=Options(
        DataSettings, only=("target", "id_column", "task", "group_column", "ignore", "by")
    ),
    chosen=Options(ModelSettings, only=("model", "secret")),
    training=Options(TrainingSettings, only=("models", "minutes", "keep", "workers", "scheduler")),
    thresholds=Options(Thresholds, only=("threshold_advantage", "threshold_tpr")),
    settings=Options(AuditSettings, only=("seed",)),
)
def audit(
    *,
    file: DatasetFile = None,
    data: DataSettings,
    read: Read = None,
    example: Example = None,
    chosen: ModelSettings,
    set_: SetValues = None,
    attacker: Annotated[
        str | None,
        typer.Option(
            help="Of the other records: pool (each is in or not), outsider (they are fresh) or "
            "insider (knows nearly all).  [default: pool]",
            metavar="WHO",
            show_default=False,
        ),
    ] = None,
    training: TrainingSettings,
    thresholds: Thresholds,
    top: Annotated[int, typer.Option(help="How many records to print.", metavar="COUNT")] = 10,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say why each printed record is exposed.")
    ] = False,
    settings: AuditSettings,
    json_path: JsonPath = None,
    run_dir: RunDirectory = None,
) -> None:
    """How much each record is exposed by a model that was trained on it.

    Name any model (--model): the best method there is for it is taken, and the first line says
    which.  With a threshold the exit status is 3 where a record is above it, 4 where that cannot be
    told.
    """
    from leakscope.auditing.audit import examined, expected
    from leakscope.auditing.gate import judged, limits_of
    from leakscope.results.run_directory import default_run_directory, require_free
    from leakscope.subjects.stream.passes import StreamCost

    if top < 0:
        raise InputError(f"--top must be zero or more, but it is {top}.")
    limits = limits_of(thresholds)
    asked = _asked(chosen, training, settings, key_values(set_, "--set"), attacker)
    if explain:
        told = asked.settings.model_copy(update={"explain": max(asked.settings.explain, top)})
        asked = _replaced(asked, settings=told)
    data = with_read(data, read)
    cost = None if file is None else StreamCost.of(file)
    if cost is not None and (training.scheduler is not None or cost.too_large()):
        place = run_dir or default_run_directory("audit", Path(file or "").stem)
        found = _streamed(Path(file or ""), cost, data, asked, place)
        streamed = True
    else:
        if run_dir is not None:
            require_free(run_dir)
        dataset = _dataset(data, asked, file, example)
        place = run_dir or default_run_directory("audit", dataset.name)
        words = expected(asked, dataset)
        if words is not None:
            say(words)
        streamed = False
        with steps() as progress:
            asked = _replaced(asked, dataset=dataset, on_progress=progress.models)
            found = examined(asked, on_stage=progress.stage)
    with with_json(found, json_path):
        if not streamed:
            found.write(place, dataset=dataset)
        warn(found)
    if json_path != STDOUT:
        text = page(found, top, explain=explain, threshold=thresholds.threshold_advantage)
        show(f"{text}\n\nRun directory: {place}\n")
    end_judged(*judged(found, {limit.measure: limit.value for limit in limits}))


def _replaced(asked: Asked, **changes: Any) -> Asked:
    from dataclasses import replace

    return replace(asked, **changes)


def _asked(
    chosen: ModelSettings,
    training: TrainingSettings,
    settings: AuditSettings,
    values: dict[str, Any],
    attacker: str | None,
) -> Asked:
    """What the options ask for, with the parameters of ``--set``."""
    from leakscope.auditing.audit import asked_for, require_one_subject
    from leakscope.settings.process import PROCESSES

    model = chosen.model
    for key in values:
        one_of(key, (*keys_of(model), "scaling"), "--set")
    if attacker is not None:
        one_of(attacker, tuple(ATTACKERS), "--attacker")
    given = dict(values)
    if "secret_values" in given:
        given["secret_values"] = tuple(str(given["secret_values"]).split(","))
    for part in (chosen, training, settings):
        given |= {name: getattr(part, name) for name in part.model_fields_set}
    process = model if model in PROCESSES else None
    if process is not None:
        del given["model"]
    asked = asked_for(given, attacker=attacker, process=process)
    require_one_subject(asked)
    return asked


def _dataset(data: DataSettings, asked: Asked, file: Path | None, example: str | None) -> Dataset:
    """The dataset; its target is classes where the model, or the stand-in, takes it so."""
    from leakscope.auditing.audit import dataset_for

    if example is not None:
        return dataset_from(data, file, example)

    def read(task: Task | None, two_values_are_classes: bool) -> Dataset:
        wanted = data.model_copy(update={"task": task})
        return dataset_from(wanted, file, None, two_values_are_classes=two_values_are_classes)

    return dataset_for(read, data.task, asked)


def _streamed(file: Path, cost: Any, data: DataSettings, asked: Asked, place: Path) -> Audit:
    """Say what streaming costs, and do it."""
    from leakscope.data.files import is_there
    from leakscope.results.run_directory import require_free
    from leakscope.running.parts import workers_at
    from leakscope.subjects.stream.fits import audit_streamed

    if is_there(place / "result.json"):
        require_free(place)  # before a cost is stated that nobody will pay
    if asked.trains or asked.of_process:
        raise InputError(
            f"{file} is too much for this model, which needs all records in memory; audit a "
            "sample (--read sample=10000), or name ridge or logistic."
        )
    cluster = asked.training.scheduler
    with workers_at(scheduler=cluster) as client, steps() as progress:
        workers = None if client is None else max(1, sum(client.nthreads().values()))
        words = cost.sentence(asked.chosen, workers)
        for line in wrapped(f"{words} If it stops, go on with --run-dir {place}").splitlines():
            say(line)
        return audit_streamed(
            file,
            directory=place,
            settings=asked.settings,
            chosen=asked.chosen,
            client=client,
            on_progress=progress.models,
            **dict(data),
        )


# What a person sees: the answer first, on one screen; more with --explain.


def page(audit: Audit, top: int, *, explain: bool = False, threshold: float | None = None) -> str:
    """The answer, the most exposed, and what the attacker is assumed to know."""
    from leakscope.data.preparation import about_empty
    from leakscope.results.audit import explained

    level = audit.exposed_above if threshold is None else threshold
    words = [one for one in audit.answer(threshold=level) if one != audit.attacker]
    words += filter(None, [about_empty(audit.dataset.steps)])
    words += audit.about.notes(audit) if top else []
    parts = ["\n".join(map(wrapped, words))]
    parts += [_table(audit, top)] if top else []
    parts += _subgroups(audit)
    reasons = explained(audit.explanations, top) if explain else []
    if reasons:
        parts.append("Why they are exposed:\n\n" + "\n".join(map(wrapped, reasons)))
    for section in audit.about.sections(audit):
        if explain or section.asked:
            paragraphs = "\n".join(map(wrapped, section.paragraphs))
            tables = [table(headings, rows) for headings, rows in section.tables]
            parts += filter(None, [f"{section.title}:", paragraphs, *tables])
    last = [audit.attacker]
    if audit.about.ranked_by == "kl":
        swept = "; range: of ranks over the noise" if "rank_low" in audit.table else ""
        more = "" if explain else "; --explain says more"
        last.append(f"Ranked by kl, KL(without || with){swept}{more}.")
    return "\n\n".join([*parts, wrapped(" ".join(last))])


def _table(audit: Audit, top: int) -> str:
    """The columns of the kind's screen; an interval stands beside its number, or instead of it."""
    from leakscope.results.columns import shown_columns, text_with_ends

    columns = shown_columns(audit.about.screen, audit.table)
    names = ["record_id"] if audit.unit == "record" else ["record_id", "size"]
    headings = ["record_id"] if audit.unit == "record" else ["group", "size"]
    for column in columns:
        with_ends = f"{column.name}_low" in audit.table and not column.name.startswith("kl")
        interval = f" ({audit.about.interval_words})" if with_ends else ""
        headings.append(f"{column.heading}{interval}")
    rows = [
        [*(str(row[name]) for name in names), *(text_with_ends(one, row) for one in columns)]
        for row in audit.table.rows(top)
    ]
    return table(headings, rows)


def _subgroups(audit: Audit) -> list[str]:
    """A table for each column of subgroups."""
    from leakscope.results.shown import certain

    found = []
    for column in dict.fromkeys(entry.column for entry in audit.subgroups):
        rows = [
            [
                entry.value,
                str(entry.count),
                certain(entry.median_advantage),
                certain(entry.largest_advantage),
                f"{entry.share_exposed or 0.0:.0%}",
                "few" if entry.small else "",
            ]
            for entry in audit.subgroups
            if entry.column == column
        ]
        level = f"{audit.exposed_above:g} or more"
        headings = [column, f"{audit.unit}s", "median advantage", "largest", level, ""]
        found.append(f"Exposure by {column}:\n\n{table(headings, rows)}")
    return found
