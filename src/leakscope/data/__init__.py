"""Datasets and models from files and tables: read, checked, encoded; nothing is ever unpickled."""

from leakscope.data.arrays import read_arrays
from leakscope.data.arrow_claims import ArrowClaims, arrow_claims
from leakscope.data.columns import MOST_CATEGORIES, column_name, kind_of
from leakscope.data.dataset_reader import read_dataset
from leakscope.data.datasets import (
    Dataset,
    RecordId,
    Source,
    Task,
    require_distinct_ids,
    same_data,
    subgroup_label,
)
from leakscope.data.delimited import Layout, marks_in
from leakscope.data.doubts import array_doubts, doubts, two_classes
from leakscope.data.examples import EXAMPLES, read_example
from leakscope.data.image_folder import read_image_folder
from leakscope.data.json_files import read_json
from leakscope.data.model_files import ModelFile, read_model
from leakscope.data.models import NetworkArrays, read_network
from leakscope.data.onnx_linear import LinearArrays
from leakscope.data.pictures import picture_shape, pictured, png
from leakscope.data.preparation import MOST_CLASSES, prepare
from leakscope.data.reading_again import raw_features, read_again
from leakscope.data.reasons import printable, reason
from leakscope.data.regular_files import (
    is_folder,
    is_there,
    require_file,
    require_new_file,
    require_usable_name,
)
from leakscope.data.sampling import sampled
from leakscope.data.scores import read_scores
from leakscope.data.table_datasets import from_frame
from leakscope.data.tables import read_table
from leakscope.data.written_files import (
    descriptor_of,
    partial_beside,
    require_plain_output,
    write_file,
)

__all__ = [
    "EXAMPLES",
    "MOST_CATEGORIES",
    "MOST_CLASSES",
    "ArrowClaims",
    "Dataset",
    "Layout",
    "LinearArrays",
    "ModelFile",
    "NetworkArrays",
    "RecordId",
    "Source",
    "Task",
    "array_doubts",
    "arrow_claims",
    "column_name",
    "descriptor_of",
    "doubts",
    "from_frame",
    "is_folder",
    "is_there",
    "kind_of",
    "marks_in",
    "partial_beside",
    "picture_shape",
    "pictured",
    "png",
    "prepare",
    "printable",
    "raw_features",
    "read_again",
    "read_arrays",
    "read_dataset",
    "read_example",
    "read_image_folder",
    "read_json",
    "read_model",
    "read_network",
    "read_scores",
    "read_table",
    "reason",
    "require_distinct_ids",
    "require_file",
    "require_new_file",
    "require_plain_output",
    "require_usable_name",
    "same_data",
    "sampled",
    "subgroup_label",
    "two_classes",
    "write_file",
]
