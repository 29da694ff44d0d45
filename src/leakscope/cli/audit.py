"""``leakscope audit``: a dataset in, every record's leakage out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli import gate
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
    Target,
    Task,
    WeightVariance,
    dataset_from,
)
from leakscope.cli.output import STDOUT, emit_json, require_writable, say, stages, table
from leakscope.errors import InputError

if TYPE_CHECKING:
    from leakscope.auditing import AuditResult

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
    from leakscope.auditing import audit_dataset
    from leakscope.auditing.audit import STAGES
    from leakscope.auditing.report_material import report_pictures
    from leakscope.io import AuditSettings, default_run_directory, validated
    from leakscope.io.runs import require_free

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
    require_writable(json_path)
    if run_dir is not None:
        require_free(run_dir)
    dataset = dataset_from(
        file, example, target, id_column, task, missing=missing, ignore=ignore, group=group, by=by
    )
    names = [name for name in STAGES if settings.sensitivity or name != "sensitivity"]
    with stages(names) as on_stage:
        result = audit_dataset(dataset, settings, on_stage=on_stage)
    for sentence in result.warnings:
        say(f"warning: {sentence}")
    pictures = report_pictures(result, dataset, settings)
    directory = _write(result, run_dir or default_run_directory("audit", dataset.name), pictures)
    if json_path is not None:
        emit_json(result.to_document(), json_path)
    if json_path != STDOUT:
        page = _page(result, top, explain=explain)
        sys.stdout.write(f"{page}\n\nRun directory: {directory}\n")
    found = gate.failures(result, above)
    for sentence in found:
        say(f"leakscope: {sentence}")
    if found:
        raise typer.Exit(gate.EXIT_STATUS)


def _write(result: AuditResult, directory: Path, pictures: dict[str, bytes]) -> Path:
    from leakscope.auditing.report_material import report_arrays
    from leakscope.io import write_run

    frame = result.to_frame()
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
            **result.law_arrays(),
            **swept,
            **report_arrays(result),
        },
        files=pictures,
    )


def _page(result: AuditResult, top: int, *, explain: bool = False) -> str:
    """What a person sees: the most exposed records, and what to make of them."""
    import textwrap

    frame = result.to_frame().head(top)
    grouped = result.unit == "group"
    rows = [
        [
            str(row["record_id"]),
            *([str(row["size"])] if grouped else []),
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
        "group" if grouped else "record_id",
        *(["size"] if grouped else []),
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
    if grouped:
        opening += f", {len(result.record_ids)} groups"
    elif isinstance(result.record_ids[0], int) and result.record_ids == tuple(
        range(len(result.record_ids))
    ):
        opening += " (record_id is the row number, starting at 0)"
    parts = [opening]
    if rows:
        parts.append(
            f"The {len(rows)} most exposed, by kl = KL(without || with the {result.unit}):\n\n"
            + table(headings, rows)
        )
    if explain and result.explanations:
        why = [
            textwrap.fill(
                f"{entry.rank}. {entry.sentence} {_others('Nearest', entry.neighbours)}"
                f"{_others('Moves most', entry.moved)}",
                width=92,
                subsequent_indent="   ",
                break_on_hyphens=False,
            )
            for entry in result.explanations[:top]
        ]
        parts.append("Why they are exposed:\n\n" + "\n".join(why))
    if result.subgroups:
        parts.append(_subgroups(result))
    parts.append("\n".join(textwrap.wrap(result.verdict, width=92, break_on_hyphens=False)))
    return "\n\n".join(parts)


def _others(what: str, ids: Sequence[int | str]) -> str:
    return f"{what}: {', '.join(str(other) for other in ids)}. " if ids else ""


def _subgroups(result: AuditResult) -> str:
    rows = [
        [
            entry.value,
            str(entry.count),
            _fraction(entry.median_advantage),
            _fraction(entry.largest_advantage),
            f"{entry.share_exposed:.0%}",
            "few" if entry.small else "",
        ]
        for entry in result.subgroups
    ]
    headings = [str(result.by), f"{result.unit}s", "median advantage", "largest", "0.1 or more", ""]
    return f"Exposure by {result.by}:\n\n{table(headings, rows)}"


def _fraction(value: float) -> str:
    """Four digits; what would round to 1 is not certainty, only beyond them."""
    return ">0.9999" if value >= 0.99995 else f"{value:.4f}"
