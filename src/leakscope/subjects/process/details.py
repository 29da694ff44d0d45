"""What only the audit of a Gaussian process has to say, as it is stored."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from leakscope.results.audit import Details, Explanation
from leakscope.results.document import Fraction, Number


class Part(BaseModel):
    """A part of the details: nothing else may stand in it."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NoiseSensitivity(Part):
    """The noise variances over which every record's ranks were taken, and those refused."""

    noise_variances: list[float]
    median_kl: list[Number]
    refused: list[float]

    @model_validator(mode="after")
    def _one_median_a_level(self) -> NoiseSensitivity:
        if len(self.median_kl) != len(self.noise_variances):
            raise ValueError("there must be one median_kl for each of noise_variances")
        return self


class ComparedKernel(Part):
    """The same data under one kernel, beside the kernel in use.

    ``rank_correlation`` is with the ranks in use; ``top_ten_kept`` and ``top_hundredth_kept`` count
    the most exposed that are so under both; ``rank_of_first`` is where the first stands here.
    """

    name: str
    kernel: dict[str, Any]
    rank_correlation: Number
    top_ten_kept: int
    top_hundredth_kept: int
    rank_of_first: int
    largest_advantage: Fraction
    median_advantage: Fraction
    prediction_error: Number


class KernelSensitivity(Part):
    """The kernel in use beside others; the sizes of the top ten and of the top hundredth."""

    in_use: ComparedKernel
    others: list[ComparedKernel]
    top_ten: int
    top_hundredth: int
    refused: list[str]

    def caution(self) -> str | None:
        """Where another kernel ranks the first record neither in its top ten nor hundredth."""
        limit = max(self.top_ten, self.top_hundredth)
        outside = [c for c in self.others if c.rank_of_first > limit]
        if not outside:
            return None
        worst = max(outside, key=lambda entry: entry.rank_of_first)
        return (
            f"The kernel matters: under {len(outside)} of {len(self.others)} others, the first is "
            f"outside the top {limit} ({worst.rank_of_first} under {worst.name})."
        )


class NoiseOfData(Part):
    """The noise variance that the data would choose over some records, and the audit there.

    By the leave-one-out predictive score; of groups, whose records may repeat each other, by the
    marginal likelihood.  ``at_bound`` says that it lies at an end of the search.
    """

    noise_variance: float
    criterion: str
    records: int
    at_bound: bool
    largest_advantage: Fraction
    median_advantage: Fraction
    top_ten_kept: int
    prediction_error: Number


class Choices(Part):
    """Why this kernel and this noise, and what other choices would have given."""

    kernel_reason: str
    noise_reason: str
    not_compared: str | None = None
    noise_of_data: NoiseOfData | None = None
    kernels: KernelSensitivity | None = None


class DisagreeingLabel(Part):
    """A record whose label the others contradict, by standard deviations; its rank is by KL."""

    record_id: int | str
    disagreement: Number
    rank: int
    advantage: Fraction


class ProcessExplanation(Explanation):
    """Why a record is exposed: where it stands among the others, and what its label adds."""

    neighbours: list[int | str]
    distances: list[Number]
    isolation: Number
    disagreement: Number
    leverage: Number
    share_from_label: Number
    moved: list[int | str]
    shifts: list[Number]

    @property
    def others(self) -> str:
        """The nearest records, and those whose predictions this one moves most."""
        near = super().others
        return f"{near} Moves most: {', '.join(map(str, self.moved))}." if self.moved else near


class ProcessDetails(Details):
    """The kernel and the noise as used, how the laws were computed, and other choices."""

    kernel: dict[str, Any]
    noise_variance: float
    noise_chosen_by: str = "user"
    route: str = "dense"
    route_reason: str = ""
    error_asked: float | None = None
    sensitivity: NoiseSensitivity | None = None
    condition_number: Number
    explanations: list[ProcessExplanation] = Field(default_factory=list)  # type: ignore[assignment]
    choices: Choices | None = None
    disagreeing: list[DisagreeingLabel] = Field(default_factory=list)

    @property
    def approximate(self) -> bool:
        """Whether the numbers are not exact."""
        return self.route == "nystrom"

    @property
    def kernels(self) -> KernelSensitivity | None:
        """The audit under other kernels; None where they were not tried."""
        return None if self.choices is None else self.choices.kernels
