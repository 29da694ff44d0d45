"""A path that is a file of its own, and not a folder, a pipe or a device that never ends."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from leakscope.data.reasons import printable, reason
from leakscope.data.written_files import require_output
from leakscope.errors import InputError

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def require_file(path: Path) -> int:
    """The file's size in bytes, or a sentence where it is none, or may not be read.

    Whatever is to be read as a whole must end: a pipe may wait for ever, and /dev/zero never stops.

    Examples
    --------
    >>> from pathlib import Path
    >>> from leakscope.data import require_file
    >>> require_file(Path("/dev/zero"))
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: /dev/zero is a device; a file is needed.
    """
    require_text_name(path)
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"There is no file {path}.") from None
    except ValueError:  # a zero in the name
        raise InputError(f"There is no file {path}.") from None
    except OSError as error:
        raise InputError(f"{_short(path)} cannot be read: {reason(error)}.") from error
    if stat.S_ISDIR(found.st_mode):
        raise InputError(f"{path} is a folder; a file is needed.")
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "no file")
        raise InputError(f"{path} is {kind}; a file is needed.")
    if not os.access(path, os.R_OK):
        raise InputError(f"{path} may not be read: permission denied.")
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
    """Refuse a name that nothing here can have, such as one of thousands of letters.

    Examples
    --------
    >>> from pathlib import Path
    >>> from leakscope.data import require_usable_name
    >>> require_usable_name(Path("not-there-yet"))
    """
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

    Examples
    --------
    >>> from pathlib import Path
    >>> from leakscope.data import require_new_file
    >>> require_new_file(Path("gone/away.json"), "--json needs a file name")
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: There is no folder gone to write away.json to.
    """
    require_usable_name(path)
    if is_folder(path):
        raise InputError(f"{path} is a folder; {needs}.")
    if not is_folder(path.absolute().parent):
        raise InputError(f"There is no folder {path.parent} to write {path.name} to.")
    require_output(path)


def is_there(path: Path) -> bool:
    """Whether there is something of that name; a name that cannot be one is not.

    Examples
    --------
    >>> from pathlib import Path
    >>> from leakscope import data
    >>> data.is_there(Path("no such file"))
    False
    """
    try:
        return path.exists()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Whether it is a folder; a name that cannot be one is not.

    Examples
    --------
    >>> from pathlib import Path
    >>> from leakscope import data
    >>> data.is_folder(Path(".")), data.is_folder(Path("no\\0name"))
    (True, False)
    """
    try:
        return path.is_dir()
    except OSError:
        return False


def _short(path: Path, most: int = 200) -> str:
    text = str(path)
    return text if len(text) <= most else f"{text[:most]}…"
