"""Datasets in; results and run directories out.  This room imports no other."""

from leakscope.io.attack_results import QueryDocument
from leakscope.io.audit_results import AuditDocument
from leakscope.io.dataset_reader import from_frame, read_dataset
from leakscope.io.datasets import Dataset, Source
from leakscope.io.examples import EXAMPLES, read_example
from leakscope.io.image_folder import read_image_folder
from leakscope.io.measure_results import MeasureDocument
from leakscope.io.models import NetworkArrays, read_network
from leakscope.io.preparation import prepare
from leakscope.io.reading_again import read_again
from leakscope.io.result_reader import read_result
from leakscope.io.results import SCHEMA_VERSION, to_json, write_result
from leakscope.io.run_reader import Run, read_run
from leakscope.io.runs import default_run_directory, write_run
from leakscope.io.scores import read_scores
from leakscope.io.settings import AuditSettings, MeasureSettings, validated

__all__ = [
    "EXAMPLES",
    "SCHEMA_VERSION",
    "AuditDocument",
    "AuditSettings",
    "Dataset",
    "MeasureDocument",
    "MeasureSettings",
    "NetworkArrays",
    "QueryDocument",
    "Run",
    "Source",
    "default_run_directory",
    "from_frame",
    "prepare",
    "read_again",
    "read_dataset",
    "read_example",
    "read_image_folder",
    "read_network",
    "read_result",
    "read_run",
    "read_scores",
    "to_json",
    "validated",
    "write_result",
    "write_run",
]
