"""From a dataset and a record to the query that reveals most about it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from leakscope import __version__, lood, measures
from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import Dataset, RecordId
from leakscope.data.pictures import picture_shape, png
from leakscope.data.preparation import feature_scales, prepare
from leakscope.errors import InputError
from leakscope.laws.pair import LawPair
from leakscope.lood import query_search
from leakscope.lood.query_search import QuerySearch
from leakscope.results.attacks import FoundQuery, QueryAttack, QueryStart
from leakscope.results.document import DatasetEntry
from leakscope.results.run_directory import write_run_directory
from leakscope.settings.attack import QuerySettings
from leakscope.settings.audit import Scaling


def attack_query(
    dataset: Dataset,
    records: RecordId | Sequence[RecordId],
    model: lood.Process | None = None,
    search: QuerySettings | None = None,
    *,
    scaling: Scaling = "standard",
    run_dir: str | Path | None = None,
) -> QueryAttack:
    """Reconstruct a record by looking for the query that reveals most about it.

    The attacker knows every other record and the laws of the model's answers with and without the
    one in question.  It speaks of a model family, not of your trained model.

    Parameters
    ----------
    dataset
        From :func:`leakscope.data.read_dataset`, :func:`~leakscope.data.read_example` or
        :func:`~leakscope.data.from_frame`.
    records
        The record to leave out and look for, by its id; several for a group.
    model
        A Gaussian process; the usual one, rbf, where left out.
    search
        How to search; its defaults where left out.
    scaling
        Of the features and of a number that is the target, as in an audit.
    run_dir
        Where to write a run directory with the starts, the arrays and, of pictures, PNG files;
        nothing is written where left out.

    Returns
    -------
    QueryAttack
        The best query, how near it is to the record, and what it reveals.

    Raises
    ------
    InputError
        Where the dataset has no such record.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope import data
    >>> from leakscope.settings import QuerySettings
    >>> iris = data.read_example("iris")
    >>> found = leakscope.attack_query(iris, 41, search=QuerySettings(starts=2))
    >>> found.queries[0].nearest_record, round(found.ratio, 2)
    (41, 1.0)
    """
    begin = time.perf_counter()
    model = lood.Process.named("rbf") if model is None else model
    how = QuerySettings() if search is None else search
    rows = _rows(dataset, records)
    raw = dataset.features
    if how.normalise_channels is not None:
        # The model's own normalisation takes the place of ours.
        scaling = "none"
    prepared = prepare(dataset, scaling=scaling)
    mean, scale = feature_scales(dataset, scaling)
    box = None
    if how.box is not None:
        box = ((how.box[0] - mean) / scale, (how.box[1] - mean) / scale)
    process, _ = model.on(prepared.features, prepared.target, task=prepared.task)
    problem: dict[str, Any] = {
        "leave_out": rows,
        "kernel": process.kernel,
        "noise_variance": process.noise_variance,
    }
    found = lood.search_query(
        process.features,
        process.targets,
        **problem,
        queries=how.queries,
        objective=how.objective,
        begin="both",
        starts=how.starts,
        steps=how.steps,
        box=box,
        normalise_channels=how.normalise_channels,
        random_state=how.seed,
    )
    there, own = (_laws(process, problem, how, asked) for asked in (found.query, None))
    queries = found.query * scale + mean
    pictures = _pictures(raw[rows], queries, raw[found.nearest], dataset, how)
    result = _result(
        found,
        queries,
        pairs=(there, own),
        dataset=prepared,
        kernel=process.kernel.describe(),
        settings={
            "scaling": scaling,
            "noise_variance": process.noise_variance,
            **how.model_dump(),
        },
        seconds=time.perf_counter() - begin,
        pictures=list(pictures),
    )
    if run_dir is not None:
        _write(result, found, raw[rows], queries, pictures, run_dir)
    return result


class _Laws(NamedTuple):
    """Both laws of the answers at some queries, their KL, and whether float64 resolves it."""

    pair: LawPair
    kl: float
    confirmed: bool


def _laws(
    process: lood.ProcessOnRecords,
    problem: dict[str, Any],
    how: QuerySettings,
    queries: FloatArray | None,
) -> _Laws:
    """At ``queries``, or at the left-out records themselves."""
    X, y, channels = process.features, process.targets, how.normalise_channels
    if channels is None:
        found = lood.distinguish(X, y, queries=queries, **problem)
        return _Laws(found.sufficient_pair(), float(found.kl), found.trusted)
    pair = query_search.normalised_pair(X, y, queries=queries, channels=channels, **problem)
    kl = float(np.asarray(measures.kl(pair)))
    # JAX is imported when a search runs.
    from leakscope.lood.query_climb import channel_statistics

    # As well conditioned as the same records under the statistics of all of them.
    mean, deviation = channel_statistics(X, channels)
    asked = None if queries is None else (queries - mean) / deviation
    like = lood.distinguish((X - mean) / deviation, y, queries=asked, **problem)
    return _Laws(pair, kl, like.trusted)


def _rows(dataset: Dataset, records: RecordId | Sequence[RecordId]) -> list[int]:
    """The rows that the ids name."""
    named = [records] if isinstance(records, (int, str)) else list(records)
    if not named:
        raise InputError("Which record?  Name it by its id.")
    places = {str(name): row for row, name in enumerate(dataset.record_ids)}
    missing = [name for name in named if str(name) not in places]
    if missing:
        raise InputError(f"{dataset.name} has no record with the id {missing[0]!r}.")
    return [places[str(name)] for name in named]


def _result(
    search: QuerySearch,
    queries: FloatArray,
    *,
    pairs: tuple[_Laws, _Laws],
    dataset: Dataset,
    kernel: dict[str, Any],
    settings: dict[str, Any],
    seconds: float,
    pictures: list[str],
) -> QueryAttack:
    provenance = pairs[0].pair.provenance.to_dict()
    assumptions = provenance.pop("assumptions")
    advantages = [float(np.asarray(measures.advantage(one.pair))) for one in pairs]
    ids = dataset.record_ids
    by_kl = search.objective == "kl"
    return QueryAttack(
        leakscope_version=__version__,
        settings=settings,
        provenance=provenance,
        assumptions=assumptions,
        timing={"search": seconds},
        warnings=[
            f"float64 does not resolve the numbers {where} at noise_variance "
            f"{settings['noise_variance']:g}, so do not use them; raise it."
            for where, laws in zip(("at the query", "at the record itself"), pairs, strict=True)
            if not laws.confirmed
        ],
        dataset=DatasetEntry.of(dataset),
        kernel=kernel,
        noise_variance=float(settings["noise_variance"]),
        records=[ids[row] for row in search.leave_out],
        climb=search.climb,
        objective=search.objective,
        mean_distance=None if by_kl else search.lood,
        mean_distance_at_record=None if by_kl else search.lood_at_record,
        kl=search.lood if by_kl else float(pairs[0].kl),
        kl_at_record=search.lood_at_record if by_kl else float(pairs[1].kl),
        ratio=search.ratio,
        advantage=advantages[0],
        advantage_at_record=advantages[1],
        starts_recovered=search.starts_recovered,
        queries=[
            FoundQuery(
                features=queries[j].tolist(),
                nearest_record=ids[int(search.nearest[j])],
                distance=float(search.distance[j]),
                relative_distance=float(search.relative_distance[j]),
                cosine=float(search.cosine[j]),
                prediction_kl=float(search.prediction_kl[j]),
            )
            for j in range(len(search.query))
        ],
        starts=[
            QueryStart(
                kl=float(value) if by_kl else None,
                mean_distance=None if by_kl else float(value),
                ratio=float(value) / search.lood_at_record,
                recovered=[
                    ids[row] for row, hit in zip(search.leave_out, hits, strict=True) if hit
                ],
            )
            for value, hits in zip(search.values, search.recovered, strict=True)
        ],
        pictures=pictures,
        verdict=_verdict(search, dataset, normalised=settings["normalise_channels"] is not None),
    )


def _verdict(search: QuerySearch, dataset: Dataset, *, normalised: bool) -> str:
    whom = "the record" if len(search.leave_out) == 1 else "a record of the group"
    ids = dataset.record_ids
    alike = [row for row in search.leave_out if len(query_search.twins(dataset.features, row))]
    twins = (
        f"Another record has the same features as {', '.join(str(ids[row]) for row in alike)}, and "
        "no query can tell them apart. "
        if alike
        else ""
    )
    best = (
        f"The best query reveals {100.0 * search.ratio:.2f}% of what asking about the record "
        f"itself does; {'others may' if normalised else 'no query can'} reveal more."
    )
    if search.objective == "mean_distance":
        best = (
            f"At the best query the mean answer moves {search.ratio:.3f} times as far, squared and "
            "halved, as at the record itself; the record is given away by the KL, which is "
            "largest at the record."
        )
    return (
        f"{search.starts_recovered} of {len(search.values)} starts ended at {whom}, within half of "
        f"its distance (the kernel's) to its nearest neighbour. {twins}{best} This is the "
        "strongest attacker, who knows every other record and the laws of the answers with and "
        "without this one; your model was not examined."
    )


def _pictures(
    records: FloatArray,
    queries: FloatArray,
    nearest: FloatArray,
    dataset: Dataset,
    settings: QuerySettings,
) -> dict[str, bytes]:
    """PNG files by name: the records, the queries, and each query minus its nearest record."""
    shape = dataset.picture or picture_shape(dataset.features.shape[1])
    if shape is None:
        return {}
    low, high = float(dataset.features.min()), float(dataset.features.max())
    if settings.box is not None:
        low, high = settings.box
    width = high - low
    made = {f"record_{i}.png": png(row, shape, low, high) for i, row in enumerate(records)}
    for j, (asked, near) in enumerate(zip(queries, nearest, strict=True)):
        made[f"query_{j}.png"] = png(asked, shape, low, high)
        made[f"difference_{j}.png"] = png(asked - near, shape, -width, width)
    return made


def _write(
    found: QueryAttack,
    search: QuerySearch,
    records: FloatArray,
    queries: FloatArray,
    pictures: dict[str, bytes],
    directory: str | Path,
) -> None:
    """The run directory, with pictures where the records are."""
    write_run_directory(
        directory,
        found,
        columns=["start", found.objective, "ratio", "recovered"],
        rows=[
            (
                place,
                getattr(start, found.objective),
                start.ratio,
                " ".join(str(name) for name in start.recovered),
            )
            for place, start in enumerate(found.starts)
        ],
        arrays={
            "records": records,
            "queries": queries,
            "trace": search.trace,
            "values": search.values,
            "recovered": search.recovered,
        },
        files=pictures,
    )
