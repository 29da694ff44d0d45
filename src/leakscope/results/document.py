"""What every result file has, and how one is written: what a verb's ``--json`` gives.

Valid JSON only: a number that is not finite becomes null.  ``schema_version`` rises when a reader
of the old form would misunderstand the new one; a file of another version is refused.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from leakscope._numerics.json_numbers import finite_or_none, without_non_finite
from leakscope.data.files import write_file
from leakscope.results.sections import Section
from leakscope.results.shown import Short, Shown, digits
from leakscope.settings.data import DATA_DEFAULTS, Decimal

if TYPE_CHECKING:
    from leakscope.data.datasets import Dataset

SCHEMA_VERSION = "3"


def _finite_or_none(value: Any) -> Any:
    return finite_or_none(value) if isinstance(value, float) else value


# A measured number; null where it is infinite or could not be had.
Number = Annotated[float | None, BeforeValidator(_finite_or_none)]

# The same of what is from 0 to 1 by its meaning: an advantage, an AUC.
Fraction = Annotated[
    Annotated[float, Field(ge=0.0, le=1.0)] | None, BeforeValidator(_finite_or_none)
]


class Entry(BaseModel):
    """A part of a result, as it is stored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AssumptionEntry(Entry):
    """One assumption behind a number, and whether it holds here (null: cannot be told)."""

    statement: str
    holds: bool | None
    evidence: str


class ResultDocument(Shown, Entry):
    """What every result file has, whatever its kind.

    Attributes
    ----------
    schema_version, kind, leakscope_version, created
        Which form the file has, what it is, and who wrote it when.
    settings, provenance, assumptions
        What was asked, how the numbers were got, and what they rest on.
    timing, warnings
        Seconds by stage, and what to beware of.
    """

    schema_version: str = SCHEMA_VERSION
    kind: str
    leakscope_version: str
    created: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC))
    settings: dict[str, Any]
    provenance: dict[str, Any]
    assumptions: list[AssumptionEntry]
    timing: dict[str, float]
    warnings: list[str]

    def in_short(self) -> Short:
        """The answer in words where there is one, and the numbers of the result."""
        verdict = getattr(self, "verdict", None) or getattr(self, "sentence", None)
        rows = [
            (name.replace("_", " "), digits(value) if isinstance(value, float) else str(value))
            for name, value in self
            if isinstance(value, (int, float, str)) and name not in _NOT_NUMBERS
        ]
        sentences = (verdict or ", ".join(" ".join(row) for row in rows[:4]),)
        title = f"leakscope {self.kind.replace('_', ' ')}"
        return Short(title, sentences, ("what", "value"), rows, tuple(self.warnings))

    def sections(self) -> tuple[Section, ...]:
        """What a page shows beside :meth:`in_short`: further tables and charts."""
        return ()

    @property
    def from_data(self) -> bool:
        """Whether anybody's records are behind the numbers; a plan has none."""
        return True


# Of a result's plain values, those that are shown elsewhere.
_NOT_NUMBERS = frozenset(
    ("schema_version", "kind", "leakscope_version", "verdict", "sentence", "verified_digest")
)


class SourceEntry(Entry):
    """Where the data can be read again, and a digest that tells whether they are the same."""

    file: str | None
    example: str | None
    target: str | None
    id_column: str | None
    task: Literal["regression", "classification"]
    digest: str
    group_column: str | None = None
    ignore: tuple[str, ...] = ()
    missing: Literal["error", "drop", "impute"] = "error"
    header: bool = DATA_DEFAULTS.header
    na_values: tuple[str, ...] = DATA_DEFAULTS.na_values
    decimal: Decimal = DATA_DEFAULTS.decimal
    sample: int | None = DATA_DEFAULTS.sample
    sample_seed: int = DATA_DEFAULTS.sample_seed


class DatasetEntry(Entry):
    """What was audited, in a few words; never the data.

    ``copies`` are records that repeat another one, of another group where there are groups, and
    None where that is not known; ``person_columns`` look like a person's and were left out.
    """

    name: str
    records: int
    features: int
    outputs: int
    target_name: str
    steps: list[str]
    source: SourceEntry | None = None
    sampled_from: int | None = None
    copies: int | None = None
    person_columns: tuple[str, ...] = ()

    @classmethod
    def of(cls, dataset: Dataset) -> DatasetEntry:
        """The entry of a prepared dataset."""
        source = dataset.source
        return cls(
            name=dataset.name,
            records=dataset.features.shape[0],
            features=dataset.features.shape[1],
            outputs=1 if dataset.target.ndim == 1 else dataset.target.shape[1],
            target_name=dataset.target_name,
            steps=list(dataset.steps),
            source=None if source is None else SourceEntry(**source.to_dict()),
            sampled_from=dataset.sampled_from,
        )

    def assumptions(self) -> list[AssumptionEntry]:
        """What a number rests on because of how the data were taken: a sample, where it is one."""
        if self.sampled_from is None:
            return []
        statement = "the records audited are those that the model is trained on"
        evidence = (
            f"only if the model is trained on this sample: {self.records} of {self.sampled_from} "
            "records were drawn at random, and the others were not examined"
        )
        return [AssumptionEntry(statement=statement, holds=None, evidence=evidence)]


def to_json(value: ResultDocument | dict[str, Any]) -> str:
    """Valid JSON text, with null where a number is not finite.

    Examples
    --------
    >>> from leakscope.results import to_json
    >>> print(to_json({"kl": float("inf"), "auc": 0.75}))
    {
      "kl": null,
      "auc": 0.75
    }
    """
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(without_non_finite(plain), indent=2, allow_nan=False, ensure_ascii=False)


def write_result(document: ResultDocument, path: str | Path) -> Path:
    """Write the result for its owner only (mode 0600), whole or not at all."""
    write_private(Path(path), to_json(document) + "\n")
    return Path(path)


def write_private(path: Path, text: str) -> None:
    """Write text to a file that only its owner may read; never leave half a file."""
    write_file(path, text.encode())
