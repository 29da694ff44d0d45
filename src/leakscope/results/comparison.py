"""The result file of ``leakscope compare``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from leakscope.results.document import Entry, Fraction, Number, ResultDocument

# The difference that says what was done to the data.
STEPS = "what was done to the data"


class SideEntry(Entry):
    """One of the two runs: what was audited, and how its leakage is distributed.

    ``exposed`` counts those above :data:`leakscope.results.audit.EXPOSED_ABOVE`; the histograms are
    over the edges of the whole document, and KLs of zero or infinity are in none of them.
    ``kernel`` and ``noise_variance`` are of a Gaussian process, ``model`` of a fitted model.
    """

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
    unconfirmed: int
    advantage_counts: list[int]
    log10_kl_counts: list[int]

    @property
    def what(self) -> str:
        """The model that was audited, in words."""
        if self.model is not None:
            return self.model
        return f"{self.kernel}; noise variance {self.noise_variance:.4g}"


class DifferenceEntry(Entry):
    """One respect in which the two runs differ."""

    what: str
    first: str
    second: str


class ComparedRecord(Entry):
    """A record, or group, that is in both runs; ranks are within each run."""

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
    confirmed.
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
        lists = ("records", "risen", "fallen", "appeared_ids", "vanished_ids", "warnings")
        emptied: dict[str, Any] = {name: [] for name in lists}
        # What was done to the data may name values of single records.
        kept = [entry for entry in self.differences if entry.what != STEPS]
        return self.model_copy(update={**emptied, "differences": kept, "redacted": True})
