"""Queries and training sets for the attacks on networks: tables of numbers, checked by row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from leakscope.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]


def read_queries(path: Path, features: int) -> FloatArray:
    """The rows of a file as numbers, a column for each input of the network."""
    from leakscope.data.tables import read_table

    frame = read_table(path)
    if frame.shape[1] != features:
        raise InputError(
            f"{path} has {frame.shape[1]} columns, but the network has {features} inputs; a query "
            "needs one column for each."
        )
    return _numbers(frame, path)


def read_training_set(path: Path, features: int) -> tuple[FloatArray, FloatArray]:
    """Records (n, d) and their labels, -1 or 1, from a file whose last column is the label."""
    import numpy as np

    from leakscope.data.tables import read_table

    frame = read_table(path)
    if frame.shape[1] != features + 1:
        raise InputError(
            f"{path} has {frame.shape[1]} columns, but a training set for this network has "
            f"{features + 1}: its {features} input{'s' if features > 1 else ''} and the label."
        )
    values = _numbers(frame, path)
    wrong = np.flatnonzero(np.abs(values[:, -1]) != 1.0)
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            f"{path}: labels must be -1 or 1, but the label in row {row} (rows count from 0) is "
            f"{values[row, -1]:g}."
        )
    return values[:, :-1], values[:, -1]


def _numbers(frame: pd.DataFrame, path: Path) -> FloatArray:
    import numpy as np

    for name in frame.columns:
        if frame[name].dtype.kind not in "biuf":
            raise InputError(f"{path}: the column {name} does not hold numbers.")
    values = frame.to_numpy(dtype=np.float64)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = (int(place) for place in bad[0])
        raise InputError(
            f"{path}: row {row} (rows count from 0) holds no finite number in the column "
            f"{frame.columns[column]}."
        )
    return values
