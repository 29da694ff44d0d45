"""``leakscope audit``: a dataset in, every record's leakage out."""

from __future__ import annotations

from typing import Annotated

import typer

from leakscope.cli import gate
from leakscope.cli.audit_page import page
from leakscope.cli.derived_options import Options, with_options
from leakscope.cli.options import DatasetFile, Example, JsonPath, RunDirectory, dataset_from
from leakscope.cli.output import STDOUT, emit_json, require_writable, say, show, stages
from leakscope.errors import InputError
from leakscope.settings import AuditSettings, DataSettings

SUMMARY = "A dataset in, every record's leakage out."
EPILOG = "Example: leakscope audit --example diabetes --noise-variance 0.05 --top 5"


@with_options(
    data=Options(DataSettings),
    # --explain says why; how many are explained goes by --top.
    settings=Options(AuditSettings, without=("explain",)),
)
def audit(
    *,
    file: DatasetFile = None,
    example: Example = None,
    data: DataSettings,
    settings: AuditSettings,
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
    json_path: JsonPath = None,
    run_dir: RunDirectory = None,
) -> None:
    """How much each record of a dataset is exposed, under a Gaussian process.

    For every record: the law of the model's answer at that record with the record in the training
    set and without it, and how far apart the two are.  It speaks of a model family, not of your
    trained model.
    """
    from leakscope.auditing import SENSITIVITY_STAGES, STAGES, audit_dataset, write_run
    from leakscope.results import default_run_directory, require_free

    above = gate.limits(fail_above)
    if explain and data.group_column is not None:
        raise InputError("--explain speaks of records; with --group the unit is the group.")
    if top < 0:
        raise InputError(f"--top must be zero or more, but it is {top}.")
    if explain:
        settings = settings.model_copy(update={"explain": max(settings.explain, top)})
    require_writable(json_path, file)
    if run_dir is not None:
        require_free(run_dir)
    dataset = dataset_from(data, file, example)
    skipped = () if settings.sensitivity else SENSITIVITY_STAGES
    names = [name for name in STAGES if name not in skipped]
    with stages(names) as on_stage:
        result = audit_dataset(dataset, settings, on_stage=on_stage)
    for sentence in result.warnings:
        say(f"warning: {sentence}")
    place = run_dir or default_run_directory("audit", dataset.name)
    directory = write_run(result, place, dataset=dataset)
    if json_path is not None:
        emit_json(result.to_document(), json_path)
    if json_path != STDOUT:
        text = page(result, top, explain=explain)
        show(f"{text}\n\nRun directory: {directory}\n")
    found = gate.failures(result, above)
    for sentence in found:
        say(f"leakscope: {sentence}")
    if found:
        raise typer.Exit(gate.EXIT_STATUS)
