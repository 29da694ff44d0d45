"""Reading results back: one function for files and one for run directories."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from leakscope.data.arrays import read_arrays
from leakscope.data.files import is_folder, is_there, read_json
from leakscope.errors import InputError
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
from leakscope.results.decision import Decision
from leakscope.results.document import SCHEMA_VERSION, ResultDocument, to_json
from leakscope.results.erasure import Erasure
from leakscope.results.measurement import CanaryMeasurement, Measurement, ModelsMeasurement
from leakscope.results.plan import LassoPlan, LinearPlan, NetworkPlan
from leakscope.results.run_directory import Gallery, digest_of, read_gallery, require_unchanged
from leakscope.results.verification import Verification
from leakscope.settings.setting import first_problem

# By the name that a file gives; an audit's begins with "audit" whatever its kind of model.
KINDS: dict[str, type[ResultDocument]] = {
    "audit": Audit,
    **{
        str(kind.model_fields["kind"].default): kind
        for kind in (
            Advice, CanaryMeasurement, Comparison, Decision, Erasure, FitReconstructAttack,
            LassoPlan, LinearPlan, Measurement, MembershipAttack, ModelMembershipAttack,
            ModelsMeasurement, NetworkPlan, QueryAttack, ReconstructAttack, Verification,
        )
    },
}  # fmt: skip

VERIFY_FILE, MEASURE_FILE = "verify.json", "measure.json"

# What a report takes from arrays.npz is small; more than this is not what leakscope wrote.
LARGEST_ARRAY_BYTES = 16 * 2**20


def read_result(
    path: str | Path, kinds: Mapping[str, type[ResultDocument]] = KINDS
) -> ResultDocument:
    """Read a result file and check it.

    ``kinds`` are those that may be read, by the name that the file gives; all of leakscope's own
    where left out.

    Raises
    ------
    InputError
        Where it is not one, or was written by another version of leakscope.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from leakscope import results
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "result.json")
    ...     _ = file.write_text('{"schema_version": "99", "kind": "audit"}')
    ...     results.read_result(file)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: ... was written by another version of leakscope (schema_version \
'99'; this one reads '3'): make it again, or read it with that version.
    """
    path = Path(path)
    content = read_json(path)
    require_unchanged(path.parent, (path.name,))
    version = content.get("schema_version") if isinstance(content, dict) else None
    if not isinstance(version, str):
        raise InputError(f"{path} is not a leakscope result: it has no schema_version.")
    if version != SCHEMA_VERSION:
        raise InputError(
            f"{path} was written by another version of leakscope (schema_version {version[:9]!r}; "
            f"this one reads {SCHEMA_VERSION!r}): make it again, or read it with that version."
        )
    name = str(content.get("kind"))
    kind = Audit if name.split("_")[0] == "audit" else kinds.get(name)
    if kind is None:
        raise InputError(f"{path} is not a result of a known kind ({', '.join(kinds)}).")
    try:
        # Strictly: leakscope writes numbers as numbers, and null for what is not finite.
        result = kind.model_validate_json(json.dumps(content, allow_nan=False), strict=True)
    except ValidationError as error:
        problem = first_problem(error)
        raise InputError(f"{path} is not a whole leakscope result: {problem}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is not a leakscope result: it holds a number that is not finite."
        ) from error
    if isinstance(result, Audit) and path.name == "result.json":
        return result.read_from(path.parent)
    return result


@dataclass(frozen=True)
class Run:
    """What a run directory holds.

    Attributes
    ----------
    directory, document
        Where, and the result.
    versions
        Versions of what can change a number, when the run was made.
    verification, measurement
        What ``leakscope verify`` and ``measure`` left there as verify.json and measure.json; None
        where they did not.
    gallery, pictures
        Pictured records, and the contents of their PNG files by name.
    has_digest
        Whether the run carries a digest of itself, with which it then agrees.
    """

    directory: Path
    document: ResultDocument
    versions: dict[str, str] = field(default_factory=dict)
    verification: Verification | None = None
    measurement: Measurement | ModelsMeasurement | None = None
    gallery: Gallery = field(default_factory=lambda: Gallery(pictures=[]))
    pictures: dict[str, bytes] = field(default_factory=dict)
    has_digest: bool = False

    def arrays(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Those of the named arrays that ``arrays.npz`` has; numbers, all finite."""
        path = self.directory / "arrays.npz"
        if not path.exists():
            return {}
        arrays = dict(read_arrays(path, names, most=LARGEST_ARRAY_BYTES))
        for name, array in arrays.items():
            if array.dtype.kind not in "biuf" or not np.isfinite(array).all():
                raise InputError(f"{path}: {name} holds other than finite numbers; audit again.")
        return arrays


def read_run(directory: str | Path) -> Run:
    """Read a run directory and check what it holds.

    Raises
    ------
    InputError
        Where it is not a run directory, or a file in it is not whole.

    Examples
    --------
    >>> from leakscope import results
    >>> results.reader.read_run("no-such-run")
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: There is no run directory no-such-run.
    """
    directory = Path(directory)
    if not is_there(directory):
        raise InputError(f"There is no run directory {directory}.")
    if not is_folder(directory):
        raise InputError(f"{directory} is a file; name the run directory that holds it.")
    if not is_there(directory / "result.json"):
        raise InputError(f"{directory} is not a run directory: it holds no result.json.")
    has_digest = require_unchanged(directory)
    document = read_result(directory / "result.json")
    gallery, pictures = read_gallery(directory)
    verification = _beside(directory / VERIFY_FILE, Verification)
    if verification is not None and (
        verification.verified_kind != document.kind
        or verification.verified_digest not in (None, digest_of(directory / "result.json"))
    ):
        raise InputError(
            f"{directory / VERIFY_FILE} verifies another result; verify this one, or remove it."
        )
    return Run(
        directory,
        document,
        _versions(directory / "settings.json"),
        verification,
        _beside(directory / MEASURE_FILE, Measurement, ModelsMeasurement),
        gallery,
        pictures,
        has_digest,
    )


def _versions(path: Path) -> dict[str, str]:
    content = read_json(path) if is_there(path) else {}
    versions = content.get("versions", {}) if isinstance(content, dict) else {}
    if not isinstance(versions, dict):
        raise InputError(f"{path} names no versions where they should be.")
    return {str(name): str(version) for name, version in versions.items()}


def _beside(path: Path, *kinds: type[ResultDocument]) -> Any:
    """The result of another verb in a run directory; None where there is none."""
    if not path.exists():
        return None
    result = read_result(path)
    if not isinstance(result, kinds):
        raise InputError(f"{path} is a result of kind {result.kind}, which does not belong there.")
    return result


def result_of(given: ResultDocument | Run | str | Path) -> ResultDocument:
    """The result itself, that of a run, or the one in a run directory or a result file."""
    if isinstance(given, ResultDocument):
        return given
    return given.document if isinstance(given, Run) else read_result(_file_of(given))


def digest_of_result(given: ResultDocument | Run | str | Path) -> str:
    """SHA-256 of the result's file, or of what would be written of a result in memory."""
    if isinstance(given, ResultDocument):
        return hashlib.sha256(f"{to_json(given)}\n".encode()).hexdigest()
    return digest_of(_file_of(given))


def _file_of(given: Run | str | Path) -> Path:
    path = given.directory if isinstance(given, Run) else Path(given)
    return path / "result.json" if is_folder(path) else path


def has_digest(given: Any) -> bool:
    """Whether a stored result carries a digest; refused where it was changed since."""
    file = _file_of(given)
    return require_unchanged(file.parent, (file.name,))


def unsealed_note(*given: Any) -> list[str]:
    """A sentence for each stored result without a digest."""
    return [
        f"{_file_of(stored)} has no checksum (digest), so it is not known whether its numbers were "
        "changed."
        for stored in given
        if isinstance(stored, (Run, str, Path)) and not has_digest(stored)
    ]
