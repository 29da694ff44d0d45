"""A run's digest of itself: what each of its files was when the run was written.

It tells of a change, by a hand or a disk, and not who made it: whoever can write the run can write
its digests too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from leakscope.data import is_there, read_json, require_file
from leakscope.errors import InputError

DIGESTS_FILE = "digests.json"


def digest_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal digits."""
    require_file(path)
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def run_digests(directory: Path, names: Iterable[str]) -> dict[str, str]:
    """The digests of the files of a run that is about to be whole, by name."""
    return {name: digest_of(directory / name) for name in sorted(names)}


def require_unchanged(directory: Path, names: tuple[str, ...] | None = None) -> bool:
    """Refuse a run, or the named files of one, that changed since; whether there is a digest.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from leakscope.results.run_digests import require_unchanged
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     require_unchanged(pathlib.Path(folder))
    False
    """
    place = directory / DIGESTS_FILE
    if not is_there(place):
        return False
    told = read_json(place)
    if not isinstance(told, dict) or not all(
        isinstance(entry, str) and re.fullmatch("[0-9a-f]{64}", entry) for entry in told.values()
    ):
        raise InputError(f"{place} does not hold the digests of the run's files.")
    for name, digest in told.items():
        if names is not None and name not in names:
            continue
        if Path(name).name != name or not is_there(directory / name):
            raise InputError(f"{directory} is not whole: {name} is missing.")
        if digest_of(directory / name) != digest:
            raise InputError(
                f"{directory / name} was changed after the run was written; make the run again, or "
                f"remove {DIGESTS_FILE} if the change was meant."
            )
    return names is None or any(name in told for name in names)
