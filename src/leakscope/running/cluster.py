"""Where cells are computed: this process, processes on this machine, or a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from leakscope.errors import InputError
from leakscope.results import versions

# Whose versions change a number, or what a task looks like on its way.
ALIKE = ("leakscope", "numpy", "scipy")

# How long a scheduler may take to answer.
CONNECT_SECONDS = 20


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
