"""A paper's claim and its verdict, which follows from measured numbers and is never typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from leakscope import InputError

Verdict = Literal["holds", "holds with the erratum", "does not hold", "cannot tell"]


@dataclass(frozen=True)
class Claim:
    """What a paper says, and what was found; made by `judge`.

    Parameters
    ----------
    text
        The paper's statement, in our words.
    where
        Where the paper makes it.
    verdict
        What the numbers say.
    measured
        The numbers, in a sentence.
    erratum
        The entry of docs/errata.md that corrects it, by paper and number: ``"linear 1"``.

    Examples
    --------
    >>> from papers import judge
    >>> claim = judge("the advantage grows with p", "Fig. 2", "0.1 to 0.9", as_printed=True)
    >>> claim.verdict
    'holds'
    """

    text: str
    where: str
    verdict: Verdict
    measured: str
    erratum: str | None = None


def judge(
    text: str,
    where: str,
    measured: str,
    *,
    as_printed: bool | None,
    corrected: bool | None = None,
    erratum: str | None = None,
) -> Claim:
    """A claim with its verdict.

    Parameters
    ----------
    text, where, measured
        As in `Claim`.
    as_printed
        Whether the claim holds as the paper prints it, from the numbers; ``None`` where this size
        cannot tell.
    corrected
        Whether it holds once the erratum is applied; give ``erratum`` with it.
    erratum
        The entry of docs/errata.md, by paper and number: ``"linear 1"``.

    Examples
    --------
    >>> from papers import judge
    >>> judge("Thm 4.1 meets simulation", "Sec. 4", "z = 9.1 printed, 0.4 corrected",
    ...       as_printed=False, corrected=True, erratum="linear 1").verdict
    'holds with the erratum'
    >>> judge("AUC is 0.7", "Fig. 1", "0.7 +- 0.2", as_printed=None).verdict
    'cannot tell'
    """
    if corrected is not None and erratum is None:
        raise InputError("a corrected claim names its erratum.")
    # a NumPy comparison is not the object True
    as_printed, corrected = (None if x is None else bool(x) for x in (as_printed, corrected))
    verdict: Verdict
    if as_printed is True:
        verdict = "holds"
    elif corrected is True:
        verdict = "holds with the erratum"
    elif as_printed is None:
        verdict = "cannot tell"
    else:
        verdict = "does not hold"
    used = erratum if verdict in ("holds with the erratum", "does not hold") else None
    return Claim(text, where, verdict, measured, used)
