"""A random sample of a dataset's records in which every class keeps its share."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.keys import as_key
from leakscope.data.datasets import Dataset, digest
from leakscope.errors import InputError
from leakscope.settings import DATA_DEFAULTS

# A target of numbers is cut into so many parts of equal size.
PARTS = 10


def sampled(dataset: Dataset, count: int, *, seed: int = DATA_DEFAULTS.sample_seed) -> Dataset:
    """``count`` records of a dataset as read, drawn at random by class or by tenths of the target.

    Groups stay whole: of a dataset with groups so many are drawn that about ``count`` records
    come.  A category that no record of the sample has is no feature of it.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import data
    >>> iris = data.sampled(data.read_example("iris"), 30)
    >>> np.unique(iris.target, return_counts=True)[1].tolist(), iris.sampled_from
    ([10, 10, 10], 150)
    >>> print(iris.steps[-1])
    sampled 30 of 150 records at random, the same share of each class (seed 0)
    """
    records = len(dataset.record_ids)
    if not 2 <= count <= records:
        raise InputError(
            f"--sample must be from 2 to {records}, the number of records, but it is {count}."
        )
    units = np.arange(records)
    if dataset.group is not None:
        units = np.unique([str(value) for value in dataset.group], return_inverse=True)[1]
        units = units.reshape(-1)
    members = int(units.max()) + 1
    wanted = count if members == records else max(2, round(members * count / records))
    strata = _strata(dataset)[np.unique(units, return_index=True)[1]]
    rows = np.flatnonzero(np.isin(units, _drawn(strata, wanted, seed)))
    what = "class" if dataset.task == "classification" else "tenth of the target"
    step = (
        f"sampled {len(rows)} of {records} records at random, the same share of each {what} "
        f"(seed {seed})"
    )
    return _taken(dataset, rows, step, count, seed)


def _strata(dataset: Dataset) -> NDArray[np.intp]:
    """Each record's class, or which tenth of the target it is in."""
    if dataset.task == "classification":
        texts = [str(value) for value in dataset.target.tolist()]
        return np.unique(texts, return_inverse=True)[1].reshape(-1)
    ranks = np.argsort(np.argsort(dataset.target, kind="stable"), kind="stable")
    return ranks * PARTS // len(ranks)


def _drawn(strata: NDArray[np.intp], count: int, seed: int) -> NDArray[np.intp]:
    """Units, by strata in proportion; what is left over goes to the largest remainders.

    No stratum is left out while there are at least as many units to draw as strata.
    """
    sizes = np.bincount(strata)
    exact = sizes * count / len(strata)
    shares = np.floor(exact).astype(np.intp)
    if count >= np.count_nonzero(sizes):
        shares = np.maximum(shares, sizes > 0)
    while shares.sum() != count:
        step = 1 if shares.sum() < count else -1
        room = (shares < sizes) if step > 0 else (shares > 1)
        gap = np.where(room, step * (exact - shares), -np.inf)
        shares[int(np.argmax(gap))] += step
    generator = as_key(seed).generator()
    found = [
        generator.choice(np.flatnonzero(strata == value), size=int(share), replace=False)
        for value, share in enumerate(shares)
    ]
    return np.sort(np.concatenate(found))


def _taken(dataset: Dataset, rows: NDArray[np.intp], step: str, count: int, seed: int) -> Dataset:
    features = dataset.features[rows]
    gone = [place for place in dataset.indicators if not features[:, place].any()]
    kept = np.setdiff1d(np.arange(features.shape[1]), gone)
    features = np.ascontiguousarray(features[:, kept])
    steps = [*dataset.steps, step]
    if gone:
        steps.append(f"{len(gone)} categories left out that no record of the sample has")

    def of(values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        return None if values is None else tuple(values[row] for row in rows)

    target, ids, group = dataset.target[rows], of(dataset.record_ids) or (), of(dataset.group)
    source = dataset.source
    if source is not None:
        parts = digest(features, target, ids, group).split("-")
        file = source.digest.split("-")[-1]
        if file:
            # Another sample of the same file is other data.
            parts[-1] = hashlib.sha256(f"{file};{count};{seed}".encode()).hexdigest()
        source = replace(source, sample=count, sample_seed=seed, digest="-".join(parts))
    place = {int(before): now for now, before in enumerate(kept)}
    return replace(
        dataset,
        features=features,
        target=target,
        record_ids=ids,
        feature_names=tuple(dataset.feature_names[column] for column in kept),
        indicators=tuple(place[column] for column in dataset.indicators if column in place),
        group=group,
        by={name: of(values) or () for name, values in dataset.by.items()},
        steps=tuple(steps),
        source=source,
        sampled_from=len(dataset.record_ids),
    )
