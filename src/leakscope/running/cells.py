"""Runs of many cells: the same numbers in one process, on a cluster, and after a kill.

A cell is a name and parameters.  Its random key follows from the run's seed and its name alone, so
that it gives the same numbers wherever and whenever it is computed, and a run that was killed goes
on where it stopped (:mod:`leakscope.running.cell_store` keeps what is finished).  Cells are
computed in this process, in processes on this machine, or on a Dask cluster (`cluster_client`).
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.cores import a_core_each, usable_cores
from leakscope._numerics.keys import Key
from leakscope.errors import InputError, required
from leakscope.results.run_directory import versions
from leakscope.running.cell_store import CellStore, FinishedCell

# How long to wait before looking again for cells that another process has claimed.
WAIT_SECONDS = 0.5
# The time left is told from so many cells.
RECENT = 50
# Packages whose versions change a number, or what a task looks like on its way to a worker.
ALIKE = ("leakscope", "numpy", "scipy")
# How long a scheduler may take to answer.
CONNECT_SECONDS = 20


@dataclass(frozen=True)
class Cell:
    """One part of a run.

    Parameters
    ----------
    name
        Unique in the run; its key follows from it.
    parameters
        What the cell is asked, as plain JSON.
    """

    name: str
    parameters: Mapping[str, Any]

    def key(self, seed: int) -> Key:
        """The cell's random key: the run's seed and 128 bits of the name's SHA-256."""
        digest = hashlib.sha256(self.name.encode()).digest()
        labels = (int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4))
        return Key(seed).child(*labels)


@dataclass(frozen=True)
class Found:
    """What a cell's computation returns: plain numbers, and arrays where they are large."""

    numbers: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]] | None = None


@dataclass(frozen=True)
class Progress:
    """How far a run is: cells done of all, and the seconds that are left, if that can be told.

    The seconds are the remaining cells times the mean of the last ones computed in this session,
    divided by the workers; cells found finished at the start do not count.
    """

    done: int
    total: int
    seconds_left: float | None


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever is read at a glance."""
    if seconds < 90.0:
        return f"{max(seconds, 1.0):.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


Compute = Callable[[Mapping[str, Any], Key], Found]
OnProgress = Callable[[Progress], None]
Computed = tuple[dict[str, Any], dict[str, NDArray[Any]], float]


def run_cells(
    store: CellStore,
    cells: Sequence[Cell],
    compute: Compute,
    *,
    seed: int,
    client: Any = None,
    retries: int = 2,
    threads: bool = False,
    on_progress: OnProgress | None = None,
) -> list[FinishedCell]:
    """Compute the cells that are not finished yet, store each, and return all in their order.

    Parameters
    ----------
    store
        Where finished cells are kept, from :func:`leakscope.running.cell_store.open_cells`.
    cells
        What is to be there in the end.
    compute
        From parameters and a key to what was found; for a cluster it must be importable there.
    seed
        The run's.
    client
        A ``distributed.Client``; without one the cells are computed here, one after another.
    retries
        On a cluster, how often a cell is tried again when its worker dies or it fails.
    threads
        Here, whether cells are computed side by side, a thread and a core each.
    on_progress
        Called after every cell; where left out, a notebook or a Python prompt shows a line.
    """
    names = [cell.name for cell in cells]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two cells have the name {twice!r}; names must be distinct in a run.")
    finished = store.finished()
    todo = [cell for cell in cells if cell.name not in finished]
    if client is None:
        side_by_side = usable_cores() if threads else 1
    else:
        side_by_side = max(1, int(sum(client.nthreads().values())))
    pace = _Pace(len(cells) - len(todo), len(cells), side_by_side)
    on_progress = on_progress or live_line()
    if on_progress is not None:
        on_progress(pace.progress())
    # Closed with the block: an error must not leave threads or tasks behind.
    with closing(
        _here(store, todo, compute, seed, threads)
        if client is None
        else _on_cluster(store, todo, compute, seed, client, retries)
    ) as steps:
        for seconds in steps:
            pace.note(seconds)
            if on_progress is not None:
                on_progress(pace.progress())
    there = {cell.name: cell for cell in store.cells()}
    return [there[name] for name in names]


# A line that is written over itself is at least so long, so that nothing of it stays behind.
LINE = 40


def live_line() -> OnProgress | None:
    """A line on stderr that follows a run, in a notebook or at a Python prompt; None elsewhere.

    Examples
    --------
    >>> import contextlib, io, sys
    >>> from leakscope.running.cells import Progress, live_line
    >>> live_line() is None  # a script
    True
    >>> sys.ps1 = ">>> "
    >>> shown = io.StringIO()
    >>> with contextlib.redirect_stderr(shown):
    ...     live_line()(Progress(done=3, total=8, seconds_left=10.0))
    >>> del sys.ps1
    >>> shown.getvalue().strip()
    '3 of 8 done, about 10 s left'
    """
    if "ipykernel" not in sys.modules and not hasattr(sys, "ps1"):
        return None

    def tell(progress: Progress) -> None:
        left = progress.seconds_left
        words = f"{progress.done} of {progress.total} done"
        if progress.done < progress.total and left is not None:
            words += f", about {duration(left)} left"
        end = "\n" if progress.done >= progress.total else ""
        print(f"\r{words:<{LINE}}", end=end, file=sys.stderr, flush=True)

    return tell


def computed(cell: Cell, compute: Compute, seed: int) -> Computed:
    """One cell's numbers, arrays and seconds; what a cluster's worker runs."""
    start = time.perf_counter()
    found = compute(cell.parameters, cell.key(seed))
    arrays = {name: np.asarray(array) for name, array in (found.arrays or {}).items()}
    return dict(found.numbers), arrays, time.perf_counter() - start


def _here(
    store: CellStore, todo: Sequence[Cell], compute: Compute, seed: int, threads: bool
) -> Generator[float | None, None, None]:
    """Compute what no other process has claimed; then wait for, or take over, the rest."""
    waiting = list(todo)
    while waiting:
        claimed_by_others: list[Cell] = []
        free = _free(store, waiting, claimed_by_others)
        if threads:
            yield from _in_threads(store, free, compute, seed)
        for cell in free:
            with _given_back_on_error(store, cell):
                found = computed(cell, compute, seed)
            yield _kept(store, cell, found)
        finished = store.finished() if claimed_by_others else set()
        for cell in claimed_by_others:
            if cell.name in finished:
                yield None
        waiting = [cell for cell in claimed_by_others if cell.name not in finished]
        if waiting and len(waiting) == len(claimed_by_others):
            time.sleep(WAIT_SECONDS)


def _free(store: CellStore, cells: Iterable[Cell], claimed: list[Cell]) -> Iterator[Cell]:
    """The cells that this process is to compute, claimed when they are asked for."""
    for cell in cells:
        if store.claim(cell.name):
            yield cell
        else:
            claimed.append(cell)


def _in_threads(
    store: CellStore, free: Iterator[Cell], compute: Compute, seed: int
) -> Iterator[float]:
    """A cell a core; only this thread writes to the store."""
    with a_core_each() as pool:
        running: dict[Future[Computed], Cell] = {}

        def begin(count: int) -> None:
            for cell in islice(free, count):
                running[pool.submit(computed, cell, compute, seed)] = cell

        begin(usable_cores())
        while running:
            done = next(iter(wait(running, return_when=FIRST_COMPLETED).done))
            cell = running.pop(done)
            with _given_back_on_error(store, cell, *running.values()):
                found = done.result()
            begin(1)
            yield _kept(store, cell, found)


@contextmanager
def _given_back_on_error(store: CellStore, cell: Cell, *others: Cell) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        store.release([cell.name, *(other.name for other in others)])
        error.add_note(f"while computing the cell {cell.name!r}")
        raise


def _kept(store: CellStore, cell: Cell, found: Computed) -> float:
    numbers, arrays, seconds = found
    store.put(cell.name, cell.parameters, numbers, arrays, seconds=seconds)
    return seconds


def _on_cluster(
    store: CellStore,
    todo: Sequence[Cell],
    compute: Compute,
    seed: int,
    client: Any,
    retries: int,
) -> Generator[float | None, None, None]:
    """Send every cell to a worker; only this process writes to the store."""
    from distributed import as_completed

    # map, not submit: what all cells share (the data) is sent once.
    futures = client.map(
        computed,
        list(todo),
        compute=compute,
        seed=seed,
        key=[f"leakscope-{cell.name}" for cell in todo],
        retries=retries,
        pure=False,
    )
    by_future = dict(zip(futures, todo, strict=True))
    try:
        for future in as_completed(list(by_future)):  # type: ignore[no-untyped-call]
            cell = by_future.pop(future)
            try:
                found = future.result()
            except Exception as error:
                error.add_note(f"while computing the cell {cell.name!r}")
                # What others have finished meanwhile is not lost with the one that failed.
                for other, theirs in by_future.items():
                    if other.status == "finished":
                        _kept(store, theirs, other.result())
                raise
            seconds = _kept(store, cell, found)
            # Results stay in the workers' memory as long as a future points to them.
            future.release()
            yield seconds
    finally:
        client.cancel(list(by_future))


class _Pace:
    def __init__(self, done: int, total: int, workers: int) -> None:
        self.done, self.total, self.workers = done, total, workers
        self.recent: list[float] = []

    def note(self, seconds: float | None) -> None:
        self.done += 1
        if seconds is not None:
            self.recent = [*self.recent[-RECENT + 1 :], seconds]

    def progress(self) -> Progress:
        left = None
        if self.recent:
            mean = sum(self.recent) / len(self.recent)
            left = mean * (self.total - self.done) / self.workers
        return Progress(self.done, self.total, left)


@contextmanager
def cluster_client(*, scheduler: str | None = None, workers: int | None = None) -> Iterator[Any]:
    """A ``distributed.Client``, or None for this process alone.

    Parameters
    ----------
    scheduler
        The address of a running Dask scheduler, such as ``tcp://10.0.0.1:8786``.  Its workers
        need leakscope and what the cells import.
    workers
        Start this many processes on this machine instead, each with one thread; they end with
        the block.
    """
    if scheduler is not None and workers is not None:
        raise InputError("Give a scheduler's address or a number of workers, not both.")
    if scheduler is None and workers is None:
        yield None
        return
    if workers is not None and workers < 1:
        raise InputError(f"the number of workers must be 1 or more, but it is {workers}.")
    required("distributed", "A cluster")
    import distributed

    if scheduler is not None:
        try:
            client = distributed.Client(  # type: ignore[no-untyped-call]
                scheduler, timeout=CONNECT_SECONDS
            )
        except (OSError, ValueError) as error:
            raise InputError(f"no Dask scheduler answers at {scheduler} ({error}).") from error
        with client:
            _require_same_versions(client)
            yield client
        return
    # Loopback only: a run opens nothing to the network unless asked.
    with (
        distributed.LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs="ERROR",
        ) as cluster,
        distributed.Client(cluster) as client,  # type: ignore[no-untyped-call]
    ):
        yield client


def _require_same_versions(client: Any) -> None:
    """Refuse workers that would compute with other versions, or cannot compute at all."""
    ours = versions()
    try:
        found = client.run(versions)
    except Exception as error:
        raise InputError(
            f"the cluster's workers cannot run leakscope ({type(error).__name__}: {error}); "
            f"install leakscope {ours['leakscope']} there."
        ) from error
    if not found:
        raise InputError("the cluster has no workers; start some and ask again.")
    for address, theirs in found.items():
        for name in ALIKE:
            if theirs.get(name) != ours.get(name):
                raise InputError(
                    f"the worker {address} has {name} {theirs.get(name)}, but here it is "
                    f"{ours.get(name)}: install the same version there."
                )
