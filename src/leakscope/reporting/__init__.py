"""A finished run, a comparison, advice or a decision as one HTML page; computes nothing."""

from leakscope.reporting.comparison_page import write_comparison
from leakscope.reporting.decision_page import write_decision
from leakscope.reporting.writing import report

__all__ = ["report", "write_comparison", "write_decision"]
