"""What a comparison comes to: what differs, where the second run is worse, what may be claimed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.results.audit import EXPOSED_ABOVE, Audit
from leakscope.results.comparison import STEPS, DifferenceEntry, SideEntry

# What is assumed of the attacker, and is no property of the model.
ASSUMED = ("question", "fraction", "observes")


def number(value: float | None) -> float:
    """What is null in a file was infinite."""
    return np.inf if value is None else value


def run_differences(
    one: Audit, two: Audit, one_versions: dict[str, str], two_versions: dict[str, str]
) -> list[DifferenceEntry]:
    """Settings, the model as used, data and versions, where they are not the same."""
    told: list[dict[str, Any]] = []
    for audit, versions in ((one, one_versions), (two, two_versions)):
        source = audit.dataset.source
        told.append(
            {
                **{f"setting {name}": value for name, value in audit.settings.items()},
                **audit.about.facts(audit),
                "dataset": audit.dataset.name,
                "records": audit.dataset.records,
                "features": audit.dataset.features,
                "outputs": audit.dataset.outputs,
                "target": audit.dataset.target_name,
                STEPS: "; ".join(audit.dataset.steps),
                "data digest": None if source is None else source.digest[:12],
                "version of leakscope": audit.leakscope_version,
                **{f"version of {name}": text for name, text in versions.items()},
            }
        )
    # One that has no run directory says nothing of its versions; that is no difference.
    names = [name for name in dict.fromkeys([*told[0], *told[1]]) if _known(name, told)]
    return [
        DifferenceEntry(what=name, first=_text(told[0].get(name)), second=_text(told[1].get(name)))
        for name in names
        if told[0].get(name) != told[1].get(name)
    ]


def _known(name: str, told: list[dict[str, Any]]) -> bool:
    return not name.startswith("version of") or all(name in side for side in told)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# A respect in words, its column, how records are summed up, how it is shown, before and after.
Respect = tuple[
    str,
    str,
    Callable[[FloatArray], Any],
    Callable[[float | None], str],
    float | None,
    float | None,
]


def worse_in(
    sides: tuple[SideEntry, SideEntry], audits: tuple[Audit, Audit], tolerance: float
) -> tuple[list[str], list[str]]:
    """A sentence for each respect in which the second run is worse, and where that is not known.

    Where numbers have intervals it is worse only if the whole interval lies above the first's.
    """
    (first, second), two = sides, audits[1]
    worse, unsure, unit = list[str](), list[str](), two.unit
    respects: list[Respect] = [
        ("the largest advantage", "advantage", np.max, _shown,
         first.largest_advantage, second.largest_advantage),
        ("the median advantage", "advantage", np.median, _shown,
         first.median_advantage, second.median_advantage),
        (f"the share of {unit}s with an advantage of {EXPOSED_ABOVE:g} or more", "advantage",
         _share, _percent, first.exposed / first.units, second.exposed / second.units),
    ]  # fmt: skip
    tprs = (first.largest_tpr_at_fpr_0_001, second.largest_tpr_at_fpr_0_001)
    if None not in tprs:
        respects.insert(
            2, ("the largest TPR at 0.1% FPR", "tpr_at_fpr_0_001", np.max, _shown, *tprs)
        )
    for words, column, summed, shown, before, after in respects:
        if number(after) - number(before) <= tolerance:
            continue
        told = f"{words} rises from {shown(before)} to {shown(after)}"
        (low, high), (then_low, then_high) = (_ends(audit, column, summed) for audit in audits)
        if high is None or then_low is None or then_low > high:
            worse.append(told)
        else:
            unsure.append(
                f"{told}, but their intervals overlap ({low:.2f} to {high:.2f}, then "
                f"{then_low:.2f} to {then_high:.2f})"
            )
    if second.untrusted > first.untrusted:
        told = two.about.not_trusted.format(f"{second.untrusted} {unit}s")
        (worse if "advantage_low" not in two.table else unsure).append(
            f"{told} ({first.untrusted} in the first run)"
        )
    return worse, unsure


def _ends(
    audit: Audit, column: str, summed: Callable[[FloatArray], Any]
) -> tuple[float | None, float | None]:
    """Between which the largest, the median or a share lies, where records have intervals."""
    if f"{column}_low" not in audit.table:
        return None, None
    low, high = (summed(audit.table.of(f"{column}_{end}")) for end in ("low", "high"))
    return float(low), float(high)


def _share(advantage: FloatArray) -> float:
    return float(np.mean(advantage >= EXPOSED_ABOVE))


def _percent(value: float | None) -> str:
    return f"{number(value):.1%}"


def _shown(value: float | None) -> str:
    """Four digits of an advantage; what would round to 1 is not certainty, only beyond them."""
    return ">0.9999" if (found := number(value)) >= 0.99995 else f"{found:.4f}"


def verdict(
    audits: tuple[Audit, Audit],
    sides: tuple[SideEntry, SideEntry],
    worse: Sequence[str],
    unsure: Sequence[str],
    differences: Sequence[DifferenceEntry],
    same_data: bool | None,
) -> str:
    """Whether the second run is worse, what moved, and whether an improvement may be claimed."""
    first, second = sides
    unit = audits[0].unit
    confounded = _confounded(audits, differences, same_data)
    if worse:
        respects = f"{len(worse)} respect{'s' if len(worse) > 1 else ''}"
        opening = f"The second run is worse in {respects}: {'; '.join(worse)}."
        if confounded:
            opening += f" {confounded[0].upper()}{confounded[1:]}."
    elif unsure:
        opening = f"Cannot tell whether the second run is worse: {'; '.join(unsure)}."
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
    return f"{opening} {_who(*audits)}"


def _confounded(
    audits: tuple[Audit, Audit], differences: Sequence[DifferenceEntry], same_data: bool | None
) -> str | None:
    """What else than the model moved the level; None where nothing did."""
    one, two = audits
    if "assumed" in (one.basis, two.basis):
        of_model = {*one.about.facts(one), *two.about.facts(two)} - {"route"}
        assumed = any(entry.what in of_model for entry in differences)
        return (
            "the two runs assume different models, and that alone changes the numbers"
            if assumed
            else None
        )
    asked = [name for name in ASSUMED if getattr(one, name) != getattr(two, name)]
    if asked:
        told = ", ".join(f"{n} {getattr(one, n)} and {getattr(two, n)}" for n in asked)
        return (
            f"the two runs assume different attackers ({told}), and that alone changes the numbers"
        )
    if same_data is False:
        return "the data differ, and each run's numbers are over its own records"
    return None


def _who(one: Audit, two: Audit) -> str:
    """What the two runs examined."""
    if "assumed" in (one.basis, two.basis):
        return f"Each is under its own {_kind(one, two)}; no trained model was examined."
    stand_ins = [audit.model.stand_in for audit in (one, two)]
    if any(stand_ins):
        both = "Both are stand-ins" if all(stand_ins) else "One is a stand-in"
        return f"{both} that leakscope fitted, and not the model that you release."
    if one.basis == two.basis == "measured":
        return _measured(one, two)
    if one.model.name == two.model.name:
        return f"Both examined {one.about.words}, {one.model.name}."
    return (
        f"Each examined its own {_kind(one, two)}, {one.model.name} and {two.model.name}: a "
        "difference between them is a difference between the two releases."
    )


def _kind(one: Audit, two: Audit) -> str:
    """The kind of both, without its article, where they are of one."""
    return one.about.words.removeprefix("a ") if one.about is two.about else "model"


def _measured(one: Audit, two: Audit) -> str:
    """How sure the largest advantages are, where both were measured with a few models."""
    ends = []
    for audit in (one, two):
        worst = max(audit.records, key=lambda record: number(record.advantage))
        ends.append((worst.advantage_low or 0.0, number(worst.advantage_high)))
    (low, high), (then_low, then_high) = ends
    told = (
        f"Measured with {one.model.origin} ({one.model.name}) and {two.model.origin} "
        f"({two.model.name}): the interval of the largest advantage is {low:.2f} to {high:.2f}, "
        f"then {then_low:.2f} to {then_high:.2f}"
    )
    overlap = low <= then_high and then_low <= high
    return f"{told}; they overlap, so more models are needed to tell." if overlap else f"{told}."
