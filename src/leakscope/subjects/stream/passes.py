"""One command, any number of records: the feature-space audit of files, in bounded memory.

Three passes over the records: what the columns hold (:mod:`leakscope.subjects.stream.coding`),
Phi^T Phi and Phi^T y, and every record's laws.  A pass is cut into cells of about a million records
(:mod:`leakscope.running`), so that it goes on at the last cell after a kill, here or on a cluster,
and gives the same numbers.  Each cell of the last pass writes its answers to a Parquet file of its
own and hands back only what is said of all together.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope import __version__
from leakscope._numerics.cores import usable_cores
from leakscope._numerics.keys import Key
from leakscope._numerics.memory import format_bytes, require_memory
from leakscope.data.columns import column_name
from leakscope.data.files import is_there
from leakscope.errors import InputError
from leakscope.kernels.kernel import Kernel
from leakscope.laws.pair import Provenance
from leakscope.lood.features import FeatureRegression, FeatureSums, feature_sums, finite_features
from leakscope.lood.noise import choose_noise_of_sums
from leakscope.lood.separation import Separation
from leakscope.results.audit import Audit, ExaminedModel
from leakscope.results.columns import Table, trust_columns
from leakscope.results.document import AssumptionEntry
from leakscope.results.process_words import process_model
from leakscope.results.run_directory import complete_run_directory, require_free
from leakscope.results.trust import Trust
from leakscope.running.cell_store import FinishedCell, StoppedError, open_cells
from leakscope.running.cells import Cell, Found, OnProgress, Progress, run_cells
from leakscope.settings.audit import AuditSettings, ModelSettings
from leakscope.settings.data import DataSettings
from leakscope.settings.setting import validated
from leakscope.subjects.process.choices import kernel_from_settings
from leakscope.subjects.stream.answers import AnswersFile, columns_of_laws
from leakscope.subjects.stream.coding import ColumnCoding, ColumnFacts, coding_of, facts_of
from leakscope.subjects.stream.details import StreamDetails
from leakscope.subjects.stream.parts import FilePart, RecordBlock, columns_of, file_parts
from leakscope.subjects.stream.totals import ALL, QUANTILES, Told, dataset_entry, histograms

BLOCK_BYTES = 2**24

CHECK = "its KL's rounding error was estimated, and is below a relative 1e-8"

# Records of a cell: some seconds of work, and what a kill can cost.
CELL_RECORDS = 1_000_000

# Blocks of features, and what is computed of them, that a thread holds at once; measured.
BLOCKS_AT_ONCE = 13

# Matrices of features x features beside those of the cells; measured with 3,000 and 4,500.
GRAMS_AT_ONCE = 7

# SQLite's own bound on one value.
LARGEST_CELL = 1_000_000_000

PASSES = ("columns", "sums", "laws")
ANSWERS = "answers"

Cut = tuple[FilePart, ...]


def audit_streamed(
    source: str | Path,
    *,
    directory: str | Path,
    settings: AuditSettings | None = None,
    chosen: ModelSettings | None = None,
    client: Any = None,
    cell_records: int = CELL_RECORDS,
    block_bytes: int = BLOCK_BYTES,
    on_progress: OnProgress | None = None,
    **data: Any,
) -> Audit:
    """Audit Parquet or Arrow files of any size, in bounded memory: a fitted model or a process.

    A ridge, linear or two-class logistic regression (``chosen``), or without it the process of a
    linear kernel.  The numbers of :func:`leakscope.audit_frame` with the same settings, without
    ever holding the records.  A run that was stopped goes on in its directory when it is asked for
    again.

    Parameters
    ----------
    source
        A .parquet, .arrow or .feather file, or a folder of them, taken by name.
    directory
        The run directory: new, or that of a run of the same question that was stopped.
    settings
        Of the audit; the kernel must have finitely many features, such as linear, which is taken
        where left out.
    chosen
        The fitted model: ``model`` is ridge, linear, logistic, a .skops file of one of them, or
        left out for a stand-in; with C or alpha, or as leave-one-out chooses them.
    client
        A ``distributed.Client``, whose workers see the files and the run directory under the same
        paths; without one everything is computed here.
    cell_records, block_bytes
        Records of a cell, about, and bytes of features worked on at once.
    on_progress
        Called after every cell of a pass.
    data
        The settings of :class:`leakscope.settings.DataSettings`: target, id_column, task, ignore,
        by and missing (error or drop).

    Raises
    ------
    InputError
        Where something cannot be read, used or written; what was computed stays, and the run goes
        on from there when it is asked for again.

    """
    wanted = validated(DataSettings, **data)
    if chosen is not None:
        from leakscope.subjects.stream.fits import audit_streamed_fit

        return audit_streamed_fit(
            source,
            Path(directory),
            settings or AuditSettings(),
            chosen,
            wanted,
            Streaming(client, cell_records, block_bytes, on_progress),
        )
    settings = AuditSettings(kernel="linear") if settings is None else settings
    place, start = Path(directory), time.perf_counter()
    kernel = _usable(settings, wanted)
    asked = {"audit": settings.model_dump(mode="json")}
    how = Streaming(client, cell_records, block_bytes, on_progress)
    with opened_passes(source, place, wanted, asked, how, len(PASSES)) as passes:
        asked, parts, cuts, answers = passes.asked, passes.parts, passes.cuts, passes.answers

        def run(number: int, work: Callable[[Cut, int], Found]) -> list[Any]:
            return passes.run(PASSES[number], work)

        classes, drop = wanted.task == "classification", wanted.missing == "drop"
        facts = passes.facts(classes, drop)
        coding = passes.coded(facts, settings.scaling == "standard", classes, drop)
        summed = run(1, partial(_sums, kernel, block_bytes))
        sums = tree(
            (
                FeatureSums(
                    cell.arrays["gram"],
                    cell.arrays["product"],
                    cell.numbers["squares"],
                    cell.numbers["records"],
                )
                for cell in summed
            ),
            added,
        )
        choice = choose_noise_of_sums(sums)
        noise_variance, other, chosen_by = settings.noise_variance, None, None
        if isinstance(noise_variance, str):
            noise_variance, chosen_by = choice.noise_variance, choice.criterion
        elif settings.sensitivity:
            other = FeatureRegression.of(sums, choice.noise_variance)
        regression = FeatureRegression.of(sums, noise_variance)
        work = partial(_laws, regression, other, kernel, block_bytes, str(answers), asked)
        told = Told.of(run(2, work))
        of_data = None if other is None else told.noise_of_data(choice)
    first = next(block for part in cuts[0] for block in part.blocks(1))
    provenance = run_provenance(regression, first, kernel, told.untrusted, told.records)
    table = Table.of_rows(told.largest)
    trust = Trust.checked(CHECK, np.asarray(table.columns["trusted"], dtype=np.bool_))
    audit = Audit(
        kind="audit_streamed",
        subject="stream",
        leakscope_version=__version__,
        settings=asked,
        provenance={k: v for k, v in provenance.to_dict().items() if k != "assumptions"},
        assumptions=[
            AssumptionEntry(statement=entry.statement, holds=entry.holds, evidence=entry.evidence)
            for entry in provenance.assumptions
        ],
        timing={"audit": time.perf_counter() - start},
        warnings=[],
        dataset=dataset_entry(Path(source), wanted, coding, told, parts[0].target[0]),
        model=ExaminedModel(**process_model(kernel.describe(), noise_variance)),
        question=provenance.question,
        observes=provenance.observes,
        median_advantage=told.spreads[ALL].median(),
        sentences=[],
        subgroups=told.subgroups(parts[0].by),
        checks=list(trust.checks),
        table=Table({**table.columns, **trust_columns(trust)}, table.order),
        details=StreamDetails(
            kernel=kernel.describe(),
            noise_variance=noise_variance,
            noise_chosen_by=chosen_by,
            condition_number=regression.condition_number,
            untrusted=told.untrusted,
            mean_advantage=told.advantage / told.records,
            mean_kl=told.kl / told.records,
            worst=dict(told.worst),
            advantage_quantiles={f"{share:g}": told.quantile(share) for share in QUANTILES},
            noise_of_data=of_data,
            answers=ANSWERS,
        ),
    )
    return completed(place, audit, told)


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
    store: Any
    going_on: Callable[[], None]
    expected: int
    made: int = 0

    def run(self, name: str, work: Callable[[Cut, int], Found]) -> list[Any]:
        """One pass under a name of its own: what each cell found."""
        cells = [Cell(f"{name} {i:07d}", {"cell": i}) for i in range(len(self.cuts))]
        report = _over_passes(self.how.on_progress, len(cells), self.expected, self.made)
        self.made += 1
        with _still_there(self.place):
            return run_cells(
                self.store,
                cells,
                partial(_computed, self.cuts, work),
                seed=0,
                client=self.how.client,
                threads=True,
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
    with _none_left(place, begun) as going_on, open_cells(place, settings=whole, seed=0) as store:
        answers = place / ANSWERS
        answers.mkdir(mode=0o700, exist_ok=True)
        yield Passes(place, whole, parts, cuts, answers, how, store, going_on, expected)


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
    for name in ("cells.sqlite", "cells.sqlite-wal", "cells.sqlite-shm"):
        (place / name).unlink(missing_ok=True)
    # What a kill left of a cell that was then computed again.
    for left in (place / ANSWERS).glob(".*.partial"):
        left.unlink(missing_ok=True)
    return audit


def stream_bytes(width: int, cells: int, threads: int, block_bytes: int = BLOCK_BYTES) -> int:
    """What the passes hold at once: copies of Phi^T Phi, one more for each cell, and blocks."""
    return 8 * width**2 * (GRAMS_AT_ONCE + cells) + BLOCKS_AT_ONCE * block_bytes * threads


def _require_room(width: int, cells: int, block_bytes: int) -> None:
    if 8 * width**2 > LARGEST_CELL:
        raise InputError(
            f"the audit in {width:,} features keeps {format_bytes(8 * width**2)} for each cell, "
            f"and a file of cells holds {format_bytes(LARGEST_CELL)}: use at most "
            f"{math.isqrt(LARGEST_CELL // 8):,} features."
        )
    require_memory(
        stream_bytes(width, cells, usable_cores(), block_bytes),
        f"the audit in {width:,} features",
        "use fewer features",
    )


def _usable(settings: AuditSettings, data: DataSettings) -> Kernel:
    """The kernel, where the settings can be had block by block."""
    if data.target is None:
        raise InputError("which column is the target?  Name it with --target.")
    for given, option in (
        (data.group_column, "--group"),
        (data.split, "--split"),
        (data.missing == "impute", "--missing impute"),
        (settings.fit_kernel_scale, "--fit-kernel-scale"),
        (settings.route not in ("auto", "features"), f"--route {settings.route}"),
    ):
        if given:
            raise InputError(
                f"{option} needs all records in memory; leave it out where they are streamed, or "
                "audit a sample."
            )
    if settings.noise_variance == "leave_one_out":
        raise InputError(
            "--noise-variance leave_one_out needs all records in memory; where they are streamed, "
            "marginal_likelihood needs only sums."
        )
    if settings.kernel != "linear":
        raise InputError(
            "records are streamed under a kernel of finitely many features only: give --kernel "
            "linear, or audit a sample that fits in memory."
        )
    return kernel_from_settings(settings)


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


def _computed(
    cuts: list[Cut], work: Callable[[Cut, int], Found], parameters: Mapping[str, Any], _: Key
) -> Found:
    number = int(parameters["cell"])
    return work(cuts[number], number)


def _facts(classes: bool, drop: bool, block_bytes: int, cut: Cut, _: int) -> Found:
    found = [facts_of(part, classes, drop, block_bytes) for part in cut]
    total = tree(iter(found), lambda a, b: a + b)
    return Found(
        {"records": total.records, "widths": total.widths, "values": total.values},
        {"mean": total.mean, "length": total.length},
    )


def _facts_back(cell: FinishedCell) -> ColumnFacts:
    told = cell.numbers
    return ColumnFacts(
        told["records"],
        cell.arrays["mean"],
        # Runs that an earlier version began hold the square.
        cell.arrays["length"] if "length" in cell.arrays else np.sqrt(cell.arrays["squares"]),
        told["widths"],
        {name: tuple(values) for name, values in told["values"].items()},
    )


def _sums(kernel: Kernel, block_bytes: int, cut: Cut, _: int) -> Found:
    total = tree((part_sums(part, kernel, block_bytes) for part in cut), added)
    return Found(
        {"records": total.records, "squares": total.squares},
        {"gram": total.gram, "product": total.product},
    )


def _laws(
    regression: FeatureRegression,
    other: FeatureRegression | None,
    kernel: Kernel,
    block_bytes: int,
    answers: str,
    settings: dict[str, Any],
    cut: Cut,
    number: int,
) -> Found:
    told = Told()
    with AnswersFile(Path(answers, f"{number:07d}.parquet"), settings) as writer:
        for part in cut:
            for block in mapped_blocks(part, kernel, block_bytes):
                found = columns_of_laws(laws_of_block(regression, block))
                columns = {"record_id": block.record_ids, **found}
                told.note(columns, block.labels)
                writer.write(columns)
                if other is not None:
                    told.note_other(block.record_ids, laws_of_block(other, block))
    return told.found()


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
        if isinstance(error, InputError) or not type(error).__module__.startswith("distributed"):
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


def _mapped(block: RecordBlock, kernel: Kernel | None) -> RecordBlock:
    if kernel is None:
        return block
    phi = finite_features(kernel, block.features)
    if phi is None:
        raise InputError(
            "an audit in blocks needs a kernel with finitely many features, such as linear."
        )
    return replace(block, features=phi)


def part_sums(part: FilePart, kernel: Kernel | None, block_bytes: int) -> FeatureSums:
    """Phi^T Phi and Phi^T y over the records of one part."""
    total: FeatureSums | None = None
    for block in mapped_blocks(part, kernel, block_bytes):
        found = feature_sums(block.features, block.outputs)
        total = found if total is None else added(total, found)
    return FeatureSums.none(0, 0) if total is None else total


def added(one: FeatureSums, other: FeatureSums) -> FeatureSums:
    """The sums over both; those over no record may not know how many features there are."""
    if not one.records or not other.records:
        return one if one.records else other
    if one.gram.shape != other.gram.shape or one.product.shape != other.product.shape:
        raise InputError(
            f"some records have {one.gram.shape[0]} features and others {other.gram.shape[0]}."
        )
    return one + other


def mapped_blocks(part: FilePart, kernel: Kernel | None, block_bytes: int) -> Iterator[RecordBlock]:
    """The records of one part, with the kernel's features."""
    for block in part.blocks(block_bytes):
        yield _mapped(block, kernel)


def laws_of_block(regression: FeatureRegression, block: RecordBlock) -> Separation:
    """The laws of a block's records."""
    found = regression.leverages(block.features, block.outputs, first_row=block.first_row)
    return regression.laws(found, _target_shape(block.outputs))


def _target_shape(outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    return outputs[:, 0] if outputs.shape[1] == 1 else outputs


def run_provenance(
    regression: FeatureRegression,
    block: RecordBlock,
    kernel: Kernel | None,
    untrusted: int,
    records: int,
) -> Provenance:
    """The laws' own, with the flags counted over all records."""
    some = _mapped(block, kernel)
    found = regression.leverages(some.features, some.outputs)
    general = regression.laws(found, _target_shape(some.outputs)).provenance()
    counted = tuple(
        replace(
            entry,
            holds=untrusted == 0,
            evidence=f"condition number {regression.condition_number:.2g}; "
            f"{untrusted} of {records} records flagged",
        )
        if entry.statement.startswith("float64 resolves")
        else entry
        for entry in general.assumptions
    )
    return replace(general, assumptions=counted)


def tree(found: Iterator[Any], add: Callable[[Any, Any], Any]) -> Any:
    """Add as a binary counter does: only terms of as many leaves are added, while they come."""
    stack: list[tuple[int, Any]] = []
    for one in found:
        level = 0
        while stack and stack[-1][0] == level:
            one, level = add(stack.pop()[1], one), level + 1
        stack.append((level, one))
    total = stack.pop()[1]
    while stack:
        total = add(stack.pop()[1], total)
    return total
