"""The feature-space audit of lood for records that do not fit in memory, here or on a cluster.

The arithmetic is :mod:`leakscope.lood.features`: one pass adds up Phi^T Phi and Phi^T y, a d x d
factorisation follows, and a second pass gives every record's laws.  Here the passes read the
records part by part, and the answers go to a Parquet file as they come.  Sums are added in a fixed
binary tree over the parts, so that one process and any cluster give the same numbers.  Memory: a
few blocks a worker, and d^2 numbers times the tree's depth; the number of records does not enter.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope import measures
from leakscope._numerics.memory import require_memory
from leakscope.auditing.answers_file import AnswersFile, Tally
from leakscope.auditing.file_parts import file_parts
from leakscope.auditing.record_blocks import Part, RecordBlock, array_parts
from leakscope.auditing.record_passes import RecordPasses
from leakscope.data import require_plain_output, require_usable_name
from leakscope.errors import InputError
from leakscope.kernels import Kernel
from leakscope.laws import Provenance
from leakscope.lood import FeatureRegression, FeatureSums, Separation, feature_sums, finite_features
from leakscope.results import versions
from leakscope.running import OnProgress

BLOCK_BYTES = 2**24


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

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from leakscope.auditing import audit_out_of_core
    >>> X = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 5.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = audit_out_of_core(
    ...         X, np.array([1.0, 1.1, -3.0]), noise_variance=0.1,
    ...         output=pathlib.Path(folder, "laws.parquet"))
    >>> found.largest[0][0], found.records, found.provenance.method
    (2, 3, 'exact')
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
    >>> from leakscope.auditing import audit_out_of_core
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
    run = RecordPasses(parts, client, in_flight, on_progress)
    start = time.perf_counter()
    sums = run.summed(part_sums, added, kernel, block_bytes)
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
    tally = Tally()
    with AnswersFile(place, settings) as writer:
        for columns in run.in_order(_part_laws, run.everywhere(regression), kernel, block_bytes):
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
        provenance=run_provenance(regression, first, kernel, tally.untrusted, sums.records),
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
        return file_parts(source, target, features=features, record_id=record_id)
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


def part_sums(part: Part, kernel: Kernel | None, block_bytes: int) -> FeatureSums:
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


def _block_laws(
    part: Part, regression: FeatureRegression, kernel: Kernel | None, block_bytes: int
) -> Iterator[dict[str, NDArray[Any]]]:
    """The answers about the records of one part, block by block, as columns."""
    for block in mapped_blocks(part, kernel, block_bytes):
        yield {"record_id": block.record_ids, **columns_of_laws(laws_of_block(regression, block))}


def mapped_blocks(part: Part, kernel: Kernel | None, block_bytes: int) -> Iterator[RecordBlock]:
    """The records of one part, with the kernel's features."""
    for block in part.blocks(block_bytes):
        yield _mapped(block, kernel)


def laws_of_block(regression: FeatureRegression, block: RecordBlock) -> Separation:
    """The laws of a block's records."""
    found = regression.leverages(block.features, block.outputs, first_row=block.first_row)
    return regression.laws(found, _target_shape(block.outputs))


def _part_laws(
    part: Part, regression: FeatureRegression, kernel: Kernel | None, block_bytes: int
) -> dict[str, NDArray[Any]]:
    tables = list(_block_laws(part, regression, kernel, block_bytes))
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def _target_shape(outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    return outputs[:, 0] if outputs.shape[1] == 1 else outputs


def columns_of_laws(laws: Separation) -> dict[str, NDArray[Any]]:
    """Every number that is told of a record, by name."""
    pair, score = laws.law_pair(), np.sum(laws.score**2, axis=1)
    return {
        "kl": laws.kl,
        "kl_reverse": np.add(*measures.kl_reverse_parts(laws.excess, score, laws.outputs)),
        "kl_label_free": laws.kl_label_free,
        "kl_label": laws.kl_label,
        "advantage": np.asarray(measures.advantage(pair)),
        "auc": np.asarray(measures.auc(pair)),
        "mean_distance": laws.mean_distance,
        "leverage": laws.leverage,
        "error_estimate": laws.error_estimate,
        "trusted": laws.trusted,
    }


def _writable(output: Path, source: Any) -> Path:
    if output.suffix != ".parquet":
        raise InputError(f"{output}: the answers are written to a file that ends in .parquet.")
    require_usable_name(output)
    require_plain_output(output, "a Parquet table")
    if not output.parent.is_dir():
        raise InputError(f"{output} cannot be written: there is no folder {output.parent}.")
    if isinstance(source, (str, Path)):
        place, folder = Path(source).resolve(), output.resolve().parent
        if place == output.resolve() or (place.is_dir() and folder.is_relative_to(place)):
            raise InputError(
                f"{output} would lie among the records themselves; write it somewhere else."
            )
    return output


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
