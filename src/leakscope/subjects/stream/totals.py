"""What is said of all records of a streamed audit together: the most exposed, and histograms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.data.columns import column_name
from leakscope.data.person_columns import is_person_name
from leakscope.data.preparation import TARGET_SCALED
from leakscope.results.audit import EXPOSED_ABOVE, FPRS, Subgroup
from leakscope.results.document import DatasetEntry
from leakscope.running.parts import Part
from leakscope.settings.data import DataSettings
from leakscope.subjects.stream.coding import ColumnCoding
from leakscope.subjects.stream.parts import Labels, columns_of
from leakscope.subjects.subgroups import SMALL_BELOW, require_few_subgroups

# How many of the most exposed records the result itself names.
TOP = 100
BINS = 40
# Of which records a spread is, beside those by column and value.
ALL = ("all",)

# Quantiles of the advantage that are told, from a histogram: of many records most have a tiny one,
# so that its steps are equal factors, 2.3% each, up from here to 1.
QUANTILES = (0.5, 0.9, 0.99, 0.999)
LEAST, A_DECADE = 1e-9, 100
FINE = round(-np.log10(LEAST)) * A_DECADE + 1
UPPER = LEAST * 10.0 ** (np.arange(FINE) / A_DECADE)
MEASURES = ("advantage", "auc", "kl")
KL_EDGES = np.linspace(-20.0, 6.0, 26 * 4 + 1)


@dataclass
class Spread:
    """How the advantages of some records are distributed, in steps of 2.3%; spreads add up."""

    count: int = 0
    exposed: int = 0
    largest: float = 0.0
    bins: NDArray[np.int64] = field(default_factory=lambda: np.zeros(FINE, np.int64))

    def __add__(self, other: Spread) -> Spread:
        return Spread(
            self.count + other.count,
            self.exposed + other.exposed,
            max(self.largest, other.largest),
            self.bins + other.bins,
        )

    def quantile(self, share: float) -> float:
        """The advantage that this share of the records does not exceed, the upper end of a step."""
        place = int(np.searchsorted(np.cumsum(self.bins), share * self.count))
        return float(UPPER[min(place, FINE - 1)])

    def median(self) -> float:
        """The middle, or between the two in the middle, the upper ends of their steps."""
        middle = [(self.count - 1) // 2, self.count // 2]
        places = np.searchsorted(np.cumsum(self.bins), middle, side="right")
        return float(np.mean(UPPER[places]))


def spreads(
    advantage: FloatArray, codes: NDArray[np.intp], values: Sequence[str]
) -> dict[str, Spread]:
    """One for each value that some records have; ``codes`` says which value is a record's."""
    steps = np.log10(np.maximum(advantage, LEAST) / LEAST) * A_DECADE
    places = np.clip(np.ceil(steps).astype(np.intp), 0, FINE - 1)
    size = len(values)
    bins = np.bincount(codes * FINE + places, minlength=size * FINE).reshape(size, FINE)
    exposed = np.bincount(codes[advantage >= EXPOSED_ABOVE], minlength=size)
    largest = np.zeros(size)
    np.maximum.at(largest, codes, advantage)
    return {
        value: Spread(int(bins[i].sum()), int(exposed[i]), float(largest[i]), bins[i])
        for i, value in enumerate(values)
    }


@dataclass
class Told:
    """Totals, the most exposed and the distribution; those of cells add up.

    ``named`` says which columns are told of the most exposed.  ``spreads`` are of all records (ALL)
    and by column and value of subgroups.
    """

    records: int = 0
    unconfirmed: int = 0
    kl: float = 0.0
    advantage: float = 0.0
    beyond: int = 0
    worst: dict[str, float] = field(default_factory=lambda: dict.fromkeys(MEASURES, 0.0))
    largest: list[dict[str, Any]] = field(default_factory=list)
    advantages: NDArray[np.int64] = field(default_factory=lambda: np.zeros(BINS, np.int64))
    levels: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(KL_EDGES) - 1, np.int64))
    spreads: dict[tuple[str, ...], Spread] = field(default_factory=dict)
    named: Sequence[str] = ()

    def note(self, columns: dict[str, NDArray[Any]], labels: Labels) -> None:
        """Take in the answers about some records, and their subgroups by column."""
        kl, advantage = columns["kl"], columns["advantage"]
        self.records += len(kl)
        self.unconfirmed += int(np.count_nonzero(~columns["confirmed"]))
        told = (*MEASURES, *(name for name in FPRS.values() if name in columns))
        self._exceed({name: float(np.max(columns[name], initial=0.0)) for name in told})
        self.kl += float(kl.sum())
        self.advantage += float(advantage.sum())
        with np.errstate(divide="ignore"):
            counts = np.histogram(np.log10(kl), KL_EDGES)[0]
        self.levels += counts
        self.advantages += np.histogram(advantage, BINS, (0.0, 1.0))[0]
        self.beyond += len(kl) - int(counts.sum())
        self.largest = _largest(self.largest, _top(columns, self.named), TOP)
        self._spread(ALL, advantage)
        for column, (codes, values) in labels.items():
            for value, spread in spreads(advantage, codes, values).items():
                self._add((column, value), spread)

    def found(self) -> Part:
        """As what a cell stores."""
        plain = {name: getattr(self, name) for name in (*ADDED, *PLAIN)}
        told = [
            [list(key), spread.count, spread.exposed, spread.largest]
            for key, spread in self.spreads.items()
        ]
        bins = np.array([spread.bins for spread in self.spreads.values()]).reshape(-1, FINE)
        # Beyond the largest there is nothing to keep.
        reached = int(np.max(np.flatnonzero(bins.any(axis=0)), initial=-1)) + 1
        arrays = {name: getattr(self, name) for name in HISTOGRAMS}
        return Part({**plain, "spreads": told}, {**arrays, "bins": bins[:, :reached]})

    @classmethod
    def of(cls, cells: Iterable[Part]) -> Told:
        """Over all cells."""
        total = cls()
        for cell in cells:
            for name in ADDED:
                setattr(total, name, getattr(total, name) + cell.numbers[name])
            for name in HISTOGRAMS:
                setattr(total, name, getattr(total, name) + cell.arrays[name])
            total._exceed(cell.numbers["worst"])
            total.largest = _largest(total.largest, cell.numbers["largest"], TOP)
            for (key, *told), bins in zip(
                cell.numbers["spreads"], cell.arrays["bins"], strict=True
            ):
                count, exposed, largest = told
                whole = np.pad(bins, (0, FINE - len(bins)))
                total._add(tuple(key), Spread(count, exposed, largest, whole))
        return total

    def quantile(self, share: float) -> float:
        """The advantage that this share of all records does not exceed."""
        return self.spreads[ALL].quantile(share)

    def subgroups(self, columns: Sequence[str]) -> list[Subgroup]:
        """One entry per column and value, the largest median of each column first."""
        found: list[Subgroup] = []
        for column in columns:
            own = {key[1]: spread for key, spread in self.spreads.items() if key[0] == column}
            require_few_subgroups(column, len(own))
            entries = [
                Subgroup(
                    column=column,
                    value=value,
                    count=spread.count,
                    median_advantage=spread.median(),
                    largest_advantage=spread.largest,
                    share_exposed=spread.exposed / spread.count,
                    small=spread.count < SMALL_BELOW,
                )
                for value, spread in sorted(own.items())
            ]
            found += sorted(entries, key=lambda entry: -(entry.median_advantage or 0.0))
        return found

    def _exceed(self, found: dict[str, float]) -> None:
        self.worst = {
            name: max(self.worst.get(name, 0.0), found.get(name, 0.0))
            for name in (*self.worst, *found)
        }

    def _spread(self, key: tuple[str, ...], advantage: FloatArray) -> None:
        everyone = np.zeros(len(advantage), dtype=np.intp)
        self._add(key, spreads(advantage, everyone, key)[key[0]])

    def _add(self, key: tuple[str, ...], spread: Spread) -> None:
        self.spreads[key] = self.spreads.get(key, Spread()) + spread


# What is stored as JSON: numbers that are added up, and others.
ADDED = ("records", "unconfirmed", "kl", "advantage", "beyond")
PLAIN = ("worst", "largest")
HISTOGRAMS = ("advantages", "levels")


def _top(columns: Mapping[str, NDArray[Any]], names: Iterable[str]) -> list[dict[str, Any]]:
    top = largest_places(columns["advantage"], TOP)
    named = {name: columns[name][top].tolist() for name in names}
    found = [dict(zip(named, row, strict=True)) for row in zip(*named.values(), strict=True)]
    for entry in found:
        if not isinstance(entry["record_id"], (int, str)):
            entry["record_id"] = str(entry["record_id"])
    return found


def _largest(
    some: list[dict[str, Any]], more: list[dict[str, Any]], count: int
) -> list[dict[str, Any]]:
    return sorted([*some, *more], key=lambda entry: (-entry["advantage"], -entry["kl"]))[:count]


def histograms(told: Told) -> dict[str, NDArray[Any]]:
    """Edges and counts, as a report draws them."""
    return {
        "histogram_advantage_edges": np.linspace(0.0, 1.0, BINS + 1),
        "histogram_advantage_counts": told.advantages,
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
            f"{TARGET_SCALED}: minus {coding.target_shift:.6g}, divided by "
            f"{coding.target_scale:.6g}"
        )
    names = columns_of(source)
    ignored = [column_name(names, name, "column to ignore", str(source)) for name in data.ignore]
    return DatasetEntry(
        name=source.name,
        records=told.records,
        features=len(coding.shift),
        outputs=1 if len(coding.classes) < 3 else len(coding.classes),
        target_name=target,
        steps=steps,
        person_columns=tuple(name for name in ignored if is_person_name(name)),
    )


def largest_places(values: FloatArray, count: int) -> NDArray[np.intp]:
    """Where the largest values are, the largest first, and the first of those that are equal."""
    if len(values) <= count:
        return np.argsort(-values, kind="stable")
    places = np.flatnonzero(values >= np.partition(values, -count)[-count])
    return places[np.argsort(-values[places], kind="stable")][:count]
