"""Files to tables: one reader for each suffix, and nothing is ever unpickled."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.errors import InputError

# Names under which an .npz archive may hold its parts.
FEATURE_KEYS = ("X", "x", "features", "data")
TARGET_KEYS = ("y", "Y", "target", "targets", "labels")
ID_KEYS = ("record_id", "record_ids", "ids", "id")

# The name a target gets where the file gives it none.
UNNAMED_TARGET = "y"
UNNAMED_ID = "record_id"


def read_table(path: Path) -> pd.DataFrame:
    """Read a file by its suffix into a table with text column names."""
    if not path.exists():
        raise InputError(f"There is no file {path}.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; a file is needed.")
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(
            f"{path}: files that end in {path.suffix or 'nothing'} cannot be read; these can: "
            f"{', '.join(READERS)}."
        )
    try:
        table = reader(path)
    except PermissionError as error:
        raise InputError(f"{path} may not be read: permission denied.") from error
    if table.shape[0] == 0:
        raise InputError(f"{path} holds no records.")
    return table


def table_from_frame(frame: Any) -> tuple[pd.DataFrame, pd.Index[Any] | None]:
    """A pandas, polars or Arrow table as a pandas one, and its index where that is not a count."""
    if isinstance(frame, pd.DataFrame):
        table = frame
    elif hasattr(frame, "__arrow_c_stream__"):
        import pyarrow

        table = pyarrow.table(frame).to_pandas()
    elif hasattr(frame, "to_pandas"):
        table = frame.to_pandas()
    else:
        raise InputError(
            f"a pandas, polars or Arrow table is needed, but this is a {type(frame).__name__}."
        )
    if table.shape[0] == 0:
        raise InputError("the frame holds no records.")
    if table.columns.nlevels > 1 or table.index.nlevels > 1:
        raise InputError("the frame's columns and index must have one level each.")
    counts = table.index.equals(pd.RangeIndex(len(table)))
    index = None if counts else table.index
    table = table.set_axis([str(name) for name in table.columns], axis=1)
    _require_distinct(list(table.columns), "the frame")
    return table.reset_index(drop=True), index


def load_array(path: Path) -> NDArray[np.generic]:
    """Read one .npy array, refusing pickled objects."""
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, SyntaxError) as error:
        raise InputError(f"{path} is not a .npy file of numbers ({_first_line(error)}).") from error
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path} holds several arrays; rename it to end in .npz.")
    return array


def _read_delimited(path: Path, separator: str) -> pd.DataFrame:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            header = next(csv.reader(stream, delimiter=separator), [])
        _require_distinct(header, path)
        return pd.read_csv(path, sep=separator, low_memory=False, encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text (byte {error.start} cannot be read)."
        ) from error
    except (pd.errors.ParserError, pd.errors.EmptyDataError, csv.Error, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is not a table ({_first_line(error)}).") from error


def _read_csv(path: Path) -> pd.DataFrame:
    return _read_delimited(path, ",")


def _read_tsv(path: Path) -> pd.DataFrame:
    return _read_delimited(path, "\t")


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        table = pd.read_parquet(path)
    except PermissionError:
        raise
    except (ValueError, OSError, TypeError) as error:  # pyarrow's errors derive from these
        raise InputError(f"{path} is not a Parquet file ({_first_line(error)}).") from error
    table.columns = [str(name) for name in table.columns]
    _require_distinct(list(table.columns), path)
    return table.reset_index(drop=True)


def _read_arrow(path: Path) -> pd.DataFrame:
    """An Arrow IPC file (Feather) or stream."""
    import pyarrow

    table: pd.DataFrame
    with pyarrow.OSFile(str(path), "rb") as stream:
        try:
            table = pyarrow.ipc.open_file(stream).read_all().to_pandas()
        except (ValueError, OSError, TypeError) as error:  # pyarrow's errors derive from these
            try:
                stream.seek(0)
                table = pyarrow.ipc.open_stream(stream).read_all().to_pandas()
            except (ValueError, OSError, TypeError):
                raise InputError(f"{path} is not an Arrow file ({_first_line(error)}).") from error
    table.columns = [str(name) for name in table.columns]
    _require_distinct(list(table.columns), path)
    return table.reset_index(drop=True)


def _read_npy(path: Path) -> pd.DataFrame:
    return _frame(load_array(path), path)


def _load_archive(path: Path) -> dict[str, NDArray[np.generic]]:
    try:
        archive = np.load(path, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise InputError(f"{path} holds a single array; rename it to end in .npy.")
        with archive:
            arrays = {name: archive[name] for name in archive.files}
    except InputError:
        raise
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, SyntaxError) as error:
        raise InputError(
            f"{path} is not an .npz archive of numbers ({_first_line(error)})."
        ) from error
    # A member that is no array comes back as its bytes.
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise InputError(f"{path} is not an .npz archive of numbers ({name} is no array).")
    return arrays


def _read_npz(path: Path) -> pd.DataFrame:
    arrays = _load_archive(path)
    features = _first_present(arrays, FEATURE_KEYS)
    if features is None:
        if len(arrays) != 1:
            raise InputError(
                f"{path} holds {', '.join(arrays) or 'nothing'}; call the features X and the "
                "target y."
            )
        features = next(iter(arrays.values()))
    table = _frame(features.reshape(len(features), -1) if features.ndim > 2 else features, path)
    for name, keys in ((UNNAMED_TARGET, TARGET_KEYS), (UNNAMED_ID, ID_KEYS)):
        column = _first_present(arrays, keys)
        if column is None:
            continue
        if column.ndim != 1 or len(column) != len(table):
            raise InputError(
                f"{path}: {name} has shape {column.shape}, but there are {len(table)} records; "
                f"it must be ({len(table)},)."
            )
        table[name] = column
    return table


READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".parquet": _read_parquet,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
    ".npy": _read_npy,
    ".npz": _read_npz,
}


def _frame(array: NDArray[np.generic], path: Path) -> pd.DataFrame:
    if array.ndim != 2:
        raise InputError(
            f"{path}: the array must have two dimensions, records by columns, but its shape is "
            f"{array.shape}."
        )
    return pd.DataFrame(array, columns=[f"x{position}" for position in range(array.shape[1])])


def _first_present(
    arrays: dict[str, NDArray[np.generic]], names: tuple[str, ...]
) -> NDArray[np.generic] | None:
    return next((arrays[name] for name in names if name in arrays), None)


def _require_distinct(names: list[str], path: Path | str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{path} has two columns called {name!r}; rename one of them.")
        seen.add(name)


def _first_line(error: BaseException) -> str:
    if "pickle" in str(error):
        # NumPy suggests to load it unsafely; nobody should.
        return "it holds something else; pickled objects are refused"
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0].rstrip(".")
