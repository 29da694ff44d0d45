"""A Hugging Face dataset on disk, as ``datasets.save_to_disk`` leaves it, read by pyarrow alone.

A folder holds ``state.json`` (the names of the Arrow files, in the stream format),
``dataset_info.json`` (what the columns are) and the Arrow files; a folder of splits holds
``dataset_dict.json`` and one such folder a split.  The files are mapped into memory, nothing that
they hold is executed, and no name in them leads out of the folder.  The library ``datasets`` is
not needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope._numerics.memory import require_memory
from leakscope.data.arrow_tables import (
    open_arrow,
    require_distinct,
    require_memory_in_full,
    row_bytes,
)
from leakscope.data.columns import listed
from leakscope.data.files import REMEDY, printable, read_json, require_file, told_as
from leakscope.data.pictures import EncodedPicture, array_picture, decode_pictures
from leakscope.errors import InputError

STATE, INFO, SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"


@dataclass(frozen=True)
class HuggingFaceFolder:
    """An opened folder: its ``pyarrow.Table``, mapped, and what its columns are.

    ``where`` is the folder of the split that was taken, for sentences; ``kinds`` is what
    ``dataset_info.json`` says of each column.
    """

    where: str
    name: str
    split: str | None
    table: Any
    kinds: dict[str, dict[str, Any]]

    @property
    def columns(self) -> list[str]:
        """The columns' names, before lists and pictures are spread out."""
        return [str(name) for name in self.table.column_names]

    def is_class(self, column: str) -> bool:
        """Whether a column is a ``ClassLabel``."""
        return self.kinds.get(column, {}).get("_type") == "ClassLabel"


@dataclass(frozen=True)
class ReadColumns:
    """A folder's columns as a table of plain values, and what was done, in words.

    Class labels stand by name; a list of numbers is a column each, ``embedding[0]`` and so on, and
    a picture one each pixel.  ``picture`` is height, width and, in colour, 3, where one column is
    pictures.
    """

    frame: pd.DataFrame
    steps: tuple[str, ...]
    picture: tuple[int, ...] | None


def is_hugging_face(folder: Path) -> bool:
    """Whether a folder looks like one that ``save_to_disk`` wrote."""
    return (folder / STATE).is_file() or (folder / SPLITS).is_file()


def open_hugging_face(folder: Path, split: str | None = None) -> HuggingFaceFolder:
    """Open a folder, or one split of it; nothing is decoded yet."""
    place, name = folder, folder.resolve().name
    if (folder / SPLITS).is_file():
        split = _chosen_split(folder, split)
        place, name = folder / split, f"{name}-{split}"
        _require_inside(place, folder)
    elif split is not None:
        raise InputError(f"{folder} holds one dataset without splits; leave --split out.")
    state, info = _described(place, STATE), _described(place, INFO)
    kinds = _object(info.get("features"), place / INFO, "features")
    parts = [_mapped(place, file) for file in _file_names(state, "_data_files", place)]
    if not parts:
        raise InputError(f"{place / STATE} names no data files.")
    table = _joined(parts, place)
    indices = list(_file_names(state, "_indices_data_files", place))
    if indices:
        table = _taken(table, _joined([_mapped(place, file) for file in indices], place), place)
    if table.num_rows == 0:
        raise InputError(f"{place} holds no records.")
    require_distinct([str(column) for column in table.column_names], place)
    described = {str(k): v for k, v in kinds.items() if isinstance(v, dict)}
    return HuggingFaceFolder(str(place), name, split, table, described)


def read_columns(folder: HuggingFaceFolder, ignored: frozenset[str]) -> ReadColumns:
    """The columns as plain values; those that are ignored are not decoded, and stand empty."""
    frames: list[pd.DataFrame] = []
    steps: list[str] = []
    picture: tuple[int, ...] | None = None
    pictured = 0
    for name in folder.columns:
        column = folder.table.column(name)
        if name in ignored:
            frames.append(pd.DataFrame({name: np.full(len(column), None, dtype=object)}))
            continue
        require_memory_in_full(column, f"column {name!r} of {folder.where}, written out,")
        kind = folder.kinds.get(name, {})
        if kind.get("_type") == "Image":
            found = decode_pictures(list(_pictures(column, name, folder.where)), folder.where)
            steps.append(
                f"{name}: {len(column)} pictures of {found.in_words()}, one feature a "
                f"{'pixel and colour' if len(found.shape) == 3 else 'pixel'} (Pillow)"
            )
            frames.append(_spread(found.pixels, name))
            picture, pictured = found.shape, pictured + 1
        elif kind.get("_type") == "ClassLabel":
            frames.append(pd.DataFrame({name: _class_names(column, kind, name, folder.where)}))
        elif _is_list(column.type):
            numbers = _numbers_in_lists(column, name, folder.where)
            steps.append(f"{name}: lists of {numbers.shape[1]} numbers, one feature per number")
            frames.append(_spread(numbers, name))
            shape = _array_shape(kind, numbers.shape[1])
            if shape is not None:
                picture, pictured = shape, pictured + 1
        else:
            frames.append(pd.DataFrame({name: _plain(column, name, folder.where)}))
    frame = pd.concat(frames, axis=1)
    return ReadColumns(frame, tuple(steps), picture if pictured == 1 else None)


def _chosen_split(folder: Path, split: str | None) -> str:
    found = _described(folder, SPLITS).get("splits")
    if not isinstance(found, list) or not found or not all(_is_plain(name) for name in found):
        raise InputError(f"{folder / SPLITS} does not name its splits.")
    names = [str(name) for name in found]
    if split is None:
        if len(names) > 1:
            raise InputError(
                f"{folder} holds several splits; name one with --split: {listed(names)}."
            )
        return names[0]
    if split not in names:
        raise InputError(f"{folder} has no split {split!r}; there are {listed(names)}.")
    return split


def _described(folder: Path, name: str) -> dict[str, Any]:
    """One of the folder's JSON files."""
    _require_inside(folder / name, folder)
    return _object(read_json(folder / name), folder / name)


def _object(value: Any, path: Path, what: str | None = None) -> dict[str, Any]:
    if not isinstance(value, dict):
        inside = f"{what} in {path}" if what else f"{path}"
        raise InputError(f"{inside} is not a JSON object, as save_to_disk writes it.")
    return value


def _is_plain(name: object) -> bool:
    """Whether a name stays in its folder."""
    return isinstance(name, str) and name not in ("", ".", "..") and not set(name) & set("/\\\0")


def _file_names(state: dict[str, Any], key: str, place: Path) -> Iterator[str]:
    entries = state.get(key) or []
    if not isinstance(entries, list):
        raise InputError(f"{place / STATE}: {key} is not a list.")
    for entry in entries:
        name = entry.get("filename") if isinstance(entry, dict) else None
        if not _is_plain(name):
            told = printable(str(name)[:80])
            raise InputError(
                f"{place / STATE} names the file {told!r}; a plain name in the folder is needed."
            )
        yield str(name)


def _mapped(place: Path, name: str) -> Any:
    """One Arrow file, mapped into memory and found whole."""
    path = place / name
    require_file(path)
    _require_inside(path, place)
    with told_as(f"{path} is not an Arrow stream"):
        return open_arrow(path, mapped=True)


def _require_inside(path: Path, folder: Path) -> None:
    """Refuse a link that leads out of the folder, whose name says nothing of where it leads."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"{path} is a link that leads out of its folder; put the file there.")


def _joined(parts: list[Any], place: Path) -> Any:
    import pyarrow

    with told_as(f"{place}: its Arrow files do not hold the same columns"):
        return pyarrow.concat_tables(parts)


def _taken(table: Any, indices: Any, place: Path) -> Any:
    """The rows that an older folder's indices choose, in their order."""
    if indices.num_columns != 1 or indices.column(0).null_count:
        raise InputError(f"{place}: its indices must be one column without gaps.")
    from pyarrow import types

    kind = indices.column(0).type
    if not types.is_integer(kind):
        raise InputError(
            f"{place}: its indices are not row numbers (they are of the type "
            f"{printable(str(kind))[:60]})."
        )
    rows = indices.column(0).to_numpy()
    outside = rows[(rows < 0) | (rows >= table.num_rows)]
    if outside.size:
        raise InputError(
            f"{place}: its indices name row {outside[0]}, but there are {table.num_rows} (rows "
            "count from 0)."
        )
    chosen = rows.astype(np.int64)
    # One row may be chosen often.
    sizes = [
        int(np.concatenate([row_bytes(chunk) for chunk in column.chunks])[chosen].sum())
        for column in table.columns
    ]
    require_memory(sum(sizes), f"what the indices of {place} choose", REMEDY)
    return table.take(chosen)


def _pictures(column: Any, name: str, where: str) -> Iterator[EncodedPicture]:
    for row, value in enumerate(column):
        held = value.as_py()
        content = held.get("bytes") if isinstance(held, dict) else None
        called = f"{where}: the picture {name!r} in row {row} (rows count from 0)"
        if not isinstance(content, bytes):
            raise InputError(
                f"{called} is not in the folder; save_to_disk puts it there, or leave the column "
                "out with --ignore."
            )
        yield EncodedPicture(called, content)


def _class_names(column: Any, kind: dict[str, Any], name: str, where: str) -> list[str | None]:
    """Class names; None where a record has no class, which is written as null or -1."""
    names = kind.get("names")
    if not isinstance(names, list) or not all(isinstance(entry, str) for entry in names):
        raise InputError(f"{where}: {INFO} does not name the classes of {name!r}.")
    found: list[str | None] = []
    for row, code in enumerate(column.to_pylist()):
        if code is None or code == -1:
            found.append(None)
        elif isinstance(code, int) and 0 <= code < len(names):
            found.append(names[code])
        else:
            raise InputError(
                f"{where}: column {name!r} holds class {printable(str(code)[:40])} in row {row} "
                f"(rows count from 0), but there are {len(names)} classes."
            )
    return found


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _numbers_in_lists(column: Any, name: str, where: str) -> NDArray[np.float64]:
    """(n, d) the numbers in lists, lists of lists and so on, all of one length."""
    from pyarrow import compute, types

    values, count = column.combine_chunks(), len(column)
    while _is_list(values.type):
        lengths = np.unique(compute.list_value_length(values).fill_null(-1).to_numpy())
        if len(lengths) != 1 or lengths[0] < 1:
            raise InputError(
                f"{where}: the lists in column {name!r} differ in length, or one is empty; "
                "features need one length: leave the column out with --ignore."
            )
        values = values.flatten()
    kind = values.type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        raise InputError(
            f"{where}: column {name!r} holds lists of {printable(str(kind))[:60]}, which are no "
            "numbers; leave it out with --ignore."
        )
    require_memory(16 * len(values), f"the numbers of column {name!r} in {where}", REMEDY)
    numbers = values.cast("float64").to_numpy(zero_copy_only=False)
    return np.asarray(numbers).reshape(count, -1)


def _array_shape(kind: dict[str, Any], size: int) -> tuple[int, ...] | None:
    """The shape of the pictures that an ``Array2D`` or ``Array3D`` column is, where it is."""
    shape = kind.get("shape")
    if kind.get("_type") not in ("Array2D", "Array3D") or not isinstance(shape, list):
        return None
    if not all(isinstance(side, int) and side > 0 for side in shape) or math.prod(shape) != size:
        return None
    return array_picture(tuple(shape))


def _plain(column: Any, name: str, where: str) -> pd.Series[Any]:
    """Numbers, booleans, text or dates as pandas has them; anything nested is refused."""
    from pyarrow import types

    kind = column.type
    if types.is_nested(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        raise InputError(
            f"{where}: column {name!r} holds {printable(str(kind))[:60]}, which cannot be "
            "used as a feature; leave it out with --ignore."
        )
    values: pd.Series[Any] = column.to_pandas(date_as_object=False)
    return values.reset_index(drop=True)


def _spread(values: NDArray[np.float64], name: str) -> pd.DataFrame:
    return pd.DataFrame(values, columns=[f"{name}[{place}]" for place in range(values.shape[1])])
