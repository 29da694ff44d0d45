"""Long work in parts, each kept as one file: the same numbers here, on a cluster, after a kill.

A part has a name and parameters; its random key follows from the run's seed and its name alone.
What is finished is read again and not computed again; a file that the disk garbled is not there.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import as_completed
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.cores import a_core_each, usable_cores
from leakscope._numerics.keys import Key
from leakscope.data.files import write_file
from leakscope.errors import InputError, required
from leakscope.results.document import to_json
from leakscope.results.run_directory import versions

# The time that is left is reckoned from so many parts.
RECENT = 50
# Packages whose versions change a number, or what a task looks like on its way to a worker.
ALIKE = ("leakscope", "numpy", "scipy")
# How long a scheduler may take to answer.
CONNECT_SECONDS = 20
# A line that is written over itself is at least so long, so that nothing of it stays behind.
LINE = 40


@dataclass(frozen=True, eq=False)
class Part:
    """What one part gave: plain numbers, arrays, the seconds it took, and when it was kept.

    ``kept`` is the time of a part that was read again, and None of one that was computed now.
    """

    numbers: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    seconds: float = 0.0
    kept: float | None = None


@dataclass(frozen=True)
class Progress:
    """How far a run is: parts done of all, and the seconds that are left, if that can be told."""

    done: int
    total: int
    seconds_left: float | None


Compute = Callable[[str, Any], Part]
OnProgress = Callable[[Progress], None]


def part_key(name: str, seed: int) -> Key:
    """A part's random key: the run's seed and 128 bits of the name's SHA-256."""
    digest = hashlib.sha256(name.encode()).digest()
    return Key(seed).child(*(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)))


def digest_of(about: Mapping[str, Any]) -> str:
    """16 hexadecimal digits of what a run is about: a folder of this name holds its parts only."""
    return hashlib.sha256(to_json(dict(about)).encode()).hexdigest()[:16]


def run_parts(
    parts: Mapping[str, Any],
    compute: Compute,
    *,
    folder: Path | None = None,
    at: Any = None,
    on_progress: OnProgress | None = None,
) -> list[Part]:
    """Compute the parts that are not kept yet, keep each, and return all in their order.

    Parameters
    ----------
    parts
        Parameters by name.
    compute
        From a name and its parameters to the part; for processes it must be importable there, or
        be picklable by cloudpickle.
    folder
        Where parts are kept; None to keep none.
    at
        Where they are computed: None for here, one after another; ``"threads"`` for here, a core
        each; a number of processes; or a ``distributed.Client``.
    on_progress
        Called after every part; where left out, a notebook or a Python prompt shows a line.

    Examples
    --------
    >>> from leakscope.running import Part, run_parts
    >>> found = run_parts({"two": 2, "three": 3}, lambda name, x: Part({"square": x * x}))
    >>> [part.numbers["square"] for part in found]
    [4, 9]
    """
    there = {} if folder is None else {n: p for n in parts if (p := kept_part(folder, n))}
    todo = {name: value for name, value in parts.items() if name not in there}
    done, recent = dict(there), list[float]()
    on_progress = on_progress or live_line()

    def report() -> None:
        left = None
        if recent:
            mean = sum(recent[-RECENT:]) / len(recent[-RECENT:])
            left = mean * (len(parts) - len(done)) / _side_by_side(at)
        if on_progress is not None:
            on_progress(Progress(len(done), len(parts), left))

    report()
    # Closed with the block: an error must not leave threads or tasks behind.
    with closing(_computed(todo, compute, at)) as steps:
        for name, part in steps:
            if folder is not None:
                _keep(folder, name, part)
            done[name] = part
            recent.append(part.seconds)
            report()
    return [done[name] for name in parts]


def kept_part(folder: Path, name: str) -> Part | None:
    """A part that is kept whole, or None."""
    path = _file(folder, name)
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
        told = json.loads(str(arrays.pop("numbers")))
        return Part(told["numbers"], arrays, told["seconds"], path.stat().st_mtime)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name.replace('/', ',')}.npz"


def _keep(folder: Path, name: str, part: Part) -> None:
    buffer = io.BytesIO()
    told = to_json({"numbers": dict(part.numbers), "seconds": part.seconds})
    np.savez(buffer, numbers=np.array(told), **part.arrays)  # type: ignore[arg-type]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error.strerror or error}.") from error
    write_file(_file(folder, name), buffer.getvalue())


def _timed(compute: Compute, name: str, value: Any) -> tuple[str, Part]:
    start = time.perf_counter()
    part = compute(name, value)
    # As it would be read again, so that one that was kept is the same.
    numbers = json.loads(to_json(dict(part.numbers)))
    return name, replace(part, numbers=numbers, seconds=time.perf_counter() - start)


def _computed(todo: Mapping[str, Any], compute: Compute, at: Any) -> Generator[tuple[str, Part]]:
    if at is None or not todo:
        yield from (_timed(compute, name, value) for name, value in todo.items())
        return
    if at == "threads":
        with a_core_each() as pool:
            running = [pool.submit(_timed, compute, *item) for item in todo.items()]
            try:
                yield from (future.result() for future in as_completed(running))
            finally:
                for future in running:
                    future.cancel()
        return
    from joblib import Parallel, delayed, parallel_config

    backend = {"backend": "loky", "n_jobs": at}
    if not isinstance(at, int):
        # What all parts share (the data) is sent once.
        backend = {"backend": "dask", "client": at, "scatter": [compute]}
    with parallel_config(**backend):
        jobs = (delayed(_timed)(compute, *item) for item in todo.items())
        yield from Parallel(return_as="generator_unordered")(jobs)


def _side_by_side(at: Any) -> int:
    if at is None or isinstance(at, int):
        return at or 1
    return usable_cores() if at == "threads" else max(1, int(sum(at.nthreads().values())))


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever is read at a glance."""
    if seconds < 90.0:
        return f"{max(seconds, 1.0):.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


def live_line() -> OnProgress | None:
    """A line on stderr that follows a run, in a notebook or at a Python prompt; None elsewhere."""
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


@contextmanager
def workers_at(*, scheduler: str | None = None, workers: int | None = None) -> Iterator[Any]:
    """Where parts are computed: on the Dask cluster of a scheduler, in processes, or here.

    Parameters
    ----------
    scheduler
        The address of a running Dask scheduler, such as ``tcp://10.0.0.1:8786``.  Its workers
        need leakscope and what the parts import.
    workers
        Processes on this machine.
    """
    if scheduler is not None and workers is not None:
        raise InputError("Give a scheduler's address or a number of workers, not both.")
    if workers is not None and workers < 1:
        raise InputError(f"the number of workers must be 1 or more, but it is {workers}.")
    if scheduler is None:
        yield workers
        return
    required("distributed", "A cluster")
    import distributed

    try:
        client = distributed.Client(scheduler, timeout=CONNECT_SECONDS)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at {scheduler} ({error}).") from error
    with client:
        _require_same_versions(client)
        yield client


def _require_same_versions(client: Any) -> None:
    """Refuse workers that would compute with other versions, or cannot compute at all."""
    ours = versions()
    try:
        theirs = client.run(versions)
    except Exception as error:
        raise InputError(
            f"the cluster's workers cannot run leakscope ({type(error).__name__}: {error}); "
            f"install leakscope {ours['leakscope']} there."
        ) from error
    if not theirs:
        raise InputError("the cluster has no workers; start some and ask again.")
    for address, other in theirs.items():
        for name in ALIKE:
            if other.get(name) != ours.get(name):
                raise InputError(
                    f"the worker {address} has {name} {other.get(name)}, but here it is "
                    f"{ours.get(name)}: install the same version there."
                )
