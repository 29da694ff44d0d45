"""What only the audit of a Gaussian process has to say, as it is stored."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import RecordId
from leakscope.lood.process import ProcessOnRecords
from leakscope.lood.separation import Rows, Separation
from leakscope.results.audit import Details, Explanation
from leakscope.results.document import Fraction, Number

# So many neighbours are named; from here on a label is called surprising.
NEIGHBOURS = 3
SURPRISING_FROM = 2.0


class Part(BaseModel):
    """A part of the details: nothing else may stand in it."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NoiseLevel(Part):
    """The audit at one noise variance."""

    noise_variance: float
    median_kl: Number


class NoiseOfData(Part):
    """The noise variance that the data would choose over some records, and the audit there.

    By the leave-one-out predictive score; of groups, whose records may repeat each other, by the
    marginal likelihood.  ``at_bound`` says that it lies at an end of the search.
    """

    noise_variance: float
    criterion: str
    at_bound: bool
    largest_advantage: Fraction
    median_advantage: Fraction


class ProcessExplanation(Explanation):
    """Why a record is exposed: who is near it, and what its label adds."""

    disagreement: Number
    share_from_label: Number


class ProcessDetails(Details):
    """The kernel and the noise as used, how the laws were computed, and other noises."""

    kernel: dict[str, Any]
    noise_variance: float
    noise_chosen_by: str = "user"
    route: str = "dense"
    sweep: list[NoiseLevel] = Field(default_factory=list)
    noise_of_data: NoiseOfData | None = None
    explanations: list[ProcessExplanation] = Field(default_factory=list)  # type: ignore[assignment]

    @property
    def approximate(self) -> bool:
        """Whether the numbers are not exact."""
        return self.route == "nystrom"


def explained(
    process: ProcessOnRecords, laws: Separation, rows: Rows, ids: tuple[RecordId, ...]
) -> list[ProcessExplanation]:
    """Why the records in these rows, the most exposed first, are so exposed.

    Distances are the kernel's own, d(x, z)^2 = k(x, x) + k(z, z) - 2 k(x, z).
    """
    prior = process.kernel.diagonal(process.features)
    off, from_label, kl = laws.disagreement, laws.kl_label, laws.kl
    told = []
    for place, row in enumerate(rows.tolist()):
        between = process.kernel(process.features[[row]], process.features)[0]
        squared: FloatArray = prior[row] + prior - 2.0 * between
        squared[row] = np.inf
        near = np.argsort(squared, kind="stable")[: min(NEIGHBOURS, len(prior) - 1)]
        share = float(from_label[row] / kl[row]) if kl[row] > 0.0 else 0.0
        deviations = f"{off[row]:.1f} standard deviations"
        label = f"is {deviations}" if off[row] >= SURPRISING_FROM else f"is within {deviations}"
        told.append(
            ProcessExplanation(
                record_id=ids[row],
                rank=place + 1,
                neighbours=[ids[other] for other in near],
                disagreement=float(off[row]),
                share_from_label=share,
                sentence=f"The label of record {ids[row]} {label} from what the other records say; "
                f"{share:.0%} of its KL comes from the shift of the mean, the rest from the drop "
                "in variance.",
            )
        )
    return told
