"""An audit beside what verify and measure found of the same model: who is right, and about what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict

from leakscope.results.audit import Audit
from leakscope.results.document import Number, ResultDocument
from leakscope.results.measurement import Measurement, ModelsMeasurement
from leakscope.results.verification import Verification, VerifiedNumber

Agrees = Literal["agrees", "differs", "cannot be compared"]

# Standard errors to each side of a 95% interval: of many draws, and of ten groups of models, whose
# standard error is itself known from nine degrees of freedom.
HALF_WIDTH, HALF_WIDTH_OF_GROUPS = 1.96, 2.262

# Rates at which scores and laws are set side by side.
LEVELS = ("0.01", "0.001")

# What verify compares over all records.
MEANS = ("mean TPR", "mean advantage")

ONE_THRESHOLD = "one threshold for all records"


class ReconciledRow(BaseModel):
    """One number as the audit predicts it and as it was measured; which to believe, and why.

    Examples
    --------
    >>> from leakscope.results.reconciliation import ReconciledRow
    >>> ReconciledRow(source="verify", quantity="mean TPR at 1% FPR", predicted=0.05,
    ...               measured=0.051, low=0.048, high=0.054, agrees="agrees", believe="both",
    ...               why="shadow models of the same estimator show the same").agrees
    'agrees'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: Literal["verify", "measure"]
    quantity: str
    predicted: Number
    measured: Number
    low: Number = None
    high: Number = None
    agrees: Agrees
    believe: str
    why: str


def was_retrained(verification: Verification | None) -> bool:
    """Whether a verification trained models: the user's own, or shadow models of the same kind.

    Examples
    --------
    >>> from leakscope.results.reconciliation import was_retrained
    >>> was_retrained(None)
    False
    """
    return verification is not None and (
        "trainer" in verification.settings or verification.by_shadows
    )


def unsettled(audit: Audit, others: Iterable[ResultDocument | None]) -> list[int | str]:
    """The ids of units that the audit does not know, and that no shadow models bear out.

    A verification that agrees lets the audit's numbers stand; it puts none in their place.
    """
    left = [name for name, known in zip(audit.record_ids, audit.known, strict=True) if not known]
    for other in others:
        if isinstance(other, Verification) and not other.contradicts:
            borne_out = frozenset(other.borne_out)
            left = [name for name in left if name not in borne_out]
    return left


def doubt_left(audit: Audit, others: Iterable[ResultDocument | None]) -> str | None:
    """What is said of units that are not trusted; None where verify bears out all not known."""
    left = len(unsettled(audit, others))
    return audit.doubt if left or audit.known.all() else None


def reconciled(
    audit: ResultDocument | None, others: Iterable[ResultDocument | None]
) -> list[ReconciledRow]:
    """What verify and measure found, each beside what the audit says of it.

    Parameters
    ----------
    audit
        Of a fitted model, or of a Gaussian process; another kind of result predicts nothing.
    others
        Results of ``verify`` and ``measure`` of the same data; others are passed over.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope import results
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> audit = leakscope.audit(X, y, model=Ridge(alpha=0.1).fit(X, y))
    >>> found = leakscope.verify(audit, records=4, models=100)
    >>> row, = results.reconciliation.reconciled(audit, [found])
    >>> row.quantity, row.agrees
    ('mean TPR at 2.7% FPR, all records', 'agrees')
    """
    rows: list[ReconciledRow] = []
    if audit is None:
        return rows
    for other in others:
        if isinstance(other, Verification):
            rows += _verified(audit, other)
        elif isinstance(other, Measurement):
            rows += _scores(audit, other)
        elif isinstance(other, ModelsMeasurement):
            rows += _models(audit, other)
    return rows


def _verified(audit: ResultDocument, found: Verification) -> Iterator[ReconciledRow]:
    if "trainer" in found.settings and found.checks:
        yield from _retrained(found)
        return
    mean = None
    if found.by_shadows:
        mean = next((c for c in found.checks if c.quantity.startswith(MEANS)), None)
    if mean is not None:
        yield _mean(mean, few=isinstance(audit, Audit) and audit.basis == "measured")
    if mean is None or (found.contradicts and mean.verdict != "differs"):
        total = found.agrees + found.differs + found.inconclusive
        yield ReconciledRow(
            source="verify",
            quantity="checks of the laws that agree",
            predicted=float(total),
            measured=float(found.agrees),
            agrees="differs" if found.contradicts else "agrees",
            believe="verify" if found.by_shadows else "neither, for your model",
            why="it trained the same model again and again"
            if found.by_shadows
            else "the stand-in's own laws were drawn anew; no model was trained",
        )


def _mean(check: VerifiedNumber, *, few: bool) -> ReconciledRow:
    """What verify compares over all records; of a few models where ``few``."""
    low, high = _ends(check.measured, check.stderr, HALF_WIDTH_OF_GROUPS)
    believe, why = "both", "many more models of the same training show the same on average"
    if check.verdict == "differs":
        over = "over" if (check.predicted or 0.0) > (check.measured or 0.0) else "under"
        believe = "verify"
        why = (
            "it trained the same model again and again; the audit "
            f"{over}states the exposure on average"
        )
    elif not few:
        believe = "the audit, for single records"
        why = (
            "shadow models of the same estimator show the same on average, and the audit's numbers "
            "of single records carry less noise"
        )
    return ReconciledRow(
        source="verify",
        quantity=f"{check.quantity}, {check.law}",
        predicted=check.predicted,
        measured=check.measured,
        low=low,
        high=high,
        agrees="differs" if check.verdict == "differs" else "agrees",
        believe=believe,
        why=why,
    )


def _retrained(found: Verification) -> Iterator[ReconciledRow]:
    together = found.agreement or {}
    told = [c for c in found.checks if c.predicted is not None and c.measured is not None]
    count = len(told)
    if not told:
        yield _row(
            "verify",
            f"AUC of {len(found.checks)} records",
            None,
            None,
            None,
            None,
            sure="neither",
            why="",
            unsure="neither",
            why_not="",
            unknown="every model of a record was the same, so that no AUC was measured",
        )
        return
    predicted = sum(c.predicted or 0.0 for c in told) / count
    measured = sum(c.measured or 0.0 for c in told) / count
    error = sum((c.stderr or 0.0) ** 2 for c in told) ** 0.5 / count
    stand_in = (
        "it trained your own model; the audit is of a stand-in with assumed noise, so use its "
        "ranks and not its levels"
    )
    yield _row(
        "verify",
        f"AUC, mean of {count} records",
        predicted,
        measured,
        *_ends(measured, error),
        sure="verify",
        why=stand_in,
        unsure="verify",
        why_not=stand_in,
    )
    if "spearman" in together:
        rank = together["spearman"]
        yield ReconciledRow(
            source="verify",
            quantity="rank correlation of predicted and measured AUC",
            predicted=1.0,
            measured=rank["value"],
            low=rank["low"],
            high=rank["high"],
            agrees="agrees" if rank["low"] > 0.0 else "differs",
            believe="the audit's ranks" if rank["low"] > 0.0 else "verify",
            why="the same people come first in your own model"
            if rank["low"] > 0.0
            else "in your own model other people come first",
        )


def _scores(audit: ResultDocument, found: Measurement) -> Iterator[ReconciledRow]:
    told = audit.details.for_everybody() if isinstance(audit, Audit) else {}
    entries = [("advantage", "advantage", found.advantage)]
    entries += [
        (f"tpr_at_fpr_{level}", f"TPR at {100 * float(level):g}% FPR", found.tpr_at_fpr[level])
        for level in LEVELS
        if level in found.tpr_at_fpr
    ]
    for name, words, measured in entries:
        ends = found.intervals.get(name)
        yield _row(
            "measure",
            f"{words}, {ONE_THRESHOLD}",
            told.get(name.removeprefix("tpr_at_fpr_")),
            measured,
            None if ends is None else ends.low,
            None if ends is None else ends.high,
            sure="both; the audit, for single records",
            why="the scores are your model's, but one threshold for everybody averages over all "
            "records and misses the few who are exposed",
            unsure="measure, for the average",
            why_not="it used your model's own scores; make sure that they are log-odds of the "
            "true label and that its nonmembers were never trained on",
        )


def _models(audit: ResultDocument, found: ModelsMeasurement) -> Iterator[ReconciledRow]:
    if not isinstance(audit, Audit):
        return
    first = audit.records[0]
    told = {record.record: record for record in found.records}
    same = {record.record_id for record in audit.records} == set(told)
    own = told.get(first.record_id) if same and isinstance(first.record_id, int) else None
    largest = max((r.advantage or 0.0 for r in found.records), default=None)
    few = f"{found.models} models were trained; the intervals are wide, but they are of your model"
    yield _row(
        "measure",
        "advantage of the audit's most exposed record" if own else "largest advantage",
        first.advantage,
        own.advantage if own else largest,
        own.advantage_low if own else None,
        own.advantage_high if own else None,
        sure="measure" if audit.basis == "assumed" else "the audit",
        why=few,
        unsure="measure",
        why_not=few,
    )


def _ends(
    value: float | None, error: float | None, half_width: float = HALF_WIDTH
) -> tuple[float | None, float | None]:
    if value is None or error is None:
        return None, None
    return max(0.0, value - half_width * error), value + half_width * error


def _row(
    source: Literal["verify", "measure"],
    quantity: str,
    predicted: float | None,
    measured: float | None,
    low: float | None,
    high: float | None,
    *,
    sure: str,
    why: str,
    unsure: str,
    why_not: str,
    unknown: str = "the audit does not give this number",
) -> ReconciledRow:
    if predicted is None or measured is None or low is None or high is None:
        return ReconciledRow(
            source=source,
            quantity=quantity,
            predicted=predicted,
            measured=measured,
            low=low,
            high=high,
            agrees="cannot be compared",
            believe=unsure,
            why=unknown if predicted is None else why_not,
        )
    agrees = low <= predicted <= high
    return ReconciledRow(
        source=source,
        quantity=quantity,
        predicted=predicted,
        measured=measured,
        low=low,
        high=high,
        agrees="agrees" if agrees else "differs",
        believe=sure if agrees else unsure,
        why=why if agrees else why_not,
    )
