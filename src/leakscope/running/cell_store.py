"""The cells of a long run: a directory that loses nothing when its process is killed.

A run is cut into cells, each computed on its own from its parameters and the run's seed.  The
directory holds ``run.json`` (what is computed, the seed, versions) and ``cells.sqlite``, one row a
finished cell, written in one transaction.  A row carries a checksum: a cell that the disk garbled
is not there, and is computed again.  Rows are keyed by the cell's name, so that two processes on
one run may do a cell twice but never count it twice; claims keep them from doing so as a rule.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import socket
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.data.files import is_there, require_usable_name
from leakscope.errors import InputError
from leakscope.results.document import to_json, write_private
from leakscope.results.run_directory import versions

RUN_FILE, CELLS_FILE = "run.json", "cells.sqlite"

# A claim of a process on this machine ends with the process; one of another machine after this.
CLAIM_SECONDS = 900.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS cells (
    name TEXT PRIMARY KEY, parameters TEXT NOT NULL, numbers TEXT NOT NULL, arrays BLOB,
    checksum TEXT NOT NULL, seconds REAL NOT NULL, finished REAL NOT NULL, version TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS claims (
    name TEXT PRIMARY KEY, host TEXT NOT NULL, process INTEGER NOT NULL, made REAL NOT NULL
) STRICT;
"""


@dataclass(frozen=True)
class FinishedCell:
    """One finished cell: what it was asked, what it found, how long it took, and when it was done.

    Parameters and numbers are plain JSON; larger findings are arrays, by name.
    """

    name: str
    parameters: dict[str, Any]
    numbers: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    seconds: float
    finished: float = 0.0


class StoppedError(InputError):
    """Something outside the run's own question failed; what was computed stays, to go on from."""


class CellStore:
    """The finished cells of a run in a directory; open one with :func:`open_cells`."""

    def __init__(self, directory: Path, connection: sqlite3.Connection) -> None:
        self.directory = directory
        self._connection = connection
        self._version = versions()["leakscope"]

    def put(
        self,
        name: str,
        parameters: Mapping[str, Any],
        numbers: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]] | None = None,
        *,
        seconds: float,
    ) -> None:
        """Store a finished cell in one transaction; one that is there already stays as it is."""
        asked, found = _plain(parameters), _plain(numbers)
        packed = _packed(arrays) if arrays else None
        checksum = _checksum(name, asked, found, packed)
        told = float(seconds), time.time(), self._version
        row = (name, asked, found, packed, checksum, *told)
        with self._transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO cells VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            connection.execute("DELETE FROM claims WHERE name = ?", (name,))

    def get(self, name: str) -> FinishedCell:
        """A finished cell by its name."""
        rows = list(self._cells("WHERE name = ?", (name,)))
        if not rows:
            raise InputError(f"{self.directory} has no finished cell {name!r}.")
        return rows[0]

    def finished(self) -> set[str]:
        """The names of the finished cells; garbled ones are dropped first."""
        self.drop_garbled()
        with self._reading() as connection:
            return {name for (name,) in connection.execute("SELECT name FROM cells")}

    def cells(self) -> Iterator[FinishedCell]:
        """All finished cells, by name."""
        return self._cells("ORDER BY name", ())

    def drop_garbled(self) -> list[str]:
        """Drop the cells whose checksum is wrong, and name them."""
        query = "SELECT name, parameters, numbers, arrays, checksum FROM cells"
        with self._reading() as connection:
            rows = connection.execute(query)
            wrong = [row[0] for row in rows if _checksum(*row[:4]) != row[4]]
        if wrong:
            with self._transaction() as connection:
                connection.executemany("DELETE FROM cells WHERE name = ?", [(n,) for n in wrong])
        return wrong

    def claim(self, name: str) -> bool:
        """Whether this process is the one to compute the cell; the claim ends with the process."""
        now, host, process = time.time(), socket.gethostname(), os.getpid()
        with self._transaction() as connection:
            if connection.execute("SELECT 1 FROM cells WHERE name = ?", (name,)).fetchone():
                return False
            held = connection.execute(
                "SELECT host, process, made FROM claims WHERE name = ?", (name,)
            ).fetchone()
            if (
                held is not None
                and held[:2] != (host, process)
                and _holds(held[0], held[1], held[2], host, now)
            ):
                return False
            connection.execute(
                "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?)", (name, host, process, now)
            )
        return True

    def release(self, names: Iterable[str]) -> None:
        """Give up claims, so that others may take the cells."""
        with self._transaction() as connection:
            connection.executemany("DELETE FROM claims WHERE name = ?", [(n,) for n in names])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> CellStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _cells(self, clause: str, values: tuple[Any, ...]) -> Iterator[FinishedCell]:
        columns = "name, parameters, numbers, arrays, checksum, seconds, finished"
        query = f"SELECT {columns} FROM cells {clause}"
        with self._reading() as connection:
            rows = connection.execute(query, values).fetchall()
        for name, parameters, numbers, arrays, checksum, *times in rows:
            if _checksum(name, parameters, numbers, arrays) == checksum:
                yield FinishedCell(
                    name, json.loads(parameters), json.loads(numbers), _unpacked(arrays), *times
                )

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self._connection
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _unusable(self, error: sqlite3.DatabaseError) -> InputError:
        return StoppedError(
            f"{self.directory / CELLS_FILE} cannot be used ({error}); finished cells stay as they "
            "are, and the run goes on from there when it is started again."
        )


def open_cells(directory: str | Path, *, settings: Mapping[str, Any], seed: int) -> CellStore:
    """Open a run, or begin it where the directory is new or empty.

    Parameters
    ----------
    directory
        The run.
    settings
        What is computed, as plain JSON; a run that was begun with others is refused.
    seed
        The run's seed, likewise.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from leakscope.running import open_cells
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = pathlib.Path(folder, "run")
    ...     with open_cells(place, settings={"what": "squares"}, seed=0) as store:
    ...         store.put("3", {"x": 3}, {"square": 9}, seconds=0.1)
    ...     with open_cells(place, settings={"what": "squares"}, seed=0) as store:
    ...         store.get("3").numbers
    {'square': 9}
    """
    place = Path(directory)
    require_usable_name(place)
    asked = json.loads(to_json({"settings": dict(settings), "seed": int(seed)}))
    if (place / RUN_FILE).exists():
        _require_same(place, asked)
    else:
        # A hidden file may be another process's, which is beginning this very run.
        if place.exists() and (
            not place.is_dir() or any(file.name[0] != "." for file in place.iterdir())
        ):
            raise InputError(f"{place} is already there and is no run; name a new directory.")
        try:
            place.mkdir(parents=True, exist_ok=True)
            place.chmod(0o700)
        except OSError as error:
            raise InputError(f"{place} cannot be made: {error.strerror or error}.") from error
        write_private(place / RUN_FILE, to_json({**asked, "versions": versions()}) + "\n")
    return CellStore(place, _connected(place / CELLS_FILE))


def read_cells(directory: str | Path) -> CellStore:
    """Open a run that is there, whatever its settings, to read it."""
    place = Path(directory)
    if not (is_there(place / RUN_FILE) and is_there(place / CELLS_FILE)):
        raise InputError(f"{place} is no run with cells.")
    return CellStore(place, _connected(place / CELLS_FILE))


def run_description(directory: str | Path) -> dict[str, Any]:
    """What a run's ``run.json`` holds: settings, seed and versions."""
    path = Path(directory) / RUN_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{directory} is no run: it has no {RUN_FILE}.") from None
    except RecursionError:
        raise InputError(f"{path} is nested too deeply and describes no run.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}).") from error
    if (
        not isinstance(content, dict)
        or "seed" not in content
        or not isinstance(content.get("settings"), dict)
    ):
        raise InputError(f"{path} does not describe a run: it has no settings and seed.")
    return content


def _require_same(place: Path, asked: dict[str, Any]) -> None:
    there = run_description(place)
    before = {**there["settings"], "seed": there["seed"]}
    now = {**asked["settings"], "seed": asked["seed"]}
    for name in sorted(set(before) | set(now)):
        if before.get(name) != now.get(name):
            raise InputError(
                f"{place} was begun with {name} = {before.get(name)!r}, and now it is "
                f"{now.get(name)!r}: ask the same again, or name a new directory."
            )


def _connected(path: Path) -> sqlite3.Connection:
    try:
        new = not path.exists()
        connection = sqlite3.connect(path, timeout=60.0, isolation_level=None)
        if new:
            path.chmod(0o600)
        # Write-ahead: a killed process leaves whole transactions, and readers never wait.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.executescript(_SCHEMA)
    except sqlite3.DatabaseError as error:
        # An OperationalError is about the place: a full disk, or one that cannot be written to.
        whole = isinstance(error, sqlite3.OperationalError)
        what = "cannot be used" if whole else "is not a file of cells"
        raise InputError(f"{path} {what} ({error}).") from error
    return connection


def _holds(host: str, process: int, made: float, here: str, now: float) -> bool:
    """Whether another process's claim still stands."""
    if host != here:
        return now - made < CLAIM_SECONDS
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _plain(values: Mapping[str, Any]) -> str:
    return json.dumps(json.loads(to_json(dict(values))), sort_keys=True)


def _packed(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **{name: np.asarray(array) for name, array in arrays.items()})  # type: ignore[arg-type]
    return buffer.getvalue()


def _unpacked(blob: bytes | None) -> dict[str, NDArray[Any]]:
    if blob is None:
        return {}
    with np.load(io.BytesIO(blob), allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _checksum(name: str, parameters: str, numbers: str, arrays: bytes | None) -> str:
    digest = hashlib.sha256()
    for part in (name.encode(), parameters.encode(), numbers.encode(), arrays or b""):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()
