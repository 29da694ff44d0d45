"""Laws as text: ``normal:0,1.4`` and its kin."""

from __future__ import annotations

import re
from math import isfinite

from leakscope.errors import InputError
from leakscope.laws.distributions import (
    Law,
    MultivariateNormal,
    Normal,
    NormalMixture,
    SpikeAndSlab,
)

# Squares of standardised shifts, times ratios of variances, must stay within float64.
LEAST, LARGEST = 1e-30, 1e30

SYNTAX = {
    "normal": "normal:MEAN,SIGMA",
    "mixture": "mixture:WEIGHT*MEAN,SIGMA+WEIGHT*MEAN,SIGMA+...",
    "spike": "spike:LOCATION,SIGMA,THRESHOLD",
    "mvn": "mvn:MEAN,MEAN,.../ROW;ROW;... with each ROW of the covariance as NUMBER,NUMBER,...",
}

# The plus signs between components: not those in 1e+3 or before a number.
_BETWEEN = re.compile(r"\+(?=[^+]*?\*)(?<![eE]\+)")


def parse_law(text: str, option: str = "law") -> Law:
    """The law that the text describes, or a sentence that says how to write it.

    Parameters
    ----------
    text
        ``normal:MEAN,SIGMA``, ``mixture:W*MEAN,SIGMA+W*MEAN,SIGMA``,
        ``spike:LOCATION,SIGMA,THRESHOLD`` or ``mvn:MEANS/ROW;ROW``.
    option
        What an error calls it.

    Examples
    --------
    >>> from leakscope.laws.text import parse_law
    >>> float(parse_law("normal:0,1.4").sigma)
    1.4
    >>> parse_law("normal:0", "--member")
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: --member: '0' must be 2 numbers; write normal:MEAN,SIGMA.
    """
    kind, _, rest = text.partition(":")
    kind = kind.strip().lower()
    if kind not in SYNTAX or not rest.strip():
        raise InputError(
            f"{option}: {text!r} is not a distribution; write one of {', '.join(SYNTAX.values())}."
        )
    try:
        return _law(kind, rest)
    except InputError as error:
        syntax = SYNTAX[kind]
        told = str(error).removesuffix(".")
        raise InputError(f"{option}: {told}; write {syntax}.") from None


def _law(kind: str, rest: str) -> Law:
    if kind == "normal":
        return Normal(*_numbers(rest, 2))
    if kind == "spike":
        return SpikeAndSlab(*_numbers(rest, 3))
    if kind == "mvn":
        means, _, rows = rest.partition("/")
        mean = _numbers(means)
        return MultivariateNormal(mean, [_numbers(row, len(mean)) for row in rows.split(";")])
    parts = [part.partition("*") for part in _BETWEEN.split(rest) if part.strip()]
    laws = [(*_numbers(weight, 1), *_numbers(law, 2)) for weight, _, law in parts]
    weights, means_, sigmas = zip(*laws, strict=True)
    return NormalMixture(weights, means_, sigmas)


def _numbers(text: str, count: int | None = None) -> list[float]:
    entries = text.split(",")
    try:
        found = [float(entry) for entry in entries]
    except ValueError:
        raise InputError(f"{text.strip()!r} must be {count or 'some'} numbers.") from None
    if count is not None and len(found) != count:
        raise InputError(f"{text.strip()!r} must be {count} numbers.")
    for value in found:
        if isfinite(value) and value != 0.0 and not LEAST <= abs(value) <= LARGEST:
            raise InputError(
                f"{value:g} is beyond what float64 can compare: a number must be 0, or from "
                f"{LEAST:g} to {LARGEST:g} in size."
            )
    return found
