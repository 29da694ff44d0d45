"""From a dataset to a ranked, explained result, and to run directories."""

from leakscope.auditing.audit import (
    SENSITIVITY_STAGES,
    STAGES,
    audit,
    audit_dataset,
    audit_frame,
)
from leakscope.auditing.checks import record_name
from leakscope.auditing.kernel_choice import kernel_from_settings
from leakscope.auditing.out_of_core import OutOfCoreAudit, audit_out_of_core
from leakscope.auditing.process_of_run import process_of_run
from leakscope.auditing.reopened import (
    Audited,
    audit_document,
    data_of,
    settings_of,
    taken_from_result,
)
from leakscope.auditing.result import AuditResult
from leakscope.auditing.run_writing import write_run

__all__ = [
    "SENSITIVITY_STAGES",
    "STAGES",
    "AuditResult",
    "Audited",
    "OutOfCoreAudit",
    "audit",
    "audit_dataset",
    "audit_document",
    "audit_frame",
    "audit_out_of_core",
    "data_of",
    "kernel_from_settings",
    "process_of_run",
    "record_name",
    "settings_of",
    "taken_from_result",
    "write_run",
]
