"""Results for other tools: the active run of MLflow, and SACRO-ML's form of a report."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.data.arrays import read_arrays
from leakscope.errors import InputError, required
from leakscope.reporting.pages import without_folders
from leakscope.results.audit import Audit
from leakscope.results.document import ResultDocument, to_json, write_private
from leakscope.results.measurement import Measurement, ModelsMeasurement
from leakscope.results.reader import Run, result_of
from leakscope.results.verification import Verification

# MLflow's own bound on the length of a parameter's value, in the oldest version allowed.
LONGEST_PARAMETER = 500


def log_to_mlflow(result: Any, *, records: bool = False, prefix: str = "leakscope") -> str:
    """Log a result to the active MLflow run, or to a new one; the run's id.

    MLflow is an extra (``pip install 'leakscope[mlflow]'``).  What is logged can be read by
    everybody who may read the experiment, so that no record is named unless ``records`` is true.

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
    mlflow = required("mlflow", "Logging to MLflow")
    document = result_of(result)
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
    document, found = result_of(result), dict[str, Any]()
    if isinstance(document, Audit):
        found = _exposure(document)
    elif isinstance(document, Measurement):
        found = {"advantage": document.advantage, "auc": document.auc}
        found |= {f"tpr_at_fpr_{at}": value for at, value in document.tpr_at_fpr.items()}
    elif isinstance(document, ModelsMeasurement):
        found = {"records": len(document.records), "mean_advantage": document.mean_advantage}
        found |= {f"mean_tpr_at_fpr_{k}": v for k, v in document.mean_tpr_at_fpr.items()}
    elif isinstance(document, Verification):
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


def _exposure(audit: Audit) -> dict[str, Any]:
    totals = audit.totals
    largest = {
        f"largest_{name.replace('fpr_0_', 'fpr_0.')}": value
        for name, value in totals.largest.items()
    }
    return {
        "records": totals.units,
        "median_advantage": totals.median_advantage,
        "untrusted": totals.untrusted,
        # Nobody is counted where the level is assumed.
        "exposed": None if audit.basis == "assumed" else totals.exposed,
        **largest,
    }


def _tags(document: ResultDocument, prefix: str) -> dict[str, str]:
    found = {"kind": document.kind, "version": document.leakscope_version}
    if isinstance(document, Audit):
        found |= {"dataset": document.dataset.name, "model": document.model.name}
        if document.dataset.source is not None:
            found["data_digest"] = document.dataset.source.digest
    return {f"{prefix}/{name}": value for name, value in found.items()}


def _summary(document: ResultDocument, records: bool) -> str:
    """The result in short; without records, only sentences that name none."""
    if records or isinstance(document, Measurement):
        return document.to_markdown()
    if isinstance(document, Audit):
        return "\n\n".join(document.answer(ids=False)) + "\n"
    return f"A result of leakscope {document.kind.replace('_', ' ')}.\n"


def sacro_individual(audit: Audit) -> dict[str, Any]:
    """The block ``individual`` of a SACRO-ML attack, in the order of the target's records.

    ``member_prob`` is how often the best test is right about a record at even odds, one half plus
    half the advantage; every record is a member.  The rest are leakscope's own numbers.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope import data
    >>> from leakscope.reporting.exports import sacro_individual
    >>> from leakscope.settings import AuditSettings, ModelSettings
    >>> chosen = ModelSettings(model="logistic", C=1.0)
    >>> audit = leakscope.audit(data.read_example("iris"), settings=AuditSettings(), chosen=chosen)
    >>> block = sacro_individual(audit)
    >>> len(block["member_prob"]), min(block["member_prob"]) >= 0.5
    (150, True)
    """
    if audit.unit != "record" or not audit.complete:
        raise InputError("a SACRO-ML report lists every record, and this audit does not.")
    rows = np.argsort(_rows_of_data(audit))
    advantage = audit.advantage[rows]
    return {
        "member_prob": (0.5 + 0.5 * np.nan_to_num(advantage)).tolist(),
        "member": [1] * len(rows),
        "advantage": _listed(advantage),
        "tpr_at_fpr_0.01": _listed(audit.table.of("tpr_at_fpr_0_01")[rows]),
        "tpr_at_fpr_0.001": _listed(audit.table.of("tpr_at_fpr_0_001")[rows]),
        "trusted": audit.trusted[rows].astype(int).tolist(),
    }


def _rows_of_data(audit: Audit) -> NDArray[np.intp]:
    """Where each row of the table stands in the data: a SACRO-ML target has no ids."""
    ids = audit.record_ids
    if set(ids) == set(range(len(ids))):
        return np.array(ids, dtype=np.intp)
    if audit.examined is not None:
        return np.arange(len(ids))
    held = (
        {} if audit.directory is None else read_arrays(audit.directory / "arrays.npz", ("order",))
    )
    if "order" not in held:
        raise InputError(
            "a SACRO-ML report lists records in the order of the data, which this file does not "
            "hold; give the run directory."
        )
    # A table that was read is in the order of its ranks.
    return np.asarray(held["order"], dtype=np.intp)


def _listed(values: FloatArray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def write_sacro(run: Run | ResultDocument | str | Path, path: str | Path) -> Path:
    """Write an audit as a SACRO-ML report (JSON, mode 0600); where it was written.

    Raises
    ------
    InputError
        Where the run is not an audit of single records.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope.reporting.exports import write_sacro
    >>> write_sacro(leakscope.measure("normal:1,1", "normal:0,1"), "report.json")
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: a SACRO-ML report is made from an audit, and this is a result of \
kind measure.
    """
    place = Path(path)
    write_private(place, sacro_text(run))
    return place


def sacro_text(run: Run | ResultDocument | str | Path, *, redact: bool = False) -> str:
    """What :func:`write_sacro` writes; redacted, without single records and names of files."""
    audit = result_of(run)
    if not isinstance(audit, Audit):
        raise InputError(
            f"a SACRO-ML report is made from an audit, and this is a result of kind {audit.kind}."
        )
    block = {} if redact else {"individual": sacro_individual(audit)}
    told = {k: v for k, v in audit.settings.items() if v is not None}
    content = {
        "log_id": audit.created.strftime("%Y%m%dT%H%M%S"),
        "log_time": audit.created.strftime("%d/%m/%Y %H:%M:%S"),
        "metadata": {
            "sacroml_version": "",
            "attack_name": f"leakscope audit {audit.leakscope_version}",
            "attack_params": without_folders(told) if redact else told,
            "target_model": audit.model.name,
            "global_metrics": {
                "max_advantage": audit.totals.largest["advantage"],
                "exposed": audit.totals.exposed,
            },
        },
        "attack_experiment_logger": {"attack_instance_logger": {"instance_0": block}},
    }
    return to_json(content) + "\n"
