"""How exposed each record is, in one form, from whichever run says it best.

An audit of the model itself comes first, then what a few models showed, then what retraining
showed of some records.  A stand-in's level is none of the model's, and is not taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope.auditing.gate import limits_of
from leakscope.deciding.evidence import Evidence
from leakscope.measures.accusation import advantage_within_auc
from leakscope.results.audit import FPRS, Audit, Subgroup
from leakscope.results.decision import (
    AttackerEntry,
    ExposedEntry,
    LevelEntry,
    ThresholdEntry,
)
from leakscope.results.measurement import ModelsMeasurement
from leakscope.results.reconciliation import unsettled
from leakscope.results.verification import Verification
from leakscope.settings.decide import ATTACKERS, DecideSettings

# The false-positive rates of the record: those at which few are accused wrongly.
LOW, HIGH = 0.001, 0.01

# How many of the most exposed stand on the form.
SHOWN = 10

# A standard error to each side of a retrained AUC, as verify's intervals have it.
HALF_WIDTH = 1.96


@dataclass(frozen=True, eq=False)
class Exposure:
    """Advantages and TPRs of single records, most exposed first; NaN is not known.

    ``high`` holds the upper ends of intervals, by the same names as ``values``; ``records`` is
    how many there are in all, None where not known; ``complete`` whether these are all of them;
    ``unknown`` counts those that no check answers for; ``contradicted`` whether verify showed other
    numbers.
    """

    basis: str
    how: str
    ids: tuple[int | str, ...]
    values: dict[str, FloatArray]
    trusted: NDArray[np.bool_]
    records: int | None
    complete: bool = True
    low: dict[str, FloatArray] = field(default_factory=dict)
    high: dict[str, FloatArray] = field(default_factory=dict)
    unknown: int = 0
    contradicted: bool = False

    def largest(self, name: str) -> float | None:
        """The largest value; None where there is none."""
        return _largest(self.values[name])

    def largest_end(self, name: str) -> float | None:
        """The largest upper end, where there are intervals; else the largest value."""
        return _largest(self.ends(name)[1])

    def ends(self, name: str) -> tuple[FloatArray, FloatArray]:
        """Between which each number lies; one without an interval is both ends."""
        value = self.values[name]
        low, high = self.low.get(name, value), self.high.get(name, value)
        return np.where(np.isnan(low), value, low), np.where(np.isnan(high), value, high)


def exposure_of(evidence: Evidence) -> Exposure | None:
    """The exposure that the decision is about; None where no run says it of single records."""
    audit = evidence.audit
    if audit is not None:
        verifications = [found for _, found in evidence.all_of(Verification)]
        return _of_model(audit, verifications)
    models = evidence.one_of(ModelsMeasurement)
    if models is not None:
        return _of_few_models(models)
    audited = evidence.stand_in
    for _, verification in evidence.all_of(Verification):
        if "trainer" in verification.settings and audited is not None:
            return _of_retraining(audited, verification)
    return None


def exposed_entries(found: Exposure, settings: DecideSettings, *, ids: bool) -> list[ExposedEntry]:
    """The most exposed by the measure that is judged first."""
    name = _limits(settings)[0][1]
    order = np.lexsort((-np.nan_to_num(found.ends(name)[1]), -np.nan_to_num(found.values[name])))
    return _entries(found, order[:SHOWN].tolist(), settings, ids=ids)


def entries_above(found: Exposure, settings: DecideSettings, *, ids: bool) -> list[ExposedEntry]:
    """All records above a threshold, those furthest above the first one first."""
    limits = _limits(settings)
    above = np.zeros(len(found.ids), dtype=bool)
    for _, name, limit in limits:
        above |= found.values[name] > limit
    order = np.argsort(-np.nan_to_num(found.values[limits[0][1]]), kind="stable")
    return _entries(found, [row for row in order.tolist() if above[row]], settings, ids=ids)


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
    largest = {"advantage": "largest_advantage", "tpr_low": "largest_tpr_at_fpr_0_001"}
    entries = []
    for row in audit.details.against():
        values = [getattr(row, largest[name]) for _, name, _ in _limits(settings)]
        met = all(
            value is not None and value <= limit
            for value, (_, _, limit) in zip(values, _limits(settings), strict=True)
        )
        own = (row.question, row.fraction) == (audit.question, audit.fraction)
        entries.append(
            AttackerEntry(
                **row.model_dump(),
                who=ATTACKERS[row.attacker][2] if row.attacker in ATTACKERS else "as asked",
                judged=own,
                within=held
                if own
                else met
                if not found.contradicted and (not met or not row.untrusted)
                else None,
            )
        )
    return entries


def _entries(
    found: Exposure, rows: Sequence[int], settings: DecideSettings, *, ids: bool
) -> list[ExposedEntry]:
    """Records with what an accusation of each would be worth."""
    entries = []
    for row in rows:
        tpr = found.values["tpr_low"][row]
        ppv, lift = _accusation(tpr, LOW, settings.prior)
        entries.append(
            ExposedEntry(
                record_id=found.ids[row] if ids else None,
                advantage=_number(found.values["advantage"], row),
                advantage_low=_number(found.low.get("advantage"), row),
                advantage_high=_number(found.high.get("advantage"), row),
                tpr_at_fpr_0_001=_number(found.values["tpr_low"], row),
                tpr_at_fpr_0_001_low=_number(found.low.get("tpr_low"), row),
                tpr_at_fpr_0_001_high=_number(found.high.get("tpr_low"), row),
                tpr_at_fpr_0_01=_number(found.values["tpr_high"], row),
                tpr_at_fpr_0_01_low=_number(found.low.get("tpr_high"), row),
                tpr_at_fpr_0_01_high=_number(found.high.get("tpr_high"), row),
                ppv=ppv,
                lift=lift,
                trusted=bool(found.trusted[row]),
            )
        )
    return entries


def level_entries(found: Exposure, settings: DecideSettings) -> list[LevelEntry]:
    """An attack on everybody: how many people it finds on average, and how surely."""
    entries = []
    for fpr, name in ((LOW, "tpr_low"), (HIGH, "tpr_high")):
        tpr = found.values[name]
        if not found.complete or not np.isfinite(tpr).all():
            entries.append(LevelEntry(fpr=fpr, mean_tpr=None, expected_found=None))
            continue
        mean = float(tpr.mean())
        ppv, lift = _accusation(mean, fpr, settings.prior)
        entries.append(
            LevelEntry(fpr=fpr, mean_tpr=mean, expected_found=float(tpr.sum()), ppv=ppv, lift=lift)
        )
    return entries


def subgroups_of(evidence: Evidence, *, redact: bool) -> list[Subgroup]:
    """Exposure by the columns that the audit of the model was asked to show it by."""
    audit = evidence.audit
    # One subgroup of few is nearly a record.
    return [] if audit is None else [s for s in audit.subgroups if not (redact and s.small)]


def threshold_entries(found: Exposure | None, settings: DecideSettings) -> list[ThresholdEntry]:
    """Each limit that was given, and whether the most exposed record keeps it."""
    return [_judged(found, *limit) for limit in _limits(settings)]


def _limits(settings: DecideSettings) -> list[tuple[str, str, float]]:
    """The measures that are judged, in words and by name, with their limits."""
    names = {"advantage": "advantage", "tpr": "tpr_low"}
    return [(limit.words, names[limit.measure], limit.value) for limit in limits_of(settings)]


def _judged(found: Exposure | None, words: str, name: str, limit: float) -> ThresholdEntry:
    if found is None:
        return ThresholdEntry(measure=words, limit=limit, largest=None, above=None, met=None)
    value, end = found.largest(name), found.largest_end(name)
    # Above is whose whole interval is; the upper end decides who is known to be within.
    above = None if value is None else int(np.count_nonzero(found.ends(name)[0] > limit))
    met: bool | None = None
    if found.contradicted:
        above = None
    elif above:
        met = False
    elif end is not None and end <= limit:
        met = True
    return ThresholdEntry(measure=words, limit=limit, largest=value, above=above, met=met)


def _of_model(audit: Audit, verifications: Sequence[Verification]) -> Exposure:
    """The audit's own numbers, as its table has them."""
    table, order = audit.table, audit.order
    columns = {"advantage": "advantage", "tpr_low": FPRS[LOW], "tpr_high": FPRS[HIGH]}
    low, high = (
        {
            key: table.of(f"{name}_{end}")[order]
            for key, name in columns.items()
            if f"{name}_{end}" in table
        }
        for end in ("low", "high")
    )
    measured = audit.basis == "measured"
    return Exposure(
        basis="measured" if measured else "computed",
        how=f"measured with {audit.model.origin}" if measured else "computed from the fit",
        ids=audit.ranking(),
        values={key: table.of(name)[order] for key, name in columns.items()},
        low=low,
        high=high,
        trusted=audit.trusted[order],
        records=audit.units,
        unknown=len(unsettled(audit, verifications)),
        contradicted=any(found.contradicts for found in verifications),
    )


def _of_few_models(found: ModelsMeasurement) -> Exposure:
    order = sorted(found.records, key=lambda record: -(record.advantage or 0.0))
    levels = {"tpr_low": f"{LOW:g}", "tpr_high": f"{HIGH:g}"}
    return Exposure(
        basis="measured",
        how=f"measured with {found.models} models",
        ids=tuple(record.record for record in order),
        values={
            "advantage": _array([record.advantage for record in order]),
            **{k: _array([r.tpr_at_fpr.get(v) for r in order]) for k, v in levels.items()},
        },
        low={
            "advantage": _array([record.advantage_low for record in order]),
            **{k: _array([r.tpr_low.get(v) for r in order]) for k, v in levels.items()},
        },
        high={
            "advantage": _array([record.advantage_high for record in order]),
            **{k: _array([r.tpr_high.get(v) for r in order]) for k, v in levels.items()},
        },
        trusted=np.array([record.trusted for record in order]),
        records=len(order),
        unknown=sum(not record.bounded for record in order),
    )


def _of_retraining(audited: Audit, found: Verification) -> Exposure:
    """What AUCs allow at most: an advantage of 2 AUC - 1, and that plus the FPR for a TPR."""
    told = sorted(found.checks, key=lambda check: -(check.measured or 0.0))
    auc = _array([check.measured for check in told])
    end = np.minimum(auc + HALF_WIDTH * _array([check.stderr for check in told]), 1.0)
    named = {f"record {record.record_id}": record.record_id for record in audited.records}
    advantage, highest = advantage_within_auc(auc), advantage_within_auc(end)
    unknown = np.full(len(told), np.nan)
    return Exposure(
        basis="measured",
        how=f"at most, by the AUCs that retraining measured of {len(told)} records",
        ids=tuple(named.get(check.law, check.law) for check in told),
        values={"advantage": advantage, "tpr_low": unknown, "tpr_high": unknown},
        high={
            "advantage": highest,
            "tpr_low": np.minimum(highest + LOW, 1.0),
            "tpr_high": np.minimum(highest + HIGH, 1.0),
        },
        trusted=np.ones(len(told), dtype=bool),
        records=audited.units,
        complete=False,
    )


def _accusation(tpr: float, fpr: float, prior: float | None) -> tuple[float | None, float | None]:
    """How often an accusation is right, and how many times as often as before."""
    if prior is None or not np.isfinite(tpr):
        return None, None
    ppv = float(measures.positive_predictive_value(tpr, fpr, prior))
    return ppv, float(measures.lift(tpr, fpr, prior))


def _array(values: Sequence[float | None]) -> FloatArray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _number(values: FloatArray | None, row: int) -> float | None:
    return None if values is None or not np.isfinite(values[row]) else float(values[row])


def _largest(values: FloatArray) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.max()) if known.size else None
