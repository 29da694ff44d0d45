"""Every attack that a reader may ask about: run, not run, not applicable, or not in leakscope."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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
from leakscope.results.erasure import Erasure
from leakscope.results.measurement import CanaryMeasurement, Measurement, ModelsMeasurement
from leakscope.results.verification import Verification

ORDER = ("run", "not run", "not applicable", "not available")


def coverage(evidence: Evidence) -> list[CoverageRow]:
    """One row per attack: those that were run, that could have been, that do not apply, and others.

    An attack that takes another kind of model than the one examined does not apply; where no run
    says which kind it is, every attack does.
    """
    rows = [_row(evidence, *entry) for entry in ATTACKS]
    rows += [
        CoverageRow(attack=attack, ran=False, found=words, why_not="not available")
        for attack, words in NOT_AVAILABLE
    ]
    return sorted(rows, key=lambda row: ORDER.index(row.state))


def coverage_sentence(rows: Sequence[CoverageRow]) -> str:
    """How many attacks were run, and of the others how many could have been."""
    ran, possible, other, none = (sum(row.state == state for row in rows) for state in ORDER)
    return (
        f"Attacks: {ran} run; {possible} that leakscope could run against this model were not run; "
        f"{other} not applicable to it; leakscope has no attack for {none} other kinds. The table "
        "names them."
    )


def _row(
    evidence: Evidence, key: str, attack: str, words_of: Callable[[Any], str | None], command: str
) -> CoverageRow:
    results = [(given.name, words_of(given.document)) for given in evidence.given]
    ran = [(name, words) for name, words in results if words is not None]
    if ran:
        # Each of them: the second may be the worse.
        words = "; ".join(words for _, words in ran)
        run = ", ".join(dict.fromkeys(name for name, _ in ran))
        return CoverageRow(attack=attack, ran=True, found=words, run=run)
    audit = evidence.audit
    if audit is not None:
        if key == "reconstruct" and audit.model.holds_records:
            command = (
                f"needs no attack: a fitted {audit.model.type} contains training records unchanged"
            )
        elif key in (refused := audit.about.refused_attacks(audit)):
            words = refused[key]
            return CoverageRow(attack=attack, ran=False, found=words, why_not="not applicable")
        elif audit.dataset.source is None:
            command = IN_MEMORY.get(key, command)
    return CoverageRow(attack=attack, ran=False, found=command, why_not="possible")


def _audited(document: Any) -> str | None:
    if not isinstance(document, Audit) or document.basis == "assumed":
        return None
    return (
        f"largest advantage {_digits(document.totals.largest['advantage'])}, {document.exposed} of "
        f"{document.units} records at {document.exposed_above:g} or more; {document.model.origin}"
    )


def _refits(document: Any) -> str | None:
    if isinstance(document, Verification) and "models" in document.settings:
        return f"{document.agrees} checks agree, {document.differs} differ"
    return None


def _few(document: Any) -> str | None:
    if isinstance(document, Audit) and document.basis == "measured":
        exposed = sum(bool(record.surely_exposed) for record in document.records)
    elif isinstance(document, ModelsMeasurement):
        exposed = sum(record.exposed for record in document.records)
    else:
        return None
    return (
        f"{exposed} of {len(document.records)} records can be named as exposed, with at most a 5% "
        "chance that any one of them is not"
    )


def _canaries(document: Any) -> str | None:
    if not isinstance(document, CanaryMeasurement):
        return None
    bound = document.bound()
    words = (
        f"epsilon at least {_digits(bound.epsilon)} at delta {bound.delta:g}, from "
        f"{document.canaries} canaries"
    )
    certain, if_gaussian = document.contradictions()
    if certain or if_gaussian:
        words += "; the claim is contradicted" + ("" if certain else " if it is Gaussian")
    return words


def _secret(document: Any) -> str | None:
    secret = document.details.secret_attribute() if isinstance(document, Audit) else None
    if secret is None:
        return None
    return (
        f"column {secret.column}: the value is named with a chance of "
        f"{_digits(secret.chance_prior)} without the model, {_digits(secret.chance_without)} with "
        f"a model that was not trained on the record, {_digits(secret.chance_with)} with this one; "
        f"the record's own leak is at most {_digits(secret.largest_leak)}"
    )


def _verdict(*kinds: type[Any]) -> Callable[[Any], str | None]:
    return lambda document: document.verdict if isinstance(document, kinds) else None


def _number(kind: type[Any], attribute: str, words: str) -> Callable[[Any], str | None]:
    return lambda document: (
        f"{words} {_digits(getattr(document, attribute))}" if isinstance(document, kind) else None
    )


def _digits(value: float | None) -> str:
    return "not known" if value is None else f"{value:.3g}"


# By a key, under which a kind of model says that an attack does not apply to it: the attack, what
# a result says of it, and the command that runs it.
ATTACKS: tuple[tuple[str, str, Callable[[Any], str | None], str], ...] = (
    ("answers", "membership, from answers about the record", _audited,
     "leakscope audit --model, or audit(X, y, model=...)"),
    ("shadows", "membership, against refits of the same recipe", _refits,
     "leakscope verify RUN --models 200"),
    ("few", "membership, from a few models of the same training", _few,
     "leakscope audit --train module:name, or measure --logits FILE"),
    ("scores", "membership, one threshold on scores for everybody",
     _number(Measurement, "advantage", "advantage"),
     "leakscope measure --member-scores FILE --nonmember-scores FILE"),
    ("canaries", "membership of canaries, against the epsilon of a private training", _canaries,
     "leakscope measure --canaries FILE --claimed-epsilon NUMBER"),
    ("weights", "membership, from the weights of a two-layer network", _verdict(MembershipAttack),
     "leakscope attack membership MODEL"),
    ("pool", "membership, the likelihood ratio carried out against the model's answers",
     _number(ModelMembershipAttack, "auc", "AUC"),
     "leakscope attack membership MODEL --queries FILE --pool FILE --target COLUMN; of a model "
     "that was named, --answers COLUMN too"),
    ("query", "membership, at a query that was searched for",
     _number(QueryAttack, "advantage", "advantage at the query found"),
     "leakscope attack query FILE"),
    ("reconstruct", "reconstruction of records from weights",
     _verdict(ReconstructAttack, FitReconstructAttack),
     "leakscope attack reconstruct MODEL --data FILE, for linear models and two-layer networks"),
    ("erase", "records that were to be erased, still in the model", _verdict(Erasure),
     "leakscope erase RUN --record ID --after MODEL, once somebody asks to leave"),
    ("secret", "attribute inference, of a secret column", _secret,
     "leakscope audit FILE --model logistic --secret COLUMN"),
)  # fmt: skip

# What is run where the data are in memory, and in no file that a command could read.
IN_MEMORY = {
    "shadows": "leakscope.verify(audit, models=200)",
    "few": "leakscope.audit(X, y, train=model)",
    "pool": "leakscope.attack_membership(model, (X, y), pool=(X, y))",
}

NOT_HERE = "leakscope has no such attack"
NOT_AVAILABLE: tuple[tuple[str, str], ...] = (
    ("membership, by someone who knows all other records",
     "where training is deterministic, such a person can fit the model both ways and tell with "
     "certainty"),
    ("membership, after repeated or adaptive questions",
     "the numbers assume one question about each record"),
    ("model inversion", NOT_HERE),
    ("property inference about groups", NOT_HERE),
    ("exfiltration or regurgitation of training data", NOT_HERE),
    ("linkage and singling out with other data", NOT_HERE),
    ("extraction (theft) of the model", NOT_HERE),
    ("poisoning of the training data to expose others", NOT_HERE),
)  # fmt: skip


def mitigation_rows(evidence: Evidence) -> list[MitigationRow]:
    """Changes that were considered: from advice, comparisons, and what the audit itself offers."""
    rows: list[MitigationRow] = []
    for name, advice in evidence.all_of(Advice):
        for option in advice.options:
            price = f"error {_stated(option.error)}, {_stated(option.cost)} more than as audited"
            if option.accuracy is not None:
                price += f"; accuracy {_stated(option.accuracy)}"
            effect = f"worst {advice.target_label} {_stated(option.worst)}"
            if not option.meets:
                effect += ", which does not meet the target"
            change = ": ".join(part for part in (option.name, option.setting_words) if part)
            rows.append(MitigationRow(change=change, effect=effect, price=price, run=name))
    for name, compared in evidence.all_of(Comparison):
        changes = [f"{e.what}: {e.first} to {e.second}" for e in compared.differences[:3]]
        effect = (
            f"largest advantage {_stated(compared.first.largest_advantage)} to "
            f"{_stated(compared.second.largest_advantage)}, {compared.first.exposed} to "
            f"{compared.second.exposed} records at 0.1 or more"
        )
        if compared.worse:
            effect += f"; worse: {'; '.join(compared.worse)}"
        change = "; ".join(changes) or "none"
        rows.append(MitigationRow(change=change, effect=effect, price="not stated", run=name))
    for name, audit in evidence.audits:
        rows += [MitigationRow(**remedy, run=name) for remedy in audit.about.remedies(audit)]
    return rows


def _stated(value: float | None) -> str:
    return "not stated" if value is None else f"{value:.3g}"
