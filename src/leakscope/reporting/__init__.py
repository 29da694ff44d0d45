"""A finished run, a comparison, advice or a decision as one HTML page; computes nothing."""

from leakscope.reporting.advice_page import advice_html, write_advice
from leakscope.reporting.comparison_page import comparison_html, write_comparison
from leakscope.reporting.decision_page import decision_html, decision_markdown, write_decision
from leakscope.reporting.embedding import chart_library, in_order
from leakscope.reporting.mlflow_log import log_to_mlflow, mlflow_metrics
from leakscope.reporting.page import report_html
from leakscope.reporting.records_table import shown_id
from leakscope.reporting.sacro import sacro_individual, write_sacro
from leakscope.reporting.short_page import short_html
from leakscope.reporting.writing import report, require_report_path, write_report

__all__ = [
    "advice_html",
    "chart_library",
    "comparison_html",
    "decision_html",
    "decision_markdown",
    "in_order",
    "log_to_mlflow",
    "mlflow_metrics",
    "report",
    "report_html",
    "require_report_path",
    "sacro_individual",
    "short_html",
    "shown_id",
    "write_advice",
    "write_comparison",
    "write_decision",
    "write_report",
    "write_sacro",
]
