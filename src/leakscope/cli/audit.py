"""``leakscope audit``: a dataset in, every record's leakage out."""

from __future__ import annotations

from typing import Annotated

import typer

from leakscope.cli import gate
from leakscope.cli.audit_page import page
from leakscope.cli.options import (
    Activation,
    BiasVariance,
    By,
    DatasetFile,
    Depth,
    Example,
    Group,
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
from leakscope.cli.output import STDOUT, emit_json, require_writable, say, show, stages
from leakscope.errors import InputError

# How many records the result explains, whether or not they are printed.
EXPLAINED = 10

SUMMARY = "A dataset in, every record's leakage out."
EPILOG = "Example: leakscope audit --example diabetes --noise-variance 0.05 --top 5"


def audit(
    file: DatasetFile = None,
    example: Example = None,
    target: Target = None,
    id_column: IdColumn = None,
    task: Task = None,
    split: Split = None,
    missing: Missing = "error",
    ignore: Ignore = None,
    group: Group = None,
    by: By = None,
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
        str,
        typer.Option(
            help="The noise on the target, in squared units of the target as used, or "
            "marginal_likelihood or leave_one_out to have the data choose it; it sets the level "
            "of every number.",
            metavar="NUMBER",
        ),
    ] = "0.01",
    fit_kernel_scale: Annotated[
        bool,
        typer.Option(
            "--fit-kernel-scale",
            help="Have the criterion in --noise-variance choose a factor of the kernel too.",
        ),
    ] = False,
    sensitivity: Annotated[
        bool,
        typer.Option(
            help="Sweep the noise variance over two decades, and try other kernels, for each "
            "record's range of ranks."
        ),
    ] = True,
    route: Annotated[
        str,
        typer.Option(
            help="How to compute: dense, features (linear kernels), fitc (approximate), device "
            "(networks on a GPU), or auto, by kernel, size and machine.",
            metavar="NAME",
        ),
    ] = "auto",
    inducing: Annotated[
        int,
        typer.Option(help="Records that stand for all in the route fitc.", metavar="COUNT"),
    ] = 1000,
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
    seed: Annotated[
        int,
        typer.Option(
            help="Recorded with the run; this audit draws no random numbers.", metavar="NUMBER"
        ),
    ] = 0,
) -> None:
    """How much each record of a dataset is exposed, under a Gaussian process.

    For every record: the law of the model's answer at that record with the record in the training
    set and without it, and how far apart the two are.  It speaks of a model family, not of your
    trained model.
    """
    from leakscope.auditing import audit_dataset, write_run
    from leakscope.auditing.audit import SENSITIVITY_STAGES, STAGES
    from leakscope.results import default_run_directory
    from leakscope.results.run_directory import require_free
    from leakscope.settings import AuditSettings, validated

    above = gate.limits(fail_above)
    if explain and group is not None:
        raise InputError("--explain speaks of records; with --group the unit is the group.")
    if top < 0:
        raise InputError(f"--top must be zero or more, but it is {top}.")
    settings = validated(
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
        fit_kernel_scale=fit_kernel_scale,
        sensitivity=sensitivity,
        route=route,
        inducing=inducing,
        scaling=scaling,
        seed=seed,
        explain=max(EXPLAINED, top) if explain else EXPLAINED,
    )
    require_writable(json_path, file)
    if run_dir is not None:
        require_free(run_dir)
    dataset = dataset_from(
        file,
        example,
        target,
        id_column,
        task,
        split=split,
        missing=missing,
        ignore=ignore,
        group=group,
        by=by,
    )
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
