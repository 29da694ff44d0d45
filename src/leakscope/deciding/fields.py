"""The fields of the record: which model and data, what was declared, which attacker."""

from __future__ import annotations

from typing import Any

from leakscope.deciding.evidence import Evidence, ReleasedFile
from leakscope.results.audit import Audit
from leakscope.results.decision import NOT_KNOWN, NOT_STATED, Basis, StatedField
from leakscope.results.document import ResultDocument
from leakscope.results.measurement import ModelsMeasurement
from leakscope.results.verification import Verification
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
        missing = NOT_STATED if basis == "declared" else NOT_KNOWN
        return StatedField(key=key, label=label, basis=basis, text=text or missing)
    shown = f"{value:.4g}" if isinstance(value, float) else str(value)
    return StatedField(key=key, label=label, basis=basis, value=value, text=text or shown)


def identity_fields(evidence: Evidence, file: ReleasedFile) -> list[StatedField]:
    """Which model, on which data, and how large it is beside them."""
    audit = evidence.audit
    trained = _trainer(evidence)
    kind = name = origin = None
    if audit is not None:
        kind, name, origin = audit.model.type, audit.model.name, audit.model.origin
    elif trained is not None:
        kind, name = "training function", str(trained.get("name", "function"))
        origin = f"SHA-256 of its source {trained.get('source', 'unknown')}"
    return [
        stated("model.type", "type of the model", kind, text=_steps(kind, name)),
        stated("model.settings", "the model with its settings", name),
        stated("model.origin", "where it comes from", origin),
        *_file_fields(file),
        *_data_fields(evidence),
        *_size_fields(audit),
    ]


def _steps(kind: str | None, name: str | None) -> str | None:
    """Of what has steps, which they are: the type alone says little."""
    if kind is None or name is None or " → " not in name:
        return None
    return f"{kind} ({' → '.join(part.partition('(')[0] for part in name.split(' → '))})"


def _file_fields(file: ReleasedFile) -> list[StatedField]:
    """The file: examined, or only declared to be the model that was."""
    if file.name is None:
        return [
            stated("model.file", "file of the model", None, text=NO_FILE),
            stated("model.sha256", "SHA-256 of the model's file", None, text=NO_FILE),
        ]
    label = "file of the model"
    basis: Basis = "computed"
    if not file.examined:
        label, basis = "file declared to be this model, which was not examined", "declared"
    return [
        stated("model.file", label, file.name, basis),
        stated("model.sha256", f"SHA-256 of the {label}", file.sha256, basis),
    ]


def context_fields(evidence: Evidence, settings: DecideSettings) -> list[StatedField]:
    """The context of the release, as declared."""
    audit = evidence.audit
    told = None if audit is None else audit.dataset
    one_by_one = (
        None if told is None or told.copies != 0 or told.person_columns else "no record is a copy"
    )
    access = settings.access
    return [
        stated("release", "what is released, and for what", settings.release, "declared"),
        stated("recipient", "who receives it", settings.recipient, "declared"),
        stated(
            "access",
            "what they get",
            access,
            "declared",
            None if access is None else ACCESS[access],
        ),
        stated("queries", "questions each may ask", settings.queries, "declared"),
        stated("each_row", "each row a person of its own", one_by_one)
        if one_by_one and settings.each_row is None
        else stated("each_row", "each row a person of its own", settings.each_row, "declared"),
    ]


def attacker_fields(main: ResultDocument, settings: DecideSettings) -> list[StatedField]:
    """The attacker assumed: what they see and know, and how likely membership was before."""
    told = main.provenance
    question = told.get("question")
    others = OTHERS.get(str(question))
    if others is not None:
        fraction = (main.fraction if isinstance(main, Audit) else None) or 0.5
        others = others.format(fraction=fraction)
    elif isinstance(main, ModelsMeasurement):
        others = OTHERS["pool"].format(fraction=0.5)
    knows = told.get("attacker_knows_label")
    record = None
    if knows is not None:
        record = f"the record {'with' if knows else 'without'} its label"
    seen = told.get("observes")
    name = settings.attacker
    return [
        stated(
            "attacker.who",
            "whom the thresholds are for",
            name,
            "declared",
            None if name is None else f"{name}: {ATTACKERS[name][2]}",
        ),
        stated("attacker.knows", "knows of the record", record),
        stated("attacker.others", "knows of the other records", others),
        stated("attacker.sees", "sees", SEEN.get(str(seen), seen)),
        stated(
            "prior", "prior: share of members among those asked about", settings.prior, "declared"
        ),
    ]


def _data_fields(evidence: Evidence) -> list[StatedField]:
    dataset = next(
        (g.document.dataset for g in evidence.given if hasattr(g.document, "dataset")), None
    )
    models = evidence.one_of(ModelsMeasurement)
    records = len(models.records) if dataset is None and models is not None else None
    digest = None
    if dataset is not None:
        records = dataset.records
        digest = None if dataset.source is None else dataset.source.digest
    # Of the values with ids and groups; the file's own stands last.
    parts = (digest or "").split("-")
    return [
        stated("data.name", "training data", None if dataset is None else dataset.name),
        stated("data.digest", "SHA-256 of its values", parts[1] if len(parts) > 2 else digest),
        stated("data.file_sha256", "SHA-256 of its file", parts[3] or None if parts[3:] else None),
        stated("data.records", "number of records", records),
        stated(
            "data.features", "number of features", None if dataset is None else dataset.features
        ),
    ]


def _size_fields(audit: Audit | None) -> list[StatedField]:
    fit = None if audit is None else audit.details.size()
    count = None if fit is None else fit.parameters
    records = 0 if audit is None else audit.units
    left = None if count is None else records - count
    more = f"{left} (more parameters than records)" if left is not None and left < 0 else None
    score = "score" if fit is None else fit.score
    of_half = "" if audit is None else f", fits to {audit.fraction or 1.0:g} of the records"
    basis: Basis = "measured" if audit is not None and audit.basis == "measured" else "computed"
    return [
        stated("parameters", "parameters fitted", count),
        stated(
            "parameters_per_record",
            "parameters per record",
            None if count is None else count / records,
        ),
        stated("residual_degrees_of_freedom", "residual degrees of freedom", left, text=more),
        stated(
            "score.training",
            f"{score} on records used in training{of_half}",
            None if fit is None else fit.training,
            basis,
        ),
        stated(
            "score.left_out",
            f"{score} on records left out",
            None if fit is None else fit.left_out,
            basis,
        ),
        stated("generalisation_gap", "generalisation gap", None if fit is None else fit.gap, basis),
    ]


def _trainer(evidence: Evidence) -> dict[str, Any] | None:
    if evidence.stand_in is None:
        return None
    for _, found in evidence.all_of(Verification):
        if "trainer" in found.settings:
            return dict(found.settings["trainer"])
    return None
