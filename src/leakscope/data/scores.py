"""Scores of a real model or attack, one number per record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leakscope.data.arrays import read_array
from leakscope.data.regular_files import require_file
from leakscope.errors import InputError

SUFFIXES = (".npy", ".csv", ".txt")


def read_scores(path: str | Path) -> NDArray[np.float64]:
    """Read one column of numbers from .npy, .csv or .txt; a heading in the first line is skipped.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from leakscope import data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "members.csv")
    ...     _ = file.write_text("score\\n0.9\\n0.4\\n")
    ...     data.read_scores(file).tolist()
    [0.9, 0.4]
    """
    path = Path(path)
    require_file(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{path}: scores are read from {', '.join(SUFFIXES)} files.")
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
