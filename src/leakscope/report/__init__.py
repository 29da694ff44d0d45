"""A finished run as one HTML file that works offline.  This room computes nothing.

Every number comes from the run directory.  The file is as sensitive as the data: it is written
for its owner only, and ``redact`` leaves out everything that belongs to one record.
"""

from leakscope.report.page import report_html
from leakscope.report.writing import write_report

__all__ = ["report_html", "write_report"]
