"""Every attack that a reader may ask about: run, not run, not applicable, or not in leakscope."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from leakscope.deciding.evidence import Evidence
from leakscope.results.advice import Advice
from leakscope.results.attacks import (
    FitReconstructAttack,
    MembershipAttack,
    ModelMembershipAttack,
    QueryAttack,
    ReconstructAttack,
)
from leakscope.results.audit import Audit
from leakscope.results.comparison import Comparison
from leakscope.results.decision import CoverageRow, MitigationRow
from leakscope.results.document import ResultDocument
from leakscope.results.erasure import Erasure
from leakscope.results.measurement import CanaryMeasurement, Measurement, ModelsMeasurement
from leakscope.results.verification import Verification

Found = Callable[[ResultDocument], str | None]

NOT_HERE = "leakscope has no such attack"


def coverage(evidence: Evidence) -> list[CoverageRow]:
    """One row per attack: those that were run, that could have been, that do not apply, and others.

    An attack that takes another kind of model than the one examined does not apply; where no run
    says which kind it is, every attack does.
    """
    audit = evidence.audit
    refused = {} if audit is None else audit.about.refused_attacks(audit)
    rows = [_row(evidence, refused, *entry) for entry in ATTACKS]
    rows += [
        CoverageRow(attack=attack, ran=False, found=words, why_not="not available")
        for attack, words in NOT_AVAILABLE
    ]
    return sorted(rows, key=lambda row: ORDER.index(row.state))


def coverage_sentence(rows: Sequence[CoverageRow]) -> str:
    """How many attacks were run, and of the others how many could have been."""
    ran, possible, other, none = (sum(row.state == state for row in rows) for state in ORDER)
    words = (
        f"Attacks: {ran} run; {possible} that leakscope could run against this model were not run"
    )
    if other:
        words += f"; {other} {'does' if other == 1 else 'do'} not apply to it"
    return f"{words}; leakscope has no attack for {none} other kinds. The table names them."


def _row(
    evidence: Evidence,
    refused: Mapping[str, str],
    key: str,
    attack: str,
    found: Found,
    command: str,
) -> CoverageRow:
    told = [(given.name, found(given.document)) for given in evidence.given]
    seen = [(name, words) for name, words in told if words is not None]
    if len(seen) == 1:
        return CoverageRow(attack=attack, ran=True, found=seen[0][1], run=seen[0][0])
    if seen:
        # Each of them: the second may be the worse.
        words = " ".join(f"{name}: {words.rstrip('.')}." for name, words in seen)
        return CoverageRow(attack=attack, ran=True, found=words, run=", ".join(dict(seen)))
    audit = evidence.audit
    if key == "reconstruct" and audit is not None and audit.model.holds_records:
        words = f"needs no attack: a fitted {audit.model.type} contains training records unchanged"
        return CoverageRow(attack=attack, ran=False, found=words, why_not="possible")
    if key in refused:
        return CoverageRow(attack=attack, ran=False, found=refused[key], why_not="not applicable")
    if audit is not None and audit.dataset.source is None:
        command = IN_MEMORY.get(key, command)
    return CoverageRow(attack=attack, ran=False, found=command, why_not="possible")


def _audited(document: ResultDocument) -> str | None:
    if not isinstance(document, Audit) or document.basis == "assumed":
        return None
    words = (
        f"largest advantage {_digits(document.totals.largest['advantage'])}, {document.exposed} of "
        f"{document.units} records at {document.exposed_above:g} or more"
    )
    return f"{words}; by {document.model.origin}" if document.basis == "measured" else words


def _shadows(document: ResultDocument) -> str | None:
    if not isinstance(document, Verification) or not document.by_shadows:
        return None
    verb = "differs" if document.differs == 1 else "differ"
    return f"{document.agrees} checks agree, {document.differs} {verb}"


def _retrained(document: ResultDocument) -> str | None:
    if not isinstance(document, Verification) or "trainer" not in document.settings:
        return None
    largest = max((check.measured or 0.0 for check in document.checks), default=None)
    return f"largest AUC {_digits(largest)} of {len(document.checks)} records"


def _few(document: ResultDocument) -> str | None:
    if isinstance(document, Audit) and document.basis == "measured":
        exposed = sum(bool(record.surely_exposed) for record in document.records)
        by = document.model.origin
    elif isinstance(document, ModelsMeasurement):
        exposed = sum(record.exposed for record in document.records)
        by = f"{document.models} models"
    else:
        return None
    return (
        f"{exposed} of {len(document.records)} records can be named as exposed, with at most a 5% "
        f"chance that any one of them is not; by {by}"
    )


def _scores(document: ResultDocument) -> str | None:
    return f"advantage {_digits(document.advantage)}" if isinstance(document, Measurement) else None


def _canaries(document: ResultDocument) -> str | None:
    if not isinstance(document, CanaryMeasurement):
        return None
    seen, told = document.bound(), ""
    if document.claimed_epsilon is not None:
        certain, if_gaussian = document.contradictions()
        judged = "contradicted" if certain else "not contradicted"
        judged = "contradicted if the mechanism is Gaussian" if if_gaussian else judged
        told = f"; {_digits(document.claimed_epsilon)} is claimed, which is {judged}"
    return (
        f"epsilon at least {_digits(seen.epsilon)} at delta {seen.delta:g}, from "
        f"{document.canaries} canaries{told}"
    )


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
    attacks = (ReconstructAttack, FitReconstructAttack)
    return document.verdict if isinstance(document, attacks) else None


def _erased(document: ResultDocument) -> str | None:
    return document.verdict if isinstance(document, Erasure) else None


def _secret(document: ResultDocument) -> str | None:
    found = document.details.secret_attribute() if isinstance(document, Audit) else None
    if found is None:
        return None
    return (
        f"column {found.column}: the value is named with a chance of "
        f"{_digits(found.chance_prior)} in the mean without the model, "
        f"{_digits(found.chance_without)} with a model that was not trained on the record, "
        f"{_digits(found.chance_with)} with this one; the record's own leak is at most "
        f"{_digits(found.largest_leak)}"
    )


def _digits(value: float | None) -> str:
    return "not known" if value is None else f"{value:.3g}"


ORDER = ("run", "not run", "not applicable", "not available")

# By a key, under which a kind of model says that an attack does not apply to it.
ATTACKS: tuple[tuple[str, str, Found, str], ...] = (
    (
        "answers",
        "membership, from answers about the record",
        _audited,
        "leakscope audit --model, or audit(X, y, model=...)",
    ),
    (
        "shadows",
        "membership, against shadow models of the same estimator",
        _shadows,
        "leakscope verify RUN --models 200",
    ),
    (
        "retrained",
        "membership, against your model retrained with and without the record",
        _retrained,
        "leakscope verify RUN --train module:function",
    ),
    (
        "few",
        "membership, from a few models of the same training",
        _few,
        "leakscope audit --train module:name, or measure --logits FILE",
    ),
    (
        "scores",
        "membership, one threshold on scores for everybody",
        _scores,
        "leakscope measure --member-scores FILE --nonmember-scores FILE",
    ),
    (
        "canaries",
        "membership of canaries, against the epsilon of a private training",
        _canaries,
        "leakscope measure --canaries FILE --claimed-epsilon NUMBER",
    ),
    (
        "weights",
        "membership, from the weights of a two-layer network",
        _network,
        "leakscope attack membership MODEL",
    ),
    (
        "pool",
        "membership, the likelihood ratio carried out against the model's answers",
        _pool,
        "leakscope attack membership MODEL --queries FILE --pool FILE --target COLUMN; of a model "
        "that was named, --answers COLUMN too",
    ),
    (
        "query",
        "membership, at a query that was searched for",
        _query,
        "leakscope attack query FILE",
    ),
    (
        "reconstruct",
        "reconstruction of records from weights",
        _reconstructed,
        "leakscope attack reconstruct MODEL --data FILE, for linear models and two-layer networks",
    ),
    (
        "erase",
        "records that were to be erased, still in the model",
        _erased,
        "leakscope erase RUN --record ID --after MODEL, once somebody asks to leave",
    ),
    (
        "secret",
        "attribute inference, of a secret column",
        _secret,
        "leakscope audit FILE --model logistic --secret COLUMN",
    ),
)

# What is run where the data are in memory, and in no file that a command could read.
IN_MEMORY = {
    "shadows": "leakscope.verify(audit, models=200)",
    "few": "leakscope.audit(X, y, train=model)",
    "pool": "leakscope.attack_membership(model, (X, y), pool=(X, y))",
}

NOT_AVAILABLE: tuple[tuple[str, str], ...] = (
    (
        "membership, by someone who knows all other records",
        "where training is deterministic, such a person can fit the model both ways and tell with "
        "certainty",
    ),
    (
        "membership, after repeated or adaptive questions",
        "the numbers assume one question about each record",
    ),
    ("model inversion", NOT_HERE),
    ("property inference about groups", NOT_HERE),
    ("exfiltration or regurgitation of training data", NOT_HERE),
    ("linkage and singling out with other data", NOT_HERE),
    ("extraction (theft) of the model", NOT_HERE),
    ("poisoning of the training data to expose others", NOT_HERE),
)


def mitigation_rows(evidence: Evidence) -> list[MitigationRow]:
    """From advice, comparisons, and what the audit itself offers."""
    rows: list[MitigationRow] = []
    for name, advice in evidence.all_of(Advice):
        for option in advice.options:
            price = f"error {_stated(option.error)}, {_stated(option.cost)} more than as audited"
            if option.accuracy is not None:
                price += f"; accuracy {_stated(option.accuracy)}"
            rows.append(
                MitigationRow(
                    change=": ".join(part for part in (option.name, option.setting_words) if part),
                    effect=f"worst {advice.target_label} {_stated(option.worst)}"
                    + ("" if option.meets else ", which does not meet the target"),
                    price=price,
                    run=name,
                )
            )
    for name, compared in evidence.all_of(Comparison):
        rows.append(
            MitigationRow(
                change="; ".join(
                    f"{entry.what}: {entry.first} to {entry.second}"
                    for entry in compared.differences[:3]
                )
                or "none",
                effect=_compared(compared),
                price="not stated",
                run=name,
            )
        )
    for name, audit in evidence.audits:
        rows += [MitigationRow(**told, run=name) for told in audit.about.remedies(audit)]
    return rows


def _compared(found: Comparison) -> str:
    """How the largest advantage and the number of exposed records change, and what is worse."""
    words = (
        f"largest advantage {_stated(found.first.largest_advantage)} to "
        f"{_stated(found.second.largest_advantage)}, {found.first.exposed} to "
        f"{found.second.exposed} records at 0.1 or more"
    )
    if found.worse:
        words += f"; worse in {len(found.worse)} respects: {'; '.join(found.worse)}"
    return words


def _stated(value: float | None) -> str:
    return "not stated" if value is None else f"{value:.3g}"
