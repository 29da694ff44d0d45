"""What a streamed audit says of every record: Parquet files, and what they hold together."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.data.datasets import subgroup_label
from leakscope.data.files import partial_beside
from leakscope.errors import InputError, required
from leakscope.results.audit import EXPOSED_ABOVE, FPRS, Subgroup
from leakscope.results.document import to_json
from leakscope.subjects.subgroups import SMALL_BELOW, require_few_subgroups

# How many of the most exposed records the result itself names.
TOP = 100
# Quantiles of the advantage that are told, from a histogram: of many records most have a tiny one,
# so that its steps are equal factors, 2.3% each, up from here to 1.
QUANTILES = (0.5, 0.9, 0.99, 0.999)
LEAST, STEPS_IN_A_DECADE = 1e-9, 100
STEPS = round(-np.log10(LEAST)) * STEPS_IN_A_DECADE + 1
UPPER = LEAST * 10.0 ** (np.arange(STEPS) / STEPS_IN_A_DECADE)
# Bars of a report's chart.
BINS = 40
# Columns of subgroups have this before their names, apart from the numbers'.
SUBGROUP = "subgroup:"
# Records of a file that are read at once.
READ_RECORDS = 250_000


def write_answers(
    path: Path, tables: Iterator[Mapping[str, NDArray[Any]]], settings: Mapping[str, Any]
) -> int:
    """Write a Parquet file that is there whole or not at all; the number of its records."""
    required("pyarrow", "A streamed audit")
    import pyarrow as pa
    import pyarrow.parquet as pq

    partial, writer, records = partial_beside(path), None, 0
    about = {"leakscope": json.dumps(json.loads(to_json(dict(settings))))}
    try:
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        for columns in tables:
            table = pa.table(dict(columns))
            if writer is None:
                # Hardly a number comes twice: a dictionary would cost more than all the rest.
                schema = table.schema.with_metadata(about)
                writer = pq.ParquetWriter(partial, schema, use_dictionary=False)
            writer.write_table(table.cast(writer.schema))
            records += table.num_rows
        if writer is not None:
            writer.close()
            partial.replace(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        partial.unlink(missing_ok=True)
    return records


@dataclass(frozen=True, eq=False)
class Distribution:
    """How the advantages of some records are distributed, in steps of 2.3%."""

    count: int
    exposed: int
    largest: float
    bins: NDArray[np.int64]

    @classmethod
    def of(cls, advantage: NDArray[np.float64]) -> Distribution:
        """Of some advantages."""
        steps = np.log10(np.maximum(advantage, LEAST) / LEAST) * STEPS_IN_A_DECADE
        places = np.clip(np.ceil(steps).astype(np.intp), 0, STEPS - 1)
        exposed = int(np.count_nonzero(advantage >= EXPOSED_ABOVE))
        largest = float(np.max(advantage, initial=0.0))
        return cls(len(advantage), exposed, largest, np.bincount(places, minlength=STEPS))

    def __add__(self, other: Distribution) -> Distribution:
        return Distribution(
            self.count + other.count,
            self.exposed + other.exposed,
            max(self.largest, other.largest),
            self.bins + other.bins,
        )

    def quantile(self, share: float) -> float:
        """The advantage that this share of the records does not exceed, the upper end of a step."""
        place = int(np.searchsorted(np.cumsum(self.bins), share * self.count))
        return float(UPPER[min(place, STEPS - 1)])

    def histogram(self) -> dict[str, NDArray[Any]]:
        """Edges and counts, as a report draws them."""
        edges = np.linspace(0.0, 1.0, BINS + 1)
        return {
            "histogram_advantage_edges": edges,
            "histogram_advantage_counts": np.histogram(UPPER, edges, weights=self.bins)[0],
        }

    @property
    def median(self) -> float:
        """The middle, or between the two in the middle, the upper ends of their steps."""
        middle = [(self.count - 1) // 2, self.count // 2]
        places = np.searchsorted(np.cumsum(self.bins), middle, side="right")
        return float(np.mean(UPPER[places]))


@dataclass(frozen=True, eq=False)
class AnswerTotals:
    """What all answers say together.

    Attributes
    ----------
    unconfirmed, mean_advantage
        How many records are not confirmed, and the mean over all.
    distribution
        Of the advantages of all.
    largest
        The largest of each measure, by column.
    most_exposed
        Columns of the `TOP` most exposed records, the most exposed first.
    subgroups
        An entry for each column and value, the largest median of each column first.
    """

    unconfirmed: int
    mean_advantage: float
    distribution: Distribution
    largest: dict[str, float]
    most_exposed: list[dict[str, Any]]
    subgroups: list[Subgroup]


def totals(folder: Path) -> AnswerTotals:
    """Read the answers once, some at a time."""
    measures = ("advantage", "auc", "kl", *FPRS.values())
    unconfirmed, total = 0, 0.0
    parts: dict[tuple[str, str], Distribution] = {}
    largest = dict.fromkeys(measures, 0.0)
    first: list[pd.DataFrame] = []
    whole = Distribution.of(np.zeros(0))
    for frame in _read(folder):
        advantage = frame["advantage"].to_numpy()
        unconfirmed += int((~frame["confirmed"]).sum())
        total += float(advantage.sum())
        whole += Distribution.of(advantage)
        largest = {name: max(value, frame[name].max()) for name, value in largest.items()}
        of_groups = [name for name in map(str, frame.columns) if name.startswith(SUBGROUP)]
        first = [_most_exposed([*first, frame.drop(columns=of_groups)])]
        for name in of_groups:
            for value, values in frame["advantage"].groupby(frame[name]):
                key = (name.removeprefix(SUBGROUP), str(value))
                part = Distribution.of(values.to_numpy())
                parts[key] = parts[key] + part if key in parts else part
    return AnswerTotals(
        unconfirmed,
        total / whole.count,
        whole,
        {name: float(value) for name, value in largest.items()},
        _rows(first[0]),
        _subgroups(parts),
    )


def subgroup_columns(frame: pd.DataFrame) -> dict[str, NDArray[Any]]:
    """The records' subgroups as columns of the answers."""
    return {
        f"{SUBGROUP}{name}": np.array([subgroup_label(v) for v in frame[name].tolist()], dtype=str)
        for name in frame
    }


def _read(folder: Path) -> Iterator[pd.DataFrame]:
    import pyarrow.parquet as pq

    for path in sorted(folder.glob("*.parquet")):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(READ_RECORDS):
                yield batch.to_pandas()


def _most_exposed(frames: list[pd.DataFrame]) -> pd.DataFrame:
    whole = pd.concat(frames)
    return whole.sort_values(["advantage", "kl"], ascending=False, kind="stable").head(TOP)


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A frame as plain values, ids as numbers or texts."""
    columns = {str(name): frame[name].tolist() for name in frame.columns}
    columns["record_id"] = [i if isinstance(i, int | str) else str(i) for i in columns["record_id"]]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _subgroups(parts: Mapping[tuple[str, str], Distribution]) -> list[Subgroup]:
    entries = [
        Subgroup(
            column=column,
            value=value,
            count=part.count,
            median_advantage=part.median,
            largest_advantage=part.largest,
            share_exposed=part.exposed / part.count,
            small=part.count < SMALL_BELOW,
        )
        for (column, value), part in sorted(parts.items())
    ]
    columns = list(dict.fromkeys(column for column, _ in parts))
    for column in columns:
        require_few_subgroups(column, sum(entry.column == column for entry in entries))
    entries.sort(key=lambda entry: (columns.index(entry.column), -(entry.median_advantage or 0.0)))
    return entries
