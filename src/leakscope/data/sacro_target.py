"""The folder in which SACRO-ML keeps a target: ``target.yaml`` and its arrays.

SACRO-ML's attacks, as used in trusted research environments, start from such a folder.  Its
training records are read for an audit; its model, a pickle, is not.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.data.delimited import Layout
from leakscope.data.pickled_arrays import read_pickled_array
from leakscope.data.regular_files import is_there, require_file
from leakscope.data.tables import read_table
from leakscope.errors import InputError

TARGET_FILE = "target.yaml"

# A line of the file's first level: a name, and a plain value.
_LINE = re.compile(r"^(\w+):[ \t]+(\S.*)$")


def is_sacro_target(path: Path) -> bool:
    """Whether a folder is a target of SACRO-ML."""
    return is_there(path / TARGET_FILE)


def read_sacro_target(path: Path) -> pd.DataFrame:
    """The training records of a target: features ``x0``, ``x1`` and so on, and ``y``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from leakscope.data.sacro_target import read_sacro_target
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = pathlib.Path(name)
    ...     _ = (folder / "X.csv").write_text("1,2\\n3,4\\n")
    ...     _ = (folder / "y.csv").write_text("0\\n1\\n")
    ...     _ = (folder / "target.yaml").write_text("X_train_path: X.csv\\ny_train_path: y.csv\\n")
    ...     read_sacro_target(folder).values.tolist()
    [[1.0, 2.0, 0.0], [3.0, 4.0, 1.0]]
    """
    told = _first_level(path / TARGET_FILE)
    features = _array(path, told, "X_train")
    labels = _array(path, told, "y_train").reshape(-1)
    if features.ndim != 2 or len(labels) != len(features):
        raise InputError(
            f"{path}: X_train has shape {features.shape} and y_train {labels.shape}; rows of "
            "features with one label each are needed."
        )
    names = [f"x{place}" for place in range(features.shape[1])]
    return pd.DataFrame(features, columns=names).assign(y=labels)


def _first_level(path: Path) -> dict[str, str]:
    """The plain values of the file's first level; the rest is not needed, and is not read."""
    require_file(path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as text.") from error
    found = (_LINE.match(line) for line in lines)
    return {match[1]: match[2].strip().strip("'\"") for match in found if match is not None}


def _array(folder: Path, told: dict[str, str], name: str) -> NDArray[Any]:
    file = told.get(f"{name}_path", "")
    if not file:
        raise InputError(f"{folder / TARGET_FILE} names no {name}; save the target with its data.")
    if Path(file).name != file:
        raise InputError(f"{folder / TARGET_FILE}: {name} must lie in the folder, not at {file}.")
    place = folder / file
    if place.suffix == ".pkl":
        return read_pickled_array(place)
    if place.suffix == ".csv":
        return np.asarray(read_table(place, Layout(header=False)).to_numpy())
    raise InputError(f"{place}: arrays of a target are read from .pkl and .csv files.")
