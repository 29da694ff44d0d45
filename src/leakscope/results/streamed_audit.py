"""The result file of a streamed ``leakscope audit``: the most exposed, and the distribution."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from leakscope.results.audit import NoiseOfDataEntry, SubgroupEntry
from leakscope.results.document import DatasetEntry, Fraction, Number, ResultDocument


class StreamedRecord(BaseModel):
    """One of the most exposed records of a streamed audit.

    Examples
    --------
    >>> from leakscope.results import StreamedRecord
    >>> StreamedRecord(record_id=3, kl=0.5, advantage=0.3, auc=0.7, mean_distance=0.1,
    ...                leverage=0.01, trusted=True).record_id
    3
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    record_id: int | str
    kl: Number
    advantage: Fraction
    auc: Fraction
    mean_distance: Number
    leverage: Number
    trusted: bool


class StreamedAuditDocument(ResultDocument):
    """An audit of records that were never all in memory; every record is in ``answers``.

    ``worst`` has the largest advantage, AUC and KL of all records; ``advantage_quantiles``, and the
    medians of ``subgroups`` and ``noise_of_data``, are from histograms whose steps are 2.3% wide,
    the upper end of the step.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import pandas as pd
    >>> from leakscope.auditing import audit_streamed
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "y"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table.to_parquet(pathlib.Path(folder, "records.parquet"))
    ...     found = audit_streamed(pathlib.Path(folder, "records.parquet"), target="y",
    ...                            directory=pathlib.Path(folder, "run"))
    >>> found.kind, found.dataset.records, found.untrusted
    ('audit_streamed', 200, 0)
    """

    kind: Literal["audit_streamed"] = "audit_streamed"
    dataset: DatasetEntry
    kernel: dict[str, Any]
    noise_variance: float
    condition_number: Number
    untrusted: int
    mean_advantage: Number
    mean_kl: Number
    worst: dict[str, Number]
    advantage_quantiles: dict[str, float]
    verdict: str
    answers: str
    noise_of_data: NoiseOfDataEntry | None = None
    subgroups: list[SubgroupEntry] = Field(default_factory=list)
    records: Annotated[list[StreamedRecord], Field(min_length=1)]
