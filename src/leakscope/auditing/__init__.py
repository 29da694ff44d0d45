"""The product's main verb: from a dataset to a ranked, explained result, and to run directories."""

from leakscope.auditing.audit import audit, audit_dataset, audit_frame
from leakscope.auditing.comparison import compare
from leakscope.auditing.result import AuditResult
from leakscope.auditing.run_writing import write_run

__all__ = ["AuditResult", "audit", "audit_dataset", "audit_frame", "compare", "write_run"]
