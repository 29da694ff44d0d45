"""An audit in the form of SACRO-ML's report, for who collects those."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.data.arrays import read_arrays
from leakscope.errors import InputError
from leakscope.reporting.pages import without_folders
from leakscope.results.audit import Audit
from leakscope.results.document import ResultDocument, to_json
from leakscope.results.reader import Run, result_of


def sacro_individual(audit: Audit) -> dict[str, Any]:
    """The block ``individual`` of a SACRO-ML attack, in the order of the target's records.

    ``member_prob`` is how often the best test is right about a record at even odds, one half plus
    half the advantage; every record is a member.  The rest are leakscope's own numbers.
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
        "confirmed": audit.confirmed[rows].astype(int).tolist(),
    }


def _rows_of_data(audit: Audit) -> NDArray[np.intp]:
    """Where each row of the table stands in the data: a SACRO-ML target has no ids."""
    ids = audit.record_ids
    if set(ids) == set(range(len(ids))):
        return np.array(ids, dtype=np.intp)
    if audit.directory is None:
        return np.arange(len(ids))
    # A table that was read is in the order of its ranks.
    held = read_arrays(audit.directory / "arrays.npz", ("order",))
    if "order" not in held:
        raise InputError("the run does not hold the order of its data; audit again.")
    return np.asarray(held["order"], dtype=np.intp)


def _listed(values: FloatArray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def sacro_text(run: Run | ResultDocument | str | Path, *, redact: bool = False) -> str:
    """An audit as a SACRO-ML report (JSON); redacted, without single records and names of files."""
    audit = result_of(run)
    if not isinstance(audit, Audit):
        raise InputError(
            f"a SACRO-ML report is made from an audit, and this is a result of kind {audit.kind}."
        )
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
        "attack_experiment_logger": {
            "attack_instance_logger": {"instance_0": {} if redact else sacro_individual(audit)}
        },
    }
    return to_json(content) + "\n"
