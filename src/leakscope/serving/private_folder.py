"""The server's folder: for one user, locked while it is in use, removed if it is left behind."""

from __future__ import annotations

import contextlib
import html
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Any

from leakscope.data import write_file

fcntl: Any
try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None

FOLDER_PREFIX, LOCK_FILE = "leakscope-serve-", ".in-use"


def hold(folder: Path) -> int:
    """Lock a folder for as long as this process lives, however it ends; the lock's descriptor."""
    descriptor = os.open(folder / LOCK_FILE, os.O_WRONLY | os.O_CREAT, 0o600)
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def remove_abandoned(place: Path | None = None) -> None:
    """Remove this user's folders of servers that were killed, with what was uploaded to them."""
    if fcntl is None:
        return
    for folder in (place or Path(tempfile.gettempdir())).glob(f"{FOLDER_PREFIX}*"):
        with contextlib.suppress(OSError):
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                continue
            descriptor = os.open(folder / LOCK_FILE, os.O_WRONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def doorway(folder: Path, address: str) -> Path:
    """A page for this user only that leads to the address.

    The address itself, among a browser's arguments, would show its token to every user.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from leakscope.serving.private_folder import doorway
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = doorway(pathlib.Path(folder), "http://127.0.0.1:8000/?token=secret")
    ...     page.name, oct(page.stat().st_mode & 0o777), "token=secret" in page.read_text()
    ('open.html', '0o600', True)
    """
    page = folder / "open.html"
    text = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>leakscope</title>'
        '<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" '
        f'content="0;url={html.escape(address)}"></head></html>\n'
    )
    write_file(page, text.encode())
    return page
