"""Two laws, or the scores of members and non-members, with every measure of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leakscope import __version__, measures
from leakscope.data import read_scores
from leakscope.errors import InputError
from leakscope.laws import Empirical, Law, LawPair, Provenance, parse_law
from leakscope.results import Measurement
from leakscope.settings import MeasureSettings, validated

Side = Law | ArrayLike | str | Path


def measure(
    member: Side,
    nonmember: Side,
    *,
    fpr: Sequence[float] | None = None,
    delta: Sequence[float] | None = None,
    confidence: float | None = None,
    seed: int | None = None,
) -> Measurement:
    """How well an attacker can tell a member from a non-member.

    Parameters
    ----------
    member, nonmember
        The law of what the attacker sees when the record was used in training, and when it was
        not: a law, its text (``"normal:0,1.4"``; :func:`leakscope.laws.parse_law` has the forms),
        an array of scores, or the path of a file of them.  A higher score means "more likely a
        member".  Two laws, or two sets of scores.
    fpr, delta
        False-positive rates at which the true-positive rate is given, and deltas at which this
        pair's epsilon is; those of :class:`leakscope.settings.MeasureSettings` where left out.
    confidence, seed
        Of the intervals, and for what is resampled, where there are scores.

    Returns
    -------
    Measurement
        Advantage, AUC, KL, TPR at the false-positive rates, this pair's epsilon, with intervals
        where there are scores.

    Raises
    ------
    InputError
        Where a text is not a law, a law is compared with scores, or there are several pairs.

    Examples
    --------
    >>> import leakscope
    >>> found = leakscope.measure("normal:0,1.4", "normal:0,0.7")
    >>> round(found.advantage, 4), round(found.tpr_at_fpr["0.001"], 4)
    (0.3227, 0.0999)
    """
    how = validated(
        MeasureSettings,
        fpr=None if fpr is None else tuple(fpr),
        delta=None if delta is None else tuple(delta),
        confidence=confidence,
        seed=seed,
    )
    start = time.perf_counter()
    pair = _pair(member, nonmember)
    summary = measures.summary(
        pair,
        fpr=how.fpr,
        delta=how.delta,
        confidence=how.confidence,
        random_state=how.seed,
    )
    found = summary.to_dict()
    provenance = found.pop("provenance")
    return Measurement(
        leakscope_version=__version__,
        settings={
            "member": _told(member),
            "nonmember": _told(nonmember),
            **how.model_dump(mode="json"),
        },
        assumptions=provenance.pop("assumptions", []),
        provenance=provenance,
        timing={"measure": time.perf_counter() - start},
        warnings=_turned(found),
        infinite=[str(name) for name, value in _only(summary).items() if np.isposinf(value)],
        **found,
    )


def _turned(found: dict[str, Any]) -> list[str]:
    """A question where members surely score lower than non-members."""
    ends, auc = found.get("intervals", {}).get("auc"), found["auc"]
    if ends is None or auc is None or ends["high"] is None or ends["high"] >= 0.5:
        return []
    return [
        f"the AUC is {auc:.3g}, well under one half: is the sign reversed?  A higher score must "
        f"mean more likely a member; with the sign turned the AUC would be {1.0 - auc:.3g}."
    ]


def _only(summary: measures.Summary) -> dict[str, float]:
    """The numbers of the one pair, by the names of a table's columns."""
    return {str(name): float(column.iloc[0]) for name, column in summary.to_frame().items()}


def _pair(member: Side, nonmember: Side) -> LawPair:
    sides = [_law(member, "member"), _law(nonmember, "nonmember")]
    empirical = [isinstance(side, Empirical) for side in sides]
    if any(empirical) and not all(empirical):
        raise InputError("Give two distributions or two sets of scores, not one of each.")
    if empirical[0]:
        told = Provenance(observes="scores", method="empirical", source="scores given")
    else:
        told = Provenance(method="exact", source="laws given by the user")
    pair = LawPair(member=sides[0], nonmember=sides[1], provenance=told)
    if pair.batch_shape != ():
        raise InputError(
            f"measure takes one pair of distributions, and these are {pair.batch_shape}; "
            "leakscope.measures.summary takes many."
        )
    return pair


def _law(side: Side, name: str) -> Law:
    if isinstance(side, Path):
        return Empirical(read_scores(side))
    if isinstance(side, str):
        return parse_law(side, name)
    if isinstance(side, (Law, Empirical)):
        return side
    return Empirical(np.asarray(side, dtype=np.float64))


def _told(side: Side) -> Any:
    """What a result says of a side; never the scores themselves."""
    if isinstance(side, (str, Path)):
        return str(side)
    if isinstance(side, (Law, Empirical)):
        return type(side).__name__
    return f"{np.size(np.asarray(side))} scores"
