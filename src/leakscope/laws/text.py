"""Laws as text: ``normal:0,1.4`` and its kin."""

from __future__ import annotations

from collections.abc import Callable
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
    leakscope.errors.InputError: --member: normal needs 2 numbers and '0' has 1; write \
normal:MEAN,SIGMA.
    """
    kind, colon, rest = text.partition(":")
    kind = kind.strip().lower()
    if kind not in SYNTAX:
        raise InputError(
            f"{option}: {kind or 'an empty text'!r} is not a distribution; write one of "
            f"{', '.join(SYNTAX.values())}."
        )
    if not colon or not rest.strip():
        raise InputError(f"{option}: {text!r} has no parameters; write {SYNTAX[kind]}.")
    try:
        return _PARSERS[kind](rest)
    except InputError as error:
        raise InputError(f"{option}: {error}") from None


def _mixture(rest: str) -> Law:
    weights: list[float] = []
    means: list[float] = []
    sigmas: list[float] = []
    for part in _components(rest):
        weight, star, law = part.partition("*")
        if not star:
            raise InputError(f"component {part!r} has no weight; write {SYNTAX['mixture']}.")
        mean, sigma = _numbers(law, 2, "mixture")
        weights.append(_number(weight, "mixture"))
        means.append(mean)
        sigmas.append(sigma)
    return NormalMixture(weights, means, sigmas)


def _components(rest: str) -> list[str]:
    """Split at the plus signs between components, not at those in 1e+3 or in a leading +1."""
    parts: list[str] = []
    for piece in rest.split("+"):
        if parts and "*" not in piece:
            parts[-1] += f"+{piece}"
        elif piece.strip():
            parts.append(piece)
    return parts


def _multivariate(rest: str) -> Law:
    mean_text, slash, covariance_text = rest.partition("/")
    if not slash:
        raise InputError(f"the covariance is missing; write {SYNTAX['mvn']}.")
    mean = [_number(entry, "mvn") for entry in mean_text.split(",")]
    rows = [
        [_number(entry, "mvn") for entry in row.split(",")] for row in covariance_text.split(";")
    ]
    if any(len(row) != len(mean) for row in rows) or len(rows) != len(mean):
        raise InputError(
            f"{len(mean)} means need {len(mean)} rows of {len(mean)} covariances; write "
            f"{SYNTAX['mvn']}."
        )
    return MultivariateNormal(mean, rows)


_PARSERS: dict[str, Callable[[str], Law]] = {
    "normal": lambda rest: Normal(*_numbers(rest, 2, "normal")),
    "mixture": _mixture,
    "spike": lambda rest: SpikeAndSlab(*_numbers(rest, 3, "spike")),
    "mvn": _multivariate,
}


def _numbers(text: str, count: int, kind: str) -> list[float]:
    entries = text.split(",")
    if len(entries) != count or not all(entry.strip() for entry in entries):
        given = sum(bool(entry.strip()) for entry in entries)
        raise InputError(
            f"{kind} needs {count} numbers and {text!r} has {given}; write {SYNTAX[kind]}."
        )
    return [_number(entry, kind) for entry in entries]


def _number(text: str, kind: str) -> float:
    try:
        found = float(text)
    except ValueError:
        raise InputError(f"{text.strip()!r} is not a number; write {SYNTAX[kind]}.") from None
    if isfinite(found) and found != 0.0 and not LEAST <= abs(found) <= LARGEST:
        raise InputError(
            f"{text.strip()!r} is beyond what float64 can compare: a number must be 0, or from "
            f"{LEAST:g} to {LARGEST:g} in size; give the numbers in other units."
        )
    return found
