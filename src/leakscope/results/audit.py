"""The result file of ``leakscope audit``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from leakscope.results.document import DatasetEntry, Fraction, Number, ResultDocument
from leakscope.results.shown import Short, certain


class ExposedRecord(BaseModel):
    """What every audit says of a record; see docs/commands.md for what each number means.

    Examples
    --------
    >>> from leakscope.results import AuditRecord, ExposedRecord, ModelAuditRecord
    >>> issubclass(AuditRecord, ExposedRecord), issubclass(ModelAuditRecord, ExposedRecord)
    (True, True)
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    record_id: int | str
    size: int = 1
    kl: Number
    kl_reverse: Number
    advantage: Fraction
    auc: Fraction
    tpr_at_fpr_0_01: Fraction = None
    tpr_at_fpr_0_001: Fraction = None
    trusted: bool


class AuditRecord(ExposedRecord):
    """One record of an audit of a Gaussian process.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> result = leakscope.audit(X, y, kernel="rbf")
    >>> [record.record_id for record in result.to_document().records]
    [2, 1, 0]
    """

    mean_distance: Number
    kl_label_free: Number
    kl_label: Number
    disagreement: Number = None
    mean_without: Number | list[Number]
    variance_without: Number
    mean_with: Number | list[Number]
    variance_with: Number
    kl_low: Number = None
    kl_high: Number = None
    advantage_low: Fraction = None
    advantage_high: Fraction = None
    rank_low: int | None = None
    rank_high: int | None = None
    kernel_rank_low: int | None = None
    kernel_rank_high: int | None = None


class SensitivityEntry(BaseModel):
    """The noise variances over which every record's ranks were taken.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> X = np.array([[0.0], [0.1], [0.2], [3.0]])
    >>> result = leakscope.audit(X, np.array([1.0, 1.1, 0.9, -1.0]), noise_variance=0.1)
    >>> len(result.to_document().sensitivity.noise_variances)
    5
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    noise_variances: list[float]
    median_kl: list[Number]
    refused: list[float]

    @model_validator(mode="after")
    def _one_median_a_level(self) -> SensitivityEntry:
        if len(self.median_kl) != len(self.noise_variances):
            raise ValueError("there must be one median_kl for each of noise_variances")
        return self


class KernelEntry(BaseModel):
    """The same data under one kernel, beside the kernel in use; see docs/commands.md.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> X = np.array([[0.0], [0.1], [0.2], [3.0]])
    >>> result = leakscope.audit(X, np.array([1.0, 1.1, 0.9, -1.0]), noise_variance=0.1)
    >>> result.to_document().choices.kernels.in_use.rank_of_first
    1
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    kernel: dict[str, Any]
    rank_correlation: Number
    top_ten_kept: int
    top_hundredth_kept: int
    rank_of_first: int
    largest_advantage: Fraction
    median_advantage: Fraction
    prediction_error: Number


class KernelSensitivityEntry(BaseModel):
    """The kernel in use beside others; the sizes of the top ten and of the top hundredth.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> X = np.array([[0.0], [0.1], [0.2], [3.0]])
    >>> result = leakscope.audit(X, np.array([1.0, 1.1, 0.9, -1.0]), noise_variance=0.1)
    >>> len(result.to_document().choices.kernels.others) > 1
    True
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    in_use: KernelEntry
    others: list[KernelEntry]
    top_ten: int
    top_hundredth: int
    refused: list[str]


class NoiseOfDataEntry(BaseModel):
    """The noise variance that the data would choose, and what the audit finds there.

    Examples
    --------
    >>> from leakscope import auditing, data
    >>> from leakscope.settings import AuditSettings
    >>> result = auditing.audit_dataset(data.read_example("iris"), AuditSettings())
    >>> result.to_document().choices.noise_of_data.records
    150
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    noise_variance: float
    criterion: str
    records: int
    at_bound: bool
    largest_advantage: Fraction
    median_advantage: Fraction
    top_ten_kept: int
    prediction_error: Number


class ChoicesEntry(BaseModel):
    """Why this kernel and this noise, and what other choices would have given.

    ``not_compared`` says why others were not tried, where they were not.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> X = np.array([[0.0], [0.1], [0.2], [3.0]])
    >>> result = leakscope.audit(X, np.array([1.0, 1.1, 0.9, -1.0]), noise_variance=0.1)
    >>> "length scale" in result.to_document().choices.kernel_reason
    True
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kernel_reason: str
    noise_reason: str
    not_compared: str | None = None
    noise_of_data: NoiseOfDataEntry | None = None
    kernels: KernelSensitivityEntry | None = None


class SubgroupEntry(BaseModel):
    """The exposure of the records with one value of a column.

    Examples
    --------
    >>> from leakscope.results import SubgroupEntry
    >>> SubgroupEntry(column="region", value="north", count=3, median_advantage=0.1,
    ...               largest_advantage=0.4, share_exposed=0.5, small=True).small
    True
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    column: str
    value: str
    count: int
    median_advantage: Fraction
    largest_advantage: Fraction
    share_exposed: Fraction
    small: bool


class DisagreementEntry(BaseModel):
    """A record whose label the others contradict, by standard deviations; its rank is by KL.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> X = np.array([[0.0], [0.1], [0.2], [3.0]])
    >>> result = leakscope.audit(X, np.array([1.0, 1.1, 0.9, -1.0]), noise_variance=0.1)
    >>> len(result.to_document().disagreeing) <= 5
    True
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    record_id: int | str
    disagreement: Number
    rank: int
    advantage: Fraction


class ExplanationEntry(BaseModel):
    """Why one of the most exposed records is; see docs/commands.md for each number.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> X = np.array([[0.0], [0.1], [0.2], [3.0]])
    >>> result = leakscope.audit(X, np.array([1.0, 1.1, 0.9, -1.0]), noise_variance=0.1, explain=1)
    >>> result.to_document().explanations[0].record_id
    3
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    record_id: int | str
    rank: int
    neighbours: list[int | str]
    distances: list[Number]
    isolation: Number
    disagreement: Number
    leverage: Number
    share_from_label: Number
    moved: list[int | str]
    shifts: list[Number]
    sentence: str


class AuditedDocument(ResultDocument):
    """What the result of every audit has, whichever model it speaks of.

    Examples
    --------
    >>> from leakscope.results import AuditDocument, AuditedDocument, ModelAuditDocument
    >>> issubclass(AuditDocument, AuditedDocument), issubclass(ModelAuditDocument, AuditedDocument)
    (True, True)
    """

    dataset: DatasetEntry
    median_advantage: Fraction
    unit: Literal["record", "group"] = "record"
    subgroups: list[SubgroupEntry] = Field(default_factory=list)
    records: Annotated[Sequence[ExposedRecord], Field(min_length=1)]

    @property
    def untrusted(self) -> int:
        """How many records, or groups, have numbers that are not trusted."""
        return sum(not record.trusted for record in self.records)


class AuditDocument(AuditedDocument):
    """The result of an audit of a Gaussian process: every record, most exposed first.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> result = leakscope.audit(X, y, kernel="rbf")
    >>> document = result.to_document()
    >>> document.kind, document.records[0].record_id
    ('audit', 2)
    """

    kind: Literal["audit"] = "audit"
    kernel: dict[str, Any]
    noise_variance: float
    noise_chosen_by: str = "user"
    route: str = "dense"
    route_reason: str = ""
    sensitivity: SensitivityEntry | None = None
    condition_number: Number
    verdict: str
    verdict_without_ids: str | None = None
    records: Annotated[list[AuditRecord], Field(min_length=1)]
    explanations: list[ExplanationEntry] = Field(default_factory=list)
    choices: ChoicesEntry | None = None
    disagreeing: list[DisagreementEntry] = Field(default_factory=list)

    def in_short(self) -> Short:
        """The verdict, and the most exposed."""
        rows = [record.model_dump() for record in self.records[:SHOWN]]
        return audit_in_short(
            self.dataset.name, (self.verdict,), self.unit, rows, tuple(self.warnings)
        )

    @property
    def approximate(self) -> bool:
        """Whether the numbers are not exact; fitc, which had no intervals, is in older runs."""
        return self.route in ("nystrom", "fitc")

    @property
    def doubt(self) -> str | None:
        """What every verb says where some numbers are not trusted; None where all are."""
        return doubt_words(
            self.untrusted,
            len(self.records),
            self.unit,
            approximate=self.approximate,
            noise_variance=self.noise_variance,
        )


# So many of the most exposed are in a result in short.
SHOWN = 10

# Their columns: in the result, and in the table.
SHORT_COLUMNS = {
    "advantage": "advantage",
    "tpr_at_fpr_0_01": "TPR at 1% FPR",
    "tpr_at_fpr_0_001": "TPR at 0.1% FPR",
    "auc": "AUC",
}


def audit_in_short(
    name: str,
    sentences: tuple[str, ...],
    unit: str,
    records: Sequence[Mapping[Any, Any]],
    warnings: tuple[str, ...],
) -> Short:
    """An audit in short, from its most exposed records as plain values.

    Examples
    --------
    >>> from leakscope.results import audit_in_short
    >>> rows = [{"record_id": 7, "advantage": 0.5, "auc": 0.8, "trusted": True}]
    >>> audit_in_short("wine", ("All well.",), "record", rows, ()).rows
    [['7', '0.5000', '0.8000', 'yes']]
    """
    names = [key for key in SHORT_COLUMNS if records and key in records[0]]
    rows = [
        [
            str(record["record_id"]),
            *(certain(record[key]) for key in names),
            "yes" if record["trusted"] else "no",
        ]
        for record in records
    ]
    headings = (unit, *(SHORT_COLUMNS[key] for key in names), "trusted")
    return Short(f"Audit of {name}: the most exposed", sentences, headings, rows, warnings)


def doubt_words(
    untrusted: int, count: int, unit: str, *, approximate: bool, noise_variance: float
) -> str | None:
    """One sentence on how many of an audit's numbers are not trusted, and why; None for none.

    Examples
    --------
    >>> from leakscope.results import doubt_words
    >>> print(doubt_words(3, 40, "record", approximate=False, noise_variance=1e-10))
    float64 does not resolve 3 of 40 records at noise_variance 1e-10, and their numbers are not to
    be read: raise it.
    """
    if not untrusted:
        return None
    if approximate:
        return (
            f"the approximation is too coarse for {untrusted} of {count} {unit}s, and only their "
            "intervals are to be read: use more inducing records or another route."
        )
    return (
        f"float64 does not resolve {untrusted} of {count} {unit}s at noise_variance "
        f"{noise_variance:g}, and their numbers are not to be read: raise it."
    )
