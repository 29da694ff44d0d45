"""What the attacks on networks are given: a network, queries, a training set; checked by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope.data.models import NetworkArrays, read_network
from leakscope.data.tables import read_table
from leakscope.errors import InputError
from leakscope.laws.pair import Provenance
from leakscope.relu.network import TwoLayerNetwork
from leakscope.results.attacks import AttackedNetwork

Network = TwoLayerNetwork | NetworkArrays | str | Path

# Records, one row each, and their labels: two arrays, or a file whose last column is the label.
TrainingSet = tuple[ArrayLike, ArrayLike] | str | Path


def network_arrays(network: Network) -> NetworkArrays:
    """The arrays of a network in memory, or of the file that holds one."""
    if isinstance(network, TwoLayerNetwork):
        return NetworkArrays(network.w, network.b, network.v, name="network")
    return network if isinstance(network, NetworkArrays) else read_network(network)


def described_network(arrays: NetworkArrays) -> AttackedNetwork:
    """What a result says of the network."""
    return AttackedNetwork(
        name=arrays.name,
        width=len(arrays.v),
        features=arrays.w.shape[1],
        notes=list(arrays.notes),
    )


def answered(provenance: Provenance) -> dict[str, Any]:
    """What a result says of it, but its assumptions, which stand beside it."""
    return {name: v for name, v in provenance.to_dict().items() if name != "assumptions"}


def query_rows(queries: ArrayLike | str | Path, features: int) -> FloatArray:
    """Queries as numbers, a column for each input of the network."""
    if isinstance(queries, (str, Path)):
        frame, what = read_table(Path(queries)), str(queries)
    else:
        frame, what = _frame(queries, "queries", features), "the queries"
    if frame.shape[1] != features:
        raise InputError(
            f"{what} has {frame.shape[1]} columns, but the network has {features} inputs; a query "
            "needs one column for each."
        )
    return _numbers(frame, what)


def training_rows(data: TrainingSet, features: int) -> tuple[FloatArray, FloatArray]:
    """Records (n, d) and their labels, -1 or 1, from arrays or a file."""
    if isinstance(data, (str, Path)):
        frame, what = read_table(Path(data)), str(data)
    else:
        records = _frame(data[0], "records", features)
        labels = np.asarray(data[1])
        if labels.shape != (len(records),):
            raise InputError(
                f"{len(records)} records need {len(records)} labels, but the labels have the "
                f"shape {labels.shape}."
            )
        frame, what = records.assign(label=labels), "the training set"
    if frame.shape[1] != features + 1:
        raise InputError(
            f"{what} has {frame.shape[1]} columns, but a training set for this network has "
            f"{features + 1}: its {features} input{'s' if features > 1 else ''} and the label."
        )
    values = _numbers(frame, what)
    wrong = np.flatnonzero(np.abs(values[:, -1]) != 1.0)
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            f"{what}: labels must be -1 or 1, but the label in row {row} (rows count from 0) is "
            f"{values[row, -1]:g}."
        )
    return values[:, :-1], values[:, -1]


def _frame(values: ArrayLike, what: str, features: int) -> pd.DataFrame:
    """A table of an array; a vector is a column for a network with one input."""
    array = np.asarray(values)
    if array.ndim == 1 and features == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise InputError(
            f"{what} must be a table of rows and columns, but they have the shape {array.shape}."
        )
    return pd.DataFrame(array, columns=[str(place) for place in range(array.shape[1])])


def _numbers(frame: pd.DataFrame, what: str) -> FloatArray:
    for name in frame.columns:
        if frame[name].dtype.kind not in "biuf":
            raise InputError(f"{what}: the column {name} does not hold numbers.")
    values = frame.to_numpy(dtype=np.float64)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = (int(place) for place in bad[0])
        raise InputError(
            f"{what}: row {row} (rows count from 0) holds no finite number in the column "
            f"{frame.columns[column]}."
        )
    return values
