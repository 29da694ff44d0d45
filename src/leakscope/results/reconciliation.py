"""An audit beside what verify and measure found of the same model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from leakscope.results.audit import Audit
from leakscope.results.document import Entry, Number, ResultDocument
from leakscope.results.measurement import Measurement, ModelsMeasurement
from leakscope.results.verification import Verification

# Standard errors to each side of a 95% interval.
HALF_WIDTH = 1.96

Ends = tuple[float | None, float | None]


class ReconciledRow(Entry):
    """One number as the audit predicts it and as it was measured; which to believe, and why."""

    source: Literal["verify", "measure"]
    quantity: str
    predicted: Number
    measured: Number
    low: Number = None
    high: Number = None
    agrees: Literal["agrees", "differs", "cannot be compared"]
    believe: str
    why: str


def was_retrained(verification: Verification | None) -> bool:
    """Whether a verification trained models: the user's own, or shadow models of the same kind."""
    return verification is not None and verification.by_shadows


def unsettled(audit: Audit, others: Iterable[ResultDocument | None]) -> list[int | str]:
    """The ids of units that the audit does not know, and that no shadow models bear out."""
    left = [name for name, known in zip(audit.record_ids, audit.known, strict=True) if not known]
    for other in others:
        if isinstance(other, Verification) and not other.contradicts:
            borne_out = frozenset(other.borne_out)
            left = [name for name in left if name not in borne_out]
    return left


def doubt_left(audit: Audit, others: Iterable[ResultDocument | None]) -> str | None:
    """What is said of units that are not confirmed; None where verify bears out all not known."""
    return audit.doubt if unsettled(audit, others) or audit.known.all() else None


def reconciled(
    audit: ResultDocument | None, others: Iterable[ResultDocument | None]
) -> list[ReconciledRow]:
    """What verify and measure found, each beside what the audit says of it.

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
    ('mean advantage, all records', 'agrees')
    """
    rows: list[ReconciledRow] = []
    if not isinstance(audit, Audit):
        return rows
    for other in others:
        if isinstance(other, Verification):
            rows += _verified(other)
        elif isinstance(other, Measurement):
            rows += _scores(audit, other)
        elif isinstance(other, ModelsMeasurement):
            first = max(other.records, key=lambda record: record.advantage or 0.0)
            ends = (first.advantage_low, first.advantage_high)
            predicted = audit.totals.largest.get("advantage")
            rows.append(_row("measure", "largest advantage", predicted, first.advantage, ends))
    return rows


def _verified(found: Verification) -> Iterator[ReconciledRow]:
    """Means over all records where verify has any; else how many of its checks agree."""
    for check in found.checks:
        if check.quantity.startswith("mean"):
            ends: Ends = (None, None)
            if check.measured is not None and check.stderr is not None:
                reach = HALF_WIDTH * check.stderr
                ends = (max(0.0, check.measured - reach), check.measured + reach)
            agrees = "differs" if check.verdict == "differs" else "agrees"
            quantity = f"{check.quantity}, {check.law}"
            yield _row("verify", quantity, check.predicted, check.measured, ends, agrees)
            return
    total = float(len(found.checks))
    agrees = "differs" if found.contradicts else "agrees"
    quantity = "checks of the laws that agree"
    yield _row("verify", quantity, total, float(found.agrees), (None, None), agrees)


def _scores(audit: Audit, found: Measurement) -> Iterator[ReconciledRow]:
    """One threshold for all records, beside what the laws say it would achieve."""
    predicted = audit.details.for_everybody()
    values = {
        "advantage": found.advantage,
        **{f"TPR at FPR {k}": v for k, v in found.tpr_at_fpr.items()},
    }
    for name, measured in values.items():
        key = name.removeprefix("TPR at FPR ")
        if key not in predicted:
            continue
        interval = found.intervals.get(name.replace("TPR at FPR ", "tpr_at_fpr_"))
        ends = (None, None) if interval is None else (interval.low, interval.high)
        quantity = f"{name}, one threshold for all records"
        yield _row("measure", quantity, predicted[key], measured, ends)


def _row(
    source: Literal["verify", "measure"],
    quantity: str,
    predicted: float | None,
    measured: float | None,
    ends: Ends,
    agrees: str | None = None,
) -> ReconciledRow:
    low, high = ends
    believe: str = source
    if agrees is None and None in (predicted, low, high):
        agrees, believe, why = "cannot be compared", source, "the audit has no such number"
    elif agrees == "agrees" or (agrees is None and low <= predicted <= high):  # type: ignore[operator]
        agrees, believe, why = "agrees", "both", "what was measured shows the same"
    else:
        agrees, believe, why = "differs", source, "it is what models and scores of yours show"
    return ReconciledRow(
        source=source, quantity=quantity, predicted=predicted, measured=measured,
        low=low, high=high, agrees=agrees, believe=believe, why=why,  # type: ignore[arg-type]
    )  # fmt: skip
