"""How exposed each record is by the audit, and what a person's thresholds make of that.

Level and status are the audit's; verify agrees with them or contradicts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope.auditing.gate import limits_of
from leakscope.deciding.evidence import Evidence
from leakscope.results.audit import FPRS, Audit, Subgroup
from leakscope.results.decision import (
    AttackerEntry,
    ExposedEntry,
    LevelEntry,
    ThresholdEntry,
)
from leakscope.results.reconciliation import unsettled
from leakscope.results.verification import Verification
from leakscope.settings.decide import ATTACKERS, DecideSettings

# The false-positive rates of the record: those at which few are accused wrongly.
LOW, HIGH = 0.001, 0.01

# What is judged and shown, by the column of the audit's table, and how many records are shown.
COLUMNS = ("advantage", FPRS[LOW], FPRS[HIGH])
SHOWN = 10


@dataclass(frozen=True, eq=False)
class Exposure:
    """Advantages and TPRs of single records, most exposed first; NaN is not known.

    Attributes
    ----------
    values, low, high
        (U,) by `COLUMNS`; the ends of intervals where there are some, else the values.
    has_intervals
        Whether there are intervals.
    unknown
        How many records no check answers for.
    contradicted
        Whether verify showed other numbers.
    """

    basis: str
    how: str
    ids: tuple[int | str, ...]
    values: dict[str, FloatArray]
    low: dict[str, FloatArray]
    high: dict[str, FloatArray]
    confirmed: NDArray[np.bool_]
    has_intervals: bool
    unknown: int
    contradicted: bool

    def largest(self, name: str) -> float | None:
        """The largest value; None where there is none."""
        return _largest(self.values[name])

    def largest_end(self, name: str) -> float | None:
        """The largest upper end, where there are intervals; else the largest value."""
        return _largest(self.high[name])


def exposure_of(evidence: Evidence) -> Exposure | None:
    """The exposure that the decision is about; None where no audit says it of single records."""
    audit = evidence.audit
    if audit is None:
        return None
    table, order = audit.table, audit.order
    values = {name: table.of(name)[order] for name in COLUMNS}

    def ends(side: str) -> dict[str, FloatArray]:
        found = dict(values)
        for name in COLUMNS:
            if f"{name}_{side}" in table:
                end = table.of(f"{name}_{side}")[order]
                found[name] = np.where(np.isnan(end), values[name], end)
        return found

    verifications = [found for _, found in evidence.all_of(Verification)]
    measured = audit.basis == "measured"
    return Exposure(
        basis="measured" if measured else "computed",
        how=f"measured with {audit.model.origin}" if measured else "computed from the fit",
        ids=audit.ranking(),
        values=values,
        low=ends("low"),
        high=ends("high"),
        confirmed=audit.confirmed[order],
        has_intervals="advantage_low" in table,
        unknown=len(unsettled(audit, verifications)),
        contradicted=any(found.contradicts for found in verifications),
    )


def _limits(settings: DecideSettings) -> list[tuple[str, str, float]]:
    """The measures that are judged, in words and by column, with their limits."""
    names = {"advantage": "advantage", "tpr": FPRS[LOW]}
    return [(limit.words, names[limit.measure], limit.value) for limit in limits_of(settings)]


def threshold_entries(found: Exposure | None, settings: DecideSettings) -> list[ThresholdEntry]:
    """Each limit that was given, and whether the most exposed record keeps it."""
    entries = []
    for words, name, limit in _limits(settings):
        largest = above = met = None
        if found is not None:
            largest, end = found.largest(name), found.largest_end(name)
            # Above is whose whole interval is; the upper end decides who is known to be within.
            if largest is not None and not found.contradicted:
                above = int(np.count_nonzero(found.low[name] > limit))
            if above:
                met = False
            elif end is not None and end <= limit and not found.contradicted:
                met = True
        entries.append(
            ThresholdEntry(measure=words, limit=limit, largest=largest, above=above, met=met)
        )
    return entries


def exposed_entries(found: Exposure, settings: DecideSettings, *, ids: bool) -> list[ExposedEntry]:
    """The most exposed by the measure that is judged first."""
    name = _limits(settings)[0][1]
    order = np.lexsort((-np.nan_to_num(found.high[name]), -np.nan_to_num(found.values[name])))
    return _entries(found, order[:SHOWN].tolist(), settings, ids=ids)


def entries_above(found: Exposure, settings: DecideSettings, *, ids: bool) -> list[ExposedEntry]:
    """All records above a threshold, those furthest above the first one first."""
    limits = _limits(settings)
    above = np.any([found.values[name] > limit for _, name, limit in limits], axis=0)
    order = np.argsort(-np.nan_to_num(found.values[limits[0][1]]), kind="stable")
    return _entries(found, [row for row in order.tolist() if above[row]], settings, ids=ids)


def _entries(
    found: Exposure, rows: Sequence[int], settings: DecideSettings, *, ids: bool
) -> list[ExposedEntry]:
    """Records with what an accusation of each would be worth."""
    entries = []
    for row in rows:
        numbers = {name: _number(found.values[name][row]) for name in COLUMNS}
        if found.has_intervals:
            numbers |= {f"{name}_low": _number(found.low[name][row]) for name in COLUMNS}
            numbers |= {f"{name}_high": _number(found.high[name][row]) for name in COLUMNS}
        ppv, lift = _accusation(found.values[FPRS[LOW]][row], LOW, settings.prior)
        entries.append(
            ExposedEntry(
                record_id=found.ids[row] if ids else None,
                **numbers,
                ppv=ppv,
                lift=lift,
                confirmed=bool(found.confirmed[row]),
            )
        )
    return entries


def against_entries(
    evidence: Evidence, found: Exposure | None, settings: DecideSettings
) -> list[AttackerEntry]:
    """Each attacker that the audit worked out, and whether the thresholds would be met.

    The one that is judged is judged as the thresholds are.  What the laws say of the others is not
    known to hold where verify contradicts those laws.
    """
    audit = evidence.audit
    if audit is None or found is None:
        return []
    judged = [limit.met for limit in threshold_entries(found, settings)]
    held = None if None in judged and False not in judged else all(judged)
    entries = []
    for row in audit.details.against():
        values = [getattr(row, f"largest_{name}") for _, name, _ in _limits(settings)]
        limits = [limit for _, _, limit in _limits(settings)]
        within: bool | None = all(
            value is not None and value <= limit
            for value, limit in zip(values, limits, strict=True)
        )
        own = (row.question, row.fraction) == (audit.question, audit.fraction)
        if own:
            within = held
        elif found.contradicted or (within and row.unconfirmed):
            within = None
        who = ATTACKERS[row.attacker][2] if row.attacker in ATTACKERS else "as asked"
        entries.append(AttackerEntry(**row.model_dump(), who=who, judged=own, within=within))
    return entries


def level_entries(found: Exposure, settings: DecideSettings) -> list[LevelEntry]:
    """An attack on everybody: how many people it finds on average, and how surely."""
    entries = []
    for fpr in (LOW, HIGH):
        tpr = found.values[FPRS[fpr]]
        mean, total = _number(tpr.mean()), _number(tpr.sum())
        ppv, lift = _accusation(float(tpr.mean()), fpr, settings.prior)
        entries.append(LevelEntry(fpr=fpr, mean_tpr=mean, expected_found=total, ppv=ppv, lift=lift))
    return entries


def subgroups_of(audit: Audit | None, *, redact: bool) -> list[Subgroup]:
    """Exposure by the columns that the audit was asked to show it by."""
    # One subgroup of few is nearly a record.
    return [] if audit is None else [s for s in audit.subgroups if not (redact and s.small)]


def _accusation(tpr: float, fpr: float, prior: float | None) -> tuple[float | None, float | None]:
    """How often an accusation is right, and how many times as often as before."""
    if prior is None or not np.isfinite(tpr):
        return None, None
    ppv = float(measures.positive_predictive_value(tpr, fpr, prior))
    return ppv, float(measures.lift(tpr, fpr, prior))


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _largest(values: FloatArray) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.max()) if known.size else None
