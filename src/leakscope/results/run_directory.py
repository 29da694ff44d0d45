"""The run directory: settings, result, table, arrays and pictures of one run, with its digests."""

from __future__ import annotations

import csv
import errno
import hashlib
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StringConstraints, ValidationError

from leakscope.data.files import is_there, read_json, require_file, require_usable_name
from leakscope.errors import InputError
from leakscope.results.document import Entry, Number, ResultDocument, to_json
from leakscope.settings.setting import first_problem

RUNS_FOLDER = "leakscope-runs"
DIGESTS_FILE = "digests.json"
GALLERY_FILE = "gallery.json"

# Only their owner may read the files of a run; mkdtemp gives its folder the mode 0700.
PRIVATE_MODE = 0o600

# As default_run_directory makes them.
_PROPOSED = re.compile(r"\d{8}T\d{6}Z-")

# Whose versions a run records: those that can change a number.
VERSIONED_PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "jax", "jaxlib")


def default_run_directory(verb: str, name: str, *, now: datetime | None = None) -> Path:
    """``leakscope-runs/<UTC time>-<verb>-<name>``, with a number at the end where it is taken.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> from leakscope import results
    >>> now = datetime(2026, 1, 2, tzinfo=UTC)
    >>> results.run_directory.default_run_directory("audit", "my data", now=now).name
    '20260102T000000Z-audit-my_data'
    """
    time = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("._-")[:60] or "run"
    base = Path(RUNS_FOLDER) / f"{time}-{verb}-{safe}"
    candidate, number = base, 2
    while candidate.exists():
        candidate = base.with_name(f"{base.name}-{number}")
        number += 1
    return candidate


def require_free(directory: Path) -> None:
    """Refuse a run directory that is already there, before any work is done."""
    require_usable_name(directory)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise InputError(f"{directory} is already there; name a new run directory.")


def write_run_directory(
    directory: str | Path,
    document: ResultDocument,
    *,
    columns: Sequence[str] = (),
    rows: Iterable[Sequence[Any]] = (),
    arrays: Mapping[str, NDArray[Any]] | None = None,
    files: Mapping[str, bytes] | None = None,
) -> Path:
    """Write ``settings.json``, ``result.json``, ``records.csv``, ``arrays.npz`` and other files.

    ``digests.json`` holds the SHA-256 of each, by which a change is seen.

    Parameters
    ----------
    directory
        Where; it must not be there yet, or be empty.
    document
        The result.
    columns, rows
        The table for people, one row per record.
    arrays
        Large arrays, by name.
    files
        The contents of other files, such as pictures, by name.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import leakscope
    >>> from leakscope import results
    >>> found = leakscope.measure("normal:0,1.4", "normal:0,0.7")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = results.write_run_directory(pathlib.Path(folder, "run"), found)
    ...     sorted(file.name for file in run.iterdir())
    ['arrays.npz', 'digests.json', 'records.csv', 'result.json', 'settings.json']
    """
    return write_folder(
        Path(directory), lambda partial: _fill(partial, document, columns, rows, arrays, files)
    )


def complete_run_directory(
    directory: Path,
    document: ResultDocument,
    *,
    columns: Sequence[str] = (),
    rows: Iterable[Sequence[Any]] = (),
    arrays: Mapping[str, NDArray[Any]] | None = None,
) -> Path:
    """The same in a directory where the run was computed, and beside what it holds already."""
    try:
        _fill(directory, document, columns, rows, arrays, None)
    except OSError as error:
        raise InputError(
            f"the run directory {directory} cannot be written: {error.strerror or error}."
        ) from error
    return directory


def write_folder(directory: Path, fill: Callable[[Path], None]) -> Path:
    """Have a folder filled beside its place, for its owner only, and then put there whole."""
    require_free(directory)
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
        try:
            fill(partial)
            for file in partial.iterdir():
                file.chmod(PRIVATE_MODE)
            return _placed(partial, directory)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    except OSError as error:
        raise InputError(
            f"the folder {directory} cannot be written: {error.strerror or error}."
        ) from error


def _fill(
    place: Path,
    document: ResultDocument,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    arrays: Mapping[str, NDArray[Any]] | None,
    files: Mapping[str, bytes] | None,
) -> None:
    """The files of a run, each for its owner only, and last the digests of all."""
    settings = {
        "kind": document.kind,
        "created": document.created.isoformat(),
        "settings": document.settings,
        "versions": versions(),
    }
    (place / "settings.json").write_text(to_json(settings) + "\n", encoding="utf-8")
    with (place / "records.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows([_no_formula(cell) for cell in row] for row in rows)
    with (place / "arrays.npz").open("wb") as binary:
        np.savez_compressed(binary, **(arrays or {}))  # type: ignore[arg-type]
    for name, content in (files or {}).items():
        (place / name).write_bytes(content)
    # The result last: a directory that holds one is whole but for its digests.
    (place / "result.json").write_text(to_json(document) + "\n", encoding="utf-8")
    names = sorted(("settings.json", "records.csv", "arrays.npz", "result.json", *(files or ())))
    digests = to_json({name: digest_of(place / name) for name in names})
    (place / DIGESTS_FILE).write_text(digests + "\n", encoding="utf-8")
    for name in (*names, DIGESTS_FILE):
        (place / name).chmod(PRIVATE_MODE)


def _placed(partial: Path, directory: Path) -> Path:
    """Move a whole run to its place; a name that was only proposed may get another number."""
    proposed = directory.parent.name == RUNS_FOLDER and _PROPOSED.match(directory.name)
    target, number = directory, 2
    while True:
        try:
            partial.rename(target)
            return target
        except OSError as error:
            # Another run ended in the same second and took the name.
            if not proposed or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        target = directory.with_name(f"{directory.name}-{number}")
        number += 1


def _no_formula(cell: Any) -> Any:
    """A text that a spreadsheet would run as a formula, with an apostrophe before it."""
    if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{cell}"
    return cell


def versions() -> dict[str, str]:
    """Versions of what can change a number."""
    found = {"python": platform.python_version()}
    for package in ("leakscope", *VERSIONED_PACKAGES):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed as a package"
    return found


def digest_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal digits."""
    require_file(path)
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def require_unchanged(directory: Path, names: tuple[str, ...] | None = None) -> bool:
    """Refuse a run, or the named files of one, that changed since; whether there is a digest."""
    place = directory / DIGESTS_FILE
    if not is_there(place):
        return False
    digests = read_json(place)
    if not isinstance(digests, dict) or not all(
        isinstance(entry, str) and re.fullmatch("[0-9a-f]{64}", entry) for entry in digests.values()
    ):
        raise InputError(f"{place} does not hold the digests of the run's files.")
    for name in digests if names is None else digests.keys() & set(names):
        if Path(name).name != name or not is_there(directory / name):
            raise InputError(f"{directory} is not whole: {name} is missing.")
        if digest_of(directory / name) != digests[name]:
            raise InputError(
                f"{directory / name} was changed after the run was written; make the run again, or "
                f"remove {DIGESTS_FILE} if you meant to change it."
            )
    return names is None or bool(digests.keys() & set(names))


PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"

# Plain names only: a gallery never leads out of its run directory.
PictureName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,60}\.png$")]


class Picture(Entry):
    """A record that is a picture: its id, its target in words and its file."""

    record_id: int | str
    target: str
    file: PictureName


class Neighbour(Picture):
    """A picture with its correlation k(x, z) / sqrt(k(x, x) k(z, z)) to the record."""

    similarity: Number


class ExposedPicture(Picture):
    """One of the most exposed records, with those most similar to it."""

    rank: int
    neighbours: list[Neighbour]


class Gallery(Entry):
    """The pictures of a run, most exposed record first; ``gallery.json`` in its directory.

    ``disagreeing`` has those whose label the other records contradict most, the worst first.
    """

    pictures: list[ExposedPicture]
    disagreeing: list[ExposedPicture] = Field(default_factory=list)

    def files(self) -> list[str]:
        """The names of all picture files, each once."""
        every = (*self.pictures, *self.disagreeing)
        return list(dict.fromkeys(p.file for shown in every for p in (shown, *shown.neighbours)))


def read_gallery(directory: Path) -> tuple[Gallery, dict[str, bytes]]:
    """The gallery of a run directory and the contents of its files; empty where it has none."""
    path = directory / GALLERY_FILE
    if not path.exists():
        return Gallery(pictures=[]), {}
    require_file(path)
    contents: dict[str, bytes] = {}
    try:
        gallery = Gallery.model_validate_json(path.read_bytes())
        for name in gallery.files():
            require_file(directory / name)
            contents[name] = (directory / name).read_bytes()
            if not contents[name].startswith(PNG_SIGNATURE):
                raise InputError(f"{directory / name} is not a PNG picture.")
    except ValidationError as error:
        raise InputError(f"{path} is not a gallery: {first_problem(error)}.") from error
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read: {error.strerror or error}.") from error
    return gallery, contents
