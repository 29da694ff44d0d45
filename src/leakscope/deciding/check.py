"""Whether a filed record is as it was written."""

from __future__ import annotations

from pathlib import Path

from leakscope.data import is_folder
from leakscope.errors import InputError
from leakscope.results import DECISION_FILES, Decision, read_result, require_sealed


def check_record(path: str | Path) -> str:
    """The hash of a record whose files are as they were written.

    Parameters
    ----------
    path
        A record's .json, .html or .md file, or the folder with all three.

    Raises
    ------
    InputError
        Where it is no record, or a digit of it was changed.

    Examples
    --------
    >>> from leakscope.deciding import check_record
    >>> check_record("no-such-record.json")
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: There is no file no-such-record.json.
    """
    path = Path(path)
    if not is_folder(path):
        return _checked(path)
    found = [_checked(path / name) for name in DECISION_FILES]
    if any(found[0] not in (path / name).read_text(encoding="utf-8") for name in DECISION_FILES):
        raise InputError(f"{path} holds files of different records.")
    return found[0]


def _checked(path: Path) -> str:
    found = require_sealed(path)
    if path.suffix == ".json" and not isinstance(read_result(path), Decision):
        raise InputError(f"{path} is not a record of leakscope decide.")
    return found
