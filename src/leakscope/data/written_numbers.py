"""Numbers and dates that a table holds as text: told by how they are written.

``60 kg``, ``5%``, ``$5``, ``1,5`` and ``2024-03-01`` are quantities.  Taken for categories, each
value would be a feature of its own and every record would look exposed; so they are refused, in a
sentence that says how to write them.  What is written as a plain number is read as one elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_PLAIN = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_MONEY = r"[$€£¥₹₽₩]|USD|EUR|GBP|CHF|JPY|CNY|INR"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[AaPp]\.?[Mm]\.?)?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_DATE = (
    r"\d{4}-\d{1,2}(?:-\d{1,2})?|\d{4}[/.]\d{1,2}[/.]\d{1,2}|\d{1,2}([/.-])\d{1,2}\1\d{2}(?:\d{2})?"
    rf"|\d{{1,2}}[ -]{_MONTH}[ -]\d{{2,4}}|{_MONTH} \d{{1,2}},? \d{{4}}|\d{{4}}-?W\d{{2}}(?:-\d)?"
)

# Of a column's texts that are written in one of these ways, at least this share makes the column
# one of quantities.
SHARE = 0.5

# Numbers before one unit are quantities from this many different ones on: 2WD and 4WD are not.
LEAST_AMOUNTS = 3


@dataclass(frozen=True)
class Writing:
    """A way to write quantities, and what to do about it."""

    pattern: re.Pattern[str]
    what: str
    remedy: str


def _writing(pattern: str, what: str, remedy: str) -> Writing:
    return Writing(re.compile(pattern, re.IGNORECASE), what, remedy)


WRITINGS: tuple[Writing, ...] = (
    _writing(
        rf"(?:{_DATE})(?:[T ]{_CLOCK}(?:Z|\s?[+-]\d{{2}}:?\d{{2}})?)?|{_CLOCK}",
        "dates or times",
        "turn them into numbers, such as days since a date",
    ),
    _writing(
        r"[+-]?\d{1,3}(?:[ '’_\u00a0\u202f]\d{3})+(?:[.,]\d+)?|[+-]?\d+(?:_\d+)+",
        "numbers with signs between the thousands",
        "write 1000, not 1_000 or 1 000",
    ),
    _writing(
        r"[+-]?(?:\d+,\d+|,\d+|\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d{1,3}(?:,\d{3})+(?:\.\d+)?)",
        "numbers with commas",
        "give --decimal , if the comma is the decimal sign, or write a point and nothing between "
        "the thousands",
    ),
    _writing(rf"{_PLAIN}\s*[%‰]", "percentages", "write the numbers without the sign"),
    _writing(
        rf"[+-]?(?:{_MONEY})\s*{_PLAIN}[kKmM]?|{_PLAIN}[kKmM]?\s*(?:{_MONEY})",
        "amounts of money",
        "write the numbers without the currency",
    ),
    _writing(r"[+-]?0[xX][0-9a-fA-F]+|[+-]?0[bB][01]+|[+-]?0[oO][0-7]+",
             "numbers in another base", "write them in decimal digits"),
    _writing(rf"[<>≤≥]=?\s*{_PLAIN}|{_PLAIN}\s*\+", "bounds such as <5",
             "write a number for each, such as the bound itself"),
    _writing(r"\(\d+(?:\.\d+)?\)", "numbers in brackets", "write -5, not (5)"),
)  # fmt: skip

# A letter alone is a unit where it is a common one, and never an ordinal's ending.
_WITH_UNIT = re.compile(
    rf"({_PLAIN})\s*(?!(?:st|nd|rd|th)$)([^\W\d_][\w/^²³·.-]{{1,11}}|[gmlhsdwy])", re.IGNORECASE
)


def written_numbers(texts: Sequence[str]) -> tuple[str, str, int] | None:
    """What the texts are, what to do, and where the first stands; None where they are words.

    Examples
    --------
    >>> from leakscope.data.written_numbers import written_numbers
    >>> written_numbers(["1,5", "2,25", "3"])
    ('numbers with commas', 'give --decimal , if the comma is the decimal sign, or write a point and
    nothing between the thousands', 0)
    >>> written_numbers(["60 kg", "71 kg", "64.5 kg"])
    ('numbers with the unit kg', 'write the numbers alone (or, if they are names, a letter before
    each)', 0)
    >>> written_numbers(["north", "south"]) is None
    True
    """
    plain = re.compile(_PLAIN)
    stripped = [text.strip() for text in texts]
    for writing in WRITINGS:
        found = [writing.pattern.fullmatch(text) is not None for text in stripped]
        if _enough(found, lambda text: plain.fullmatch(text) is not None, stripped):
            return writing.what, writing.remedy, found.index(True)
    return _with_unit(stripped)


def _enough(found: list[bool], is_plain: Callable[[str], bool], texts: list[str]) -> bool:
    """Whether half of the texts or more are such numbers, plain ones among them counted too."""
    if not any(found):
        return False
    count = sum(hit or is_plain(text) for hit, text in zip(found, texts, strict=True))
    return count >= SHARE * len(texts)


def _with_unit(texts: list[str]) -> tuple[str, str, int] | None:
    """Numbers before one and the same unit."""
    matches = [_WITH_UNIT.fullmatch(text) for text in texts]
    units = [match[2].lower() for match in matches if match is not None]
    if not units:
        return None
    unit = max(set(units), key=units.count)
    amounts = {m[1] for m in matches if m is not None and m[2].lower() == unit}
    if units.count(unit) < SHARE * len(texts) or len(amounts) < LEAST_AMOUNTS:
        return None
    first = next(i for i, m in enumerate(matches) if m is not None and m[2].lower() == unit)
    told = matches[first]
    assert told is not None
    remedy = "write the numbers alone (or, if they are names, a letter before each)"
    return f"numbers with the unit {told[2]}", remedy, first
