"""Why a file could not be read, as a clause: what a library said, without its advice or its name.

Libraries say what they stumbled over in words of their own, over several lines, at times with
advice that nobody should take (to unpickle) or with bytes of the file.  A sentence of ours takes
the first line, cut, and with nothing in it that a terminal would obey.
"""

from __future__ import annotations

import re
import tokenize
import unicodedata

LONGEST = 160

# What a library says, and what is said instead.
_SAID: tuple[tuple[str, str], ...] = (
    ("Header info length", "its header is far too long"),
    ("malformed node or string", "its header is not made of plain values"),
    ("magic string is not correct", "it does not begin as one does"),
    ("EOF: reading magic string", "it is empty, or was cut"),
    ("inhomogeneous shape", "its rows have different lengths"),
    ("Error parsing message with type", "its bytes are no protocol buffer"),
    ("Decompressed data too large", "it holds a text that unpacks to far too much"),
    ("Unexpected UTF-8 BOM", "it begins with a byte-order mark"),
    ("not a zip file", "it is no zip archive, or was cut"),
    ("pickle", "it holds something else; pickled objects are refused"),
    ("maximum recursion depth", "it is nested too deeply"),
    ("recursion limit exceeded", "it is nested too deeply"),
    ("too many nested", "it is nested too deeply"),
    ("integer string conversion", "it holds an integer of thousands of digits"),
    ("is encrypted", "it is encrypted"),
    ("password required", "it is encrypted"),
    ("compression method is not supported", "it is packed in a way that cannot be read"),
    ("compressed patched data", "it is packed in a way that cannot be read"),
    ("strong encryption", "it is encrypted"),
    ("EOF in multi-line statement", "its header is not closed"),
    ("No columns to parse", "it is empty"),
    ("cannot identify image file", "it is no PNG or JPEG picture"),
    ("could be decompression bomb", "it claims far too many pixels"),
)
# What stands before the matter itself.
_BEFORE = re.compile(
    r"^(Error tokenizing data\. )?(C error: )?(Error while deserializing header: )?"
)


def reason(error: BaseException) -> str:
    """Why, as a clause without a full stop.

    Examples
    --------
    >>> from leakscope.data.reasons import reason
    >>> reason(ValueError("Object arrays cannot be loaded when allow_pickle=False"))
    'it holds something else; pickled objects are refused'
    >>> reason(ValueError("Error tokenizing data. C error: EOF inside string starting at row 1"))
    'EOF inside string starting at row 1'
    """
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
    text = str(error)
    for theirs, ours in _SAID:
        if theirs in text:
            return ours
    lines = text.strip().splitlines() or [type(error).__name__]
    words = printable(_BEFORE.sub("", lines[0]))
    return (words if len(words) <= LONGEST else f"{words[:LONGEST]}…").rstrip(". ")


def printable(text: str, keep: str = "") -> str:
    """The text with every sign that a terminal would obey written out, as in ``\\x1b``.

    Control characters, and signs that turn the direction of writing or are not to be seen, could
    make a name on the screen look like another, or like a line of its own.

    Examples
    --------
    >>> from leakscope.data.reasons import printable
    >>> print(printable("a\\x1b[31m\\u202eb"))
    a\\x1b[31m\\u202eb
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
