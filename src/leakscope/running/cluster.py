"""Where cells are computed: this process, processes on this machine, or a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from leakscope.errors import InputError


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

    Examples
    --------
    >>> from leakscope.running import cluster_client
    >>> with cluster_client() as client:
    ...     client is None
    True
    """
    if scheduler is not None and workers is not None:
        raise InputError("Give a scheduler's address or a number of workers, not both.")
    if scheduler is None and workers is None:
        yield None
        return
    if workers is not None and workers < 1:
        raise InputError(f"the number of workers must be 1 or more, but it is {workers}.")
    try:
        import distributed
    except ImportError:
        raise InputError(
            "A cluster needs Dask, which is not installed: pip install 'leakscope[dask]'."
        ) from None
    if scheduler is not None:
        try:
            client = distributed.Client(scheduler, timeout=20)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise InputError(f"no Dask scheduler answers at {scheduler} ({error}).") from error
        with client:
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
