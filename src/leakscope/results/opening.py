"""The result that somebody means: in memory, in a run, or in a file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from leakscope.data import is_folder
from leakscope.results.document import ResultDocument, to_json
from leakscope.results.reader import read_result
from leakscope.results.run_digests import digest_of, require_unchanged
from leakscope.results.run_reader import Run


def result_of(given: ResultDocument | Run | str | Path) -> ResultDocument:
    """The result itself, that of a run, or the one in a run directory or a result file.

    Raises
    ------
    InputError
        Where there is none.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import leakscope
    >>> from leakscope import results
    >>> found = leakscope.measure("normal:0,1.4", "normal:0,0.7")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = results.write_result(found, pathlib.Path(folder, "measured.json"))
    ...     results.result_of(file) == results.result_of(found)
    True
    """
    if isinstance(given, ResultDocument):
        return given
    if isinstance(given, Run):
        return given.document
    path = Path(given)
    return read_result(path / "result.json" if is_folder(path) else path)


def digest_of_result(given: ResultDocument | Run | str | Path) -> str:
    """SHA-256 of the result's file, or of what would be written of a result in memory.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import leakscope
    >>> from leakscope import results
    >>> found = leakscope.measure("normal:0,1.4", "normal:0,0.7")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = results.write_result(found, pathlib.Path(folder, "measured.json"))
    ...     results.digest_of_result(file) == results.digest_of_result(found)
    True
    """
    if isinstance(given, ResultDocument):
        return hashlib.sha256(f"{to_json(given)}\n".encode()).hexdigest()
    path = given.directory if isinstance(given, Run) else Path(given)
    return digest_of(path / "result.json" if is_folder(path) else path)


def has_digest(run: str | Path) -> bool:
    """Whether a run directory carries a digest of itself; runs of earlier versions do not.

    Raises
    ------
    InputError
        Where it does and its result was changed since.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope import results
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> result = leakscope.audit(X, y, kernel="rbf")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results.has_digest(result.write(pathlib.Path(folder, "run")))
    True
    """
    return require_unchanged(Path(run), ("result.json",))
