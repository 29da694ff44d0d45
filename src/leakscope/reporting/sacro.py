"""An audit's per-record exposure in the form of SACRO-ML's reports, for who works with those."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leakscope.errors import InputError
from leakscope.results import ModelAuditDocument, Run, result_of, to_json, write_private


def sacro_individual(document: ModelAuditDocument) -> dict[str, Any]:
    """The block ``individual`` of a SACRO-ML attack, in the order of the target's records.

    ``member_prob`` is how often the best test is right about a record at even odds, one half plus
    half the advantage; every record is a member.  The rest are leakscope's own numbers.

    Examples
    --------
    >>> from leakscope import auditing, data
    >>> from leakscope.reporting import sacro_individual
    >>> from leakscope.settings import ModelSettings
    >>> iris = data.read_example("iris")
    >>> result = auditing.audit_named_model(iris, ModelSettings(model="logistic", C=1.0))
    >>> block = sacro_individual(result.to_document())
    >>> len(block["member_prob"]), min(block["member_prob"]) >= 0.5
    (150, True)
    """
    if not all(isinstance(record.record_id, int) for record in document.records):
        raise InputError("a SACRO-ML target has no ids, and these records have; audit its folder.")
    records = sorted(document.records, key=lambda record: int(record.record_id))
    return {
        "member_prob": [0.5 + 0.5 * (record.advantage or 0.0) for record in records],
        "member": [1] * len(records),
        "advantage": [record.advantage for record in records],
        "tpr_at_fpr_0.01": [record.tpr_at_fpr_0_01 for record in records],
        "tpr_at_fpr_0.001": [record.tpr_at_fpr_0_001 for record in records],
        "trusted": [int(record.trusted) for record in records],
    }


def write_sacro(run: Run | ModelAuditDocument | str | Path, path: str | Path) -> Path:
    """Write an audit of a model as a SACRO-ML report (JSON, mode 0600); where it was written.

    Raises
    ------
    InputError
        Where the run is not the audit of a model.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope.reporting import write_sacro
    >>> write_sacro(leakscope.measure("normal:1,1", "normal:0,1"), "report.json")
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: a SACRO-ML report is of the audit of a model, and this is a \
result of kind measure.
    """
    document = result_of(run)
    if not isinstance(document, ModelAuditDocument):
        raise InputError(
            "a SACRO-ML report is of the audit of a model, and this is a result of kind "
            f"{document.kind}."
        )
    block = sacro_individual(document)
    content = {
        "log_id": document.created.strftime("%Y%m%dT%H%M%S"),
        "log_time": document.created.strftime("%d/%m/%Y %H:%M:%S"),
        "metadata": {
            "sacroml_version": "",
            "attack_name": f"leakscope audit {document.leakscope_version}",
            "attack_params": {k: v for k, v in document.settings.items() if v is not None},
            "target_model": document.model.name,
            "global_metrics": {
                "max_advantage": max(record.advantage or 0.0 for record in document.records),
                "exposed": document.exposed,
            },
        },
        "attack_experiment_logger": {
            "attack_instance_logger": {"instance_0": {"individual": block}}
        },
    }
    place = Path(path)
    write_private(place, to_json(content) + "\n")
    return place
