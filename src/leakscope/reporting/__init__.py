"""A finished run, a comparison or advice as one HTML page; computes nothing."""

from leakscope.reporting.advice_page import advice_html, write_advice
from leakscope.reporting.comparison_page import comparison_html, write_comparison
from leakscope.reporting.page import report_html
from leakscope.reporting.writing import report, require_report_path, write_report

__all__ = [
    "advice_html",
    "comparison_html",
    "report",
    "report_html",
    "require_report_path",
    "write_advice",
    "write_comparison",
    "write_report",
]
