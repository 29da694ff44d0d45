"""Memorisation and influence by training on random subsets (Feldman and Zhang).

One set of models, each trained on its own random subset of the records, serves all records: those
whose subset has the record are compared with those whose subset has not.  With s(m, q) the score of
model m at query q,

    influence(i, q) = mean of s(m, q) over models with i - the same over models without i,

and memorisation(i) = influence(i, i) (Feldman and Zhang 2020, Eq. 1 and Section 2.1).  The subsets
are smaller than the data, so this is the memorisation of training on that many records.

References
----------
V. Feldman, C. Zhang, "What neural networks memorize and why", NeurIPS 2020.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.running.cell_store import CellStore
from leakscope.running.cells import Cell, Found, OnProgress, run_cells
from leakscope.verifying.experiments.network_training import Trainer, checked_records

Score = Literal["accuracy", "answer", "loss"]


@dataclass(frozen=True)
class SubsetPlan:
    """How many models are trained, each on how large a share of the records.

    Parameters
    ----------
    models
        In all.
    share
        Of the records in each subset, drawn without replacement; the paper has 0.7.
    models_per_cell
        How many make a cell, the part of a run that is done whole or not at all.
    """

    models: int = 200
    share: float = 0.7
    models_per_cell: int = 20

    def __post_init__(self) -> None:
        if not 0.0 < self.share < 1.0:
            raise InputError(f"share must be between 0 and 1, but it is {self.share}.")
        if self.models_per_cell < 1 or self.models < 4:
            raise InputError(
                f"there must be at least 4 models and 1 a cell, but there are {self.models} and "
                f"{self.models_per_cell}."
            )

    def describe(self) -> dict[str, Any]:
        """What a run is resumed by; the number of models may be raised later."""
        return {"share": self.share, "models_per_cell": self.models_per_cell}

    def cells(self) -> list[Cell]:
        """The cells of the run."""
        starts = range(0, self.models, self.models_per_cell)
        counts = [min(self.models_per_cell, self.models - start) for start in starts]
        return [
            Cell(f"subsets/round={number}/models={count}", {"round": number, "models": count})
            for number, count in enumerate(counts)
        ]


@dataclass(frozen=True)
class SubsetModels:
    """Models on random subsets, and what they answer."""

    included: NDArray[np.bool_]  # (models, n) whether the record was in the model's subset
    at_records: FloatArray  # (models, n, outputs) and (models, q, outputs) answers
    at_queries: FloatArray
    targets: FloatArray  # (n, outputs) of the records
    losses: FloatArray  # (models,) final training losses

    def memorisation(self, score: Score = "accuracy") -> Contrast:
        """(n,) of each record: the score at the record itself, in less out.

        ``"accuracy"`` is the paper's: the sign of a single output, the largest of several.
        ``"answer"`` is the mean answer (outputs summed along the target's direction where there
        are several), and ``"loss"`` how much lower the squared loss is.
        """
        scores = _scored(self.at_records, self.targets, score)
        return _contrast(self.included, scores, own=True, binary=score == "accuracy")

    def influence(self, query_targets: ArrayLike, score: Score = "accuracy") -> Contrast:
        """(n, q) of each record on each query."""
        wanted = np.asarray(query_targets, dtype=np.float64)
        wanted = wanted.reshape(len(wanted), -1)
        if wanted.shape != self.at_queries.shape[1:]:
            raise InputError(
                f"{self.at_queries.shape[1]} queries were answered with "
                f"{self.at_queries.shape[2]} outputs, but the targets' shape is {wanted.shape}."
            )
        scores = _scored(self.at_queries, wanted, score)
        return _contrast(self.included, scores, own=False, binary=score == "accuracy")


@dataclass(frozen=True)
class Contrast:
    """Mean scores of models with a record less those without it."""

    # (n,) or (n, q); not a number where a record was in all subsets or in none, or nearly so.
    value: FloatArray
    stderr: FloatArray
    models_with: NDArray[np.intp]  # (n,) how many models there were on either side
    models_without: NDArray[np.intp]


def train_subsets(
    X: ArrayLike,
    y: ArrayLike,
    trainer: Trainer,
    plan: SubsetPlan,
    store: CellStore,
    *,
    seed: int,
    queries: ArrayLike | None = None,
    client: Any = None,
    on_progress: OnProgress | None = None,
) -> SubsetModels:
    """Train models on random subsets, in a run that can be resumed.

    Parameters
    ----------
    X, y
        Records by features, and targets, (n,) or (n, outputs); used as they are.
    trainer
        A :class:`NetworkTrainer`, or a :class:`FunctionTrainer` around one's own function.
    plan
        How many models, on how large subsets.
    store
        Of :func:`leakscope.running.cell_store.open_cells`; finished cells are not trained again.
    seed
        Of the run.
    queries
        Further records at which all models answer, for :meth:`SubsetModels.influence`.
    client, on_progress
        As for :func:`retrain`.
    """
    rows, targets, asked = checked_records(X, y, queries)
    chosen = round(plan.share * len(rows))
    if not 0 < chosen < len(rows):
        raise InputError(
            f"a share of {plan.share:g} of {len(rows)} records leaves a subset of {chosen}."
        )
    require_memory(
        8 * plan.models * (len(rows) + len(asked)) * targets.shape[1] * 3,
        f"the answers of {plan.models} models at {len(rows) + len(asked)} records",
        "train fewer models, or ask fewer queries",
    )
    compute = partial(_trained_cell, rows, targets, trainer, np.vstack([rows, asked]), chosen)
    done = run_cells(
        store, plan.cells(), compute, seed=seed, client=client, on_progress=on_progress
    )
    answers = np.concatenate([cell.arrays["answers"] for cell in done])
    return SubsetModels(
        included=np.concatenate([cell.arrays["included"] for cell in done]),
        at_records=answers[:, : len(rows)],
        at_queries=answers[:, len(rows) :],
        targets=targets,
        losses=np.concatenate([cell.arrays["losses"] for cell in done]),
    )


def _scored(answers: FloatArray, targets: FloatArray, score: Score) -> FloatArray:
    """(models, q) scores of answers (models, q, outputs), higher for a model that knows."""
    if score == "loss":
        return np.asarray(-0.5 * np.sum((answers - targets) ** 2, axis=2))
    if score == "answer":
        if targets.shape[1] == 1:
            return np.asarray(answers[:, :, 0])
        length = np.linalg.norm(targets, axis=1)
        return np.asarray(np.sum(answers * targets, axis=2) / np.where(length > 0, length, 1.0))
    if score != "accuracy":
        raise InputError(f"score must be accuracy, answer or loss, but it is {score!r}.")
    if targets.shape[1] == 1:
        return np.asarray(np.sign(answers) == np.sign(targets), dtype=np.float64)[:, :, 0]
    return np.asarray(np.argmax(answers, axis=2) == np.argmax(targets, axis=1), dtype=np.float64)


def _trained_cell(
    rows: FloatArray,
    targets: FloatArray,
    trainer: Trainer,
    queries: FloatArray,
    chosen: int,
    parameters: Mapping[str, Any],
    key: Key,
) -> Found:
    generator = key.child(1).generator()
    included = np.zeros((parameters["models"], len(rows)), dtype=bool)
    for subset in included:
        subset[generator.permutation(len(rows))[:chosen]] = True
    trained = trainer.train(rows, targets, included, queries, key.child(0))
    return Found(
        {"models": int(parameters["models"]), "mean_loss": float(trained.losses.mean())},
        {"answers": trained.answers, "losses": trained.losses, "included": included},
    )


def _contrast(
    included: NDArray[np.bool_], scores: FloatArray, *, own: bool, binary: bool
) -> Contrast:
    """Means and variances on either side, for all records (and queries) by matrix products."""
    # Centred, so that a variance from sums of squares keeps its digits.
    centre = scores.mean(axis=0)
    centred = scores - centre
    parts = []
    for inside in (included.astype(np.float64), (~included).astype(np.float64)):
        count = inside.sum(axis=0)
        if own:
            total = np.einsum("mi,mi->i", inside, centred)
            squares = np.einsum("mi,mi->i", inside, centred**2)
            number = count
        else:
            total, squares, number = inside.T @ centred, inside.T @ centred**2, count[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(number >= 2, total / number, np.nan)
            variance = np.maximum(squares / number - mean**2, 0.0) * number / (number - 1.0)
            if binary:
                # All models right is no proof of certainty: as if two more were right and two not.
                likely = (number * (mean + centre) + 2.0) / (number + 4.0)
                variance = likely * (1.0 - likely)
            parts.append((mean, variance / number, count.astype(np.intp)))
    (mean_in, noise_in, count_in), (mean_out, noise_out, count_out) = parts
    return Contrast(
        value=np.asarray(mean_in - mean_out),
        stderr=np.asarray(np.sqrt(noise_in + noise_out)),
        models_with=count_in,
        models_without=count_out,
    )
