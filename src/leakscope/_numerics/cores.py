"""How many threads may work at once: what the process is given, and no more than it was told."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import RLock, local
from typing import Any

ForEach = Callable[[Callable[[Any], None], Iterable[Any]], None]

# Blocks that fit the cache gain nothing from more.
MOST = 8

# A library's number of threads is one for the whole process: who changes it goes alone.
_ALONE = RLock()

# Of a thread that has one core for itself: what it calls starts no others.
_OWN = local()


def usable_cores() -> int:
    """Cores of this process (its affinity, where the system says), at most ``OMP_NUM_THREADS``.

    Who sets that variable to run several processes side by side means our threads too.
    """
    if _has_one_core():
        return 1
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    told = os.environ.get("OMP_NUM_THREADS", "")
    if told.isascii() and told.isdigit() and int(told) > 0:
        cores = min(cores, int(told))
    return max(1, min(cores, MOST))


def in_threads(work: Callable[[int], None], starts: Sequence[int]) -> None:
    """Call ``work`` with each start, side by side where there is more than one and a core for it.

    NumPy and SciPy release the lock inside a block, so that threads are enough.
    """
    workers = min(len(starts), usable_cores())
    if workers > 1:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(work, starts))
    else:
        for start in starts:
            work(start)


@contextmanager
def side_by_side() -> Iterator[ForEach]:
    """Call a function with each of some items, on as many threads as the BLAS would use.

    Inside, the BLAS itself has one thread: what goes wrong with several of its own does not, and
    none of them waits at full speed while another library's are at work.
    """
    from threadpoolctl import ThreadpoolController

    if _has_one_core():
        yield _one_after_another
        return
    with _ALONE:
        libraries = ThreadpoolController().select(user_api="blas")
        workers = max((library.num_threads for library in libraries.lib_controllers), default=1)
        with libraries.limit(limits=1), ThreadPoolExecutor(workers) as pool:
            run = pool.map if workers > 1 else map

            def for_each(work: Callable[[Any], None], items: Iterable[Any]) -> None:
                for _ in run(work, items):
                    pass

            yield for_each


@contextmanager
def a_core_each() -> Iterator[ThreadPoolExecutor]:
    """Threads that each compute on one core, as many as there are cores: for parts of one run.

    The BLAS has one thread too, so that a part gives the same bits wherever it is computed.
    """
    from threadpoolctl import ThreadpoolController

    with _ALONE:
        cores = usable_cores()
        libraries = ThreadpoolController().select(user_api="blas")
        with libraries.limit(limits=1), ThreadPoolExecutor(cores, initializer=_own_a_core) as pool:
            yield pool


def _own_a_core() -> None:
    _OWN.one = True


def _has_one_core() -> bool:
    return getattr(_OWN, "one", False)


def _one_after_another(work: Callable[[Any], None], items: Iterable[Any]) -> None:
    for item in items:
        work(item)
