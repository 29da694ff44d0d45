"""The fields of the record: which model and data, what was declared, which attacker."""

from __future__ import annotations

from typing import Any

from leakscope.deciding.evidence import Evidence, ReleasedFile
from leakscope.results.audit import Audit
from leakscope.results.decision import NOT_KNOWN, NOT_STATED, Basis, StatedField
from leakscope.results.document import ResultDocument
from leakscope.settings.decide import ATTACKERS, DecideSettings

NO_FILE = "no file was given (--model FILE)"
ACCESS = {
    "black-box": "answers only (black box)",
    "weights": "the model itself, with its weights",
}
OTHERS = {
    "pool": "nothing about which of the other records were used; each is in with probability "
    "{fraction:g}",
    "population": "nothing about the other records, which are fresh draws",
    "leave_one_out": "all other records",
}
SEEN = {
    "log_odds": "the log-odds of the record's label",
    "scores": "the score of the record's label",
    "prediction": "the prediction for the record",
    "residual": "the residual of the record",
    "label": "the predicted label only",
    "probabilities": "the probabilities of all classes",
    "latent": "one draw of the predicted value",
}


def stated(
    key: str, label: str, value: Any, basis: Basis = "computed", text: str | None = None
) -> StatedField:
    """A field; without a value it reads "not stated" where a person could state it."""
    if value is None:
        text = text or (NOT_STATED if basis == "declared" else NOT_KNOWN)
    shown = f"{value:.4g}" if isinstance(value, float) else str(value)
    return StatedField(key=key, label=label, basis=basis, value=value, text=text or shown)


def identity_fields(evidence: Evidence, file: ReleasedFile) -> list[StatedField]:
    """Which model, on which data, and how large it is beside them."""
    audit = evidence.audit
    model = None if audit is None else audit.model
    name = None if model is None else model.name
    steps = None
    if model is not None and " → " in model.name:
        # Of what has steps the type alone says little.
        named = [part.partition("(")[0] for part in model.name.split(" → ")]
        steps = f"{model.type} ({' → '.join(named)})"
    label, basis = "file of the model", "computed"
    if file.name is not None and not file.examined:
        label, basis = "file declared to be this model, which was not examined", "declared"
    no_file = NO_FILE if file.name is None else None
    return [
        stated("model.type", "type of the model", None if model is None else model.type,
               text=steps),
        stated("model.settings", "the model with its settings", name),
        stated("model.origin", "where it comes from", None if model is None else model.origin),
        stated("model.file", label, file.name, basis, no_file),  # type: ignore[arg-type]
        stated("model.sha256", f"SHA-256 of the {label}", None if no_file else file.sha256,
               basis, no_file),  # type: ignore[arg-type]
        *_data_fields(evidence),
        *_size_fields(audit),
    ]  # fmt: skip


def context_fields(evidence: Evidence, settings: DecideSettings) -> list[StatedField]:
    """The context of the release, as declared."""
    dataset = None if evidence.audit is None else evidence.audit.dataset
    each_row: tuple[str | None, Basis] = (settings.each_row, "declared")
    no_copies = dataset is not None and dataset.copies == 0 and not dataset.person_columns
    if settings.each_row is None and no_copies:
        each_row = "no record is a copy", "computed"
    access = None if settings.access is None else ACCESS[settings.access]
    return [
        stated("release", "what is released, and for what", settings.release, "declared"),
        stated("recipient", "who receives it", settings.recipient, "declared"),
        stated("access", "what they get", settings.access, "declared", access),
        stated("queries", "questions each may ask", settings.queries, "declared"),
        stated("each_row", "each row a person of its own", *each_row),
    ]


def attacker_fields(main: ResultDocument, settings: DecideSettings) -> list[StatedField]:
    """The attacker assumed: what they see and know, and how likely membership was before."""
    others = OTHERS.get(str(main.provenance.get("question")))
    if others is not None:
        fraction = (main.fraction if isinstance(main, Audit) else None) or 0.5
        others = others.format(fraction=fraction)
    knows, seen = (main.provenance.get(name) for name in ("attacker_knows_label", "observes"))
    record = None if knows is None else f"the record {'with' if knows else 'without'} its label"
    name = settings.attacker
    who = None if name is None else f"{name}: {ATTACKERS[name][2]}"
    return [
        stated("attacker.who", "whom the thresholds are for", name, "declared", who),
        stated("attacker.knows", "knows of the record", record),
        stated("attacker.others", "knows of the other records", others),
        stated("attacker.sees", "sees", SEEN.get(str(seen), seen)),
        stated("prior", "prior: share of members among those asked about", settings.prior,
               "declared"),
    ]  # fmt: skip


def _data_fields(evidence: Evidence) -> list[StatedField]:
    dataset = next(
        (g.document.dataset for g in evidence.given if hasattr(g.document, "dataset")), None
    )
    source = getattr(dataset, "source", None)
    # Of the values with ids and groups; the file's own stands last.
    parts = [] if source is None else source.digest.split("-")
    digest = parts[1] if len(parts) > 2 else getattr(source, "digest", None)
    return [
        stated("data.name", "training data", getattr(dataset, "name", None)),
        stated("data.digest", "SHA-256 of its values", digest),
        stated("data.file_sha256", "SHA-256 of its file", parts[3] or None if parts[3:] else None),
        stated("data.records", "number of records", getattr(dataset, "records", None)),
        stated("data.features", "number of features", getattr(dataset, "features", None)),
    ]


def _size_fields(audit: Audit | None) -> list[StatedField]:
    """Parameters beside records, and scores with and without them, as output checkers ask."""
    size = None if audit is None else audit.details.size()
    count, score = getattr(size, "parameters", None), getattr(size, "score", "score")
    records, left, per_record, more = 1 if audit is None else audit.units, None, None, None
    if count is not None:
        left, per_record = records - count, count / records
        more = f"{left} (more parameters than records)" if left < 0 else None
    of_half = "" if audit is None else f", fits to {audit.fraction or 1.0:g} of the records"
    basis: Basis = "measured" if audit is not None and audit.basis == "measured" else "computed"
    scores = {
        "score.training": f"{score} on records used in training{of_half}",
        "score.left_out": f"{score} on records left out",
        "generalisation_gap": "generalisation gap",
    }
    values = {"score.training": "training", "score.left_out": "left_out"}
    return [
        stated("parameters", "parameters fitted", count),
        stated("parameters_per_record", "parameters per record", per_record),
        stated("residual_degrees_of_freedom", "residual degrees of freedom", left, text=more),
        *(
            stated(key, label, getattr(size, values.get(key, "gap"), None), basis)
            for key, label in scores.items()
        ),
    ]
