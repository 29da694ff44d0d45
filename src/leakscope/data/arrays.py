"""Arrays from .npy and .npz files: nothing larger than the memory is read, and no object."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.memory import require_memory
from leakscope.data.files import REMEDY, printable, require_file, told_as
from leakscope.errors import InputError

Array = NDArray[np.generic]


def read_array(path: Path) -> Array:
    """The array of an .npy file; refused where it claims more than the file or the memory holds."""
    require_file(path)
    with told_as(f"{path} is not a .npy file of numbers"):
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(mapped, np.ndarray):
            raise InputError(f"{path} holds several arrays; rename it to end in .npz.")
        require_memory(mapped.nbytes, f"the array of {path}", REMEDY)
        return np.array(_plain(mapped))


def read_arrays(
    path: Path, names: Sequence[str] | None = None, *, most: int | None = None
) -> dict[str, Array]:
    """The arrays of an .npz archive by name: all, or those of the names that are there.

    ``most`` is the largest size in bytes that one of them may have.
    """
    require_file(path)
    with told_as(f"{path} is not an .npz archive of numbers"):
        if not zipfile.is_zipfile(path):
            raise ValueError("not a zip file")
        # NumPy leaves a file open where it is no archive; one that we opened is closed.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            sizes = {
                one.filename.removesuffix(".npy"): one.file_size for one in archive.zip.infolist()
            }
            wanted = [name for name in (names or archive.files) if name in archive.files]
            for name in wanted:
                if most is not None and sizes[name] > most:
                    raise InputError(
                        f"{path}: {name} is far larger than any that leakscope writes."
                    )
            total = sum(sizes[name] for name in wanted)
            require_memory(total, f"what {path} unpacks to", REMEDY)
            return {name: _plain(archive[name], printable(name)) for name in wanted}


def _plain(array: Any, name: str = "it") -> Array:
    """The array in this machine's order of bytes: numbers, truth values, dates or text."""
    if not isinstance(array, np.ndarray) or array.dtype.kind in "OVS" or not array.itemsize:
        raise ValueError(f"{name} holds no numbers")
    native: Array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if native.dtype.kind == "U" and native.size:
        # Python has no character beyond this one, and NumPy fails when it writes one.
        signs = np.ascontiguousarray(native).reshape(-1).view(np.uint32)
        if signs.max(initial=0) > sys.maxunicode:
            raise ValueError(f"{name} holds characters that do not exist")
    return native


# Scores of a real model or attack, one number per record, are read from these.
SCORE_SUFFIXES = (".npy", ".csv", ".txt")


def read_scores(path: str | Path) -> NDArray[np.float64]:
    """One column of numbers from .npy, .csv or .txt; a heading in the first line is skipped."""
    path = Path(path)
    require_file(path)
    suffix = path.suffix.lower()
    if suffix not in SCORE_SUFFIXES:
        raise InputError(f"{path}: scores are read from {', '.join(SCORE_SUFFIXES)} files.")
    if suffix == ".npy":
        array: Array = read_array(path)
    else:
        with told_as(f"{path} is not UTF-8 text"):
            lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
        array = np.array([line for line in lines if line])
        if array.size and np.isnan(_number(array[0])) and array[0].lower() != "nan":
            array = array[1:]
        array = np.array([_number(text) for text in array])
    column = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if column.ndim != 1 or column.size == 0 or column.dtype.kind not in "biuf":
        raise InputError(
            f"{path}: scores must be one column of numbers, but the shape is {array.shape} and the "
            f"type {array.dtype}."
        )
    scores = column.astype(np.float64)
    bad = ~np.isfinite(scores)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{path}: the score in row {row} is {scores[row]} (rows count from 0); every score "
            "must be a finite number."
        )
    return scores


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
