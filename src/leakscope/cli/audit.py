"""``leakscope audit``: a dataset in, every record's leakage out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli import gate
from leakscope.cli.audit_page import page
from leakscope.cli.derived_options import Options, with_options
from leakscope.cli.model_page import model_page
from leakscope.cli.options import DatasetFile, Example, JsonPath, RunDirectory, dataset_from
from leakscope.cli.output import STDOUT, emit_json, require_writable, say, show, stages
from leakscope.errors import InputError
from leakscope.settings import AuditSettings, DataSettings, ModelSettings, described

if TYPE_CHECKING:
    from leakscope.auditing import AuditResult, ModelAuditResult

SUMMARY = "A dataset in, every record's leakage out."
EPILOG = "Example: leakscope audit --example diabetes --noise-variance 0.05 --top 5"


@with_options(
    data=Options(DataSettings),
    # --explain says why; how many are explained goes by --top.
    settings=Options(AuditSettings, without=("explain",)),
    chosen=Options(ModelSettings),
)
def audit(
    *,
    file: DatasetFile = None,
    example: Example = None,
    data: DataSettings,
    settings: AuditSettings,
    chosen: ModelSettings,
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
    """How much each record of a dataset is exposed, under a Gaussian process or your own model.

    For every record: the law of the model's answer at that record with the record in the training
    set and without it, and how far apart the two are.  Without --model it speaks of a model
    family, not of your trained model.
    """
    from leakscope import auditing
    from leakscope.results import default_run_directory, require_free

    above = gate.limits(fail_above)
    if explain and data.group_column is not None:
        raise InputError("--explain speaks of records; with --group the unit is the group.")
    if top < 0:
        raise InputError(f"--top must be zero or more, but it is {top}.")
    if chosen.model is not None:
        _require_no_stand_in(settings, explain)
    else:
        _require_no_model_options(chosen)
    require_writable(json_path, file)
    if run_dir is not None:
        require_free(run_dir)
    if data.task is None and example is None and auditing.classifies(chosen):
        data = data.model_copy(update={"task": "classification"})
    dataset = dataset_from(data, file, example)
    result: AuditResult | ModelAuditResult
    place = run_dir or default_run_directory("audit", dataset.name)
    if chosen.model is None:
        if explain:
            settings = settings.model_copy(update={"explain": max(settings.explain, top)})
        skipped = () if settings.sensitivity else auditing.SENSITIVITY_STAGES
        with stages([name for name in auditing.STAGES if name not in skipped]) as on_stage:
            result = auditing.audit_dataset(dataset, settings, on_stage=on_stage)
        directory = auditing.write_run(result, place, dataset=dataset)
        text = page(result, top, explain=explain)
    else:
        with stages(auditing.MODEL_STAGES) as on_stage:
            result = auditing.audit_named_model(dataset, chosen, settings, on_stage=on_stage)
        directory = result.write(place)
        text = model_page(result, top, threshold=above.get("advantage"))
    for sentence in result.warnings:
        say(f"warning: {sentence}")
    if json_path is not None:
        emit_json(result.to_document(), json_path)
    if json_path != STDOUT:
        show(f"{text}\n\nRun directory: {directory}\n")
    found = gate.failures(result, above)
    for sentence in found:
        say(f"leakscope: {sentence}")
    if found:
        raise typer.Exit(gate.EXIT_STATUS)


def _require_no_stand_in(settings: AuditSettings, explain: bool) -> None:
    """Refuse options of the Gaussian process beside --model."""
    both = ("scaling", "seed", "explain")
    for name, field in AuditSettings.model_fields.items():
        if name not in both and getattr(settings, name) != field.default:
            option = described(AuditSettings, name).option
            option = f"--no-{option[2:]}" if field.default is True else option
            raise InputError(
                f"{option} belongs to the Gaussian process; leave it out with --model."
            )
    if explain:
        raise InputError("--explain belongs to the Gaussian process; leave it out with --model.")


def _require_no_model_options(chosen: ModelSettings) -> None:
    """Refuse options of a model where none is named."""
    for name, field in ModelSettings.model_fields.items():
        if getattr(chosen, name) != field.default:
            option = described(ModelSettings, name).option
            raise InputError(f"{option} belongs to --model; name one, such as --model logistic.")
