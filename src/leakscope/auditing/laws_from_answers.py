"""The laws of a streamed audit, built again from its answers, some records at a time.

An answer holds the leverage h and half the squared length of the shift of means.  With
x = h/(1 - h) those are all that a measure of the pair needs: the variances are the same for every
output, so that only the length of the residual counts, not its direction.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from leakscope.errors import InputError
from leakscope.lood import Separation
from leakscope.results import StreamedAuditDocument

# Records taken at once.
AT_ONCE = 100_000

COLUMNS = ("leverage", "mean_distance", "kl_label_free", "kl_label", "error_estimate", "trusted")


def answered_laws(run: str | Path, document: StreamedAuditDocument) -> Iterator[Separation]:
    """The laws of every record of a streamed audit, in the records' order, some at a time.

    Of the residuals the lengths are right, and not the directions: measures, KL and errors are
    those of the audit, means are not to be had.

    Parameters
    ----------
    run
        The run directory, with its answers.
    document
        Its result.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import pandas as pd
    >>> from leakscope import auditing
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "y"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table.to_parquet(pathlib.Path(folder, "records.parquet"))
    ...     run = pathlib.Path(folder, "run")
    ...     found = auditing.audit_streamed(
    ...         pathlib.Path(folder, "records.parquet"), target="y", directory=run)
    ...     laws = next(auditing.answered_laws(run, found))
    >>> bool(np.isclose(laws.kl.max(), found.records[0].kl)), laws.units
    (True, 200)
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = sorted(Path(run, document.answers).glob("*.parquet"))
    seen = 0
    try:
        for path in files:
            with pq.ParquetFile(path, pre_buffer=False) as file:
                for batch in file.iter_batches(AT_ONCE, columns=list(COLUMNS), use_threads=False):
                    seen += batch.num_rows
                    yield _laws(
                        {
                            name: batch.column(name).to_numpy(zero_copy_only=False)
                            for name in COLUMNS
                        },
                        document,
                    )
    except (pa.ArrowException, OSError, KeyError) as error:
        raise InputError(f"the answers of {run} cannot be read ({error}).") from error
    if seen != document.dataset.records:
        raise InputError(
            f"the answers of {run} are those of {seen:,} records, and not of all "
            f"{document.dataset.records:,}: the run is not whole."
        )


def _laws(columns: dict[str, np.ndarray], document: StreamedAuditDocument) -> Separation:
    leverage = columns["leverage"]
    outputs = document.dataset.outputs
    residual = np.zeros((len(leverage), outputs))
    residual[:, 0] = np.sqrt(2.0 * columns["mean_distance"]) / leverage
    condition = document.condition_number
    return Separation(
        targets=np.zeros(len(leverage) if outputs == 1 else (len(leverage), outputs)),
        excess=leverage / np.maximum(1.0 - leverage, np.finfo(np.float64).eps),
        residual=residual,
        kl_label_free=columns["kl_label_free"],
        kl_label=columns["kl_label"],
        error_estimate=columns["error_estimate"],
        trusted=columns["trusted"],
        condition_number=np.inf if condition is None else condition,
        noise_variance=document.noise_variance,
        route="features",
    )
