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

# Kinds that say something about a model that is to be released.
KINDS = (
    Advice,
    Audit,
    CanaryMeasurement,
    Comparison,
    Erasure,
    FitReconstructAttack,
    MembershipAttack,
    Measurement,
    ModelMembershipAttack,
    ModelsMeasurement,
    QueryAttack,
    ReconstructAttack,
    Verification,
)

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
        found = [audit for _, audit in self.all_of(Audit) if audit.basis == "assumed"]
        return found[0] if found else None

    def all_of(self, kind: type[Kind]) -> list[tuple[str, Kind]]:
        """Names and results of one kind."""
        return [(g.name, g.document) for g in self.given if isinstance(g.document, kind)]

    def one_of(self, kind: type[Kind]) -> Kind | None:
        """The result of a kind that can be there once."""
        found = self.all_of(kind)
        return found[0][1] if found else None


def gathered_evidence(runs: Sequence[Evident]) -> Evidence:
    """Read every run with what verify and measure left in it, and refuse what is not of one model.

    Raises
    ------
    InputError
        Where there is nothing to decide on, or the runs are of different data or models.
    """
    if not runs:
        raise InputError("Which run?  Name the run directory of leakscope audit.")
    given: list[Given] = []
    versions: dict[str, str] = {}
    for place, run in enumerate(runs):
        for one in _read(run, place, versions):
            if one.sha256 not in {other.sha256 for other in given}:
                given.append(one)
    for one in given:
        if not isinstance(one.document, KINDS):
            raise InputError(
                f"{one.name} is a result of kind {one.document.kind}, which is not about a model "
                "to be released; give runs of audit, verify, measure, advise, compare or attack."
            )
    found = Evidence(tuple(given), versions)
    _require_one_model(found)
    _require_one_dataset(found)
    _require_own_verifications(found)
    return found


@dataclass(frozen=True)
class ReleasedFile:
    """The file that is to be released, and whether it is what was examined or only declared."""

    name: str | None = None
    sha256: str | None = None
    examined: bool = False


# Files that hold a table, and no model.
TABLES = (".csv", ".tsv", ".parquet", ".xlsx")


def require_model_file(evidence: Evidence, file: str | Path | None) -> ReleasedFile:
    """The model's file; refused where it is known not to be the one that was examined."""
    audit = evidence.audit
    told = None if audit is None else audit.model.file_sha256
    named = None if audit is None else audit.model.file
    if file is None:
        if told is None or named is None or not is_there(Path(named)):
            return ReleasedFile(named, told, examined=told is not None)
        file = named
    path = Path(file)
    require_file(path)
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if told is not None and found != told:
        raise InputError(
            f"{path} is not the model that was audited: its SHA-256 begins {found[:12]}, the "
            f"audit's {told[:12]}; audit the file as it is now."
        )
    if told is None:
        _require_like_audited(audit, path, found)
    return ReleasedFile(path.name, found, examined=told is not None)


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
    kind = type(estimator).__name__
    if kind != audit.model.type:
        raise InputError(
            f"{path} holds a {kind}, and {audit.model.name} was audited; audit the file as it is."
        )
    told = estimator.get_params()
    for name, value in audit.model.parameters.items():
        if name in told and isinstance(value, (int, float, str)) and told[name] != value:
            raise InputError(
                f"{path} has {name}={told[name]!r}, and {audit.model.name} was audited with "
                f"{name}={value!r}; audit the file as it is."
            )


def _read(run: Evident, place: int, versions: dict[str, str]) -> list[Given]:
    if isinstance(run, ResultDocument):
        return [Given(f"result {place + 1}", run, digest_of_result(run))]
    if not isinstance(run, Run):
        path = Path(run)
        if not is_folder(path):
            found_here = result_of(path)
            return [Given(path.name, found_here, digest_of_result(path), has_digest(path))]
        run = read_run(path)
    versions.update(run.versions)
    name = run.directory.name
    found = [Given(name, run.document, digest_of_result(run), run.has_digest)]
    for beside in (run.verification, run.measurement):
        if beside is not None:
            found.append(Given(f"{name}/{beside.kind}.json", beside, digest_of_result(beside)))
    return found


def _require_one_model(evidence: Evidence) -> None:
    audits = evidence.audits
    for name, other in audits[1:]:
        first_name, first = audits[0]
        if other.model != first.model:
            raise InputError(
                f"{first_name} examines {first.model.name} and {name} examines "
                f"{other.model.name}: a decision is about one model; give the runs of one, and "
                "what compare said of both."
            )
        if _digest(other) is None or not same_data(_digest(other) or "", _digest(first) or ""):
            raise InputError(_different(first_name, name))
        raise InputError(f"{first_name} and {name} audit the same model; give one of them.")
    for name, attack in evidence.all_of(ModelMembershipAttack):
        if audits and not _same_model(attack.model, audits[0][1].model):
            raise InputError(
                f"{audits[0][0]} examines {audits[0][1].model.name} and {name} attacks "
                f"{attack.model.name}: a decision is about one model."
            )
    of_files = [(name, found.model) for name, found in evidence.all_of(FitReconstructAttack)]
    of_files += [(name, found.model) for name, found in evidence.all_of(Erasure)]
    for name, model in of_files:
        own = audits[0][1].model if audits else model
        if None not in (own.file_sha256, model.file_sha256) and not _same_model(own, model):
            raise InputError(
                f"{audits[0][0]} examines {own.file} and {name} is of {model.file}, which is "
                "another file: a decision is about one model."
            )
    assumed = [name for name, audit in evidence.all_of(Audit) if audit.basis == "assumed"]
    for named in (assumed, [name for name, _ in evidence.all_of(ModelsMeasurement)]):
        if len(named) > 1:
            raise InputError(f"{named[0]} and {named[1]} are of the same kind; give one of them.")


def _same_model(one: ExaminedModel, other: ExaminedModel) -> bool:
    """By their files' digests where both are files, else by their names."""
    if one.file_sha256 is not None and other.file_sha256 is not None:
        return one.file_sha256 == other.file_sha256
    return one.name == other.name


def _require_one_dataset(evidence: Evidence) -> None:
    known: tuple[str, str] | None = None
    sizes: dict[int, str] = {}
    for one in evidence.given:
        digest = _digest(one.document)
        if digest is not None:
            if known is not None and not same_data(known[1], digest):
                raise InputError(_different(known[0], one.name))
            known = known or (one.name, digest)
    told = [(name, audit.units) for name, audit in evidence.audits]
    told += [(name, len(found.records)) for name, found in evidence.all_of(ModelsMeasurement)]
    sizes |= {count: name for name, count in told}
    if len(sizes) > 1:
        (few, first), (many, second) = sorted(sizes.items())
        raise InputError(
            f"{first} has {few} records and {second} has {many}: a decision is about one dataset."
        )


def _require_own_verifications(evidence: Evidence) -> None:
    audited = {g.sha256 for g in evidence.given if isinstance(g.document, Audit)}
    for name, verification in evidence.all_of(Verification):
        if not audited:
            raise InputError(f"{name} verifies an audit; give the run of that audit too.")
        told = verification.verified_digest
        if told is not None and told not in audited:
            raise InputError(
                f"{name} verifies another run's result than those given; verify this one."
            )


def _different(first: str, second: str) -> str:
    return f"{first} and {second} are of different data: a decision is about one dataset."


def _digest(document: ResultDocument) -> str | None:
    dataset = getattr(document, "dataset", None)
    source = getattr(dataset, "source", None)
    return None if source is None else source.digest
