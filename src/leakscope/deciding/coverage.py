"""Every attack that a reader may ask about: run, not run, not applicable, or not in leakscope."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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

NOT_HERE = "leakscope has no such attack"


def coverage(evidence: Evidence) -> list[CoverageRow]:
    """One row per attack: those that were run, that could have been, that do not apply, and others.

    An attack that takes another kind of model than the one examined does not apply; where no run
    says which kind it is, every attack does.
    """
    kind = _kind(evidence.one_of(ModelAuditDocument))
    rows = [_row(evidence, kind, *entry) for entry in ATTACKS]
    rows += [
        CoverageRow(attack=attack, ran=False, found=words, why_not="not available")
        for attack, words in NOT_AVAILABLE
    ]
    return sorted(rows, key=lambda row: ORDER.index(row.state))


def coverage_sentence(rows: Sequence[CoverageRow]) -> str:
    """How many attacks were run, and of the others how many could have been."""
    ran, possible, other, none = (sum(row.state == state for row in rows) for state in ORDER)
    words = f"Attacks: {ran} run; {possible} that leakscope could run against this model were not"
    if other:
        words += f"; {other} {'does' if other == 1 else 'do'} not apply to it"
    return f"{words}; leakscope has none of {none} others. The table names them."


def _kind(audit: ModelAuditDocument | None) -> str | None:
    """What the attacks need to know of the model: a fit, a training, or a training of a network."""
    if audit is None:
        return None
    if audit.models is None:
        return "fit"
    # Of a function of one's own nobody knows what it trains.
    name = audit.model.type
    return "network" if name == "function" or name.startswith("MLP") else "training"


def _row(
    evidence: Evidence,
    kind: str | None,
    attack: str,
    found: Found,
    command: str,
    refused: Mapping[str, str],
) -> CoverageRow:
    for given in evidence.given:
        words = found(given.document)
        if words is not None:
            return CoverageRow(attack=attack, ran=True, found=words, run=given.name)
    if kind is not None and kind in refused:
        return CoverageRow(attack=attack, ran=False, found=refused[kind], why_not="not applicable")
    return CoverageRow(attack=attack, ran=False, found=command, why_not="possible")


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
        f"{exposed} of {len(document.records)} records can be named as exposed, with at most a 5% "
        f"chance that any one of them is not; by {document.models} models"
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


ORDER = ("run", "not run", "not applicable", "not available")

# Which kinds of model an attack does not take, and why.
ONLY_FITS = dict.fromkeys(
    ("training", "network"), "needs a linear, logistic, Poisson or kernel ridge model"
)
ONLY_NETWORKS = dict.fromkeys(("fit", "training"), "needs a two-layer network")
ONLY_PROCESSES = dict.fromkeys(("fit", "training", "network"), "needs a Gaussian process")

ATTACKS: tuple[tuple[str, Found, str, Mapping[str, str]], ...] = (
    (
        "membership, from answers about the record",
        _audited,
        "leakscope audit --model, or audit(X, y, model=...)",
        ONLY_FITS,
    ),
    (
        "membership, against shadow models of the same estimator",
        _shadows,
        "leakscope verify RUN --models 200",
        {},
    ),
    (
        "membership, against your model retrained with and without the record",
        _retrained,
        "leakscope verify RUN --train module:function",
        ONLY_PROCESSES,
    ),
    (
        "membership, from a few models of the same training",
        _few,
        "leakscope audit --train module:name, or measure --logits FILE",
        {},
    ),
    (
        "membership, one threshold on scores for everybody",
        _scores,
        "leakscope measure --member-scores FILE --nonmember-scores FILE",
        {},
    ),
    (
        "membership, from the weights of a two-layer network",
        _network,
        "leakscope attack membership MODEL",
        ONLY_NETWORKS,
    ),
    (
        "membership, the likelihood ratio carried out against the model's answers",
        _pool,
        "leakscope attack membership MODEL --pool FILE",
        ONLY_FITS,
    ),
    (
        "membership, at a query that was searched for",
        _query,
        "leakscope attack query FILE",
        ONLY_PROCESSES,
    ),
    (
        "reconstruction of records from weights",
        _reconstructed,
        "leakscope attack reconstruct MODEL, for two-layer networks",
        ONLY_NETWORKS,
    ),
)

NOT_AVAILABLE: tuple[tuple[str, str], ...] = (
    (
        "membership, by someone who knows all other records",
        "where training is deterministic, such a person can fit the model both ways and tell with "
        "certainty",
    ),
    (
        "membership, after repeated or adaptive questions, or several releases",
        "each record is taken to be asked about once",
    ),
    ("attribute inference", NOT_HERE),
    ("model inversion", NOT_HERE),
    ("property inference about groups", NOT_HERE),
    ("exfiltration or regurgitation of training data", NOT_HERE),
    ("linkage and singling out with other data", NOT_HERE),
    ("extraction (theft) of the model", NOT_HERE),
    ("poisoning of the training data to expose others", NOT_HERE),
)
