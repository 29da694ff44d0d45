"""What a comparison comes to: where the second run is worse, and what may be claimed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leakscope.auditing import EXPOSED_ABOVE
from leakscope.results import (
    AuditDocument,
    DifferenceEntry,
    ModelAuditDocument,
    SideEntry,
)

Document = AuditDocument | ModelAuditDocument

# What of a fitted model's audit is assumed of the attacker, and is no property of the model.
ASSUMED = ("question", "fraction", "observes")


def number(value: float | None) -> float:
    """What is null in a file was infinite."""
    return np.inf if value is None else value


def worse_in(first: SideEntry, second: SideEntry, tolerance: float, unit: str) -> list[str]:
    """A sentence for each respect in which the second run is worse than the first."""
    found = []
    levels = [
        ("the largest advantage", first.largest_advantage, second.largest_advantage),
        ("the median advantage", first.median_advantage, second.median_advantage),
    ]
    if first.model is not None and second.model is not None:
        tprs = (first.largest_tpr_at_fpr_0_001, second.largest_tpr_at_fpr_0_001)
        levels.append(("the largest TPR at 0.1% FPR", *tprs))
    for words, before, after in levels:
        if number(after) - number(before) > tolerance:
            found.append(f"{words} rises from {_shown(before)} to {_shown(after)}")
    shares = (first.exposed / first.units, second.exposed / second.units)
    if shares[1] - shares[0] > tolerance:
        found.append(
            f"the share of {unit}s with an advantage of {EXPOSED_ABOVE:g} or more rises from "
            f"{shares[0]:.1%} to {shares[1]:.1%}"
        )
    if second.untrusted > first.untrusted:
        found.append(
            f"float64 does not resolve {second.untrusted} {unit}s, where it was {first.untrusted}"
            if second.model is None
            else f"the laws of {second.untrusted} {unit}s are not trusted, where it was "
            f"{first.untrusted}"
        )
    return found


def _shown(value: float | None) -> str:
    """Four digits of an advantage; what would round to 1 is not certainty, only beyond them."""
    return ">0.9999" if (found := number(value)) >= 0.99995 else f"{found:.4f}"


def verdict(
    documents: tuple[Document, Document],
    sides: tuple[SideEntry, SideEntry],
    worse: Sequence[str],
    differences: Sequence[DifferenceEntry],
    same_data: bool | None,
) -> str:
    """Whether the second run is worse, what moved, and whether an improvement may be claimed."""
    first, second = sides
    unit = documents[0].unit
    confounded, closing = _terms(documents, differences, same_data)
    if worse:
        respects = f"{len(worse)} respect{'s' if len(worse) > 1 else ''}"
        opening = f"The second run is worse in {respects}: {'; '.join(worse)}."
        if confounded:
            opening += f" {confounded[0].upper()}{confounded[1:]}."
    else:
        opening = "The second run is no worse."
        if confounded:
            opening = f"No improvement can be claimed: {confounded}."
        opening += (
            f" The largest advantage went from {_shown(first.largest_advantage)} to "
            f"{_shown(second.largest_advantage)}, the median from "
            f"{_shown(first.median_advantage)} to {_shown(second.median_advantage)}, and the "
            f"{unit}s with {EXPOSED_ABOVE:g} or more from {first.exposed} of {first.units} to "
            f"{second.exposed} of {second.units}."
        )
    return f"{opening} {closing}"


def _terms(
    documents: tuple[Document, Document],
    differences: Sequence[DifferenceEntry],
    same_data: bool | None,
) -> tuple[str | None, str]:
    """What else than the model moved the level, and what the two runs examined."""
    one, two = documents
    if not (isinstance(one, ModelAuditDocument) and isinstance(two, ModelAuditDocument)):
        assumed = any(d.what.startswith(("kernel ", "noise_variance")) for d in differences)
        why = "the two assume different models, which alone moves the level" if assumed else None
        return why, "Each is under its own Gaussian process; no trained model was examined."
    asked = [name for name in ASSUMED if getattr(one, name) != getattr(two, name)]
    if asked:
        told = ", ".join(f"{n} {getattr(one, n)} and {getattr(two, n)}" for n in asked)
        return f"the two assume different attackers ({told}), which alone moves the level", _who(
            one, two
        )
    if same_data is False:
        return "the data differ, and the level is over each run's own records", _who(one, two)
    return None, _who(one, two)


def _who(one: ModelAuditDocument, two: ModelAuditDocument) -> str:
    if one.model.stand_in or two.model.stand_in:
        both = (
            "Both are stand-ins"
            if one.model.stand_in and two.model.stand_in
            else "One is a stand-in"
        )
        return f"{both} that leakscope fitted, and not the model that you release."
    if one.models is not None and two.models is not None:
        return _measured(one, two)
    if one.model.name == two.model.name:
        return f"Both examined a fitted model, {one.model.name}."
    return (
        f"Each examined its own fitted model, {one.model.name} and {two.model.name}: a change of "
        "level between them is a change of what is released."
    )


def _measured(one: ModelAuditDocument, two: ModelAuditDocument) -> str:
    """By how many models of each training, and how sure the largest advantages are."""
    ends = []
    for document in (one, two):
        worst = max(document.records, key=lambda record: number(record.advantage))
        ends.append((worst.advantage_low or 0.0, number(worst.advantage_high)))
    (low, high), (then_low, then_high) = ends
    told = (
        f"Measured with {one.models} models of {one.model.name} and {two.models} of "
        f"{two.model.name}: the interval of the largest advantage is {low:.2f} to {high:.2f}, then "
        f"{then_low:.2f} to {then_high:.2f}"
    )
    overlap = low <= then_high and then_low <= high
    return f"{told}; they overlap, and more models would tell." if overlap else f"{told}."
