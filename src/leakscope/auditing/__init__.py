"""From data and a model to a ranked, explained audit, and to run directories."""

from leakscope.auditing.audit import (
    asked_by_settings,
    audit,
    audit_frame,
    audit_subject,
    dataset_for,
    expected,
)
from leakscope.auditing.gate import gate_failures, gate_limits
from leakscope.results.audit_run import write_run
from leakscope.subjects.stream.costs import StreamCost, stream_cost
from leakscope.subjects.stream.passes import audit_streamed

__all__ = [
    "StreamCost",
    "asked_by_settings",
    "audit",
    "audit_frame",
    "audit_streamed",
    "audit_subject",
    "dataset_for",
    "expected",
    "gate_failures",
    "gate_limits",
    "stream_cost",
    "write_run",
]
