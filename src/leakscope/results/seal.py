"""A hash that a file carries of itself, by which a changed digit is seen.

It is the SHA-256 of the file's own text with 64 zeros in place of the hash.  It tells of a change,
and not who made it: whoever can write the file can seal it again, so a signed copy names the hash.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from leakscope.data import require_file
from leakscope.errors import InputError
from leakscope.results.decision import NO_HASH, Decision
from leakscope.results.document import to_json

# In JSON a field, in other texts a comment.
_SEAL = re.compile(r'(?:"record_hash": "|file_hash: )([0-9a-f]{64})')


def sealed_text(text: str) -> str:
    """The text with its hash in place of the zeros.

    Examples
    --------
    >>> from leakscope.results import NO_HASH, sealed_text
    >>> sealed_text(f"a page <!-- file_hash: {NO_HASH} -->")[:29]
    'a page <!-- file_hash: 29433e'
    """
    return text.replace(NO_HASH, _hash(text))


def sealed_record(record: Decision) -> Decision:
    """The record with its own hash in it.

    Examples
    --------
    >>> from leakscope.results import sealed_record
    >>> callable(sealed_record)
    True
    """
    blank = record.model_copy(update={"record_hash": NO_HASH})
    return blank.model_copy(update={"record_hash": _hash(f"{to_json(blank)}\n")})


def require_sealed(path: str | Path) -> str:
    """The hash that a file carries, checked against its text.

    Raises
    ------
    InputError
        Where it carries none, or was changed since it was written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from leakscope.results import NO_HASH, require_sealed, sealed_text
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.md")
    ...     _ = file.write_text(sealed_text(f"advantage 0.25 <!-- file_hash: {NO_HASH} -->"))
    ...     whole = require_sealed(file)
    ...     _ = file.write_text(file.read_text().replace("0.25", "0.15"))
    ...     require_sealed(file)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: ...a.md was changed after it was written: its text does not have \
the hash that it carries.
    """
    path = Path(path)
    require_file(path)
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a record of leakscope decide: it is not text.") from None
    found = _SEAL.findall(text)
    if not found:
        raise InputError(
            f"{path} is not a record of leakscope decide: it carries no hash of itself."
        )
    carried: str = found[-1]
    if _hash(text.replace(carried, NO_HASH)) != carried:
        raise InputError(
            f"{path} was changed after it was written: its text does not have the hash that it "
            "carries."
        )
    return carried


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
