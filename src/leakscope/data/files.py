"""Files that are read and written: what may be opened, what is refused, and why, in a sentence.

Whatever is read as a whole must be a file that ends, not a folder, a pipe or a device.  An answer
is written whole or not at all: under another name beside its place, and then renamed.  To rename a
file over a pipe or a device would destroy it (as root, ``/dev/null`` itself), so those are opened
and written to instead, as a shell's ``>`` does.  A link stays a link: what it leads to is written.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
import tokenize
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError

# What to do where a table or an array does not fit.
REMEDY = "use fewer records, or a machine with more memory"

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def require_file(path: Path) -> int:
    """The file's size in bytes, or a sentence where it is none, or may not be read.

    Whatever is to be read as a whole must end: a pipe may wait for ever, and /dev/zero never stops.
    """
    require_text_name(path)
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # the last: a zero in the name
        raise InputError(f"There is no file {path}.") from None
    except OSError as error:
        raise InputError(f"{_short(path)} cannot be read: {reason(error)}.") from error
    if stat.S_ISDIR(found.st_mode):
        raise InputError(f"{path} is a folder; a file is needed.")
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "no file")
        raise InputError(f"{path} is {kind}; a file is needed.")
    if not os.access(path, os.R_OK):
        raise InputError(f"{path} cannot be read: permission denied.")
    return found.st_size


def require_text_name(path: Path) -> None:
    """Refuse a name whose bytes are no text: it could not be written into a result."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{printable(str(path))} has a name that is not UTF-8 text; rename it."
        ) from None


def require_usable_name(path: Path) -> None:
    """Refuse a name that nothing here can have, such as one of thousands of letters."""
    require_text_name(path)
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        raise InputError(f"{_short(path)} cannot be used: {reason(error)}.") from error


def require_new_file(path: Path, needs: str) -> None:
    """Refuse, before any work is done, a name to which no file can be written.

    ``needs`` ends the sentence about a folder: what needs a file name.
    """
    require_usable_name(path)
    if is_folder(path):
        raise InputError(f"{path} is a folder; {needs}.")
    if not is_folder(path.absolute().parent):
        raise InputError(f"There is no folder {path.parent} to write {path.name} to.")
    require_output(path)


def is_there(path: Path) -> bool:
    """Whether there is something of that name; a name that cannot be one is not."""
    return os.path.exists(path)


def is_folder(path: Path) -> bool:
    """Whether it is a folder; a name that cannot be one is not."""
    return os.path.isdir(path)


def _short(path: Path, most: int = 200) -> str:
    text = str(path)
    return text if len(text) <= most else f"{text[:most]}…"


_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR = re.compile(r"/(?:dev|proc/(?:self|thread-self|\d+))/fd/(\d+)")


def write_file(path: Path, content: bytes) -> None:
    """Write bytes to what the path leads to: a file (for its owner only), a pipe or a device."""
    try:
        require_output(path)
        if is_stream(path):
            _write_through(path, content)
        else:
            _write_whole(Path(os.path.realpath(path)), content)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error


def require_output(path: Path) -> None:
    """Refuse what an answer is never written to: a disk as such, a socket."""
    mode = _mode(path)
    if mode is None or descriptor_of(path) is not None:
        return
    if stat.S_ISBLK(mode):
        raise InputError(f"{path} is a disk, which writing would destroy; name a file.")
    if stat.S_ISSOCK(mode):
        raise InputError(f"{path} is a socket, which cannot be written to; name a file.")


def is_stream(path: Path) -> bool:
    """Whether what is written there goes through at once: a pipe, a device, an open descriptor."""
    mode = _mode(path)
    if descriptor_of(path) is not None:
        return True
    return mode is not None and (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode))


def descriptor_of(path: Path) -> int | None:
    """The number of the open descriptor that a path such as /dev/stdout names; None otherwise."""
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


@contextmanager
def written_with(path: Path, content: bytes) -> Iterator[None]:
    """Write a file together with what is written inside: both are left, or neither.

    The bytes lie beside their place before the work inside begins, and are renamed after it.
    """
    try:
        require_output(path)
        if is_stream(path):
            yield
            _write_through(path, content)
        else:
            with _renamed_after(Path(os.path.realpath(path)), content):
                yield
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error


def _write_whole(path: Path, content: bytes) -> None:
    with _renamed_after(path, content):
        pass


@contextmanager
def _renamed_after(path: Path, content: bytes) -> Iterator[None]:
    partial = partial_beside(path)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        yield
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


# Python's objects for a text of JSON: measured at 4 to 9 times its size for our own results.
OBJECTS_PER_BYTE = 10


def read_json(path: Path) -> Any:
    """What a JSON file holds, which others may have written."""
    size = require_file(path)
    require_memory(
        OBJECTS_PER_BYTE * size, f"{path}, read as JSON,", "use a machine with more memory"
    )
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON ({reason(error)}).") from error


# Libraries say what they stumbled over in words of their own, over several lines, at times with
# advice that nobody should take (to unpickle) or with bytes of the file.  A sentence of ours takes
# the first line, cut to this length, with nothing in it that a terminal would obey.
LONGEST = 160

# What a library says with advice that nobody should take, or over and over, and what we say.
_SAID = {
    "pickle": "it holds something else; pickled objects are refused",
    "recursion": "it is nested too deeply",
    "nested": "it is nested too deeply",
}


def reason(error: BaseException) -> str:
    """Why, as a clause without a full stop."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, MemoryError):
        return "it asks for more memory than there is"
    if isinstance(error, tokenize.TokenError):
        return "its header is not closed"
    if isinstance(error, UnicodeDecodeError):
        return f"it is not {error.encoding.upper()} text: byte {error.start} cannot be read"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    lines = str(error).strip().splitlines() or [type(error).__name__]
    for theirs, ours in _SAID.items():
        if theirs in str(error):
            return ours
    words = printable(lines[0].rpartition("C error: ")[2])
    return (words if len(words) <= LONGEST else f"{words[:LONGEST]}…").rstrip(". ")


@contextmanager
def told_as(sentence: str) -> Iterator[None]:
    """Whatever a library raises on a hostile file, as a sentence with the reason in brackets."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{sentence} ({reason(error)}).") from error


def printable(text: str, keep: str = "") -> str:
    """The text with every sign that a terminal would obey written out, as in ``\\x1b``.

    Control characters, and signs that turn the direction of writing or are not to be seen, could
    make a name on the screen look like another, or like a line of its own.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        sign
        if sign in keep or unicodedata.category(sign) not in _OBEYED
        else sign.encode("unicode_escape").decode()
        for sign in text
    )


# Control, format (the direction of writing), half of a pair, line and paragraph separators.
_OBEYED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
