"""The records of a dataset as a model of the user's own takes them, one way after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.data.datasets import Dataset
from leakscope.data.preparation import prepare
from leakscope.data.sources import raw_features
from leakscope.errors import InputError
from leakscope.recipes.code import TimeLimitError
from leakscope.recipes.recipe import Recipe
from leakscope.settings.audit import Scaling

# What a model hears of its records, in the list of what was done to them.
HANDED = "handed to the training: "
# Names of columns that a sentence lists.
MOST_LISTED = 4
# So many records at most are trained on to see whether a function looks at its rows and its seed.
TRIED_ON = 200


@dataclass(frozen=True, eq=False)
class Handed:
    """The records as a training takes them.

    ``table``: the columns as they stand, under their names, and the target as it is written;
    ``numbers``: an array, categories as columns of 0 and 1, classes as 0, 1 and so on; ``arrays``:
    what a caller in Python gave.
    """

    form: str
    X: Any
    y: NDArray[Any]

    def words(self, dataset: Dataset, scaling: Scaling) -> str:
        """What the training gets, in words."""
        classes = len(np.unique(self.y))
        if self.form == "table":
            names = [str(name) for name in self.X.columns]
            more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
            features = f"columns {', '.join(names[:MOST_LISTED])}{more} as they stand"
            target = f"{classes} classes as written"
        else:
            ones = ", categories as 0 and 1" if dataset.indicators else ""
            how = "standardised, as asked" if scaling == "standard" else "not scaled"
            features = f"an array of {self.X.shape[1]} columns, {how}{ones}"
            target = f"{classes} classes, 0 to {classes - 1}"
        if dataset.task == "regression":
            target = "a quantity, " + ("standardised" if scaling == "standard" else "not scaled")
        return f"{HANDED}{features}; target {dataset.target_name}, {target}"


def forms_of(dataset: Dataset, scaling: Scaling, names: Sequence[str] = ()) -> list[Handed]:
    """The ways in which the records can be handed over, the most natural first.

    ``names`` are the columns that the model was fitted on before, where it says so.
    """
    forms = [_as_numbers(dataset, prepare(dataset, scaling=scaling))]
    table = dataset.table() if scaling == "none" else None
    if table is not None and names:
        known = set(names) <= set(map(str, table.columns))
        table = table[list(names)] if known else raw_features(dataset, names)
    if table is not None:
        forms.insert(0, Handed("table", table, _as_written(dataset)))
    return forms


def first_taken(
    recipe_with: Callable[[Handed], Recipe], forms: Sequence[Handed], seed: int
) -> tuple[Handed, tuple[str, ...]]:
    """The first form of the records that a recipe takes, and what is odd about it, in sentences.

    A function is trained three times on few records, before the models that take long: one that
    ignores its rows is refused, and where it ignores its seed, that is said.  Where so few make it
    fail in every form, the models themselves will show what is wrong.
    """
    notes = recipe_with(forms[0]).notes
    if len(forms) == 1 and recipe_with(forms[0]).is_estimator:
        return forms[0], notes
    order = np.random.default_rng(seed).permutation(len(forms[0].y))
    size = min(TRIED_ON, len(order) // 2)
    kept = np.sort(np.union1d(order[:size], order[-size:]))
    some, others = np.isin(kept, order[:size]), np.isin(kept, order[-size:])
    for form in forms:
        few = recipe_with(form).of(kept)
        try:
            first = few.scored(some, 1).scores
            if few.is_estimator:
                return form, notes
            other, again = few.scored(others, 1).scores, few.scored(some, 2).scores
        except TimeLimitError:
            raise
        except InputError:
            continue
        if np.array_equal(first, other):
            raise InputError(
                f"{few.name} ignores the rows it is given: trained on two different sets of "
                "records it gave the same answers; it must train on its arguments X and y."
            )
        odd = (
            f"{few.name} gives the same model for every seed. That is right if training is not "
            "random; otherwise let it use its seed, or the spread between models, and so every "
            "number, misses that randomness."
        )
        return form, (odd,) if np.array_equal(first, again) else ()
    return forms[0], notes


def _as_numbers(dataset: Dataset, prepared: Dataset) -> Handed:
    """An array, and classes as 0, 1 and so on."""
    y: NDArray[Any] = np.asarray(prepared.target, dtype=np.float64)
    if dataset.task == "classification":
        y = np.unique(dataset.target.astype(str), return_inverse=True)[1].reshape(-1)
    elif y.ndim > 1:
        raise InputError("With a model of your own the target must be one column.")
    return Handed("numbers", prepared.features, y)


def _as_written(dataset: Dataset) -> NDArray[Any]:
    """The target as the file has it: numbers, or the classes' own names."""
    if dataset.task == "regression":
        return np.asarray(dataset.target, dtype=np.float64)
    values = dataset.target.tolist()
    alike = len({type(value) for value in values}) == 1 and isinstance(values[0], (bool, int))
    return np.array(values) if alike else np.array([str(value) for value in values])
