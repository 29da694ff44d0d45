"""What every audit's result has, whichever model it speaks of: records, ranks, numbers, tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.auditing.subgroups import Subgroup
from leakscope.auditing.verdict import EXPOSED_ABOVE
from leakscope.data import Dataset, RecordId
from leakscope.laws import LawPair, Provenance
from leakscope.results import (
    SHOWN,
    AuditedDocument,
    DatasetEntry,
    ExposedRecord,
    Short,
    Shown,
    SubgroupEntry,
    audit_in_short,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AuditedRecords(Shown, ABC):
    """The leakage of every record; arrays are in the order of the rows, or of the groups.

    Examples
    --------
    >>> from leakscope.auditing import AuditedRecords, AuditResult, ModelAuditResult
    >>> issubclass(AuditResult, AuditedRecords), issubclass(ModelAuditResult, AuditedRecords)
    (True, True)
    """

    record_ids: tuple[RecordId, ...]
    kl: FloatArray
    kl_reverse: FloatArray
    advantage: FloatArray
    auc: FloatArray
    tpr_at_fpr: Mapping[float, FloatArray]
    dataset: DatasetEntry
    settings: dict[str, Any]
    created: datetime
    timing: dict[str, float]
    warnings: tuple[str, ...]
    subgroups: tuple[Subgroup, ...] = ()

    def in_short(self) -> Short:
        """The answer, and the most exposed."""
        rows = self.to_frame().head(SHOWN).to_dict("records")
        return audit_in_short(self.dataset.name, self.answer(), self.unit, rows, self.warnings)

    # Why the most exposed are; each entry has a rank, a sentence and neighbours.
    explanations: tuple[Any, ...] = ()

    @property
    @abstractmethod
    def order(self) -> NDArray[np.intp]:
        """Row numbers, most exposed first."""

    @property
    @abstractmethod
    def unit(self) -> Literal["record", "group"]:
        """What leaves: ``record``, or ``group`` where groups leave as a whole."""

    @property
    @abstractmethod
    def trusted(self) -> NDArray[np.bool_]:
        """False for a record, or group, whose numbers are not to be read."""

    @abstractmethod
    def answer(self, *, threshold: float = EXPOSED_ABOVE, ids: bool = True) -> tuple[str, ...]:
        """What was examined, then the answer in a few sentences; without ids no record is named."""

    @property
    @abstractmethod
    def question(self) -> str:
        """What the attacker sees and knows, in plain words."""

    @property
    def verdict(self) -> str:
        """The answer in plain words."""
        return " ".join(self.answer())

    def ranking(self) -> tuple[RecordId, ...]:
        """Record ids, most exposed first."""
        return tuple(self.record_ids[row] for row in self.order)

    @abstractmethod
    def law_pair(self) -> LawPair:
        """The pairs of laws, one per record in record order, for any other measure."""

    @abstractmethod
    def pair_of(self, row: int) -> LawPair:
        """The pair of one record, or group."""

    @abstractmethod
    def law_arrays(self) -> dict[str, NDArray[Any]]:
        """The laws as arrays by name, in the order of the rows, or of the groups."""

    @abstractmethod
    def to_document(self) -> AuditedDocument:
        """The result as it is written to a file; valid JSON and nothing but plain values."""

    def to_dict(self) -> dict[str, Any]:
        """The same as a dictionary, ready for JSON."""
        return self.to_document().model_dump(mode="json")

    def to_frame(self) -> pd.DataFrame:
        """A table, most exposed first.

        With several outputs a column of means becomes one for each output, ``mean_with_0`` and so
        on.
        """
        import pandas as pd

        columns: dict[str, Any] = {}
        for name, values in self._columns().items():
            if values.ndim == 2:
                columns |= {f"{name}_{c}": values[:, c] for c in range(values.shape[1])}
            else:
                columns[name] = values
        return pd.DataFrame(columns).iloc[self.order].reset_index(drop=True)

    def write(self, directory: str | Path, *, dataset: Dataset | None = None) -> Path:
        """Write a run directory, as complete as that of ``leakscope audit``; where it was written.

        Parameters
        ----------
        directory
            It must not be there yet, or be empty.
        dataset
            What was audited, as read, for the pictures of a report, where records are pictures.
        """
        from leakscope.auditing.run_writing import write_run

        return write_run(self, directory, dataset=dataset)

    @abstractmethod
    def _columns(self) -> dict[str, NDArray[Any]]:
        """What ``to_frame`` and the stored records have of every record, in row order."""

    def _ids(self) -> NDArray[Any]:
        """The ids as a column: numbers where all are."""
        ids = np.empty(len(self.record_ids), dtype=object)
        ids[:] = self.record_ids
        if all(isinstance(value, int) for value in self.record_ids):
            ids = ids.astype(np.int64)
        return ids

    def tprs(self) -> dict[str, FloatArray]:
        """True-positive rates by column name: ``tpr_at_fpr_0_01`` and so on."""
        return {
            f"tpr_at_fpr_{fpr:g}".replace(".", "_"): values
            for fpr, values in self.tpr_at_fpr.items()
        }

    def _stored(self, record: type[ExposedRecord], provenance: Provenance) -> dict[str, Any]:
        """What every audit's document has."""
        from leakscope import __version__

        told = provenance.to_dict()
        arrays = {name: values[self.order].tolist() for name, values in self._columns().items()}
        rows = zip(*arrays.values(), strict=True)
        return {
            "leakscope_version": __version__,
            "created": self.created,
            "settings": self.settings,
            "assumptions": [*told.pop("assumptions"), *self.dataset.assumptions()],
            "provenance": told,
            "timing": self.timing,
            "warnings": list(self.warnings),
            "dataset": self.dataset,
            "median_advantage": float(np.median(self.advantage)),
            "records": [record(**dict(zip(arrays, row, strict=True))) for row in rows],
            "unit": self.unit,
            "subgroups": [SubgroupEntry(**entry.to_dict()) for entry in self.subgroups],
        }
