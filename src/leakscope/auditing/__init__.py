"""From a dataset to a ranked, explained result, and to run directories."""

from leakscope.auditing.audit import audit, audit_dataset, audit_frame
from leakscope.auditing.out_of_core import OutOfCoreAudit, audit_out_of_core
from leakscope.auditing.result import AuditResult
from leakscope.auditing.run_writing import write_run

__all__ = [
    "AuditResult",
    "OutOfCoreAudit",
    "audit",
    "audit_dataset",
    "audit_frame",
    "audit_out_of_core",
    "write_run",
]
