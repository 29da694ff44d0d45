"""What a streamed audit says of every record: Parquet files, written as the answers come.

An answer holds the leverage h and half the squared length of the shift of means.  With
x = h/(1 - h) those are all that a measure of the pair needs: the variances are the same for every
output, so that only the length of the residual counts, not its direction.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope import measures
from leakscope.data.files import partial_beside
from leakscope.errors import InputError, required
from leakscope.lood.separation import Separation
from leakscope.measures.normal_divergence import kl_reverse_parts
from leakscope.results.audit import Audit
from leakscope.results.document import to_json
from leakscope.results.sections import Section
from leakscope.subjects.subject import Subject

# Records taken at once.
AT_ONCE = 100_000

COLUMNS = ("leverage", "mean_distance", "kl_label_free", "kl_label", "error_estimate", "trusted")


class AnswersFile:
    """A Parquet file that is there whole or not at all, and not where there are no answers."""

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self.path = path
        self.partial = partial_beside(path)
        self.settings = json.dumps(json.loads(to_json(settings)))
        self.writer: Any = None

    def __enter__(self) -> AnswersFile:
        required("pyarrow", "A streamed audit")
        try:
            os.close(os.open(self.partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        except OSError as error:
            raise self._failed(error) from error
        return self

    def write(self, columns: dict[str, NDArray[Any]]) -> None:
        """Add the answers about some records; all calls bring the same columns."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table(columns)
        try:
            if self.writer is None:
                # Hardly a number comes twice: a dictionary would cost more than all the rest.
                schema = table.schema.with_metadata({"leakscope": self.settings})
                self.writer = pq.ParquetWriter(self.partial, schema, use_dictionary=False)
            self.writer.write_table(table.cast(self.writer.schema))
        except OSError as error:
            raise self._failed(error) from error

    def __exit__(self, kind: Any, *_: object) -> None:
        try:
            if self.writer is not None:
                self.writer.close()
            if kind is None and self.writer is not None:
                self.partial.replace(self.path)
        except OSError as error:
            if kind is None:
                raise self._failed(error) from error
        finally:
            self.partial.unlink(missing_ok=True)

    def _failed(self, error: OSError) -> InputError:
        return InputError(f"{self.path} cannot be written: {error.strerror or error}.")


def columns_of_laws(laws: Separation) -> dict[str, NDArray[Any]]:
    """Every number that is told of a record, by name."""
    pair, score = laws.law_pair(), np.sum(laws.score**2, axis=1)
    return {
        "kl": laws.kl,
        "kl_reverse": np.add(*kl_reverse_parts(laws.excess, score, laws.outputs)),
        "kl_label_free": laws.kl_label_free,
        "kl_label": laws.kl_label,
        "advantage": np.asarray(measures.advantage(pair)),
        "auc": np.asarray(measures.auc(pair)),
        "mean_distance": laws.mean_distance,
        "leverage": laws.leverage,
        "error_estimate": laws.error_estimate,
        "trusted": laws.trusted,
    }


def answered_laws(run: str | Path, audit: Audit) -> Iterator[Separation]:
    """The laws of every record of a streamed audit, in the records' order, some at a time.

    Of the residuals the lengths are right, and not the directions: measures, KL and errors are
    those of the audit, means are not to be had.

    Parameters
    ----------
    run
        The run directory, with its answers.
    document
        Its result.

    """
    required("pyarrow", "Reading a streamed audit's answers")
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = sorted(Path(run, audit.details.answers).glob("*.parquet"))
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
                        audit,
                    )
    except (pa.ArrowException, OSError, KeyError) as error:
        raise InputError(f"the answers of {run} cannot be read ({error}).") from error
    if seen != audit.dataset.records:
        raise InputError(
            f"the answers of {run} are those of {seen:,} records, and not of all "
            f"{audit.dataset.records:,}: the run is not whole."
        )


def _laws(columns: dict[str, np.ndarray], audit: Audit) -> Separation:
    leverage = columns["leverage"]
    outputs = audit.dataset.outputs
    residual = np.zeros((len(leverage), outputs))
    residual[:, 0] = np.sqrt(2.0 * columns["mean_distance"]) / leverage
    condition = audit.details.condition_number
    return Separation(
        targets=np.zeros(len(leverage) if outputs == 1 else (len(leverage), outputs)),
        excess=leverage / np.maximum(1.0 - leverage, np.finfo(np.float64).eps),
        residual=residual,
        kl_label_free=columns["kl_label_free"],
        kl_label=columns["kl_label"],
        error_estimate=columns["error_estimate"],
        trusted=columns["trusted"],
        condition_number=np.inf if condition is None else condition,
        noise_variance=audit.details.noise_variance,
        route="features",
    )


class AnsweredInFiles(Subject):
    """A subject whose answers about every record are in Parquet files of the run."""

    @classmethod
    def notes(cls, audit: Audit) -> list[str]:
        """Where the answers about every record are."""
        return [f"Every record: the Parquet files in {audit.details.answers}/."]

    @classmethod
    def sections(cls, audit: Audit) -> list[Section]:
        """How the advantages are distributed."""
        told = audit.details
        rows = [
            [f"{100 * float(share):g}%", f"{value:.3g}"]
            for share, value in told.advantage_quantiles.items()
        ]
        return [
            Section(
                "Over all records",
                [
                    f"The mean advantage is {told.mean_advantage or 0.0:.3g}. The numbers of every "
                    f"record are in the Parquet files of {told.answers}/, in the run directory."
                ],
                tables=[(("records", "advantage at most"), rows)],
            )
        ]
