"""An audit beside what verify and measure found of the same model: who is right, and about what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from leakscope.results.audit import Audit
from leakscope.results.document import Number, ResultDocument
from leakscope.results.measurement import MeasuredRecord, Measurement, ModelsMeasurement
from leakscope.results.shown import are
from leakscope.results.verification import Verification

Agrees = Literal["agrees", "differs", "cannot be compared"]

# Standard errors to each side of a 95% interval: of many draws, and of ten groups of models, whose
# standard error is itself known from nine degrees of freedom.
HALF_WIDTH, HALF_WIDTH_OF_GROUPS = 1.96, 2.262

# Mean TPRs within this share of each other are called the same, however many models there were.
TOLERANCE = 0.1

# Rates at which scores and laws are set side by side.
LEVELS = ("0.01", "0.001")

# At which verify counts; the least that few shadow models can show is above it.
FPR_ASKED = 0.01

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


def shadows_agree(predicted: float, measured: float, stderr: float) -> bool:
    """Whether the mean TPR that shadow models show is the one that the laws predict.

    Examples
    --------
    >>> from leakscope.results.reconciliation import shadows_agree
    >>> shadows_agree(0.05, 0.06, 0.01), shadows_agree(0.05, 0.2, 0.01)
    (True, False)
    """
    low, high = _ends(measured, stderr, HALF_WIDTH_OF_GROUPS)
    within = low is not None and high is not None and low <= predicted <= high
    return within or abs(predicted - measured) <= TOLERANCE * measured


@dataclass(frozen=True, eq=False)
class Standing:
    """An audit's numbers after verify: whose rest on the laws, and what stands for the others.

    ``doubtful`` are ids whose numbers nothing bears out; ``measured`` what shadow models showed, in
    place of the audit's numbers; ``contradicted`` whether the audit as a whole was, and nothing
    stands in its place; ``models`` how many shadow models there were.
    """

    doubtful: frozenset[int | str]
    measured: Mapping[int | str, MeasuredRecord]
    contradicted: bool = False
    models: int | None = None

    @property
    def of_measured(self) -> str:
        """How they were measured, in words."""
        return "shadow models" if self.models is None else f"{self.models} shadow models"

    def doubt(self, audit: Audit) -> str | None:
        """What is said of units that the audit does not trust; None where it trusts all."""
        if self.models is None or not audit.untrusted:
            return audit.doubt
        told, left = audit.untrusted, len(self.doubtful)
        words = (
            f"{told} of {audit.units} {audit.unit}s {are(told)} not trusted by the audit alone; "
        )
        if not left:
            return f"{words}{self.of_measured} have confirmed or measured them."
        return f"{words}of {left} the {self.of_measured} of verify cannot tell: take more models."


def standing_of(audit: Audit, others: Iterable[ResultDocument | None]) -> Standing:
    """What verify's shadow models make of an audit.

    Laws that they bear out need no trust in the theory; where they contradict the audit, or the
    audit does not answer for a number, theirs stands instead, with its interval.
    """
    names = audit.record_ids
    doubtful = {name for name, good in zip(names, audit.known, strict=True) if not good}
    measured: dict[int | str, MeasuredRecord] = {}
    contradicted, models = False, None
    for other in others:
        if not isinstance(other, Verification) or not other.by_shadows:
            continue
        models = other.settings.get("models")
        borne_out = {name for name in doubtful if _borne_out(other, f"{audit.unit} {name}")}
        doubtful -= borne_out
        told = {one.record: one for one in other.measured if one.record not in borne_out}
        measured |= told
        doubtful -= {name for name, one in told.items() if one.bounded}
        doubtful |= {name for name, one in told.items() if not one.bounded}
        if any(row.agrees == "differs" for row in _verified(audit, other)):
            contradicted |= len(told) < len(names)
    return Standing(frozenset(doubtful), measured, contradicted, models)


def _borne_out(found: Verification, law: str) -> bool:
    own = [check for check in found.checks if check.law == law]
    return bool(own) and all(check.verdict == "agrees" for check in own)


def fpr_reached(level: float) -> str:
    """The false-positive rate of a count, and the one asked for where there were too few models.

    Examples
    --------
    >>> from leakscope.results.reconciliation import fpr_reached
    >>> fpr_reached(0.01), fpr_reached(0.027)
    ('1% FPR', '2.7% FPR (the lowest that so few models show)')
    """
    words = f"{100 * level:.2g}% FPR"
    if level <= FPR_ASKED:
        return words
    return f"{words} (the lowest that so few models show)"


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
    ('mean TPR at 2.7% FPR (the lowest that so few models show), all records', 'agrees')
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
    together = found.agreement or {}
    few = isinstance(audit, Audit) and audit.basis == "measured"
    if "tpr_observed" in together:
        measured, error = together["tpr_observed"], together.get("tpr_stderr")
        # Both are compared with the noise of so many shadow models in them.
        yield _row(
            "verify",
            f"mean TPR at {fpr_reached(together.get('tpr_at', FPR_ASKED))}, all records",
            together["tpr_predicted"],
            measured,
            *_ends(measured, error, HALF_WIDTH_OF_GROUPS),
            tolerance=TOLERANCE * measured,
            sure="both" if few else "the audit, for single records",
            why="many more models of the same training show the same on average"
            if few
            else "shadow models of the same estimator show the same on average, and the audit's "
            "numbers of single records carry less noise",
            unsure="verify",
            why_not="it trained the same model again and again; the audit "
            + ("overstates" if together["tpr_predicted"] > measured else "understates")
            + " the exposure on average",
        )
    elif found.by_shadows:
        measured, error = together["advantage_observed"], together.get("advantage_stderr")
        yield _row(
            "verify",
            "mean advantage, all records",
            together["advantage_predicted"],
            measured,
            *_ends(measured, error),
            sure="both",
            why="many more models of the same training show the same on average",
            unsure="verify",
            why_not="it trained many more models; the audit "
            + ("overstates" if together["advantage_predicted"] > measured else "understates")
            + " the exposure on average",
        )
    elif "trainer" in found.settings and found.checks:
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
    else:
        total = found.agrees + found.differs + found.inconclusive
        yield ReconciledRow(
            source="verify",
            quantity="checks of the laws that agree",
            predicted=float(total),
            measured=float(found.agrees),
            agrees="differs" if found.differs else "agrees",
            believe="neither, for your model",
            why="the stand-in's own laws were drawn anew; no model was trained",
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
    tolerance: float = 0.0,
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
    agrees = low <= predicted <= high or abs(predicted - measured) <= tolerance
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
