"""A finished run, a comparison, advice or a decision as one HTML page; computes nothing."""

from leakscope.reporting.advice_page import advice_html, write_advice
from leakscope.reporting.comparison_page import comparison_html, write_comparison
from leakscope.reporting.decision_page import decision_html, decision_markdown, write_decision
from leakscope.reporting.exports import (
    log_to_mlflow,
    mlflow_metrics,
    sacro_individual,
    write_sacro,
)
from leakscope.reporting.pages import chart_library, in_order, shown_id
from leakscope.reporting.writing import (
    report,
    report_html,
    require_report_path,
    short_html,
    write_report,
)

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
