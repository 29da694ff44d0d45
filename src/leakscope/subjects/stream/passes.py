"""Passes over the records of files of any size, in bounded memory.

A pass is cut into cells of about a million records (:mod:`leakscope.running`), so that it goes on
at the last cell after a kill, here or on a cluster, and gives the same numbers.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from leakscope._numerics.cores import usable_cores
from leakscope._numerics.memory import require_memory
from leakscope.data.columns import column_name
from leakscope.data.files import is_there, read_json, require_usable_name
from leakscope.errors import InputError
from leakscope.results.audit import Audit
from leakscope.results.document import to_json, write_private
from leakscope.results.run_directory import complete_run_directory, require_free
from leakscope.running.parts import OnProgress, Part, Progress, run_parts
from leakscope.settings.data import DataSettings
from leakscope.subjects.stream.coding import ColumnCoding, ColumnFacts, coding_of, facts_of
from leakscope.subjects.stream.parts import FilePart, StoppedError, columns_of, file_parts
from leakscope.subjects.stream.totals import Told, histograms

BLOCK_BYTES = 2**24

# Records of a cell: some seconds of work, and what a kill can cost.
CELL_RECORDS = 1_000_000

# Blocks of features, and what is computed of them, that a thread holds at once; measured.
BLOCKS_AT_ONCE = 13

# Matrices of features x features beside those of the cells; measured with 3,000 and 4,500.
GRAMS_AT_ONCE = 7

ANSWERS, CELLS = "answers", "cells"

Cut = tuple[FilePart, ...]


@dataclass(frozen=True)
class Streaming:
    """How passes are made: the client of a cluster or None, cells, blocks, and who is told."""

    client: Any = None
    cell_records: int = CELL_RECORDS
    block_bytes: int = BLOCK_BYTES
    on_progress: OnProgress | None = None


@dataclass(eq=False)
class Passes:
    """Passes over the records of some files, each cut into cells that are kept."""

    place: Path
    asked: dict[str, Any]
    parts: list[FilePart]
    cuts: list[Cut]
    answers: Path
    how: Streaming
    going_on: Callable[[], None]
    expected: int
    made: int = 0

    def run(self, name: str, work: Callable[[Cut, int], Part]) -> list[Any]:
        """One pass under a name of its own: what each cell found."""
        cells = {f"{name} {i:07d}": i for i in range(len(self.cuts))}
        report = _over_passes(self.how.on_progress, len(cells), self.expected, self.made)
        self.made += 1
        with _still_there(self.place):
            return run_parts(
                cells,
                partial(_computed, self.cuts, work),
                folder=self.place / CELLS,
                at=self.how.client or "threads",
                on_progress=report,
            )

    def facts(self, classes: bool, drop: bool) -> ColumnFacts:
        """What the columns hold, by a first pass."""
        learned = self.run("columns", partial(_facts, classes, drop, self.how.block_bytes))
        found: ColumnFacts = tree((_facts_back(cell) for cell in learned), lambda a, b: a + b)
        return found

    def coded(self, facts: ColumnFacts, standard: bool, classes: bool, drop: bool) -> ColumnCoding:
        """How columns become numbers from now on."""
        coding = coding_of(
            facts, self.parts[0], standard=standard, classes=classes, drop_missing=drop
        )
        self.cuts[:] = [tuple(replace(part, coding=coding) for part in cut) for cut in self.cuts]
        _require_room(len(coding.shift) + 1, len(self.cuts), self.how.block_bytes)
        self.going_on()
        return coding


@contextmanager
def opened_passes(
    source: str | Path,
    place: Path,
    wanted: DataSettings,
    asked: dict[str, Any],
    how: Streaming,
    expected: int,
) -> Iterator[Passes]:
    """The passes of a run, new or stopped before; nothing is left where records are refused."""
    parts = _parts(source, wanted)
    cuts = list(_cut(parts, how.cell_records))
    begun = is_there(place / "run.json") and not is_there(place / "result.json")
    if not begun:
        require_free(place)
    whole = {
        "what": "streamed audit",
        "source": str(Path(source).resolve()),
        "files": [list(entry) for entry in sorted({(part.path, *part.stamp) for part in parts})],
        "cell_records": how.cell_records,
        "data": wanted.model_dump(mode="json"),
        **asked,
    }
    _require_room(len(parts[0].features) + 1, len(cuts), how.block_bytes)
    with _none_left(place, begun) as going_on:
        _begin(place, whole)
        answers = place / ANSWERS
        answers.mkdir(mode=0o700, exist_ok=True)
        yield Passes(place, whole, parts, cuts, answers, how, going_on, expected)


def _begin(place: Path, about: Mapping[str, Any]) -> None:
    """Make a run's folder, which says what the run is about; refuse one of another run."""
    require_usable_name(place)
    path, text = place / "run.json", to_json({"settings": dict(about)})
    if is_there(path):
        before, now = read_json(path), json.loads(text)
        settings = before.get("settings") if isinstance(before, dict) else None
        if not isinstance(settings, dict):
            raise InputError(f"{path} does not describe a run; name a new directory.")
        for name, value in now["settings"].items():
            if settings.get(name) != value:
                raise InputError(
                    f"{place} was begun with {name} = {settings.get(name)!r}, and now it is "
                    f"{value!r}: ask the same again, or name a new directory."
                )
        return
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.chmod(0o700)
    except OSError as error:
        raise InputError(f"{place} cannot be made: {error.strerror or error}.") from error
    write_private(path, text + "\n")


def completed(place: Path, audit: Audit, told: Told) -> Audit:
    """The run directory of an audit whose answers are written, and its audit."""
    sentences = [*audit.about.answer(audit, threshold=audit.exposed_above, ids=True)]
    told_words = [*sentences, audit.attacker]
    without = [*audit.about.answer(audit, threshold=audit.exposed_above, ids=False), audit.attacker]
    audit = audit.model_copy(update={"sentences": told_words, "sentences_without_ids": without})
    complete_run_directory(
        place,
        audit,
        columns=list(audit.table.columns),
        rows=[tuple(row.values()) for row in audit.table.rows()],
        arrays=histograms(told),
    )
    shutil.rmtree(place / CELLS, ignore_errors=True)
    # What a kill left of a cell that was then computed again.
    for left in (place / ANSWERS).glob(".*.partial"):
        left.unlink(missing_ok=True)
    return audit


def stream_bytes(width: int, cells: int, threads: int, block_bytes: int = BLOCK_BYTES) -> int:
    """What the passes hold at once: copies of Phi^T Phi, one more for each cell, and blocks."""
    return 8 * width**2 * (GRAMS_AT_ONCE + cells) + BLOCKS_AT_ONCE * block_bytes * threads


def _require_room(width: int, cells: int, block_bytes: int) -> None:
    require_memory(
        stream_bytes(width, cells, usable_cores(), block_bytes),
        f"the audit in {width:,} features",
        "use fewer features",
    )


def _parts(source: str | Path, data: DataSettings) -> list[FilePart]:
    names = columns_of(Path(source))
    where = str(source)

    def named(given: str, role: str) -> str:
        return column_name(names, given, role, where)

    assert data.target is not None
    return file_parts(
        source,
        named(data.target, "target"),
        record_id=None if data.id_column is None else named(data.id_column, "id"),
        ignore=[named(name, "column to ignore") for name in data.ignore],
        by=list(dict.fromkeys(named(name, "subgroups") for name in data.by)),
        texts=True,
    )


def _cut(parts: Sequence[FilePart], records: int) -> Iterator[Cut]:
    """Parts in groups of about so many records."""
    if records < 1:
        raise InputError(f"cell_records must be 1 or more, but it is {records}.")
    group: list[FilePart] = []
    for part in parts:
        group.append(part)
        if sum(one.records for one in group) >= records:
            yield tuple(group)
            group = []
    if group:
        yield tuple(group)


def _computed(cuts: list[Cut], work: Callable[[Cut, int], Part], _: str, number: int) -> Part:
    return work(cuts[number], number)


def _facts(classes: bool, drop: bool, block_bytes: int, cut: Cut, _: int) -> Part:
    found = [facts_of(part, classes, drop, block_bytes) for part in cut]
    total = tree(iter(found), lambda a, b: a + b)
    return Part(
        {"records": total.records, "widths": total.widths, "values": total.values},
        {"mean": total.mean, "length": total.length},
    )


def _facts_back(cell: Part) -> ColumnFacts:
    told = cell.numbers
    return ColumnFacts(
        told["records"],
        cell.arrays["mean"],
        cell.arrays["length"],
        told["widths"],
        {name: tuple(values) for name, values in told["values"].items()},
    )


@contextmanager
def _none_left(place: Path, begun: bool) -> Iterator[Callable[[], None]]:
    """Leave no directory where records are refused before the real work; call what is given then.

    What stopped for another reason stays, and so does a run that had begun before.
    """
    there, worth = is_there(place), begun

    def going_on() -> None:
        nonlocal worth
        worth = True

    try:
        yield going_on
    except InputError as error:
        if not worth and not isinstance(error, StoppedError):
            shutil.rmtree(place, ignore_errors=True)
            if there:
                place.mkdir(mode=0o700)
        raise


@contextmanager
def _still_there(place: Path) -> Iterator[None]:
    """Say in a sentence that a cluster is gone, or gave a cell up."""
    try:
        yield
    except Exception as error:
        lost = isinstance(error, OSError) or type(error).__module__.startswith("distributed")
        if isinstance(error, InputError) or not lost:
            raise
        raise StoppedError(
            f"the cluster stopped ({type(error).__name__}); what is finished is kept in {place}: "
            "start again with that run directory."
        ) from error


def _over_passes(
    on_progress: OnProgress | None, cells: int, expected: int, made: int
) -> OnProgress | None:
    """One bar over all passes that are expected, or more."""
    if on_progress is None:
        return None
    passes = max(expected, made + 1)

    def report(progress: Progress) -> None:
        left = progress.seconds_left
        if left is not None:
            pace = left / max(1, progress.total - progress.done)
            left += pace * cells * (passes - 1 - made)
        on_progress(Progress(made * cells + progress.done, passes * cells, left))

    return report


def tree(found: Iterator[Any], add: Callable[[Any, Any], Any]) -> Any:
    """The sum, added as a binary counter does, while terms come; None of no terms."""
    stack: list[tuple[int, Any]] = []
    for one in found:
        level = 0
        while stack and stack[-1][0] == level:
            one, level = add(stack.pop()[1], one), level + 1
        stack.append((level, one))
    total = stack.pop()[1] if stack else None
    while stack:
        total = add(stack.pop()[1], total)
    return total
