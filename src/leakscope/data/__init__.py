"""Datasets and models from files and tables: read, checked, encoded; nothing is ever unpickled."""

from leakscope.data.arrays import read_arrays
from leakscope.data.datasets import Dataset, sampled
from leakscope.data.doubts import doubts
from leakscope.data.files import write_file
from leakscope.data.models import read_network
from leakscope.data.pictures import png
from leakscope.data.preparation import prepare
from leakscope.data.sources import EXAMPLES, Source, read_dataset, read_example
from leakscope.data.table_datasets import from_frame
from leakscope.data.tables import read_table

__all__ = [
    "EXAMPLES",
    "Dataset",
    "Source",
    "doubts",
    "from_frame",
    "png",
    "prepare",
    "read_arrays",
    "read_dataset",
    "read_example",
    "read_network",
    "read_table",
    "sampled",
    "write_file",
]
