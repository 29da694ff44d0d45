"""Passes over the records of files of any size, in bounded memory.

A pass is cut into cells of about a million records, each kept as one file of the run directory, so
that a run that was stopped goes on at the last cell, here or on a cluster, with the same numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from leakscope._numerics.cores import usable_cores
from leakscope._numerics.memory import (
    HEADROOM_BYTES,
    available_memory,
    format_bytes,
    require_memory,
)
from leakscope.data.files import is_folder, is_there, read_json, require_usable_name
from leakscope.errors import InputError
from leakscope.results.document import to_json, write_private
from leakscope.running.parts import OnProgress, Part, Progress, duration, run_parts
from leakscope.settings.audit import ModelSettings
from leakscope.single_fit import blocks
from leakscope.subjects.stream.records import (
    SUFFIX,
    ColumnCoding,
    ColumnFacts,
    Columns,
    RowGroup,
    StoppedError,
    facts_of,
    record_files,
    schema_and_sizes,
)

# Bytes of features worked on at once, and records of a cell: some seconds of work, and what a kill
# can cost.
BLOCK_BYTES, CELL_RECORDS = 2**24, 1_000_000
# Blocks, and what is computed of them, that a thread holds at once; matrices of features x features
# beside those of the cells; what the libraries take.  Measured with 3,000 and 4,500 features.
BLOCKS_AT_ONCE, GRAMS_AT_ONCE, LIBRARY_BYTES = 13, 7, 200_000_000
# About how many passes a run takes; of a logistic model, and more where a penalty is chosen.
PASSES, LOGISTIC_PASSES, CHOICE_PASSES = 20, 26, 14
# Of one core: per record of a pass, per number of it, per product of two, and per record for its
# laws and their measures once (docs/benchmarks/scaling.md).
RECORD_SECONDS, NUMBER_SECONDS, PRODUCT_SECONDS, LAW_SECONDS = 0.8e-6, 20e-9, 1e-9, 10e-6
# An audit in memory takes so many bytes a record, and so many copies of its features.
MEMORY_BYTES, COPIES = 6500, 6

Cell = tuple[RowGroup, ...]


@dataclass(frozen=True)
class Streaming:
    """How passes are made: a cluster's client or None, the sizes, and who hears how far it is."""

    client: Any = None
    cell_records: int = CELL_RECORDS
    block_bytes: int = BLOCK_BYTES
    on_progress: OnProgress | None = None

    def cells(self, groups: Sequence[RowGroup]) -> list[Cell]:
        """Row groups in cells of about so many records."""
        if self.cell_records < 1:
            raise InputError(f"cell_records must be 1 or more, but it is {self.cell_records}.")
        cells: list[Cell] = []
        cell: list[RowGroup] = []
        for group in groups:
            cell.append(group)
            if sum(each.records for each in cell) >= self.cell_records:
                cells.append(tuple(cell))
                cell = []
        return [*cells, tuple(cell)] if cell else cells


@dataclass(eq=False)
class Passes:
    """Passes over some cells; ``place`` keeps them once the run has begun."""

    cells: list[Cell]
    columns: Columns
    how: Streaming
    expected: int
    coding: ColumnCoding | None = None
    flipped: bool = False
    place: Path | None = None
    made: int = 0

    def run(self, name: str, work: Callable[[Cell, int], Part]) -> list[Part]:
        """One pass: what ``work`` makes of each cell and its number."""
        cells = {f"{name} {number:07d}": number for number in range(len(self.cells))}
        report = self._report()
        self.made += 1
        folder = None if self.place is None else self.place / "cells"
        try:
            return run_parts(
                cells,
                partial(_worked, self.cells, work),
                folder=folder,
                at=self.how.client or "threads",
                on_progress=report,
            )
        except Exception as error:
            if not type(error).__module__.startswith("distributed"):
                raise
            raise StoppedError(
                f"the cluster stopped ({type(error).__name__}); what is finished is kept in "
                f"{self.place}: start again with that run directory."
            ) from error

    def over(self, name: str, work: blocks.Work) -> blocks.Sums:
        """One pass as the theory asks for it: sums over all blocks."""
        assert self.coding is not None
        summed = partial(_summed, work, self.coding, self.flipped, self.how.block_bytes)
        parts = self.run(name, summed)
        total: blocks.Sums = tree((part.arrays for part in parts if part.arrays), blocks.added)
        return total

    def facts(self) -> ColumnFacts:
        """What the columns hold."""
        parts = self.run("columns", partial(_facts, self.columns, self.how.block_bytes))
        found = [_facts_back(part) for part in parts if part.numbers]
        if not found:
            raise InputError("every record has an empty value.")
        total: ColumnFacts = tree(iter(found), lambda a, b: a + b)
        return total

    def require_room(self, width: int) -> None:
        """Refuse more features than memory has room for."""
        needed = stream_bytes(width, len(self.cells), usable_cores(), self.how.block_bytes)
        require_memory(needed, f"the audit in {width:,} features", "use fewer features")

    def begin(self, place: Path, about: Mapping[str, Any]) -> None:
        """Keep passes from now on in a new directory, or in that of a stopped run of the same."""
        require_usable_name(place)
        path, text = place / "run.json", to_json({"settings": dict(about)})
        if is_there(path):
            settings = read_json(path).get("settings", {})
            for name, value in json.loads(text)["settings"].items():
                if settings.get(name) != value:
                    raise InputError(
                        f"{place} was begun with {name} = {settings.get(name)!r}, and now it is "
                        f"{value!r}: ask the same again, or name a new directory."
                    )
        else:
            try:
                place.mkdir(mode=0o700, parents=True, exist_ok=True)
                place.chmod(0o700)
            except OSError as error:
                raise InputError(f"{place} cannot be made: {error.strerror or error}.") from error
            write_private(path, text + "\n")
        self.place = place

    def _report(self) -> OnProgress | None:
        """One bar over all passes that are expected, or more."""
        tell, made, cells = self.how.on_progress, self.made, len(self.cells)
        if tell is None:
            return None
        passes = max(self.expected, made + 1)

        def report(progress: Progress) -> None:
            left = progress.seconds_left
            if left is not None:
                pace = left / max(1, progress.total - progress.done)
                left += pace * cells * (passes - 1 - made)
            tell(Progress(made * cells + progress.done, passes * cells, left))

        return report


def _worked(cells: list[Cell], work: Callable[[Cell, int], Part], name: str, number: int) -> Part:
    return work(cells[number], number)


def _summed(
    work: blocks.Work,
    coding: ColumnCoding,
    flipped: bool,
    block_bytes: int,
    cell: Cell,
    number: int,
) -> Part:
    sums = (
        work(block.X, 1.0 - block.y if flipped else block.y, int(block.rows[0]))
        for group in cell
        for block in coding.blocks(group, block_bytes)
    )
    total = tree(sums, blocks.added)
    # A cell whose records were all dropped has no sums.
    return Part({}, {name: np.asarray(value) for name, value in (total or {}).items()})


def _facts(columns: Columns, block_bytes: int, cell: Cell, number: int) -> Part:
    found = (facts_of(group, columns, block_bytes) for group in cell)
    total = tree((facts for facts in found if facts is not None), lambda a, b: a + b)
    if total is None:
        return Part({})
    return Part(
        {"records": total.records, "values": total.values},
        {"mean": total.mean, "length": total.length},
    )


def _facts_back(part: Part) -> ColumnFacts:
    values = {name: tuple(seen) for name, seen in part.numbers["values"].items()}
    return ColumnFacts(part.numbers["records"], part.arrays["mean"], part.arrays["length"], values)


def tree(terms: Iterator[Any], add: Callable[[Any, Any], Any]) -> Any:
    """The sum, added as a binary counter does, while terms come; None of no terms."""
    stack: list[tuple[int, Any]] = []
    for term in terms:
        level = 0
        while stack and stack[-1][0] == level:
            term, level = add(stack.pop()[1], term), level + 1
        stack.append((level, term))
    total = stack.pop()[1] if stack else None
    while stack:
        total = add(stack.pop()[1], total)
    return total


def stream_bytes(width: int, cells: int, threads: int, block_bytes: int = BLOCK_BYTES) -> int:
    """What the passes hold at once: copies of X'X, one more for each cell, and blocks."""
    return 8 * width**2 * (GRAMS_AT_ONCE + cells) + BLOCKS_AT_ONCE * block_bytes * threads


def passes_expected(chosen: ModelSettings, *, logistic: bool) -> int:
    """About how many passes a run takes."""
    if not logistic:
        return PASSES
    return LOGISTIC_PASSES + (CHOICE_PASSES if chosen.C is None and chosen.file is None else 0)


@dataclass(frozen=True)
class StreamCost:
    """The size of what is to be audited; ``several`` is whether it is more than one file."""

    records: int
    columns: int
    file_bytes: int
    several: bool

    @classmethod
    def of(cls, source: str | Path) -> StreamCost | None:
        """Of a source; None of what cannot be streamed."""
        place = Path(source)
        if not is_there(place):
            return None
        # A folder without such files is one of pictures.
        if not any(file.suffix.lower() == SUFFIX for file in (place, *place.rglob("*"))):
            return None
        files = record_files(place)
        about = [schema_and_sizes(file) for file in files]
        return cls(
            records=sum(sum(sizes) for _, sizes in about),
            columns=len(about[0][0].names),
            file_bytes=sum(file.stat().st_size for file in files),
            several=is_folder(place),
        )

    def too_large(self) -> bool:
        """Whether an audit in memory would not fit, or cannot read these files."""
        available = available_memory()
        needed = self.records * (MEMORY_BYTES + 8 * COPIES * self.columns)
        return self.several or (available is not None and needed > available - HEADROOM_BYTES)

    def sentence(self, chosen: ModelSettings, workers: int | None = None) -> str:
        """What is about to be done, and what it takes; without workers, here."""
        passes = passes_expected(chosen, logistic=chosen.named == "logistic")
        threads = usable_cores() if workers is None else 1
        cores = workers or usable_cores()
        width = self.columns
        pace = RECORD_SECONDS + width * (NUMBER_SECONDS + width * PRODUCT_SECONDS)
        seconds = self.records * (passes * pace + LAW_SECONDS) / cores
        held = LIBRARY_BYTES + stream_bytes(width, -(-self.records // CELL_RECORDS), threads)
        return (
            f"streaming {self.records:,} records of {width} columns "
            f"({format_bytes(self.file_bytes)}): about {passes} passes in about "
            f"{format_bytes(held)} a process, about {duration(seconds)} on {cores} "
            f"core{'s' if cores > 1 else ''} like those it was measured on; cells of "
            f"{CELL_RECORDS:,} records are kept. What would lower it, and why records are exposed, "
            "are left out."
        )
