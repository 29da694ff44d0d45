"""Files from the user: streamed into a private folder under names of our own."""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath, PureWindowsPath

from leakscope.errors import InputError
from leakscope.reporting.pages import in_order
from leakscope.serving.limits import MEGABYTE, Limits

# As leakscope.data reads them; written here so that the start page loads nothing heavy.
SUFFIXES = (".csv", ".data", ".tsv", ".parquet", ".arrow", ".feather", ".npy", ".npz")

LONGEST_NAME = 80

# Before the names of files that an audit waits to read.
KEPT = "kept-"


@dataclass(frozen=True)
class Upload:
    """A file that is there.

    Attributes
    ----------
    id
        Drawn at random.
    name
        The user's own name for it: shown, never used as a path.
    path
        Where it is.
    """

    id: str
    name: str
    path: Path

    def named(self, error: InputError) -> InputError:
        """An error about the file, under the user's name for it."""
        remedy = None if error.remedy is None else self.without_path(error.remedy)
        return InputError(self.without_path(error.what), remedy=remedy, option=error.option)

    def without_path(self, sentence: str) -> str:
        """A sentence about the file, under the user's name for it."""
        return sentence.replace(str(self.path), self.name).replace(self.path.name, self.name)


def shown_name(given: str) -> str:
    """The last part of a file name, as text that can be shown.

    Examples
    --------
    >>> from leakscope.serving.uploads import shown_name
    >>> shown_name("../../etc/pass\\x00wd.csv"), shown_name("C:\\\\data\\\\people.csv")
    ('passwd.csv', 'people.csv')
    """
    last = PureWindowsPath(PurePosixPath(given).name).name
    plain = "".join(sign for sign in in_order(last) if sign.isprintable()).strip()
    if len(plain) > LONGEST_NAME:
        plain = "…" + plain[1 - LONGEST_NAME :]
    return plain or "upload"


def suffix_of(name: str) -> str:
    """The suffix that says what a file is, from a short list."""
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(
            f"{name}: files that end in {suffix or 'nothing'} cannot be read; these can: "
            f"{', '.join(SUFFIXES)}."
        )
    return suffix


class TooLarge(InputError):
    """A file beyond the limit."""


class Uploads:
    """The files that are held, oldest first."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder = folder
        self._limits = limits
        self._held: dict[str, Upload] = {}
        self._lock = threading.Lock()

    async def receive(
        self, given_name: str, announced: int | None, chunks: AsyncIterator[bytes]
    ) -> Upload:
        """Write what streams in; refuse it as soon as it is known to be too large."""
        name = shown_name(given_name)
        suffix = suffix_of(name)
        if announced is not None and announced > self._limits.upload_bytes:
            raise self._too_large(name)
        identity = secrets.token_urlsafe(16)
        path = self._folder / f"upload-{secrets.token_hex(16)}{suffix}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                size = 0
                async for chunk in chunks:
                    size += len(chunk)
                    if size > self._limits.upload_bytes:
                        raise self._too_large(name)
                    stream.write(chunk)
            if size == 0:
                raise InputError(f"{name} is empty.")
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        upload = Upload(identity, name, path)
        with self._lock:
            self._held[identity] = upload
            while len(self._held) > self._limits.uploads_held:
                self._held.pop(next(iter(self._held))).path.unlink(missing_ok=True)
        return upload

    def get(self, identity: str) -> Upload:
        """The file with this id."""
        with self._lock:
            upload = self._held.get(identity)
        if upload is None:
            raise InputError("That file is no longer there; upload it again.")
        return upload

    def kept(self, upload: Upload) -> Upload:
        """The same file under a name of its own, which stays when the upload is dropped.

        It goes by :meth:`release`, or with the server's folder.
        """
        path = self._folder / f"{KEPT}{secrets.token_hex(16)}{upload.path.suffix}"
        try:
            os.link(upload.path, path)
        except FileNotFoundError:
            raise InputError("That file is no longer there; upload it again.") from None
        except OSError:  # a file system without links
            shutil.copyfile(upload.path, path)
            path.chmod(0o600)
        return replace(upload, path=path)

    def release(self, upload: Upload | None) -> None:
        """Remove what :meth:`kept` kept."""
        if upload is not None and upload.path.name.startswith(KEPT):
            upload.path.unlink(missing_ok=True)

    def drop(self, identity: str) -> None:
        """Remove a file."""
        with self._lock:
            upload = self._held.pop(identity, None)
        if upload is not None:
            upload.path.unlink(missing_ok=True)

    def _too_large(self, name: str) -> TooLarge:
        limit = self._limits.upload_bytes / MEGABYTE
        return TooLarge(
            f"{name} is larger than {limit:g} MB; start leakscope serve with a larger --max-upload."
        )
