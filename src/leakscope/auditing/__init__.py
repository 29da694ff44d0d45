"""From data and a model to a ranked, explained audit, and to run directories."""

from leakscope.auditing.audit import audit, audit_frame, audit_subject
from leakscope.auditing.gate import gate_failures
from leakscope.results.audit_run import write_run
from leakscope.subjects.stream.fits import audit_streamed

__all__ = [
    "audit",
    "audit_frame",
    "audit_streamed",
    "audit_subject",
    "gate_failures",
    "write_run",
]
