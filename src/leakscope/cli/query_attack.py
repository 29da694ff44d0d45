"""From a dataset and a record to the most revealing query, its page and its run directory."""

from __future__ import annotations

import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leakscope import __version__, lood, measures
from leakscope._numerics.arrays import FloatArray
from leakscope.auditing.kernel_choice import kernel_from_settings
from leakscope.cli.output import table
from leakscope.data import Dataset, prepare
from leakscope.data.pictures import picture_shape, png
from leakscope.lood import QuerySearch
from leakscope.results import write_run
from leakscope.results.document import DatasetEntry
from leakscope.results.query import FoundQuery, QueryDocument, StartEntry
from leakscope.settings import AuditSettings, QuerySettings


@dataclass(frozen=True)
class Found:
    """A search, its document, and the records and queries in the file's own units."""

    search: QuerySearch
    document: QueryDocument
    records: FloatArray
    queries: FloatArray
    pictures: dict[str, bytes]


def searched(
    dataset: Dataset, rows: list[int], model: AuditSettings, settings: QuerySettings
) -> Found:
    """Prepare the data as an audit does, search, and measure what was found."""
    from sklearn.preprocessing import StandardScaler

    begin = time.perf_counter()
    raw = dataset.features
    prepared = prepare(dataset, scaling=model.scaling)
    mean, scale = np.zeros(raw.shape[1]), np.ones(raw.shape[1])
    if model.scaling == "standard":
        # Indicators of a category are not scaled, here as in ``prepare``.
        scaled = np.setdiff1d(np.arange(raw.shape[1]), dataset.indicators)
        if scaled.size:
            scaler = StandardScaler().fit(raw[:, scaled])
            mean[scaled], scale[scaled] = scaler.mean_, scaler.scale_
    box = None
    if settings.box is not None:
        box = ((settings.box[0] - mean) / scale, (settings.box[1] - mean) / scale)
    kernel = kernel_from_settings(model).resolved(prepared.features)
    problem: dict[str, Any] = {
        "leave_out": rows,
        "kernel": kernel,
        "noise_variance": model.noise_variance,
    }
    search = lood.search_query(
        prepared.features,
        prepared.target,
        **problem,
        queries=settings.queries,
        begin=settings.begin,
        climb=settings.climb,
        method=settings.method,
        starts=settings.starts,
        steps=settings.steps,
        box=box,
        random_state=settings.seed,
    )
    there = lood.distinguish(prepared.features, prepared.target, queries=search.query, **problem)
    own = lood.distinguish(prepared.features, prepared.target, **problem)
    queries = search.query * scale + mean
    pictures = _pictures(raw[rows], queries, raw[search.nearest], dataset, settings)
    document = _document(
        search,
        pairs=(there, own),
        dataset=prepared,
        kernel=kernel.describe(),
        settings={**model.model_dump(), **settings.model_dump()},
        seconds=time.perf_counter() - begin,
        pictures=list(pictures),
    )
    return Found(search, document, raw[rows], queries, pictures)


def _document(
    search: QuerySearch,
    *,
    pairs: tuple[Any, Any],
    dataset: Dataset,
    kernel: dict[str, Any],
    settings: dict[str, Any],
    seconds: float,
    pictures: list[str],
) -> QueryDocument:
    provenance = pairs[0].provenance().to_dict()
    assumptions = provenance.pop("assumptions")
    advantages = [float(np.asarray(measures.advantage(pair.sufficient_pair()))) for pair in pairs]
    ids = dataset.record_ids
    return QueryDocument(
        leakscope_version=__version__,
        settings=settings,
        provenance=provenance,
        assumptions=assumptions,
        timing={"search": seconds},
        warnings=[],
        dataset=DatasetEntry.of(dataset),
        kernel=kernel,
        noise_variance=float(settings["noise_variance"]),
        records=[ids[row] for row in search.leave_out],
        climb=search.climb,
        kl=search.lood,
        kl_at_record=search.lood_at_record,
        ratio=search.ratio,
        advantage=advantages[0],
        advantage_at_record=advantages[1],
        starts_recovered=search.starts_recovered,
        queries=[
            FoundQuery(
                nearest_record=ids[int(search.nearest[j])],
                distance=float(search.distance[j]),
                relative_distance=float(search.relative_distance[j]),
                cosine=float(search.cosine[j]),
                prediction_kl=float(search.prediction_kl[j]),
            )
            for j in range(len(search.query))
        ],
        starts=[
            StartEntry(
                kl=float(value),
                ratio=float(value) / search.lood_at_record,
                recovered=[
                    ids[row] for row, hit in zip(search.leave_out, hits, strict=True) if hit
                ],
            )
            for value, hits in zip(search.values, search.recovered, strict=True)
        ],
        pictures=pictures,
        verdict=_verdict(search, len(search.values), _twins(search, dataset)),
    )


def _twins(search: QuerySearch, dataset: Dataset) -> dict[int | str, list[int | str]]:
    """For each record of the search that has twins, their names."""
    from leakscope.lood.recovery import twins

    ids = dataset.record_ids
    found = {ids[row]: twins(dataset.features, row) for row in search.leave_out}
    return {name: [ids[int(row)] for row in rows] for name, rows in found.items() if len(rows)}


def _verdict(search: QuerySearch, starts: int, twins: dict[int | str, list[int | str]]) -> str:
    whom = "the record" if len(search.leave_out) == 1 else "a record of the group"
    whose = "nearest neighbour that is no twin of it" if twins else "nearest neighbour"
    alike = "".join(
        f"Record {name} has {'a twin' if len(others) == 1 else f'{len(others)} twins'} with the "
        f"same features ({', '.join(map(str, others[:3]))}{', ...' if len(others) > 3 else ''}), "
        "which no query can tell from it: there is no distance relative to its nearest neighbour. "
        for name, others in twins.items()
    )
    return (
        f"{search.starts_recovered} of {starts} starts ended at {whom}, nearer to it in the "
        f"kernel's own distance than half the way to its {whose}. {alike}The best query reveals "
        f"{100.0 * search.ratio:.2f}% of what asking at the record itself does, and none can "
        "reveal more. This is the strongest attacker, who knows every other record and the laws "
        "of the answers with and without this one; your model was not examined."
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


def written(found: Found, directory: Path) -> Path:
    """The run directory, with pictures where the records are."""
    starts = found.document.starts
    return write_run(
        directory,
        found.document,
        columns=["start", "kl", "ratio", "recovered"],
        rows=[
            (place, start.kl, start.ratio, " ".join(str(name) for name in start.recovered))
            for place, start in enumerate(starts)
        ],
        arrays={
            "records": found.records,
            "queries": found.queries,
            "trace": found.search.trace,
            "values": found.search.values,
            "recovered": found.search.recovered,
        },
        files=found.pictures,
    )


def page(found: Found) -> str:
    """What a person sees."""
    document = found.document
    about = document.dataset
    who = "record" if len(document.records) == 1 else "records"
    named = ", ".join(str(name) for name in document.records)
    opening = f"{about.name}: {who} {named} of {about.records}, {about.features} features"
    values = table(
        ["", "kl", "advantage"],
        [
            ["at the best query", f"{document.kl:.4g}", f"{document.advantage:.4f}"],
            [
                f"at the {who} itself" if who == "record" else "at the records themselves",
                f"{document.kl_at_record:.4g}",
                f"{document.advantage_at_record:.4f}",
            ],
        ],
    )
    rows = [
        [
            str(j),
            str(one.nearest_record),
            f"{one.distance:.4g}",
            "-" if one.relative_distance is None else f"{one.relative_distance:.4g}",
            f"{one.cosine:.5f}",
            f"{one.prediction_kl:.4g}",
        ]
        for j, one in enumerate(document.queries)
    ]
    headings = ["query", "nearest", "distance", "/ neighbour", "cosine", "prediction_kl"]
    words = "\n".join(textwrap.wrap(document.verdict, width=92, break_on_hyphens=False))
    parts = [opening, values, table(headings, rows), words]
    if document.pictures:
        parts.append(f"Pictures: {', '.join(document.pictures)}")
    return "\n\n".join(parts)
