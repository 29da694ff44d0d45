"""What is said of all records of a streamed audit together: the most exposed, and histograms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.auditing.answers_file import largest_places
from leakscope.auditing.column_coding import ColumnCoding
from leakscope.auditing.report_material import BINS
from leakscope.results import DatasetEntry, StreamedRecord
from leakscope.running import FinishedCell, Found
from leakscope.settings import DataSettings

# How many of the most exposed records the result itself names.
TOP = 100

# Quantiles of the advantage that are told, from a histogram of so many bins.
QUANTILES = (0.5, 0.9, 0.99, 0.999)
FINE = 1000
MEASURES = ("advantage", "auc", "kl")
KL_EDGES = np.linspace(-20.0, 6.0, 26 * 4 + 1)


@dataclass
class Told:
    """Totals, the most exposed and the distribution; those of cells add up."""

    records: int = 0
    untrusted: int = 0
    kl: float = 0.0
    advantage: float = 0.0
    beyond: int = 0
    worst: dict[str, float] = field(default_factory=lambda: dict.fromkeys(MEASURES, 0.0))
    largest: list[dict[str, Any]] = field(default_factory=list)
    advantages: NDArray[np.int64] = field(default_factory=lambda: np.zeros(FINE, np.int64))
    levels: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(KL_EDGES) - 1, np.int64))

    def note(self, columns: dict[str, NDArray[Any]]) -> None:
        """Take in the answers about some records."""
        kl, advantage = columns["kl"], columns["advantage"]
        self.records += len(kl)
        self.untrusted += int(np.count_nonzero(~columns["trusted"]))
        self._exceed({name: float(np.max(columns[name], initial=0.0)) for name in MEASURES})
        self.kl += float(kl.sum())
        self.advantage += float(advantage.sum())
        self.advantages += np.histogram(advantage, FINE, (0.0, 1.0))[0]
        with np.errstate(divide="ignore"):
            counts = np.histogram(np.log10(kl), KL_EDGES)[0]
        self.levels += counts
        self.beyond += len(kl) - int(counts.sum())
        top = largest_places(kl, TOP)
        named = {name: columns[name][top].tolist() for name in StreamedRecord.model_fields}
        self._keep(
            [dict(zip(named, row, strict=True)) for row in zip(*named.values(), strict=True)]
        )

    def found(self) -> Found:
        """As what a cell stores."""
        plain = {name: getattr(self, name) for name in PLAIN}
        return Found(plain, {"advantages": self.advantages, "levels": self.levels})

    @classmethod
    def of(cls, cells: Iterable[FinishedCell]) -> Told:
        """Over all cells."""
        total = cls()
        for cell in cells:
            for name in PLAIN[:-2]:
                setattr(total, name, getattr(total, name) + cell.numbers[name])
            total.advantages += cell.arrays["advantages"]
            total.levels += cell.arrays["levels"]
            total._exceed(cell.numbers["worst"])
            total._keep(cell.numbers["largest"])
        return total

    def quantile(self, share: float) -> float:
        """The advantage that this share of the records does not exceed, to a thousandth."""
        place = int(np.searchsorted(np.cumsum(self.advantages), share * self.records))
        return min(place + 1, FINE) / FINE

    def _exceed(self, found: dict[str, float]) -> None:
        self.worst = {name: max(value, found[name]) for name, value in self.worst.items()}

    def _keep(self, more: list[dict[str, Any]]) -> None:
        for entry in more:
            if not isinstance(entry["record_id"], (int, str)):
                entry["record_id"] = str(entry["record_id"])
        self.largest = sorted([*self.largest, *more], key=lambda entry: -entry["kl"])[:TOP]


# What is stored as JSON; all but the last two are added up.
PLAIN = ("records", "untrusted", "kl", "advantage", "beyond", "worst", "largest")


def histograms(told: Told) -> dict[str, NDArray[Any]]:
    """Edges and counts, as a report draws them."""
    return {
        "histogram_advantage_edges": np.linspace(0.0, 1.0, BINS + 1),
        "histogram_advantage_counts": told.advantages.reshape(BINS, -1).sum(axis=1),
        "histogram_log10_kl_edges": KL_EDGES,
        "histogram_log10_kl_counts": told.levels,
        "histogram_log10_kl_left_out": np.array(told.beyond),
    }


def dataset_entry(
    source: Path, data: DataSettings, coding: ColumnCoding, told: Told, target: str
) -> DatasetEntry:
    """What was audited, in a few words."""
    standard = bool((coding.scale != 1.0).any() or coding.target_scale != 1.0)
    steps = ["read in blocks; record_id: " + (data.id_column or "row numbers, starting at 0")]
    if coding.drop_missing:
        steps.append("records with an empty value dropped")
    if coding.categories:
        steps.append(
            f"categories taken as {sum(map(len, coding.categories.values()))} features of 0 and 1, "
            f"which are not scaled: {', '.join(coding.categories)}"
        )
    if standard:
        steps.append("numeric features standardised to mean 0 and variance 1 over all records")
    if coding.classes:
        shown = ", ".join(coding.classes[:10]) + (" …" if len(coding.classes) > 10 else "")
        steps.append(f"target coded by its {len(coding.classes)} classes: {shown}")
    elif standard:
        steps.append(
            f"target standardised: minus {coding.target_shift:.6g}, divided by "
            f"{coding.target_scale:.6g}"
        )
    return DatasetEntry(
        name=source.name,
        records=told.records,
        features=len(coding.shift),
        outputs=1 if len(coding.classes) < 3 else len(coding.classes),
        target_name=target,
        steps=steps,
    )


def verdict_words(told: Told, noise_variance: float, *, given: bool) -> str:
    """What to make of it, in a few sentences."""
    words = (
        f"Read the ranks: noise_variance {noise_variance:g} was {'given' if given else 'assumed'}, "
        "and it sets the level of every number; a deterministic fit gives more away than one draw "
        f"of this process. At it half of all records have an advantage of at most "
        f"{told.quantile(0.5):g}, 99.9% of at most {told.quantile(0.999):g}, and the largest is "
        f"{told.worst['advantage']:.4g}."
    )
    if told.untrusted:
        words += f" float64 does not resolve {told.untrusted} records: raise noise_variance."
    return words
