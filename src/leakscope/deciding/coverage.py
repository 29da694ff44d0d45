"""Every attack that a reader may ask about, and whether it was run; a row for each that was not."""

from __future__ import annotations

from collections.abc import Callable

from leakscope.deciding.evidence import Evidence
from leakscope.results import (
    CoverageRow,
    Measurement,
    MembershipAttack,
    ModelAuditDocument,
    ModelMembershipAttack,
    ModelsMeasurement,
    QueryAttack,
    ReconstructAttack,
    ResultDocument,
    Verification,
)

Found = Callable[[ResultDocument], str | None]

NOT_HERE = "not run; leakscope has no such attack"


def coverage(evidence: Evidence) -> list[CoverageRow]:
    """One row per attack, those that were run first."""
    rows = [_row(evidence, *entry) for entry in ATTACKS]
    rows += [CoverageRow(attack=attack, ran=False, found=words) for attack, words in NEVER_RUN]
    return sorted(rows, key=lambda row: not row.ran)


def _row(evidence: Evidence, attack: str, found: Found, instead: str) -> CoverageRow:
    for given in evidence.given:
        words = found(given.document)
        if words is not None:
            return CoverageRow(attack=attack, ran=True, found=words, run=given.name)
    return CoverageRow(attack=attack, ran=False, found=f"not run; {instead}")


def _audited(document: ResultDocument) -> str | None:
    if not isinstance(document, ModelAuditDocument) or document.models is not None:
        return None
    first = document.records[0]
    return (
        f"largest advantage {_digits(first.advantage)}, {document.exposed} of "
        f"{len(document.records)} records at {document.exposed_above:g} or more"
    )


def _shadows(document: ResultDocument) -> str | None:
    if not isinstance(document, Verification) or "tpr_observed" not in (document.agreement or {}):
        return None
    return f"{document.agrees} checks agree, {document.differs} differ"


def _retrained(document: ResultDocument) -> str | None:
    if not isinstance(document, Verification) or "trainer" not in document.settings:
        return None
    largest = max((check.measured or 0.0 for check in document.checks), default=None)
    return f"largest AUC {_digits(largest)} of {len(document.checks)} records"


def _few(document: ResultDocument) -> str | None:
    if isinstance(document, ModelAuditDocument) and document.models is not None:
        exposed = sum(bool(record.surely_exposed) for record in document.records)
    elif isinstance(document, ModelsMeasurement):
        exposed = sum(record.exposed for record in document.records)
    else:
        return None
    return (
        f"{exposed} of {len(document.records)} records surely exposed, by {document.models} models"
    )


def _scores(document: ResultDocument) -> str | None:
    return f"advantage {_digits(document.advantage)}" if isinstance(document, Measurement) else None


def _network(document: ResultDocument) -> str | None:
    return document.verdict if isinstance(document, MembershipAttack) else None


def _pool(document: ResultDocument) -> str | None:
    if not isinstance(document, ModelMembershipAttack):
        return None
    return f"AUC {_digits(document.auc)} over {document.queries} records"


def _query(document: ResultDocument) -> str | None:
    return (
        f"advantage {_digits(document.advantage)} at the query found"
        if isinstance(document, QueryAttack)
        else None
    )


def _reconstructed(document: ResultDocument) -> str | None:
    return document.verdict if isinstance(document, ReconstructAttack) else None


def _digits(value: float | None) -> str:
    return "not known" if value is None else f"{value:.3g}"


ATTACKS: tuple[tuple[str, Found, str], ...] = (
    (
        "membership, from answers about the record",
        _audited,
        "leakscope audit --model, or audit(X, y, model=...)",
    ),
    (
        "membership, against shadow models of the same estimator",
        _shadows,
        "leakscope verify RUN --models 200",
    ),
    (
        "membership, against your model retrained with and without the record",
        _retrained,
        "leakscope verify RUN --train module:function",
    ),
    (
        "membership, from a few models of the same training",
        _few,
        "leakscope audit --train module:name, or measure --logits FILE",
    ),
    (
        "membership, one threshold on scores for everybody",
        _scores,
        "leakscope measure --member-scores FILE --nonmember-scores FILE",
    ),
    (
        "membership, from the weights of a two-layer network",
        _network,
        "leakscope attack membership MODEL",
    ),
    (
        "membership, the likelihood ratio carried out against the model's answers",
        _pool,
        "leakscope attack membership MODEL --pool FILE",
    ),
    ("membership, at a query that was searched for", _query, "leakscope attack query FILE"),
    (
        "reconstruction of records from weights",
        _reconstructed,
        "leakscope attack reconstruct MODEL, for two-layer networks",
    ),
)

NEVER_RUN: tuple[tuple[str, str], ...] = (
    (
        "membership, by someone who knows all other records",
        "not run; where training is deterministic, such a person can fit the model both ways and "
        "tell with certainty",
    ),
    (
        "membership, after repeated or adaptive questions, or several releases",
        "not run; each record is taken to be asked about once",
    ),
    ("attribute inference", NOT_HERE),
    ("model inversion", NOT_HERE),
    ("property inference about groups", NOT_HERE),
    ("exfiltration or regurgitation of training data", NOT_HERE),
    ("linkage and singling out with other data", NOT_HERE),
    ("extraction (theft) of the model", NOT_HERE),
    ("poisoning of the training data to expose others", NOT_HERE),
)
