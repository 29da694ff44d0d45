"""Writing an answer: whole or not at all to a file, and through to a pipe or a device.

A file is written under another name beside its place and then renamed.  To rename a file over a
pipe or a device would destroy it (as root, ``/dev/null`` itself), so those are opened and written
to instead, as a shell's ``>`` does.  A link stays a link: what it leads to is written.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path

from leakscope.data.reasons import reason
from leakscope.errors import InputError

_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR = re.compile(r"/(?:dev|proc/(?:self|thread-self|\d+))/fd/(\d+)")


def write_file(path: Path, content: bytes) -> None:
    """Write bytes to what the path leads to: a file (for its owner only), a pipe or a device.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from leakscope.data import write_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "answer.json")
    ...     write_file(file, b"{}")
    ...     file.read_bytes(), oct(file.stat().st_mode & 0o777)
    (b'{}', '0o600')
    """
    try:
        require_output(path)
        if is_stream(path):
            _write_through(path, content)
        else:
            _write_whole(Path(os.path.realpath(path)), content)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error


def require_output(path: Path) -> None:
    """Refuse what an answer is never written to: a disk as such, a socket.

    Examples
    --------
    >>> from pathlib import Path
    >>> from leakscope.data import require_output
    >>> require_output(Path("not-there-yet.json"))
    """
    mode = _mode(path)
    if mode is None or descriptor_of(path) is not None:
        return
    if stat.S_ISBLK(mode):
        raise InputError(f"{path} is a disk, and would be destroyed; name a file.")
    if stat.S_ISSOCK(mode):
        raise InputError(f"{path} is a socket, which cannot be written to; name a file.")


def require_plain_output(path: Path, what: str) -> None:
    """Refuse a pipe or a device where ``what`` needs a file that can be read back.

    Examples
    --------
    >>> from pathlib import Path
    >>> from leakscope.data import require_plain_output
    >>> require_plain_output(Path("not-there-yet.parquet"), "a table")
    """
    require_output(path)
    if is_stream(path):
        raise InputError(f"{path} is a pipe or a device, and {what} needs a file; name one.")


def is_stream(path: Path) -> bool:
    """Whether what is written there goes through at once: a pipe, a device, an open descriptor."""
    mode = _mode(path)
    if descriptor_of(path) is not None:
        return True
    return mode is not None and (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode))


def descriptor_of(path: Path) -> int | None:
    """The number of the open descriptor that a path such as /dev/stdout names; None otherwise.

    Examples
    --------
    >>> from pathlib import Path
    >>> from leakscope.data import descriptor_of
    >>> descriptor_of(Path("/dev/stdout")), descriptor_of(Path("/dev/fd/63"))
    (1, 63)
    """
    text = os.path.abspath(path)
    found = _DESCRIPTOR.fullmatch(text)
    if found is None:
        return _STREAMS.get(text)
    owner = text.split("/")[2] if text.startswith("/proc/") else "self"
    return int(found[1]) if owner in ("self", "thread-self", str(os.getpid())) else None


def partial_beside(path: Path) -> Path:
    """Where a file is written before it is whole; a name that fits however long the file's is.

    The name is new each time: in a container every run may be process 1, and what a killed one
    left must not stand in the way of the next.

    Examples
    --------
    >>> from pathlib import Path
    >>> from leakscope.data import partial_beside
    >>> partial_beside(Path("folder/a.json")).parent.name
    'folder'
    """
    return path.with_name(f".{path.name[:50]}.{secrets.token_hex(6)}.partial")


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be written: {reason(error)}.") from error


def _write_through(path: Path, content: bytes) -> None:
    own = descriptor_of(path)
    # A descriptor is used as it is: opened anew, a file behind it would be written from its start.
    descriptor = os.open(path, os.O_WRONLY | os.O_NOCTTY) if own is None else os.dup(own)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)


def _write_whole(path: Path, content: bytes) -> None:
    partial = partial_beside(path)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
