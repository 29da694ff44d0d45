"""Datasets and models from files and tables: read, checked, encoded; nothing is ever unpickled."""

from leakscope.data.arrays import read_arrays, read_scores
from leakscope.data.datasets import Dataset, sampled
from leakscope.data.doubts import doubts
from leakscope.data.files import write_file
from leakscope.data.models import ModelFile, NetworkArrays, read_model, read_network
from leakscope.data.pictures import png
from leakscope.data.preparation import prepare
from leakscope.data.sources import EXAMPLES, Source, read_dataset, read_example
from leakscope.data.table_datasets import from_frame
from leakscope.data.tables import read_table

__all__ = [
    "EXAMPLES",
    "Dataset",
    "ModelFile",
    "NetworkArrays",
    "Source",
    "doubts",
    "from_frame",
    "png",
    "prepare",
    "read_arrays",
    "read_dataset",
    "read_example",
    "read_model",
    "read_network",
    "read_scores",
    "read_table",
    "sampled",
    "write_file",
]

# For other rooms until they import from the file.
from leakscope.data.arrow_tables import arrow_claims as arrow_claims
from leakscope.data.columns import MOST_CATEGORIES as MOST_CATEGORIES
from leakscope.data.columns import column_name as column_name
from leakscope.data.columns import kind_of as kind_of
from leakscope.data.columns import marks_in as marks_in
from leakscope.data.datasets import RecordId as RecordId
from leakscope.data.datasets import Task as Task
from leakscope.data.datasets import require_distinct_ids as require_distinct_ids
from leakscope.data.datasets import same_data as same_data
from leakscope.data.datasets import subgroup_label as subgroup_label
from leakscope.data.doubts import array_doubts as array_doubts
from leakscope.data.doubts import two_classes as two_classes
from leakscope.data.files import descriptor_of as descriptor_of
from leakscope.data.files import is_folder as is_folder
from leakscope.data.files import is_there as is_there
from leakscope.data.files import partial_beside as partial_beside
from leakscope.data.files import printable as printable
from leakscope.data.files import read_json as read_json
from leakscope.data.files import reason as reason
from leakscope.data.files import require_file as require_file
from leakscope.data.files import require_new_file as require_new_file
from leakscope.data.files import require_plain_output as require_plain_output
from leakscope.data.files import require_usable_name as require_usable_name
from leakscope.data.onnx_graphs import LinearArrays as LinearArrays
from leakscope.data.pictures import picture_shape as picture_shape
from leakscope.data.pictures import pictured as pictured
from leakscope.data.preparation import MOST_CLASSES as MOST_CLASSES
from leakscope.data.sources import raw_features as raw_features
from leakscope.data.sources import read_again as read_again
from leakscope.data.tables import Layout as Layout
