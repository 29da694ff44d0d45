"""A new kind in one file: k nearest neighbours, whose laws are exact.

The attacker asks whether most of a record's k neighbours have its label.  A record in the training
set is its own nearest neighbour; every other record is in with probability one half, so that a walk
outwards over the others, nearest first, counts how many of those that are in share its label.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsClassifier

from leakscope.data import Dataset, prepare
from leakscope.laws import Discrete, Provenance
from leakscope.results import Audit, ExaminedModel, Trust
from leakscope.results.document import DatasetEntry
from leakscope.subjects import Answers, Asked, Change, PairLaws, Stages, Subject
from leakscope.subjects.arrays import checked_ids
from leakscope.subjects.recipe import data_again
from leakscope.subjects.subject import stored_provenance

CHECK = "its two chances are sums over all other records, computed without an approximation"


class NearestNeighbours(Subject):
    """A k-nearest-neighbour classifier with its records."""

    name, words = "knn", "a k-nearest-neighbour classifier"
    models: ClassVar = {"knn": "k nearest neighbours"}

    def __init__(
        self, model: Any, X: Any, y: Any, ids: tuple[Any, ...], dataset: DatasetEntry
    ) -> None:
        self.estimator, self.X, self.y = model, np.asarray(X, dtype=np.float64), np.asarray(y)
        self.ids, self.dataset = ids, dataset
        self.settings = {"model": "knn", "n_neighbors": model.n_neighbors, "fraction": 0.5}

    @classmethod
    def takes(cls, asked: Asked) -> bool:
        return isinstance(asked.model, KNeighborsClassifier) or asked.chosen.model == "knn"

    @classmethod
    def of(cls, asked: Asked, stage: Stages) -> NearestNeighbours:
        with stage("check"):
            if asked.dataset is not None:
                return cls._read(asked.dataset, 5)
            ids = checked_ids(asked.record_ids, len(asked.y), asked.X)
            entry = DatasetEntry(
                name="arrays", records=len(ids), features=np.shape(asked.X)[1], outputs=1,
                target_name="y", steps=[],
            )  # fmt: skip
            return cls(asked.model, asked.X, asked.y, ids, entry)

    @classmethod
    def _read(cls, dataset: Dataset, k: int) -> NearestNeighbours:
        prepared, labels = prepare(dataset), dataset.target.astype(str)
        model = KNeighborsClassifier(k).fit(prepared.features, labels)
        entry = DatasetEntry.of(prepared).model_copy(update={"outputs": 1})
        return cls(model, prepared.features, labels, prepared.record_ids, entry)

    @classmethod
    def opened(cls, audit: Audit, data: Any = None) -> NearestNeighbours:
        return cls._read(data_again(audit.dataset, data), int(audit.settings["n_neighbors"]))

    @property
    def model(self) -> ExaminedModel:
        k = self.estimator.n_neighbors
        return ExaminedModel(
            type="KNeighborsClassifier",
            name=f"KNeighborsClassifier(n_neighbors={k})",
            origin="its laws are exact",
            parameters={"n_neighbors": k},
        )

    def laws(self, stage: Stages) -> PairLaws:
        with stage("laws"):
            inside, outside = majority_chances(self.X, self.y, self.estimator.n_neighbors)
        told = Provenance(
            question="pool", adjacency="removed", observes="label", random=("data",),
            attacker_knows_label=True, method="exact", source="docs/howto/new_kind.md",
        )  # fmt: skip
        return PairLaws(
            trust=Trust.checked(CHECK, np.isfinite(inside)),
            provenance=told,
            columns={"mean_with": inside, "mean_without": outside},
            member=Discrete.of_label(inside),
            nonmember=Discrete.of_label(outside),
        )

    @classmethod
    def stored_laws(cls, audit: Audit) -> PairLaws:
        inside, outside = audit.table.of("mean_with"), audit.table.of("mean_without")
        laws = {"member": Discrete.of_label(inside), "nonmember": Discrete.of_label(outside)}
        return PairLaws(trust=audit.trust, provenance=stored_provenance(audit), **laws)

    def changes(self, wanted: Any) -> Sequence[Change]:
        k = self.estimator.n_neighbors

        def at(level: float) -> NearestNeighbours:
            model = clone(self.estimator).set_params(n_neighbors=int(level)).fit(self.X, self.y)
            return type(self)(model, self.X, self.y, self.ids, self.dataset)

        levels = [float(k + 2 * step) for step in range(1, 12) if k + 2 * step < len(self.ids) / 4]
        return [Change("more neighbours", "k", levels, at, lambda v: f"Take k={v:g} neighbours")]

    def answers(self, units: NDArray[np.intp], count: int, seed: int) -> Answers:
        rng, others = np.random.default_rng(seed), np.arange(len(self.ids))
        inside: list[list[float]] = [[] for _ in units]
        outside: list[list[float]] = [[] for _ in units]
        for _ in range(count):
            half = rng.random(len(others)) < 0.5
            for k, unit in enumerate(units):
                for found, rows in ((inside, half | (others == unit)),
                                    (outside, half & (others != unit))):  # fmt: skip
                    model = clone(self.estimator).fit(self.X[rows], self.y[rows])
                    own = list(model.classes_).index(self.y[unit])
                    found[k].append(float(model.predict_proba(self.X[[unit]])[0, own] > 0.5))
        how = f"{count} random halves of the records, with and without each of {len(units)} records"
        return Answers([np.array(a) for a in inside], [np.array(a) for a in outside], how)


def majority_chances(X: Any, y: Any, k: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The chance that most of k neighbours have a record's label, with it and without it."""
    order = np.argsort(pairwise_distances(X) + np.diag([np.inf] * len(y)), axis=1, kind="stable")
    same = y[order[:, :-1]] == y[:, None]
    found = []
    for own, wanted in ((1, k - 1), (0, k)):
        state = np.zeros((len(y), wanted + 1, wanted + 1))  # how many are in, and of them alike
        state[:, 0, 0] = 1.0
        for column in same.T:
            moved = np.zeros_like(state)
            moved[column, 1:, 1:] = state[column, :-1, :-1]
            moved[~column, 1:, :] = state[~column, :-1, :]
            kept = state[:, -1].copy()
            state = 0.5 * (state + moved)
            state[:, -1] += 0.5 * kept
        last = state[:, -1] / state[:, -1].sum(axis=1, keepdims=True)
        found.append(np.minimum(last[:, np.arange(wanted + 1) + own > k / 2].sum(axis=1), 1.0))
    return found[0], found[1]
