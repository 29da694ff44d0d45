"""How many threads may work at once: what the process is given, and no more than it was told."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

# Blocks that fit the cache gain nothing from more.
MOST = 8


def usable_cores() -> int:
    """Cores of this process (its affinity, where the system says), at most ``OMP_NUM_THREADS``.

    Who sets that variable to run several processes side by side means our threads too.
    """
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
