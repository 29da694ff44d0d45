"""An audit's run directory: all that a report, a comparison and a verification need."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from leakscope import results
from leakscope.auditing.audited_records import AuditedRecords
from leakscope.auditing.report_material import report_arrays, report_pictures
from leakscope.auditing.result import AuditResult
from leakscope.data import Dataset
from leakscope.errors import InputError


def write_run(
    result: AuditedRecords, directory: str | Path, *, dataset: Dataset | None = None
) -> Path:
    """Write what ``leakscope audit`` writes: result, table, laws, ROCs, histograms, pictures.

    Parameters
    ----------
    result
        From any of the audits.
    directory
        It must not be there yet, or be empty.
    dataset
        What was audited, as read: where its records are pictures, those of the most exposed are
        kept for the report of a Gaussian process.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope import auditing, results
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> result = leakscope.audit(X, y, kernel="rbf")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = results.read_run(auditing.write_run(result, pathlib.Path(folder, "run")))
    ...     run.arrays(["roc_ranks"])["roc_ranks"].tolist()
    [1, 2]
    """
    pictures: dict[str, bytes] = {}
    if dataset is not None and isinstance(result, AuditResult):
        if "kernel" not in result.settings:
            raise InputError("only the result of audit_dataset is written with its dataset.")
        pictures = report_pictures(result, dataset)
    return write_audit_run(result, directory, pictures)


def write_audit_run(
    result: AuditedRecords, directory: str | Path, pictures: Mapping[str, bytes] | None = None
) -> Path:
    """The same with the pictures at hand: files by name, from ``report_pictures``."""
    swept = {}
    if isinstance(result, AuditResult) and result.sweep is not None:
        swept = {"sweep_noise_variances": result.sweep.noise_variances, "ranks": result.sweep.ranks}
    frame = result.to_frame()
    return results.write_run_directory(
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
            **result.tprs(),
            **result.law_arrays(),
            **swept,
            **report_arrays(result),
        },
        files=pictures,
    )
