"""What is stored: one class for each kind of result, and the run directories that hold them."""

from leakscope.results.audit import AuditDocument
from leakscope.results.document import SCHEMA_VERSION, ResultDocument, to_json, write_result
from leakscope.results.measurement import MeasureDocument
from leakscope.results.query import QueryDocument
from leakscope.results.reader import read_result
from leakscope.results.run_directory import default_run_directory, write_run
from leakscope.results.run_reader import Run, read_run

__all__ = [
    "SCHEMA_VERSION",
    "AuditDocument",
    "MeasureDocument",
    "QueryDocument",
    "ResultDocument",
    "Run",
    "default_run_directory",
    "read_result",
    "read_run",
    "to_json",
    "write_result",
    "write_run",
]
