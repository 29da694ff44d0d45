"""The result file of ``leakscope audit --model``: the user's own model, record by record."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from leakscope.results.audit import SHOWN, AuditedDocument, ExposedRecord, audit_in_short
from leakscope.results.document import Fraction, Number
from leakscope.results.shown import Short


class ModelAuditRecord(ExposedRecord):
    """One record of an audit of a fitted model; see docs/audit.md for what each number means.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import leakscope
    >>> X, y = load_diabetes(return_X_y=True)
    >>> result = leakscope.audit(X, y, model=Ridge(alpha=0.1).fit(X, y))
    >>> first = result.to_document().records[0]
    >>> first.tpr_at_fpr_0_01 > first.tpr_at_fpr_0_001
    True
    """

    shift_in_sd: Number
    mean_without: Number
    sd_without: Number
    mean_with: Number
    sd_with: Number
    largest_share: Number
    advantage_low: Fraction = None
    advantage_high: Fraction = None
    tpr_at_fpr_0_01_low: Fraction = None
    tpr_at_fpr_0_01_high: Fraction = None
    tpr_at_fpr_0_001_low: Fraction = None
    tpr_at_fpr_0_001_high: Fraction = None
    surely_exposed: bool | None = None


class ExaminedModel(BaseModel):
    """Which model was examined, and where it came from: a file with its digest, or a stand-in that
    leakscope fitted because none was given.

    Examples
    --------
    >>> from leakscope.results import ExaminedModel
    >>> ExaminedModel(type="Ridge", name="Ridge(alpha=1)", origin="as fitted by you",
    ...               parameters={"alpha": 1.0}).name
    'Ridge(alpha=1)'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    name: str
    origin: str
    parameters: dict[str, Any]
    file: str | None = None
    file_sha256: str | None = None
    stand_in: bool = False


class FitEntry(BaseModel):
    """How large the model is beside its data, and how much better it does on them than on others.

    ``parameters`` are the coefficients and intercepts that were fitted; null where there is one
    per record (kernels).  Scores are the share of right classes, or R².

    Examples
    --------
    >>> from leakscope.results import FitEntry
    >>> entry = FitEntry(parameters=11, score="accuracy", training=0.86, left_out=0.84)
    >>> round(entry.gap, 6)
    0.02
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    parameters: int | None
    score: str
    training: Number
    left_out: Number

    @property
    def gap(self) -> float | None:
        """The score on the training records minus that of each record in a fit without it."""
        if self.training is None or self.left_out is None:
            return None
        return self.training - self.left_out


class PenaltyOption(BaseModel):
    """The same model with another penalty: what it would give away, and its price.

    Examples
    --------
    >>> from leakscope.results import PenaltyOption
    >>> PenaltyOption(setting="C", value=0.1, largest_advantage=0.1, exposed=3, score="accuracy",
    ...               score_now=0.84, score_then=0.83).setting
    'C'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    setting: str
    value: float
    factor: float = 10.0
    largest_advantage: Fraction
    median_advantage: Fraction = None
    largest_tpr_at_fpr_0_01: Fraction = None
    largest_tpr_at_fpr_0_001: Fraction = None
    exposed: int
    untrusted: int = 0
    score: str
    score_now: Number
    score_then: Number


class ModelExplanationEntry(BaseModel):
    """Why a record is exposed by a fitted model; see docs/audit.md for each number.

    Examples
    --------
    >>> from leakscope.results import ModelExplanationEntry
    >>> ModelExplanationEntry(record_id=7, rank=1, weight=2.0, surprise=3.0, neighbours=[4],
    ...                       shares=[0.1], sentence="Record 7 ...").neighbours
    [4]
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    record_id: int | str
    rank: int
    weight: Number
    surprise: Number
    neighbours: list[int | str]
    shares: list[Number]
    sentence: str


class ModelAuditDocument(AuditedDocument):
    """The result of an audit of a fitted model: every record, most exposed first.

    ``one_threshold`` is what a single threshold on the score, the same for all, would achieve:
    the number that ``leakscope measure`` finds from scores.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import leakscope
    >>> X, y = load_diabetes(return_X_y=True)
    >>> document = leakscope.audit(X, y, model=Ridge(alpha=0.1).fit(X, y)).to_document()
    >>> document.kind, document.model.name, document.untrusted
    ('audit_model', 'Ridge(alpha=0.1)', 0)
    """

    kind: Literal["audit_model"] = "audit_model"
    model: ExaminedModel
    question: Literal["pool", "population"]
    fraction: float
    observes: str
    exposed_above: float
    exposed: int
    answer: list[str]
    answer_without_ids: list[str]
    answer_noise: Number = None
    option: PenaltyOption | None = None
    penalties: list[PenaltyOption] = Field(default_factory=list)
    explanations: list[ModelExplanationEntry] = Field(default_factory=list)
    records: Annotated[list[ModelAuditRecord], Field(min_length=1)]
    models: int | None = None
    fit: FitEntry | None = None
    one_threshold: dict[str, Number] = Field(default_factory=dict)

    def in_short(self) -> Short:
        """The answer, and the most exposed."""
        rows = [record.model_dump() for record in self.records[:SHOWN]]
        return audit_in_short(
            self.dataset.name, tuple(self.answer), "record", rows, tuple(self.warnings)
        )

    @property
    def doubt(self) -> str | None:
        """What is said where some laws are not trusted; None where all are."""
        return model_doubt_words(self.untrusted, len(self.records))


def model_doubt_words(untrusted: int, count: int) -> str | None:
    """One sentence on how many laws of a fitted model are not trusted; None for none.

    Examples
    --------
    >>> from leakscope.results import model_doubt_words
    >>> print(model_doubt_words(3, 40))
    3 of 40 records are not trusted: one other record carries much of what varies there, or the
    computation did not settle; verify with shadow models before you rely on them.
    """
    if not untrusted:
        return None
    return (
        f"{untrusted} of {count} records are not trusted: one other record carries much of what "
        "varies there, or the computation did not settle; verify with shadow models before you "
        "rely on them."
    )
