"""``leakscope audit``: a dataset in, every record's leakage out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli.output import STDOUT, emit_json, require_writable, say, stages, table
from leakscope.errors import InputError

if TYPE_CHECKING:
    from leakscope.auditing import AuditResult
    from leakscope.io import Dataset

SUMMARY = "A dataset in, every record's leakage out."
EPILOG = "Example: leakscope audit --example diabetes --noise-variance 0.05 --top 5"


def audit(
    file: Annotated[
        Path | None,
        typer.Argument(help="The dataset: .csv, .tsv, .parquet, .npy or .npz.", show_default=False),
    ] = None,
    example: Annotated[
        str | None,
        typer.Option(
            help="A dataset that scikit-learn ships, instead of FILE: diabetes, breast_cancer, "
            "digits, iris or wine.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="The target column, by name or position (0 is the first, -1 the last).",
            metavar="COLUMN",
            show_default=False,
        ),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="The column with each record's own id.  [default: row numbers from 0]",
            metavar="COLUMN",
            show_default=False,
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="regression or classification.  [default: the example's own; regression for FILE]",
            metavar="TASK",
            show_default=False,
        ),
    ] = None,
    scaling: Annotated[
        str,
        typer.Option(
            help="standard: features and a regression target to mean 0 and variance 1; none: as "
            "they are.",
            metavar="HOW",
        ),
    ] = "standard",
    kernel: Annotated[
        str,
        typer.Option(
            help="The covariance function: rbf, matern, linear or nngp (a wide network).",
            metavar="NAME",
        ),
    ] = "rbf",
    length_scale: Annotated[
        float | None,
        typer.Option(
            help="Of rbf and matern.  [default: the median distance between records]",
            metavar="NUMBER",
            show_default=False,
        ),
    ] = None,
    kernel_variance: Annotated[
        float | None,
        typer.Option(
            help="Of rbf and matern: the kernel's value at distance zero.  [default: 1]",
            metavar="NUMBER",
            show_default=False,
        ),
    ] = None,
    smoothness: Annotated[
        float | None,
        typer.Option(
            help="Of matern: its nu.  [default: 1.5]",
            metavar="NUMBER",
            show_default=False,
        ),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            help="Of nngp: hidden layers.  [default: 3]",
            metavar="COUNT",
            show_default=False,
        ),
    ] = None,
    activation: Annotated[
        str | None,
        typer.Option(
            help="Of nngp: relu, gelu, erf, tanh, ...  [default: relu]",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    weight_variance: Annotated[
        float | None,
        typer.Option(
            help="Of nngp (default 2) and linear (1).", metavar="NUMBER", show_default=False
        ),
    ] = None,
    bias_variance: Annotated[
        float | None,
        typer.Option(
            help="Of nngp and linear.  [default: 0]", metavar="NUMBER", show_default=False
        ),
    ] = None,
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
    json_path: Annotated[
        str | None,
        typer.Option(
            "--json",
            help="Write the whole result as JSON; - for stdout, which then holds nothing else.",
            metavar="PATH",
            show_default=False,
        ),
    ] = None,
    run_dir: Annotated[
        Path | None,
        typer.Option(
            help="Where to put the run.  [default: leakscope-runs/TIME-audit-NAME]",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
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
    dataset = _dataset(file, example, target, id_column, task)
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


def _dataset(
    file: Path | None,
    example: str | None,
    target: str | None,
    id_column: str | None,
    task: str | None,
) -> Dataset:
    from leakscope.io import read_dataset, read_example

    if task not in (None, "regression", "classification"):
        raise InputError(f"--task must be regression or classification, but it is {task!r}.")
    if file is not None and example is not None:
        raise InputError("Give a file or --example, not both.")
    if example is not None:
        if target is not None or id_column is not None or task is not None:
            raise InputError("--target, --id and --task belong to a file, not to --example.")
        return read_example(example)
    if file is None:
        raise InputError(
            "Which dataset?  Name a file, or try one that is here already: "
            "leakscope audit --example diabetes."
        )
    return read_dataset(
        file,
        target=target,
        id_column=id_column,
        task="classification" if task == "classification" else "regression",
    )


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
