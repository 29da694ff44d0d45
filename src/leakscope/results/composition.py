"""The result file of ``leakscope compose``."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from leakscope.data.datasets import RecordId
from leakscope.results.document import Fraction, Number, ResultDocument
from leakscope.results.shown import Short, certain


class ReleaseEntry(BaseModel):
    """One of the releases: what was audited, and how exposed its records are by it alone.

    Examples
    --------
    >>> from leakscope.results.composition import ReleaseEntry
    >>> ReleaseEntry(run="january", model="Ridge(alpha=1)", dataset="clinic", units=300,
    ...              largest_advantage=0.4, exposed=12).units
    300
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: str
    model: str
    dataset: str
    units: int
    largest_advantage: Fraction
    exposed: int


class ComposedRecord(BaseModel):
    """One person's record.

    Attributes
    ----------
    alone
        The advantage by each release, null where it was not trained on the record.
    together
        The advantage of whoever sees all releases.
    tpr_at_fpr_0_01, tpr_at_fpr_0_001
        Together; null but for the most exposed.

    Examples
    --------
    >>> from leakscope.results.composition import ComposedRecord
    >>> ComposedRecord(record_id=7, alone=[None, 0.1], together=0.2, trusted=True).releases
    1
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    record_id: RecordId
    alone: list[Fraction]
    together: Fraction
    trusted: bool
    tpr_at_fpr_0_01: Number = None
    tpr_at_fpr_0_001: Number = None

    @property
    def releases(self) -> int:
        """How many releases were trained on it."""
        return sum(value is not None for value in self.alone)


class Composition(ResultDocument):
    """What several releases give away together; ``records`` by falling exposure.

    Attributes
    ----------
    exposed
        How many have an advantage of 0.1 or more together.
    largest_alone, exposed_alone
        Over all records, each by the release that tells most.
    above, above_untrusted, above_alone
        How many are above the budget: trusted, not trusted, and by a single release; null without
        a budget.
    verdict
        The answer in words.

    Examples
    --------
    >>> from leakscope.results import Composition
    >>> Composition.model_fields["kind"].default
    'compose'
    """

    kind: Literal["compose"] = "compose"
    releases: list[ReleaseEntry]
    largest: Fraction
    median: Fraction
    exposed: int
    largest_alone: Fraction
    exposed_alone: int
    untrusted: int
    budget: Number = None
    above: int | None = None
    above_untrusted: int | None = None
    above_alone: int | None = None
    verdict: str
    records: list[ComposedRecord]

    def judged(self) -> tuple[list[str], list[str]]:
        """Sentences: that somebody is above the budget for certain, or that it cannot be told."""
        if self.above:
            many = f"{self.above} records are" if self.above != 1 else "1 record is"
            trusted = ", and trusted" if self.above_untrusted else ""
            return [f"{many} above the budget of {self.budget:g}{trusted}."], []
        if self.above_untrusted:
            return [], [
                f"cannot tell: {self.above_untrusted} records are above the budget of "
                f"{self.budget:g} by numbers that are not trusted."
            ]
        return [], []

    def in_short(self, most: int = 10) -> Short:
        """The verdict, and the most exposed."""
        rows = [
            [
                str(record.record_id),
                *(certain(value) for value in record.alone),
                certain(record.together),
                certain(record.tpr_at_fpr_0_01),
                certain(record.tpr_at_fpr_0_001),
                "yes" if record.trusted else "no",
            ]
            for record in self.records[:most]
        ]
        names = [f"release {place}" for place in range(1, len(self.releases) + 1)]
        return Short(
            f"{len(self.releases)} releases about {len(self.records):,} records",
            (self.verdict,),
            ("record", *names, "together", "TPR at 1%", "TPR at 0.1%", "trusted"),
            rows,
            tuple(self.warnings),
        )
