"""``leakscope audit``: a dataset in, every record's leakage out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli.options import (
    Activation,
    BiasVariance,
    DatasetFile,
    Depth,
    Example,
    IdColumn,
    JsonPath,
    KernelName,
    KernelVariance,
    LengthScale,
    RunDirectory,
    Scaling,
    Smoothness,
    Target,
    Task,
    WeightVariance,
    dataset_from,
)
from leakscope.cli.output import STDOUT, emit_json, require_writable, say, stages, table
from leakscope.errors import InputError

if TYPE_CHECKING:
    from leakscope.auditing import AuditResult

SUMMARY = "A dataset in, every record's leakage out."
EPILOG = "Example: leakscope audit --example diabetes --noise-variance 0.05 --top 5"


def audit(
    file: DatasetFile = None,
    example: Example = None,
    target: Target = None,
    id_column: IdColumn = None,
    task: Task = None,
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
            help="Sweep the noise variance over two decades for each record's range of ranks."
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
    from leakscope.auditing import audit_dataset
    from leakscope.auditing.audit import STAGES
    from leakscope.io import AuditSettings, default_run_directory, validated
    from leakscope.io.runs import require_free

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
    )
    require_writable(json_path)
    if run_dir is not None:
        require_free(run_dir)
    dataset = dataset_from(file, example, target, id_column, task)
    names = [name for name in STAGES if settings.sensitivity or name != "sensitivity"]
    with stages(names) as on_stage:
        result = audit_dataset(dataset, settings, on_stage=on_stage)
    for sentence in result.warnings:
        say(f"warning: {sentence}")
    directory = _write(result, run_dir or default_run_directory("audit", dataset.name))
    if json_path is not None:
        emit_json(result.to_document(), json_path)
    if json_path != STDOUT:
        sys.stdout.write(_page(result, top) + f"\n\nRun directory: {directory}\n")


def _write(result: AuditResult, directory: Path) -> Path:
    from leakscope.io import write_run

    frame = result.to_frame()
    laws = result.laws
    swept = {}
    if result.sweep is not None:
        swept = {"sweep_noise_variances": result.sweep.noise_variances, "ranks": result.sweep.ranks}
    return write_run(
        directory,
        result.to_document(),
        columns=list(frame.columns),
        rows=frame.itertuples(index=False),
        arrays={
            "order": result.order,
            "kl": result.kl,
            "kl_reverse": result.kl_reverse,
            "advantage": result.advantage,
            "auc": result.auc,
            "mean_without": laws.mean_without,
            "variance_without": laws.variance_without,
            "mean_with": laws.mean_with,
            "variance_with": laws.variance_with,
            "mean_shift": laws.mean_shift,
            "leverage": laws.leverage,
            "error_estimate": laws.error_estimate,
            "trusted": laws.trusted,
            **swept,
        },
    )


def _page(result: AuditResult, top: int) -> str:
    """What a person sees: the most exposed records, and what to make of them."""
    import textwrap

    frame = result.to_frame().head(top)
    rows = [
        [
            str(row["record_id"]),
            str(rank),
            "-" if row["rank_low"] is None else f"{row['rank_low']}-{row['rank_high']}",
            f"{row['kl']:.4g}",
            _fraction(row["advantage"]),
            _fraction(row["auc"]),
            f"{row['kl_label'] / row['kl']:.0%}" if row["kl"] > 0 else "-",
            f"{row['mean_distance']:.4g}",
            "yes" if row["trusted"] else "NO",
        ]
        for rank, (_, row) in enumerate(frame.iterrows(), start=1)
    ]
    headings = [
        "record_id",
        "rank",
        "range",
        "kl",
        "advantage",
        "auc",
        "from label",
        "mean_distance",
        "trusted",
    ]
    about = result.dataset
    opening = (
        f"{about.name}: {about.records} records, {about.features} features, {about.outputs} "
        f"output{'s' if about.outputs != 1 else ''}"
    )
    if isinstance(result.record_ids[0], int) and result.record_ids == tuple(
        range(len(result.record_ids))
    ):
        opening += " (record_id is the row number, starting at 0)"
    parts = [opening]
    if rows:
        parts.append(
            f"The {len(rows)} most exposed, by kl = KL(without || with the record):\n\n"
            + table(headings, rows)
        )
    parts.append("\n".join(textwrap.wrap(result.verdict, width=92, break_on_hyphens=False)))
    return "\n\n".join(parts)


def _fraction(value: float) -> str:
    """Four digits; what would round to 1 is not certainty, only beyond them."""
    return ">0.9999" if value >= 0.99995 else f"{value:.4f}"
