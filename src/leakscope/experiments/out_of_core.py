"""The feature-space audit of lood for records that do not fit in memory, here or on a cluster.

The arithmetic is :mod:`leakscope.lood.features`: one pass adds up Phi^T Phi and Phi^T y, a d x d
factorisation follows, and a second pass gives every record's laws.  Here the passes read the
records part by part, and the answers go to a Parquet file as they come.  Sums are added in a fixed
binary tree over the parts, so that one process and any cluster give the same numbers.  Memory: a
few blocks a worker, and d^2 numbers times the tree's depth; the number of records does not enter.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope import measures
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.experiments.cells import OnProgress, Progress
from leakscope.experiments.record_blocks import Part, RecordBlock, array_parts, parquet_parts
from leakscope.io.results import to_json
from leakscope.io.runs import versions
from leakscope.kernels import Kernel
from leakscope.laws import Provenance
from leakscope.lood.features import FeatureRegression, FeatureSums, feature_sums, finite_features
from leakscope.lood.leave_one_out import LeaveOneOut

BLOCK_BYTES = 2**24
LARGEST = 10


@dataclass(frozen=True)
class OutOfCoreAudit:
    """What was written, and what it says as a whole.

    Attributes
    ----------
    output
        The Parquet file: record_id, kl, kl_reverse, kl_label_free, kl_label, advantage, auc,
        mean_distance, leverage, error_estimate and trusted, in the order of the records.
    records, features, outputs
        How many there were; ``features`` are the kernel's.
    noise_variance, condition_number
        As in `leakscope.lood.audit_features`.
    untrusted
        How many records float64 does not resolve to 1e-8.
    largest
        The ten records of greatest ``kl``: id, kl and advantage.
    mean_kl, mean_advantage
        Over all records.
    seconds
        By stage: sums, factorise, laws.
    provenance
        Which question the numbers answer, and what they assume.
    """

    output: Path
    records: int
    features: int
    outputs: int
    noise_variance: float
    condition_number: float
    untrusted: int
    largest: tuple[tuple[Any, float, float], ...]
    mean_kl: float
    mean_advantage: float
    seconds: dict[str, float]
    provenance: Provenance

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "output": str(self.output),
            "records": self.records,
            "features": self.features,
            "outputs": self.outputs,
            "noise_variance": self.noise_variance,
            "condition_number": self.condition_number,
            "untrusted": self.untrusted,
            "largest": [
                {"record_id": name, "kl": kl, "advantage": advantage}
                for name, kl, advantage in self.largest
            ],
            "mean_kl": self.mean_kl,
            "mean_advantage": self.mean_advantage,
            "seconds": dict(self.seconds),
            "provenance": self.provenance.to_dict(),
        }

    def to_frame(self) -> Any:
        """The whole table as a pandas frame; it must fit in memory."""
        import pandas as pd

        return pd.read_parquet(self.output)


def audit_out_of_core(
    source: Any,
    target: str | Sequence[str] | ArrayLike,
    *,
    noise_variance: float,
    output: str | Path,
    kernel: Kernel | None = None,
    features: Sequence[str] | None = None,
    record_id: str | None = None,
    client: Any = None,
    in_flight: int | None = None,
    block_bytes: int = BLOCK_BYTES,
    on_progress: OnProgress | None = None,
) -> OutOfCoreAudit:
    """Audit records from Parquet files, a Dask array or a memory-mapped array, out of core.

    Parameters
    ----------
    source
        A Parquet file, a folder of them (taken by name), a Dask array or an array, records by
        features.  Features are used as they are: nothing is scaled.
    target
        For files, the name of the target's column, or names for several outputs; for arrays, the
        targets themselves, (n,) or (n, C), a Dask array or not.
    noise_variance
        s2, in squared units of the target.
    output
        The Parquet file to write, whole or not at all, readable by its owner only.
    kernel
        A kernel of finitely many features, such as ``kernels.linear()``; None takes the features
        as they are, the kernel being their product.
    features
        For files, the columns to use (numbers, or lists of equally many numbers); all but the
        target and the ids where left out.
    record_id
        For files, the column of ids; row numbers from 0 where left out.
    client
        A ``distributed.Client``; without one everything is computed here.
    in_flight
        How many parts may be on their way at once on a cluster; two a thread by default.  A part
        is a row group, of which a block is in memory, or a Dask chunk, which is there whole.
    block_bytes
        Bytes of features, as float64, worked on at once.
    on_progress
        Called after every part of either pass.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from leakscope import lood
    >>> from leakscope.experiments import audit_out_of_core
    >>> rng = np.random.default_rng(0)
    >>> phi, y = rng.normal(size=(500, 4)), rng.normal(size=500)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = audit_out_of_core(
    ...         phi, y, noise_variance=0.1, output=pathlib.Path(folder, "laws.parquet"),
    ...         block_bytes=2**12)
    ...     table = found.to_frame()
    >>> in_memory = lood.audit_features(phi, y, noise_variance=0.1)
    >>> bool(np.allclose(table["kl"], in_memory.kl, rtol=1e-10)), found.untrusted
    (True, 0)
    """
    if not (np.isfinite(noise_variance) and noise_variance > 0.0):
        raise InputError(f"noise_variance must be positive and finite, but it is {noise_variance}.")
    if block_bytes < 1 or (in_flight is not None and in_flight < 1):
        raise InputError("block_bytes and in_flight must be 1 or more.")
    place = _writable(Path(output), source)
    parts = _parts(source, target, features, record_id, block_bytes)
    first = next(parts[0].blocks(1))
    width = _mapped(first, kernel).features.shape[1]
    depth = 2 + len(parts).bit_length()
    require_memory(
        8 * width * (width + first.outputs.shape[1]) * depth + 5 * block_bytes,
        f"the audit in {width} features",
        "use fewer features",
    )
    run = _Run(parts, client, in_flight, on_progress)
    start = time.perf_counter()
    sums = run.summed(_part_sums, kernel, block_bytes)
    summed = time.perf_counter()
    regression = FeatureRegression.of(sums, noise_variance)
    factorised = time.perf_counter()
    settings = {
        "noise_variance": float(noise_variance),
        "kernel": None if kernel is None else kernel.describe(),
        "records": sums.records,
        "features": width,
        "condition_number": regression.condition_number,
        "question": "leave_one_out",
        "source": "lood Def. C.3 at the record itself, in feature space, out of core",
        "versions": versions(),
    }
    tally = _Tally()
    with _Writer(place, settings) as writer:
        for columns in run.in_order(_part_laws, regression, kernel, block_bytes):
            tally.note(columns)
            writer.write(columns)
    done = time.perf_counter()
    return OutOfCoreAudit(
        output=place,
        records=sums.records,
        features=width,
        outputs=first.outputs.shape[1],
        noise_variance=float(noise_variance),
        condition_number=regression.condition_number,
        untrusted=tally.untrusted,
        largest=tuple(tally.largest),
        mean_kl=tally.kl / sums.records,
        mean_advantage=tally.advantage / sums.records,
        seconds={
            "sums": summed - start,
            "factorise": factorised - summed,
            "laws": done - factorised,
        },
        provenance=_provenance(regression, first, kernel, tally.untrusted, sums.records),
    )


def _parts(
    source: Any,
    target: Any,
    features: Sequence[str] | None,
    record_id: str | None,
    block_bytes: int,
) -> Sequence[Part]:
    if isinstance(source, (str, Path)):
        named = isinstance(target, str) or all(isinstance(name, str) for name in target)
        if not named:
            raise InputError("for Parquet files the target is the name of a column, or several.")
        return parquet_parts(source, target, features=features, record_id=record_id)
    if features is not None or record_id is not None:
        raise InputError("features and record_id name columns of files; an array has none.")
    if isinstance(target, str):
        raise InputError("for an array the targets are an array too, not a name.")
    rows = source if hasattr(source, "ndim") else np.asarray(source)
    return array_parts(rows, target, block_bytes)


def _mapped(block: RecordBlock, kernel: Kernel | None) -> RecordBlock:
    if kernel is None:
        return block
    phi = finite_features(kernel, block.features)
    if phi is None:
        raise InputError(
            "an audit out of core needs a kernel with finitely many features, such as linear."
        )
    return replace(block, features=phi)


def _part_sums(part: Part, kernel: Kernel | None, block_bytes: int) -> FeatureSums:
    total: FeatureSums | None = None
    for loaded in part.blocks(block_bytes):
        block = _mapped(loaded, kernel)
        found = feature_sums(block.features, block.outputs)
        total = found if total is None else _added(total, found)
    assert total is not None
    return total


def _added(one: FeatureSums, other: FeatureSums) -> FeatureSums:
    if one.gram.shape != other.gram.shape or one.product.shape != other.product.shape:
        raise InputError(
            f"some records have {one.gram.shape[0]} features and others {other.gram.shape[0]}."
        )
    return one + other


def _part_laws(
    part: Part, regression: FeatureRegression, kernel: Kernel | None, block_bytes: int
) -> dict[str, NDArray[Any]]:
    """The answers about the records of one part, as columns."""
    tables = []
    for loaded in part.blocks(block_bytes):
        block = _mapped(loaded, kernel)
        found = regression.leverages(block.features, block.outputs, first_row=block.first_row)
        laws = regression.laws(found, _target_shape(block.outputs))
        tables.append({"record_id": block.record_ids, **_columns(laws)})
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def _target_shape(outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    return outputs[:, 0] if outputs.shape[1] == 1 else outputs


def _columns(laws: LeaveOneOut) -> dict[str, NDArray[Any]]:
    pair = laws.law_pair()
    return {
        "kl": laws.kl,
        "kl_reverse": np.asarray(measures.kl(pair, "member_to_nonmember")),
        "kl_label_free": laws.kl_label_free,
        "kl_label": laws.kl_label,
        "advantage": np.asarray(measures.advantage(pair)),
        "auc": np.asarray(measures.auc(pair)),
        "mean_distance": laws.mean_distance,
        "leverage": laws.leverage,
        "error_estimate": laws.error_estimate,
        "trusted": laws.trusted,
    }


class _Run:
    """Both passes over the parts, here or on a cluster, with progress."""

    def __init__(
        self,
        parts: Sequence[Part],
        client: Any,
        in_flight: int | None,
        on_progress: OnProgress | None,
    ) -> None:
        self.parts, self.client, self.on_progress = parts, client, on_progress
        threads = 1 if client is None else max(1, int(sum(client.nthreads().values())))
        self.limit = 2 * threads if in_flight is None else in_flight
        self.done, self.begun = 0, time.perf_counter()

    def summed(self, function: Callable[..., FeatureSums], *arguments: Any) -> FeatureSums:
        """The sum over the parts, added in a binary tree that does not depend on who computes."""
        if self.client is None:
            found = (function(part, *arguments) for part in self.parts)
            return _tree(self._reported(found), _added)
        futures = self._futures(function, arguments, fetch=False)
        client = self.client
        total = _tree(self._reported(futures), lambda a, b: client.submit(_added, a, b, pure=False))
        return total.result()  # type: ignore[no-any-return]

    def in_order(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """What the function gives for each part, in the parts' order, a few at a time."""
        if self.client is None:
            return self._reported(function(part, *arguments) for part in self.parts)
        # Sent to every worker once, not with every task.
        sent = tuple(
            self.client.scatter(one, broadcast=True) if isinstance(one, FeatureRegression) else one
            for one in arguments
        )
        return self._reported(self._futures(function, sent, fetch=True))

    def _futures(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], *, fetch: bool
    ) -> Iterator[Any]:
        """Finished futures, or their results, in order; at most ``limit`` are on their way."""
        from distributed import wait

        waiting: deque[Any] = deque()
        try:
            for part in self.parts:
                if len(waiting) >= self.limit:
                    yield self._finished(waiting.popleft(), wait, fetch)
                waiting.append(part.submit(self.client, function, *arguments))
            while waiting:
                yield self._finished(waiting.popleft(), wait, fetch)
        finally:
            self.client.cancel(list(waiting))

    def _finished(self, future: Any, wait: Callable[[Any], Any], fetch: bool) -> Any:
        if fetch:
            return future.result()
        wait(future)
        if future.status == "error":
            future.result()
        return future

    def _reported(self, found: Iterator[Any]) -> Iterator[Any]:
        for one in found:
            self.done += 1
            yield one
            if self.on_progress is not None:
                total = 2 * len(self.parts)
                pace = (time.perf_counter() - self.begun) / self.done
                self.on_progress(Progress(self.done, total, pace * (total - self.done)))


def _tree(found: Iterator[Any], add: Callable[[Any, Any], Any]) -> Any:
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


class _Tally:
    """What is said of all records together."""

    def __init__(self) -> None:
        self.untrusted, self.kl, self.advantage = 0, 0.0, 0.0
        self.largest: list[tuple[Any, float, float]] = []

    def note(self, columns: dict[str, NDArray[Any]]) -> None:
        kl, advantage = columns["kl"], columns["advantage"]
        self.untrusted += int(np.count_nonzero(~columns["trusted"]))
        self.kl += float(kl.sum())
        self.advantage += float(advantage.sum())
        top = np.argsort(-kl, kind="stable")[:LARGEST]
        ids = columns["record_id"][top].tolist()
        self.largest += list(zip(ids, kl[top].tolist(), advantage[top].tolist(), strict=True))
        self.largest = sorted(self.largest, key=lambda entry: -entry[1])[:LARGEST]


class _Writer:
    """A Parquet file that is there whole or not at all."""

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self.path = path
        self.partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        self.settings = json.dumps(json.loads(to_json(settings)))
        self.writer: Any = None

    def __enter__(self) -> _Writer:
        try:
            os.close(os.open(self.partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        except OSError as error:
            raise self._failed(error) from error
        return self

    def write(self, columns: dict[str, NDArray[Any]]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table(columns)
        try:
            if self.writer is None:
                schema = table.schema.with_metadata({"leakscope": self.settings})
                self.writer = pq.ParquetWriter(self.partial, schema)
            self.writer.write_table(table.cast(self.writer.schema))
        except OSError as error:
            raise self._failed(error) from error

    def __exit__(self, kind: Any, *_: object) -> None:
        try:
            if self.writer is not None:
                self.writer.close()
            if kind is None:
                self.partial.replace(self.path)
        except OSError as error:
            if kind is None:
                raise self._failed(error) from error
        finally:
            self.partial.unlink(missing_ok=True)

    def _failed(self, error: OSError) -> InputError:
        return InputError(f"{self.path} cannot be written: {error.strerror or error}.")


def _writable(output: Path, source: Any) -> Path:
    if output.suffix != ".parquet":
        raise InputError(f"{output}: the answers are written to a file that ends in .parquet.")
    if not output.parent.is_dir():
        raise InputError(f"{output} cannot be written: there is no folder {output.parent}.")
    if isinstance(source, (str, Path)):
        place, folder = Path(source).resolve(), output.resolve().parent
        if place == output.resolve() or (place.is_dir() and folder.is_relative_to(place)):
            raise InputError(
                f"{output} would lie among the records themselves; write it somewhere else."
            )
    return output


def _provenance(
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
