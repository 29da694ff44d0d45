"""The result file of ``leakscope compare``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from leakscope.results.document import Fraction, Number, ResultDocument

# The difference that says what was done to the data.
STEPS = "what was done to the data"


class SideEntry(BaseModel):
    """One of the two runs: what was audited, and how its leakage is distributed.

    ``exposed`` counts those with an advantage of 0.1 or more; the histograms are over the edges of
    the whole document, and KLs of zero or infinity are in none of them.  ``kernel`` and
    ``noise_variance`` are of a Gaussian process; ``model`` and the TPRs of a fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> result = leakscope.audit(X, y, kernel="rbf")
    >>> leakscope.compare(result, result).first.units
    3
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: str
    dataset: str
    units: int
    kernel: str | None = None
    noise_variance: float | None = None
    model: str | None = None
    largest_advantage: Fraction
    median_advantage: Fraction
    largest_tpr_at_fpr_0_01: Fraction = None
    largest_tpr_at_fpr_0_001: Fraction = None
    exposed: int
    largest_kl: Number
    median_kl: Number
    untrusted: int
    advantage_counts: list[int]
    log10_kl_counts: list[int]

    @property
    def what(self) -> str:
        """The model that was audited, in words."""
        if self.model is not None:
            return self.model
        return f"{self.kernel}; noise variance {self.noise_variance:.4g}"


class DifferenceEntry(BaseModel):
    """One respect in which the two runs differ.

    Examples
    --------
    >>> from leakscope.results.comparison import DifferenceEntry
    >>> DifferenceEntry(what="noise variance", first="0.01", second="0.1").what
    'noise variance'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    what: str
    first: str
    second: str


class ComparedRecord(BaseModel):
    """A record, or group, that is in both runs; ranks are within each run.

    Examples
    --------
    >>> from leakscope.results.comparison import ComparedRecord
    >>> ComparedRecord(record_id="a", first_rank=1, second_rank=3, first_kl=2.0, second_kl=0.1,
    ...                first_advantage=0.8, second_advantage=0.2).second_rank
    3
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    record_id: int | str
    first_rank: int
    second_rank: int
    first_kl: Number
    second_kl: Number
    first_advantage: Fraction
    second_advantage: Fraction


class Comparison(ResultDocument):
    """The result of ``leakscope compare``: two audits side by side.

    ``records`` has all that are in both, in the order of the first run's ranks; ``risen`` and
    ``fallen`` those whose advantage changed most.  ``not_aligned`` says why records were not
    compared one by one, where they were not.  ``worse`` says in which respects the second is worse
    for certain, ``unsure`` where that cannot be told, because intervals overlap or numbers are not
    trusted.

    Examples
    --------
    >>> from leakscope.results.comparison import Comparison
    >>> Comparison.model_fields["kind"].default
    'compare'
    """

    kind: Literal["compare"] = "compare"
    unit: Literal["record", "group"]
    first: SideEntry
    second: SideEntry
    advantage_edges: list[float]
    log10_kl_edges: list[float]
    differences: list[DifferenceEntry]
    same_data: bool | None
    not_aligned: str | None = None
    shared: int = 0
    appeared: int = 0
    vanished: int = 0
    rank_correlation: Number = None
    top_ten: int = 0
    top_ten_kept: int = 0
    top_hundredth: int = 0
    top_hundredth_kept: int = 0
    records: list[ComparedRecord] = Field(default_factory=list)
    risen: list[ComparedRecord] = Field(default_factory=list)
    fallen: list[ComparedRecord] = Field(default_factory=list)
    appeared_ids: list[int | str] = Field(default_factory=list)
    vanished_ids: list[int | str] = Field(default_factory=list)
    tolerance: float
    worse: list[str]
    unsure: list[str] = Field(default_factory=list)
    verdict: str
    redacted: bool = False

    def aggregates_only(self) -> Comparison:
        """The same without anything that belongs to one record."""
        emptied: dict[str, Any] = {
            name: []
            for name in ("records", "risen", "fallen", "appeared_ids", "vanished_ids", "warnings")
        }
        # What was done to the data may tell values of single records.
        told = [entry for entry in self.differences if entry.what != STEPS]
        return self.model_copy(update={**emptied, "differences": told, "redacted": True})
