"""What an audit of a Gaussian process will take, in words, before it is paid."""

from __future__ import annotations

from leakscope import lood
from leakscope._numerics.cores import usable_cores
from leakscope._numerics.memory import format_bytes
from leakscope.auditing.dataset_audit import audit_stages
from leakscope.auditing.model_audit import MODEL_STAGES
from leakscope.auditing.routes import dense_bytes, dense_fits
from leakscope.data import Dataset
from leakscope.running import duration
from leakscope.settings import AuditSettings, ModelSettings

# Of one core: factor and inverse diagonal, for each cubed record (benchmarks/adult_dense.py,
# docs/benchmarks/size.md).
SECONDS_PER_CUBE = 1.75e-11

# Of shorter exact audits nothing is said.
SAID_FROM = 60.0


def audit_cost(dataset: Dataset, settings: AuditSettings, chosen: ModelSettings) -> str | None:
    """What a long or an approximate audit will take; None of others.

    Examples
    --------
    >>> from leakscope import auditing, data, settings
    >>> wine, rough = data.read_example("wine"), settings.AuditSettings(route="nystrom")
    >>> auditing.audit_cost(wine, rough, settings.MODEL_DEFAULTS)[:66]
    'approximate, with up to 178 inducing records of 178: at most about'
    """
    if audit_stages(dataset, settings, chosen) == MODEL_STAGES or dataset.group is not None:
        return None
    records, route = len(dataset.features), settings.route
    if route == "auto" and settings.kernel != "linear":
        route = "dense" if dense_fits(dataset.features, settings.inducing) else "nystrom"
    if route == "nystrom":
        return _approximate(records, settings.inducing)
    if route == "dense":
        return _exact(records, settings.sensitivity, format_bytes(dense_bytes(dataset.features)))
    if route == "disk":
        disk = format_bytes(lood.disk_bytes(records))
        return _exact(records, settings.sensitivity, f"{disk} of disk")
    return None


def _approximate(records: int, inducing: int) -> str:
    seconds, memory = lood.certified_cost(records, inducing)
    return (
        f"approximate, with up to {min(inducing, records):,} inducing records of {records:,}: at "
        f"most about {duration(seconds)} on a core like those it was measured on, and "
        f"{format_bytes(memory)}; an interval for each record in place of an exact number."
    )


def _exact(records: int, sensitivity: bool, needed: str) -> str | None:
    levels = 1 + len(lood.added_levels(1.0)) if sensitivity else 1
    cores = usable_cores()
    seconds = levels * SECONDS_PER_CUBE * float(records) ** 3 / cores
    if seconds < SAID_FROM:
        return None
    told = (
        f"exact, by factorising a {records:,} x {records:,} matrix: {needed} and about "
        f"{duration(seconds)} on {cores} core{'s' if cores > 1 else ''} like those it was measured "
        "on; "
    )
    if sensitivity:
        told += f"--no-sensitivity takes {duration(seconds / levels)}, and "
    return f"{told}--route nystrom is quicker, with an interval for each record."
