"""The result that somebody means: in memory, in a run, or in a file."""

from __future__ import annotations

from pathlib import Path

from leakscope.data import is_folder
from leakscope.results.document import ResultDocument
from leakscope.results.reader import read_result
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
