"""What only a streamed audit has to say: totals, since its table holds the most exposed alone."""

from __future__ import annotations

from typing import Any

from leakscope.results.audit import Details, Totals
from leakscope.results.document import DatasetEntry, Number
from leakscope.subjects.process.details import NoiseOfData


class StreamDetails(Details):
    """The kernel and the noise as used, and what is known of all records together.

    Every record is in the Parquet files of the folder ``answers``.
    """

    kernel: dict[str, Any]
    noise_variance: float
    noise_chosen_by: str | None = None
    condition_number: Number
    untrusted: int
    mean_advantage: Number
    mean_kl: Number
    worst: dict[str, Number]
    advantage_quantiles: dict[str, float]
    answers: str
    noise_of_data: NoiseOfData | None = None

    def totals(self, dataset: DatasetEntry) -> Totals:
        """Over all records."""
        return Totals(
            units=dataset.records,
            untrusted=self.untrusted,
            median_advantage=self.advantage_quantiles.get("0.5"),
            largest=self.worst,
        )
