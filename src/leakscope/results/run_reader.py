"""Reading a run directory back: all that a report needs, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from leakscope.data import is_folder, is_there, read_arrays, read_json
from leakscope.errors import InputError
from leakscope.results.document import ResultDocument
from leakscope.results.measurement import Measurement
from leakscope.results.models_measurement import ModelsMeasurement
from leakscope.results.reader import read_result
from leakscope.results.run_digests import digest_of, require_unchanged
from leakscope.results.run_pictures import Gallery, read_gallery
from leakscope.results.verification import Verification

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
        Whether the run carries a digest of itself, with which it then agrees; runs of earlier
        versions do not.

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
    ...     run = results.read_run(written)
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
        return dict(read_arrays(path, names, most=LARGEST_ARRAY_BYTES))


def read_run(directory: str | Path) -> Run:
    """Read a run directory and check what it holds.

    Raises
    ------
    InputError
        Where it is not a run directory, or a file in it is not whole.

    Examples
    --------
    >>> from leakscope import results
    >>> results.read_run("no-such-run")
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
