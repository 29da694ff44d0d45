"""The product's main verb: from a dataset to a ranked, explained result."""

from leakscope.auditing.audit import audit, audit_dataset, audit_frame
from leakscope.auditing.result import AuditResult

__all__ = ["AuditResult", "audit", "audit_dataset", "audit_frame"]
