"""A result in an MLflow run: aggregates as metrics, settings as parameters, records only if asked.

MLflow is an extra (``pip install 'leakscope[mlflow]'``).  What is logged can be read by everybody
who may read the experiment, so that no record is named unless ``records`` is true.
"""

from __future__ import annotations

import math
from typing import Any

from leakscope.errors import InputError
from leakscope.results import (
    AuditDocument,
    Measurement,
    ModelAuditDocument,
    ModelsMeasurement,
    ResultDocument,
    Verification,
    to_json,
)

# MLflow's own bound on the length of a parameter's value, in the oldest version allowed.
LONGEST_PARAMETER = 500


def log_to_mlflow(result: Any, *, records: bool = False, prefix: str = "leakscope") -> str:
    """Log a result to the active MLflow run, or to a new one; the run's id.

    Parameters
    ----------
    result
        Of any verb: a result in memory or a stored one.
    records
        Log every record too: ids and their exposure, as sensitive as the data.
    prefix
        Before the name of every metric, parameter and file.

    Raises
    ------
    InputError
        Where MLflow is not installed.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope.reporting import mlflow_metrics
    >>> found = leakscope.measure("normal:1,1", "normal:0,1")
    >>> sorted(mlflow_metrics(found))[:2]  # what log_to_mlflow(found) logs
    ['advantage', 'auc']
    """
    try:
        import mlflow
    except ImportError:
        raise InputError(
            "MLflow is not installed; pip install 'leakscope[mlflow]' installs it."
        ) from None
    document: ResultDocument = result.to_document() if hasattr(result, "to_document") else result
    active = mlflow.active_run()
    own = active is None
    run = mlflow.start_run() if active is None else active
    try:
        mlflow.log_metrics(
            {f"{prefix}/{name}": value for name, value in mlflow_metrics(document).items()}
        )
        mlflow.log_params(
            {
                f"{prefix}/{name}": str(value)[:LONGEST_PARAMETER]
                for name, value in document.settings.items()
                if value is not None
            }
        )
        mlflow.set_tags(_tags(document, prefix))
        mlflow.log_text(_summary(document, records), f"{prefix}/summary.md")
        if records:
            mlflow.log_text(to_json(document) + "\n", f"{prefix}/result.json")
    finally:
        if own:
            mlflow.end_run()
    return str(run.info.run_id)


def mlflow_metrics(result: Any) -> dict[str, float]:
    """The aggregates of a result that are logged, by name; no number of a single record's id.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope.reporting import mlflow_metrics
    >>> round(mlflow_metrics(leakscope.measure("normal:1,1", "normal:0,1"))["tpr_at_fpr_0.01"], 3)
    0.092
    """
    document: ResultDocument = result.to_document() if hasattr(result, "to_document") else result
    found: dict[str, Any] = {}
    if isinstance(document, (AuditDocument, ModelAuditDocument)):
        found = {
            "records": len(document.records),
            "largest_advantage": _largest(document, "advantage"),
            "median_advantage": document.median_advantage,
            "untrusted": document.untrusted,
        }
    if isinstance(document, ModelAuditDocument):
        found |= {
            "exposed": document.exposed,
            "largest_tpr_at_fpr_0.01": _largest(document, "tpr_at_fpr_0_01"),
            "largest_tpr_at_fpr_0.001": _largest(document, "tpr_at_fpr_0_001"),
        }
    if isinstance(document, Measurement):
        found = {"advantage": document.advantage, "auc": document.auc}
        found |= {f"tpr_at_fpr_{at}": value for at, value in document.tpr_at_fpr.items()}
    if isinstance(document, ModelsMeasurement):
        found = {"records": len(document.records), "mean_advantage": document.mean_advantage}
        found |= {f"mean_tpr_at_fpr_{k}": v for k, v in document.mean_tpr_at_fpr.items()}
    if isinstance(document, Verification):
        found = {
            "agrees": document.agrees,
            "differs": document.differs,
            "inconclusive": document.inconclusive,
        }
    return {
        name: float(value)
        for name, value in found.items()
        if value is not None and math.isfinite(value)
    }


def _largest(document: AuditDocument | ModelAuditDocument, name: str) -> float | None:
    values = [getattr(record, name) for record in document.records]
    return max((value for value in values if value is not None), default=None)


def _tags(document: ResultDocument, prefix: str) -> dict[str, str]:
    found = {"kind": document.kind, "version": document.leakscope_version}
    dataset = getattr(document, "dataset", None)
    if dataset is not None:
        found["dataset"] = dataset.name
        if dataset.source is not None:
            found["data_digest"] = dataset.source.digest
    if isinstance(document, ModelAuditDocument):
        found["model"] = document.model.name
    return {f"{prefix}/{name}": value for name, value in found.items()}


def _summary(document: ResultDocument, records: bool) -> str:
    """The result in short; without records, only sentences that name none."""
    if records or isinstance(document, Measurement):
        return document.to_markdown()
    if isinstance(document, ModelAuditDocument):
        sentences = document.answer_without_ids
    elif isinstance(document, AuditDocument):
        sentences = [document.verdict_without_ids or ""]
    else:
        sentences = [f"A result of leakscope {document.kind.replace('_', ' ')}."]
    return "\n\n".join(sentences) + "\n"
