"""What a decision rests on: results of one model and one dataset, read and held together."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from leakscope.data.datasets import same_data
from leakscope.data.files import is_folder, is_there, require_file
from leakscope.data.models import read_model
from leakscope.errors import InputError
from leakscope.results.advice import Advice
from leakscope.results.attacks import (
    FitReconstructAttack,
    MembershipAttack,
    ModelMembershipAttack,
    QueryAttack,
    ReconstructAttack,
)
from leakscope.results.audit import Audit, ExaminedModel
from leakscope.results.comparison import Comparison
from leakscope.results.decision import RunEntry
from leakscope.results.document import ResultDocument
from leakscope.results.erasure import Erasure
from leakscope.results.measurement import CanaryMeasurement, Measurement, ModelsMeasurement
from leakscope.results.reader import Run, digest_of_result, has_digest, read_run, result_of
from leakscope.results.verification import Verification

Evident = ResultDocument | Run | str | Path

# Results that say something about a model that is to be released.
KINDS = (
    Advice, Audit, CanaryMeasurement, Comparison, Erasure, FitReconstructAttack, MembershipAttack,
    Measurement, ModelMembershipAttack, ModelsMeasurement, QueryAttack, ReconstructAttack,
    Verification,
)  # fmt: skip

# Files that hold a table, and no model.
TABLES = (".csv", ".tsv", ".parquet", ".xlsx")

Kind = TypeVar("Kind", bound=ResultDocument)


@dataclass(frozen=True, eq=False)
class Given:
    """One result, what it is called, the hash of its file, and whether that has a digest.

    ``sealed`` is None of what was never a file.
    """

    name: str
    document: ResultDocument
    sha256: str
    sealed: bool | None = None

    def entry(self) -> RunEntry:
        """What the record says of it."""
        return RunEntry(
            run=self.name,
            kind=self.document.kind,
            sha256=self.sha256,
            leakscope_version=self.document.leakscope_version,
            created=self.document.created.isoformat(timespec="seconds"),
        )


@dataclass(frozen=True, eq=False)
class Evidence:
    """All results of one decision, and the versions they were made with."""

    given: tuple[Given, ...]
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def audits(self) -> list[tuple[str, Audit]]:
        """Audits of the model itself, worked out from it or measured with its training."""
        return [(name, audit) for name, audit in self.all_of(Audit) if audit.basis != "assumed"]

    @property
    def audit(self) -> Audit | None:
        """The audit of the model itself."""
        return self.audits[0][1] if self.audits else None

    @property
    def stand_in(self) -> Audit | None:
        """An audit whose level is assumed: of a Gaussian process that stands for the model."""
        return next((a for _, a in self.all_of(Audit) if a.basis == "assumed"), None)

    def all_of(self, kind: type[Kind]) -> list[tuple[str, Kind]]:
        """Names and results of one kind."""
        return [(g.name, g.document) for g in self.given if isinstance(g.document, kind)]


def gathered_evidence(runs: Sequence[Evident]) -> Evidence:
    """Read every run with what verify and measure left in it, and refuse what is not of one model.

    Raises
    ------
    InputError
        Where there is nothing to decide on, or the runs are of different data or models.
    """
    if not runs:
        raise InputError("Which run?  Name the run directory of leakscope audit.")
    given: dict[str, Given] = {}
    versions: dict[str, str] = {}
    for place, run in enumerate(runs):
        for result in _read(run, place, versions):
            given.setdefault(result.sha256, result)
            if not isinstance(result.document, KINDS):
                raise InputError(
                    f"{result.name} is a result of kind {result.document.kind}, which is not about "
                    "a model to be released; give runs of audit, verify, measure, advise, compare "
                    "or attack."
                )
    evidence = Evidence(tuple(given.values()), versions)
    _require_one_model(evidence)
    _require_one_dataset(evidence)
    audited = {g.sha256 for g in evidence.given if isinstance(g.document, Audit)}
    for name, verification in evidence.all_of(Verification):
        if verification.verified_digest not in (None, *audited) or not audited:
            raise InputError(
                f"{name} verifies another run's result than those given; give the run of that "
                "audit, or verify this one."
            )
    return evidence


def _read(run: Evident, place: int, versions: dict[str, str]) -> list[Given]:
    if isinstance(run, ResultDocument):
        return [Given(f"result {place + 1}", run, digest_of_result(run))]
    if not isinstance(run, Run):
        path = Path(run)
        if not is_folder(path):
            return [Given(path.name, result_of(path), digest_of_result(path), has_digest(path))]
        run = read_run(path)
    versions.update(run.versions)
    name = run.directory.name
    beside = [found for found in (run.verification, run.measurement) if found is not None]
    return [
        Given(name, run.document, digest_of_result(run), run.has_digest),
        *(Given(f"{name}/{found.kind}.json", found, digest_of_result(found)) for found in beside),
    ]


def _require_one_model(evidence: Evidence) -> None:
    assumed = [(name, a) for name, a in evidence.all_of(Audit) if a.basis == "assumed"]
    for basis in (evidence.audits, assumed):
        if len(basis) > 1:
            raise InputError(
                f"{basis[0][0]} and {basis[1][0]} are two audits ({basis[0][1].model.name} and "
                f"{basis[1][1].model.name}): a decision is about one model; give the runs of one, "
                "and what compare said of both."
            )
    if evidence.audit is None:
        return
    audited = evidence.audit.model
    others: list[tuple[str, ExaminedModel]] = [
        (given.name, given.document.model)
        for given in evidence.given
        if isinstance(given.document, (ModelMembershipAttack, FitReconstructAttack, Erasure))
    ]
    for name, model in others:
        hashes = audited.file_sha256, model.file_sha256
        same = hashes[0] == hashes[1] if None not in hashes else None
        named = any(name == n for n, _ in evidence.all_of(ModelMembershipAttack))
        if same is False or (same is None and named and model.name != audited.name):
            raise InputError(
                f"{evidence.audits[0][0]} examines {audited.file or audited.name} and {name} is of "
                f"{model.file or model.name}: a decision is about one model."
            )


def _require_one_dataset(evidence: Evidence) -> None:
    known: tuple[str, str] | None = None
    for result in evidence.given:
        source = getattr(getattr(result.document, "dataset", None), "source", None)
        if source is not None:
            if known is not None and not same_data(known[1], source.digest):
                raise InputError(
                    f"{known[0]} and {result.name} are of different data: a decision is about one "
                    "dataset."
                )
            known = known or (result.name, source.digest)
    sizes = {audit.units: name for name, audit in evidence.audits}
    sizes |= {len(found.records): name for name, found in evidence.all_of(ModelsMeasurement)}
    if len(sizes) > 1:
        (few, first), (many, second) = sorted(sizes.items())
        raise InputError(
            f"{first} has {few} records and {second} has {many}: a decision is about one dataset."
        )


@dataclass(frozen=True)
class ReleasedFile:
    """The file that is to be released, and whether it is what was examined or only declared."""

    name: str | None = None
    sha256: str | None = None
    examined: bool = False


def require_model_file(evidence: Evidence, file: str | Path | None) -> ReleasedFile:
    """The model's file; refused where it is known not to be the one that was examined."""
    audit = evidence.audit
    audited = None if audit is None else audit.model.file_sha256
    named = None if audit is None else audit.model.file
    if file is None:
        if audited is None or named is None or not is_there(Path(named)):
            return ReleasedFile(named, audited, examined=audited is not None)
        file = named
    path = Path(file)
    require_file(path)
    with path.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    if audited is not None and sha256 != audited:
        raise InputError(
            f"{path} is not the model that was audited: its SHA-256 begins {sha256[:12]}, the "
            f"audit's {audited[:12]}; audit the file as it is now."
        )
    if audited is None:
        _require_like_audited(audit, path, sha256)
    return ReleasedFile(path.name, sha256, examined=audited is not None)


def _require_like_audited(audit: Audit | None, path: Path, sha256: str) -> None:
    """Refuse a file that cannot be the audited model: a table, another type, other settings."""
    source = None if audit is None else audit.dataset.source
    if path.suffix.lower() in TABLES or (source is not None and sha256 in source.digest):
        raise InputError(
            f"{path} is a table and not a model; give the file that is to be released, or leave "
            "out --model."
        )
    if audit is None or path.suffix.lower() != ".skops":
        return
    try:
        estimator = read_model(path).estimator
    except InputError:
        # Trees and types that skops does not trust are not read: the file is declared only.
        return
    parameters = estimator.get_params()
    for name, value in {"type": audit.model.type, **audit.model.parameters}.items():
        here = type(estimator).__name__ if name == "type" else parameters.get(name, value)
        if isinstance(value, (int, float, str)) and here != value:
            raise InputError(
                f"{path} has {name}={here!r}, and {audit.model.name} was audited with "
                f"{name}={value!r}; audit the file as it is."
            )
