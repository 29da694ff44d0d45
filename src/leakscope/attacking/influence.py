"""From a dataset and queries of the user's own to what they give away about each record."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from leakscope import __version__, lood, measures
from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import Dataset
from leakscope.data.preparation import encode_like, feature_scales, prepare, standardised
from leakscope.data.tables import SEPARATORS, Layout, read_table
from leakscope.errors import InputError
from leakscope.results.attacks import AskedQuery, InfluenceAttack, InfluencingRecord
from leakscope.results.document import DatasetEntry
from leakscope.results.run_directory import write_run_directory
from leakscope.settings.audit import AuditSettings
from leakscope.subjects.process.choices import kernel_from_settings


def attack_influence(
    dataset: Dataset,
    queries: str | Path | pd.DataFrame | ArrayLike,
    settings: AuditSettings | None = None,
    *,
    run_dir: str | Path | None = None,
) -> InfluenceAttack:
    """How much each record's leaving changes the answers at queries of your own.

    Every record and every query come from one factorisation.  It speaks of a model family, a
    Gaussian process, not of your trained model.

    Parameters
    ----------
    dataset
        From :func:`leakscope.data.read_dataset`, :func:`~leakscope.data.read_example` or
        :func:`~leakscope.data.from_frame`.
    queries
        A file or a frame with the dataset's columns, the target not needed; or an array, queries by
        features, in the file's units.
    settings
        The model, as an audit takes it; its defaults where left out.
    run_dir
        Where to write a run directory with the whole tables, records by queries; nothing is written
        where left out.

    Returns
    -------
    InfluenceAttack
        For each record the query that it changes most, and what all queries together give away;
        for each query the record that changes it most.

    Raises
    ------
    InputError
        Where the queries lack a column, or hold a category that no record has.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope import data
    >>> iris = data.read_example("iris")
    >>> found = leakscope.attack_influence(iris, iris.features[[41, 100]])
    >>> [asked.record_id for asked in found.queries]
    [41, 100]
    """
    begin = time.perf_counter()
    model = AuditSettings(sensitivity=False) if settings is None else settings
    if isinstance(model.noise_variance, str):
        raise InputError(f"noise_variance must be a number, but it is {model.noise_variance!r}.")
    asked = _rows(dataset, queries)
    prepared = prepare(dataset, scaling=model.scaling)
    mean, scale = feature_scales(dataset, model.scaling)
    unit = 1.0
    if dataset.task == "regression" and model.scaling == "standard":
        unit = float(standardised(dataset.target.reshape(-1, 1))[2][0])
    process = lood.Process(
        prepared.features,
        prepared.target,
        kernel_from_settings(model),
        model.noise_variance,
        task=prepared.task,
    )
    found = lood.influence(
        process.features,
        process.targets,
        (asked - mean) / scale,
        process.kernel,
        process.noise_variance,
    )
    shift = _shift(found) * unit
    result = _result(found, shift, prepared, process, model, time.perf_counter() - begin)
    if run_dir is not None:
        _write(result, found, shift, asked, run_dir)
    return result


def _rows(dataset: Dataset, queries: str | Path | pd.DataFrame | ArrayLike) -> FloatArray:
    """(q, d) the queries as the dataset's features, before any scaling."""
    if isinstance(queries, (str, Path)):
        path = Path(queries)
        layout = Layout() if dataset.source is None else dataset.source.layout
        if path.suffix.lower() not in SEPARATORS:
            layout = Layout(na_values=layout.na_values)
        return encode_like(dataset, read_table(path, layout), str(path))
    if isinstance(queries, pd.DataFrame):
        return encode_like(dataset, queries.reset_index(drop=True), "the frame of queries")
    try:
        rows = np.asarray(queries, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("queries must be a file, a frame or an array of numbers.") from None
    width = dataset.features.shape[1]
    if rows.ndim != 2 or not len(rows) or rows.shape[1] != width:
        raise InputError(
            f"queries must be rows of {width} features, as {dataset.name} has them, but their "
            f"shape is {rows.shape}."
        )
    if not np.isfinite(rows).all():
        row = int(np.argmin(np.isfinite(rows).all(axis=1)))
        raise InputError(f"queries: row {row} (rows count from 0) holds no finite number.")
    return rows


def _shift(found: lood.Influence) -> FloatArray:
    """(n, q) mean with minus mean without; of several outputs the length."""
    if found.a.shape[1] == 1:
        return np.asarray(found.weight * found.a)
    return np.sqrt(2.0 * found.mean_distance)


def _result(
    found: lood.Influence,
    shift: FloatArray,
    dataset: Dataset,
    process: lood.Process,
    model: AuditSettings,
    seconds: float,
) -> InfluenceAttack:
    best, who = np.argmax(found.kl, axis=1), np.argmax(found.kl, axis=0)
    together = found.pair_together()
    there, all_of_them = (
        np.asarray(measures.advantage(pair)) for pair in (found.law_pair(best), together)
    )
    rows = np.arange(len(best))
    trusted = found.trusted_together & found.trusted[rows, best]
    ids = dataset.record_ids
    records = [
        InfluencingRecord(
            record_id=ids[i],
            query=int(best[i]),
            kl=float(found.kl[i, best[i]]),
            advantage=float(there[i]),
            shift=float(shift[i, best[i]]),
            kl_together=float(found.kl_together[i]),
            advantage_together=float(all_of_them[i]),
            kl_own=float(found.kl_own[i]),
            trusted=bool(trusted[i]),
        )
        for i in np.argsort(-found.kl_together, kind="stable")
    ]
    provenance = together.provenance.to_dict()
    assumptions = provenance.pop("assumptions")
    lost = int(np.count_nonzero(~trusted))
    return InfluenceAttack(
        leakscope_version=__version__,
        settings=model.model_dump(),
        provenance=provenance,
        assumptions=assumptions,
        timing={"influence": seconds},
        warnings=[
            f"float64 does not resolve the numbers of {lost} of {len(ids)} records at "
            f"noise_variance {process.noise_variance:g}, so do not use them; raise it."
        ]
        if lost
        else [],
        dataset=DatasetEntry.of(dataset),
        kernel=process.kernel.describe(),
        noise_variance=process.noise_variance,
        records=records,
        queries=[
            AskedQuery(
                query=j,
                record_id=ids[int(who[j])],
                kl=float(found.kl[who[j], j]),
                shift=float(shift[who[j], j]),
            )
            for j in range(found.kl.shape[1])
        ],
        verdict=_verdict(records, found.kl.shape[1]),
    )


def _verdict(records: list[InfluencingRecord], queries: int) -> str:
    first = records[0]
    typical = float(np.median([one.advantage_together or 0.0 for one in records]))
    share = (first.kl_together or 0.0) / (first.kl_own or np.inf)
    how = "This query gives" if queries == 1 else f"These {queries} queries together give"
    return (
        f"{how} record {first.record_id} away most: an attacker's advantage is "
        f"{first.advantage_together or 0.0:.2g}, with {share:.0%} of the KL of asking about the "
        f"record itself. The median is {typical:.2g}. The attacker knows every other record. This "
        "is about a Gaussian process, not about your model."
    )


def _write(
    result: InfluenceAttack,
    found: lood.Influence,
    shift: FloatArray,
    asked: FloatArray,
    directory: str | Path,
) -> None:
    """The run directory: the records as a table, and all pairs as arrays, in the data's order."""
    columns = list(InfluencingRecord.model_fields)
    rows: list[list[Any]] = [[getattr(one, name) for name in columns] for one in result.records]
    write_run_directory(
        directory,
        result,
        columns=columns,
        rows=rows,
        arrays={
            "queries": asked,
            "kl": found.kl,
            "shift": shift,
            "kl_together": found.kl_together,
            "kl_own": found.kl_own,
            "trusted": found.trusted,
        },
    )
