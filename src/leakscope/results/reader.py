"""Reading results back: files, run directories, whatever is given; what is refused, and why."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

KINDS: dict[str, type[ResultDocument]] = {
    "audit": Audit,
    "compare": Comparison,
    "erase": Erasure,
    "measure": Measurement,
    "measure_models": ModelsMeasurement,
    "measure_canaries": CanaryMeasurement,
    "attack_query": QueryAttack,
    "attack_reconstruct": ReconstructAttack,
    "attack_reconstruct_model": FitReconstructAttack,
    "attack_membership": MembershipAttack,
    "attack_membership_model": ModelMembershipAttack,
    "plan_linear": LinearPlan,
    "plan_lasso": LassoPlan,
    "plan_network": NetworkPlan,
    "verify": Verification,
    "advice": Advice,
    "decision": Decision,
}

# What stands in an audit's file under another name, and what is worked out again.
RENAMED = {"answer": "sentences", "answer_without_ids": "sentences_without_ids"}
WORKED_OUT = ("verdict", "verdict_without_ids")
COMMON = {*Audit.model_fields, *RENAMED, "records"} - {"details", "table"}


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
'99'; this one reads '2'): make it again, or read it with that version.
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
    named = str(content.get("kind"))
    kind = Audit if named.split("_")[0] == "audit" else kinds.get(named)
    unknown = InputError(f"{path} is not a result of a known kind ({', '.join(kinds)}).")
    if kind is None:
        raise unknown
    if kind is Audit:
        content = _audit_fields(content)
    try:
        # Strictly: leakscope writes numbers as numbers, and null for what is not finite.
        found = kind.model_validate_json(json.dumps(content, allow_nan=False), strict=True)
    except ValidationError as error:
        # What only one kind has stands beside the rest in the file.
        told = first_problem(error).removeprefix("details.")
        raise InputError(f"{path} is not a whole leakscope result: {told}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is not a leakscope result: it holds a number that is not finite."
        ) from error
    if isinstance(found, Audit) and found.kind != found.about.file_kind:
        raise unknown
    if isinstance(found, Audit) and path.name == "result.json":
        return found.read_from(path.parent)
    return found


def _audit_fields(content: dict[str, Any]) -> dict[str, Any]:
    """The fields of an audit's file as those of an :class:`Audit`; details stand flat in it."""
    given = dict(content)
    for name in WORKED_OUT:
        # What is no text was never written, and is refused with what else does not belong there.
        if isinstance(given.get(name), str | None):
            given.pop(name, None)
    details = {name: given.pop(name) for name in list(given) if name not in COMMON}
    return {RENAMED.get(name, name): value for name, value in given.items()} | {"details": details}


VERIFY_FILE = "verify.json"
MEASURE_FILE = "measure.json"

# What a report takes from arrays.npz is small; more than this is not what leakscope wrote.
LARGEST_ARRAY_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Run:
    """What a run directory holds.

    Attributes
    ----------
    directory, document
        Where, and the result.
    versions
        Versions of what can change a number, when the run was made.
    verification
        What ``leakscope verify RUN --json RUN/verify.json`` left there; None where it did not.
    measurement
        The same of ``leakscope measure ... --json RUN/measure.json``.
    gallery, pictures
        Pictured records, and the contents of their PNG files by name.
    has_digest
        Whether the run carries a digest of itself, with which it then agrees.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope import results
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> result = leakscope.audit(X, y, kernel="rbf")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = results.write_run_directory(pathlib.Path(folder, "run"), result)
    ...     run = results.reader.read_run(written)
    >>> run.document.kind, run.verification, "numpy" in run.versions
    ('audit', None, True)
    """

    directory: Path
    document: ResultDocument
    versions: dict[str, str]
    verification: Verification | None
    measurement: Measurement | ModelsMeasurement | None
    gallery: Gallery
    pictures: dict[str, bytes]
    has_digest: bool = False

    def arrays(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Those of the named arrays that ``arrays.npz`` has."""
        path = self.directory / "arrays.npz"
        if not path.exists():
            return {}
        found = dict(read_arrays(path, names, most=LARGEST_ARRAY_BYTES))
        _require_drawable(path, found)
        return found


def _require_drawable(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse what leakscope does not write: no numbers, or curves and bars that do not fit."""
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf" or not np.isfinite(array).all():
            raise InputError(
                f"{path}: {name} holds something other than finite numbers; make the run again."
            )
    shapes = {name: array.shape for name, array in arrays.items()}
    wanted: dict[str, tuple[int, ...]] = {name: () for name in shapes if name.endswith("_left_out")}
    for name in shapes:
        if name.endswith("_counts"):
            bars = shapes[name][0] if len(shapes[name]) == 1 else -1
            wanted |= {name: (max(bars, 1),), name.replace("_counts", "_edges"): (bars + 1,)}
    if "roc_tpr" in shapes:
        curves = (*shapes["roc_tpr"], 0, 0)[:2]
        wanted |= {"roc_tpr": curves, "roc_ranks": curves[:1], "roc_fpr": curves[1:]}
    for name, shape in wanted.items():
        if shapes.get(name, shape) != shape:
            raise InputError(
                f"{path}: {name} has the shape {shapes[name]} where {shape} belongs; make the run "
                "again."
            )


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
    return Run(
        directory=directory,
        document=document,
        versions=_versions(directory / "settings.json"),
        verification=_verification(directory / VERIFY_FILE, document),
        measurement=_measurement(directory / MEASURE_FILE),
        gallery=gallery,
        pictures=pictures,
        has_digest=has_digest,
    )


def _versions(path: Path) -> dict[str, str]:
    if not is_there(path):
        return {}
    content = read_json(path)
    found = content.get("versions", {}) if isinstance(content, dict) else {}
    if not isinstance(found, dict):
        raise InputError(f"{path} names no versions where they should be.")
    return {str(name): str(version) for name, version in found.items()}


def _verification(path: Path, document: ResultDocument) -> Verification | None:
    if not path.exists():
        return None
    found = read_result(path)
    if not isinstance(found, Verification) or found.verified_kind != document.kind:
        raise InputError(f"{path} does not verify a result of kind {document.kind}.")
    own = digest_of(path.with_name("result.json"))
    if found.verified_digest is not None and found.verified_digest != own:
        raise InputError(
            f"{path} verifies another run's result; verify this one, or remove the file."
        )
    return found


def _measurement(path: Path) -> Measurement | ModelsMeasurement | None:
    if not path.exists():
        return None
    found = read_result(path)
    if not isinstance(found, (Measurement, ModelsMeasurement)):
        raise InputError(f"{path} does not hold a result of leakscope measure.")
    return found


def result_of(given: ResultDocument | Run | str | Path) -> ResultDocument:
    """The result itself, that of a run, or the one in a run directory or a result file.

    Raises
    ------
    InputError
        Where there is none.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import leakscope
    >>> from leakscope import results
    >>> found = leakscope.measure("normal:0,1.4", "normal:0,0.7")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = results.write_result(found, pathlib.Path(folder, "measured.json"))
    ...     results.reader.result_of(file) == results.reader.result_of(found)
    ...     results.reader.digest_of_result(file) == results.reader.digest_of_result(found)
    True
    True
    """
    if isinstance(given, ResultDocument):
        return given
    return given.document if isinstance(given, Run) else read_result(_file_of(Path(given)))


def digest_of_result(given: ResultDocument | Run | str | Path) -> str:
    """SHA-256 of the result's file, or of what would be written of a result in memory."""
    if isinstance(given, ResultDocument):
        return hashlib.sha256(f"{to_json(given)}\n".encode()).hexdigest()
    return digest_of(_file_of(given.directory if isinstance(given, Run) else Path(given)))


def _file_of(path: Path) -> Path:
    return path / "result.json" if is_folder(path) else path


def is_sealed(given: ResultDocument | Run | str | Path) -> bool | None:
    """Whether a stored result carries a digest by which a change is seen; None in memory."""
    if isinstance(given, ResultDocument):
        return None
    if isinstance(given, Run):
        return given.has_digest
    file = _file_of(Path(given))
    return require_unchanged(file.parent, (file.name,))


def unsealed_note(*given: Any) -> list[str]:
    """A sentence for each stored result without a digest."""
    stored = [one for one in given if isinstance(one, (Run, str, Path))]
    names = [str(one.directory) if isinstance(one, Run) else str(one) for one in stored]
    return [
        f"{name} has no checksum (digest), so it is not known whether its numbers were changed."
        for name, one in zip(names, stored, strict=True)
        if is_sealed(one) is False
    ]


def has_digest(run: str | Path) -> bool:
    """Whether a run directory carries a digest of itself.

    Raises
    ------
    InputError
        Where it does and its result was changed since.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope import results
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> result = leakscope.audit(X, y, kernel="rbf")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results.reader.has_digest(result.write(pathlib.Path(folder, "run")))
    True
    """
    return require_unchanged(Path(run), ("result.json",))
