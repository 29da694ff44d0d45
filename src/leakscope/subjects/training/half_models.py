"""Models of complementary halves: each record is in the training set of exactly half of them.

Models 2k and 2k + 1 share no record.  Which records a model has, and its seed, follow from the
run's seed and the model's number alone, so that four models and eight begin with the same four.
Every model is a cell of a run (:mod:`leakscope.running`), and none is trained twice.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.running.cell_store import CellStore
from leakscope.running.cells import Cell, Found, OnProgress, run_cells
from leakscope.running.own_code import one_process
from leakscope.subjects.training.own_training import OwnTraining, Scored

# In a warning.
NUMBER = re.compile(r"[-+]?\d[\d.]*(e[-+]?\d+)?")
# A kill loses no more than one call of a function that trains many models at once.
MOST_TOGETHER = 64


@dataclass(frozen=True, eq=False)
class HalfModels:
    """Scores of all records under all models, and who was trained on whom.

    Attributes
    ----------
    scores, trained_on
        Models x records.
    seconds
        Of training, over all models.
    warnings
        Sentences, each with how many models gave it.
    unsteady
        How many answer otherwise when they are asked again.
    reused
        How many were there already, and ``made`` when the first of them was finished.
    """

    scores: FloatArray
    trained_on: NDArray[np.bool_]
    seconds: float
    warnings: tuple[str, ...]
    unsteady: int = 0
    reused: int = 0
    made: float | None = None


def half(
    labels: NDArray[Any] | None,
    records: int,
    number: int,
    seed: int,
    codes: NDArray[np.intp] | None = None,
) -> NDArray[np.bool_]:
    """Which records the model of this number is trained on.

    ``labels`` are classes, which are halved one by one, so that no half lacks one that has two
    records; None where the target is a quantity.  With ``codes``, the number of each record's
    group, whole groups are halved: of each set of classes that a group has, every second one.
    """
    rng = Key(seed).child(number // 2).generator()
    count = records
    if codes is not None:
        count = int(codes.max()) + 1
        labels = None if labels is None else _classes_of(labels, codes, count)
    order = rng.permutation(count)
    if labels is not None:
        order = order[np.argsort(labels[order], kind="stable")]
    inside = np.zeros(count, dtype=np.bool_)
    # Every second one in this order; where the count is odd, chance says who has more.
    inside[order[int(rng.integers(2)) :: 2]] = True
    inside = inside if number % 2 == 0 else ~inside
    return inside if codes is None else inside[codes]


def _classes_of(labels: NDArray[Any], codes: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """A number for each group, the same where the groups' records have the same classes."""
    classes = np.unique(labels, return_inverse=True)[1].reshape(-1)
    has = np.zeros((count, int(classes.max()) + 1), dtype=np.bool_)
    has[codes, classes] = True
    return np.unique(has, axis=0, return_inverse=True)[1].reshape(-1).astype(np.intp)


def model_names(models: int) -> list[str]:
    """What the models are called where they are kept."""
    return [f"model={number}" for number in range(models)]


def kept_models(store: CellStore) -> int:
    """How many models, from the first on, are kept already; an even number."""
    finished, count = store.finished(), 0
    while f"model={count}" in finished:
        count += 1
    return count - count % 2


def train_halves(
    X: Any,
    y: NDArray[Any],
    training: OwnTraining,
    models: int,
    store: CellStore,
    *,
    seed: int,
    codes: NDArray[np.intp] | None = None,
    client: Any = None,
    on_progress: OnProgress | None = None,
) -> HalfModels:
    """Train the models that are not there yet, and give the scores of all.

    With ``codes``, the number of each record's group, halves are of whole groups.
    """
    cells = [Cell(name, {"model": number}) for number, name in enumerate(model_names(models))]
    labels = y if training.task == "classification" else None
    own = partial(half, labels, len(y), seed=seed, codes=codes)
    compute = partial(_trained, X, y, own, training)
    there = store.finished() & {cell.name for cell in cells}
    with one_process():
        if training.together and client is None:
            _train_together(X, y, own, training, cells, store, seed=seed)
        done = run_cells(
            store, cells, compute, seed=seed, client=client, retries=0, on_progress=on_progress
        )
    # One that differs from another in its numbers alone is the same.
    said: dict[str, tuple[str, int]] = {}
    for cell in done:
        for form, text in {NUMBER.sub("", each): each for each in cell.numbers["warnings"]}.items():
            said[form] = (said[form][0], said[form][1] + 1) if form in said else (text, 1)
    return HalfModels(
        scores=np.stack([cell.arrays["scores"] for cell in done]),
        trained_on=np.stack([own(number) for number in range(models)]),
        seconds=float(sum(cell.seconds for cell in done)),
        unsteady=sum(not cell.numbers.get("repeats", True) for cell in done),
        warnings=tuple(f"{text} (in {n} of {models} models)" for text, n in said.values()),
        reused=len(there),
        made=min((cell.finished for cell in done if cell.name in there), default=None),
    )


def _train_together(
    X: Any,
    y: NDArray[Any],
    own: Callable[[int], NDArray[np.bool_]],
    training: OwnTraining,
    cells: Sequence[Cell],
    store: CellStore,
    *,
    seed: int,
) -> None:
    """Many models in one call; each is kept as a cell of its own, as if it were trained alone."""
    finished = store.finished()
    todo = [cell for cell in cells if cell.name not in finished and store.claim(cell.name)]
    for first in range(0, len(todo), MOST_TOGETHER):
        some = todo[first : first + MOST_TOGETHER]
        numbers = [int(cell.parameters["model"]) for cell in some]
        rows = np.stack([own(number) for number in numbers])
        seeds = [_seed(cell.key(seed)) for cell in some]
        start = time.perf_counter()
        try:
            found, said = training.all_scores(X, y, rows, seeds)
        except BaseException as error:
            store.release(cell.name for cell in todo[first:])
            if not isinstance(error, InputError):
                raise
            which = f"Models {numbers[0] + 1} to {numbers[-1] + 1}, trained at once"
            raise InputError(f"{which}: {error}") from error
        seconds = (time.perf_counter() - start) / len(some)
        for cell, model in zip(some, found, strict=True):
            store.put(cell.name, cell.parameters, *_stored(model, said), seconds=seconds)


def _seed(key: Key) -> int:
    return int(key.generator().integers(2**31))


def _trained(
    X: Any,
    y: NDArray[Any],
    own: Callable[[int], NDArray[np.bool_]],
    training: OwnTraining,
    parameters: Mapping[str, Any],
    key: Key,
) -> Found:
    number = int(parameters["model"])
    rows = own(number)
    try:
        model, said = training.scores(X, y, rows, _seed(key))
    except InputError as error:
        raise InputError(f"Model {number + 1}: {error}") from error
    return Found(*_stored(model, said))


def _stored(model: Scored, notes: list[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The numbers and arrays that are stored of one model."""
    return {"warnings": notes, "repeats": model.repeats}, {"scores": model.scores}


def digest_of(X: Any, y: NDArray[Any]) -> str:
    """Of the records as the training takes them."""
    found = hashlib.sha256(repr((getattr(X, "shape", None), y.tolist())).encode())
    if hasattr(X, "iloc"):
        from pandas.util import hash_pandas_object

        found.update(repr(list(X.columns)).encode())
        found.update(hash_pandas_object(X).to_numpy().tobytes())
    elif hasattr(X, "tocsr"):
        rows = X.tocsr()
        for part in (rows.data, rows.indices, rows.indptr):
            found.update(np.ascontiguousarray(part).tobytes())
    else:
        found.update(np.ascontiguousarray(X).tobytes())
    return found.hexdigest()
