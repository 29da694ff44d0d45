"""A finished run as one HTML file that works offline.  This room computes nothing.

Every number comes from the run directory.  The file is as sensitive as the data: it is written
for its owner only, and ``redact`` leaves out everything that belongs to one record.  Reproduced
figures of the papers become pictures and a gallery here too.
"""

from leakscope.report.advice_page import advice_html, write_advice
from leakscope.report.comparison_page import comparison_html, write_comparison
from leakscope.report.page import report_html
from leakscope.report.reproductions import read_reproduction, write_gallery, write_reproduction
from leakscope.report.writing import write_report

__all__ = [
    "advice_html",
    "comparison_html",
    "read_reproduction",
    "report_html",
    "write_advice",
    "write_comparison",
    "write_gallery",
    "write_report",
    "write_reproduction",
]
