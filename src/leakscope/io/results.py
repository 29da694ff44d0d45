"""The result file: what every verb's ``--json`` writes and later verbs read.

Valid JSON only: a number that is not finite becomes null.  ``schema_version`` rises when a reader
of the old form would misunderstand the new one; a file from a newer leakscope is refused.
"""

from __future__ import annotations

import json
import math
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from leakscope.errors import InputError
from leakscope.io.settings import first_problem

SCHEMA_VERSION = "1"


def _finite_or_none(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


# A measured number; null where it is infinite or could not be had.
Number = Annotated[float | None, BeforeValidator(_finite_or_none)]


class AssumptionEntry(BaseModel):
    """One assumption behind a number, and whether it holds here (null: cannot be told)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    statement: str
    holds: bool | None
    evidence: str


class ResultDocument(BaseModel):
    """What every result file has, whatever its kind."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: str = SCHEMA_VERSION
    kind: str
    leakscope_version: str
    created: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC))
    settings: dict[str, Any]
    provenance: dict[str, Any]
    assumptions: list[AssumptionEntry]
    timing: dict[str, float]
    warnings: list[str]


class DatasetEntry(BaseModel):
    """What was audited, in a few words; never the data."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    records: int
    features: int
    outputs: int
    target_name: str
    steps: list[str]


class AuditRecord(BaseModel):
    """One record of an audit; see docs/commands.md for what each number means."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    record_id: int | str
    kl: Number
    kl_reverse: Number
    advantage: Number
    auc: Number
    mean_distance: Number
    kl_label_free: Number
    kl_label: Number
    mean_without: Number | list[Number]
    variance_without: Number
    mean_with: Number | list[Number]
    variance_with: Number
    trusted: bool
    rank_low: int | None = None
    rank_high: int | None = None


class SensitivityEntry(BaseModel):
    """The noise variances over which every record's ranks were taken."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    noise_variances: list[float]
    median_kl: list[Number]
    refused: list[float]


class AuditDocument(ResultDocument):
    """The result of ``leakscope audit``: every record, most exposed first.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> result = leakscope.audit(np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0]))
    >>> document = result.to_document()
    >>> document.kind, document.records[0].record_id
    ('audit', 2)
    """

    kind: Literal["audit"] = "audit"
    dataset: DatasetEntry
    kernel: dict[str, Any]
    noise_variance: float
    noise_chosen_by: str = "user"
    route: str = "dense"
    route_reason: str = ""
    sensitivity: SensitivityEntry | None = None
    condition_number: Number
    verdict: str
    median_advantage: Number
    records: list[AuditRecord]


class MeasureDocument(ResultDocument):
    """The result of ``leakscope measure``: one pair of laws, or of samples of scores.

    Examples
    --------
    >>> from leakscope.io import MeasureDocument
    >>> MeasureDocument.model_fields["kind"].default
    'measure'
    """

    # The summary's own fields are the measures room's to choose; the ones below are promised.
    model_config = ConfigDict(extra="allow", frozen=True)

    kind: Literal["measure"] = "measure"
    advantage: Number
    kl: Number
    kl_reverse: Number
    auc: Number
    tpr_at_fpr: dict[str, Number]
    epsilon_at_delta: dict[str, Number]


_KINDS: dict[str, type[AuditDocument] | type[MeasureDocument]] = {
    "audit": AuditDocument,
    "measure": MeasureDocument,
}


def to_json(value: ResultDocument | dict[str, Any]) -> str:
    """Valid JSON text, with null where a number is not finite.

    Examples
    --------
    >>> from leakscope.io import to_json
    >>> print(to_json({"kl": float("inf"), "auc": 0.75}))
    {
      "kl": null,
      "auc": 0.75
    }
    """
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(_without_non_finite(plain), indent=2, allow_nan=False, ensure_ascii=False)


def write_result(document: ResultDocument, path: str | Path) -> Path:
    """Write the result for its owner only (mode 0600), whole or not at all.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope import io
    >>> result = leakscope.audit(np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = io.write_result(result.to_document(), pathlib.Path(folder, "result.json"))
    ...     io.read_result(file) == result.to_document()
    True
    """
    path = Path(path)
    write_private(path, to_json(document) + "\n")
    return path


def write_private(path: Path, text: str) -> None:
    """Write text to a file that only its owner may read; never leave half a file."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(text)
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error


def read_result(path: str | Path) -> AuditDocument | MeasureDocument:
    """Read a result file and check it.

    Raises
    ------
    InputError
        Where it is not one, or was written by a newer leakscope.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from leakscope import io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "result.json")
    ...     _ = file.write_text('{"schema_version": "99", "kind": "audit"}')
    ...     io.read_result(file)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: ... was written by a newer leakscope (schema_version 99; this \
one reads up to 1): update leakscope to read it.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({error}).") from error
    version = str(content.get("schema_version", "")) if isinstance(content, dict) else ""
    kind = _KINDS.get(str(content.get("kind"))) if isinstance(content, dict) else None
    if not version.isdigit():
        raise InputError(f"{path} is not a leakscope result: it has no schema_version.")
    if int(version) > int(SCHEMA_VERSION):
        raise InputError(
            f"{path} was written by a newer leakscope (schema_version {version}; this one reads "
            f"up to {SCHEMA_VERSION}): update leakscope to read it."
        )
    if kind is None:
        raise InputError(f"{path} is not a result of a known kind ({', '.join(_KINDS)}).")
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise InputError(
            f"{path} is not a whole leakscope result: {first_problem(error)}."
        ) from error


def _without_non_finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _without_non_finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_non_finite(entry) for entry in value]
    return value
