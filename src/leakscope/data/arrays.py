"""Arrays from .npy and .npz files: what the header claims is checked before anything is allocated.

A few bytes of header can claim any size, and a few megabytes of an archive can unpack to any.
NumPy allocates what the header claims.  So the claim is compared with the bytes that are there,
and with the memory that there is, first.  Objects are never unpickled.
"""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.memory import format_bytes, require_memory
from leakscope.data.files import REMEDY, printable, require_file, told_as
from leakscope.errors import InputError

Array = NDArray[np.generic]

MAGIC = b"\x93NUMPY"
ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")


def read_array(path: Path) -> Array:
    """The array of an .npy file; refused where it claims more than the file or the memory holds."""
    size = require_file(path)
    with told_as(f"{path} is not a .npy file of numbers"), path.open("rb") as stream:
        first = stream.read(len(MAGIC))
        if first.startswith(ZIP_MAGIC):
            raise InputError(f"{path} holds several arrays; rename it to end in .npz.")
        return _array(stream, size, f"{path}")


def read_arrays(
    path: Path, names: Sequence[str] | None = None, *, most: int | None = None
) -> dict[str, Array]:
    """The arrays of an .npz archive by name: all, or those of the names that are there.

    ``most`` is the largest size in bytes that one of them may have.
    """
    require_file(path)
    with told_as(f"{path} is not an .npz archive of numbers"):
        with path.open("rb") as stream:
            if stream.read(len(MAGIC)) == MAGIC:
                raise InputError(f"{path} holds a single array; rename it to end in .npy.")
        with zipfile.ZipFile(path) as archive:
            entries = {one.filename.removesuffix(".npy"): one for one in archive.infolist()}
            wanted = list(entries) if names is None else [n for n in names if n in entries]
            _require_plain_names(path, wanted)
            if most is not None:
                for name in wanted:
                    if entries[name].file_size > most:
                        raise InputError(
                            f"{path}: {name} is far larger than any that leakscope writes."
                        )
            total = sum(entries[name].file_size for name in wanted)
            require_memory(total, f"what {path} unpacks to", REMEDY)
            return {name: _member(archive, entries[name], path, name) for name in wanted}


def _require_plain_names(path: Path, names: list[str]) -> None:
    for name in names:
        if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/"):
            raise InputError(
                f"{path} holds an array called {printable(name)!r}, which is a path; give it a "
                "plain name."
            )


def _member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path, name: str) -> Array:
    with archive.open(entry) as stream:
        if stream.read(len(MAGIC)) != MAGIC:
            raise InputError(f"{path} is not an .npz archive of numbers ({name} is no array).")
        found = _array(stream, entry.file_size, f"{path}: {printable(name)}")
        # Reading on to the end has zipfile compare the checksum.
        while stream.read(1 << 16):
            pass
    return found


def _array(stream: IO[bytes], size: int, where: str) -> Array:
    """The array that a stream of so many bytes holds, once its header has been looked at."""
    stream.seek(0)
    needed, header = _claimed(stream)
    if needed > size - header:
        raise InputError(
            f"{where} claims {format_bytes(needed)} of numbers, but holds "
            f"{format_bytes(max(size - header, 0))}; it was cut, or its header is wrong."
        )
    require_memory(needed, f"the array of {where}", REMEDY)
    stream.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: Any = np.lib.format.read_array(stream, allow_pickle=False)
    if found.dtype.kind == "U" and found.size:
        # Four bytes a sign, which may be numbers that no sign has.
        codes = np.atleast_1d(found).view(np.dtype(np.uint32).newbyteorder(found.dtype.byteorder))
        if np.any((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes <= 0xDFFF))):
            raise ValueError("it holds characters that do not exist")
    return np.asarray(found)


def _claimed(stream: IO[bytes]) -> tuple[int, int]:
    """How many bytes of data the header claims, and how many bytes the header itself has."""
    version: tuple[int, int] = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version[0]}.{version[1]} of the format cannot hold numbers")
    # NumPy says where a header is from Python 2, or what Python thinks of its text.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        else:
            shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    if dtype.hasobject:
        raise ValueError("pickled objects")
    if dtype.kind in "VS" or dtype.itemsize == 0:
        raise ValueError(f"its items are of the type {dtype.str}, which are no numbers")
    if any(isinstance(side, bool) or not 0 <= side < 2**62 for side in shape):
        text = str(tuple(shape))
        raise ValueError(f"it claims the shape {text[:60]}{'…' if len(text) > 60 else ''}")
    return math.prod(shape) * dtype.itemsize, stream.tell()


# Scores of a real model or attack, one number per record, are read from these.
SCORE_SUFFIXES = (".npy", ".csv", ".txt")


def read_scores(path: str | Path) -> NDArray[np.float64]:
    """One column of numbers from .npy, .csv or .txt; a heading in the first line is skipped."""
    path = Path(path)
    require_file(path)
    suffix = path.suffix.lower()
    if suffix not in SCORE_SUFFIXES:
        raise InputError(f"{path}: scores are read from {', '.join(SCORE_SUFFIXES)} files.")
    scores = _from_array(path) if suffix == ".npy" else _from_text(path)
    if scores.size == 0:
        raise InputError(f"{path} holds no scores.")
    bad = ~np.isfinite(scores)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{path}: the score in row {row} is {scores[row]} (rows count from 0); every score "
            "must be a finite number."
        )
    return scores


def _from_array(path: Path) -> NDArray[np.float64]:
    array = read_array(path)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"{path}: scores must be one column, but the shape is {array.shape}.")
    if array.dtype.kind not in "biuf":
        raise InputError(f"{path}: scores must be numbers, but they are of type {array.dtype}.")
    return np.asarray(array, dtype=np.float64)


def _from_text(path: Path) -> NDArray[np.float64]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text (byte {error.start} cannot be read)."
        ) from error
    numbers: list[float] = []
    for number, line in enumerate(lines):
        text = line.strip()
        if not text:
            continue
        try:
            numbers.append(float(text))
        except ValueError:
            if number == 0:
                continue
            raise InputError(
                f"{path}: line {number + 1} holds {text[:40]!r}; one number per line is needed."
            ) from None
    return np.array(numbers, dtype=np.float64)
