"""A fitted booster as a recipe: as many trees as it answers with.

Scikit-learn's ``clone`` copies parameters alone.  Of a booster that stopped after 31 of 300 trees,
by records that ``fit`` was given beside the others, it makes one of 300.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from leakscope.errors import InputError
from leakscope.fitted.refits import replaced_methods

# Where a fitted booster says how many trees answer, and what is added: CatBoost, LightGBM (0 where
# it did not stop early), xgboost (the last tree's number, from 0) and scikit-learn.
KEPT = (("tree_count_", 0), ("best_iteration_", 0), ("best_iteration", 1), ("n_estimators_", 0))
# The parameters that ask for trees, by all names that LightGBM and CatBoost know them by.
ASKED = (
    "n_estimators", "num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees",
    "num_round", "num_rounds", "nrounds", "num_boost_round", "max_iter", "iterations",
)  # fmt: skip
# Those that stop early by records beside the others, which models of halves do not have.
BESIDE = ("early_stopping_rounds", "early_stopping_round")


def as_saved(estimator: Any) -> tuple[Any, tuple[str, ...]]:
    """An estimator to fit, with the trees that the given one kept; what was changed, in sentences.

    Raises
    ------
    InputError
        Where scikit-learn cannot copy it, or a booster that stopped early is inside a wrapper.

    """
    from sklearn.base import clone

    try:
        fresh = clone(estimator)
    except (RuntimeError, TypeError) as error:
        raise InputError(
            f"{type(estimator).__name__} cannot be copied by scikit-learn's clone: its constructor "
            "changes a parameter or does not keep it; give a function train(X, y, seed) that makes "
            "one, fits it and returns it."
        ) from error
    notes = []
    for place, part in _steps(estimator):
        name = type(part).__name__
        if methods := replaced_methods(part):
            raise InputError(
                f"{', '.join(methods)} of this {name} was replaced on the object, and no copy has "
                "it; write a class that has it."
            )
        for inner in _inside(part):
            if changes := _changes(inner):
                raise InputError(
                    f"the {type(inner).__name__} inside this {name} stopped early, and a copy "
                    f"would not stop where it did; give it {_text(changes)}, or a function "
                    "train(X, y, seed) that splits its rows, fits and returns a predictor."
                )
        if changes := _changes(part):
            fresh.set_params(**{f"{place}{key}": value for key, value in changes.items()})
            notes.append(f"This {name} stopped early: every model has {_text(changes)}.")
    return fresh, tuple(notes)


def _steps(estimator: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """An estimator and the steps of its pipelines, which are fitted themselves, by their places."""
    yield place, estimator
    for name, step in getattr(estimator, "steps", ()):
        yield from _steps(step, f"{place}{name}__")


def _inside(part: Any) -> Iterator[Any]:
    """The copies that a wrapper has fitted, and those inside them."""
    for name, value in getattr(part, "__dict__", {}).items():
        for inner in value if isinstance(value, (list, tuple)) else (value,):
            if name.endswith("_") and hasattr(inner, "get_params"):
                for _, step in _steps(inner):
                    yield step
                    yield from _inside(step)


def _changes(part: Any) -> dict[str, Any]:
    """The parameters by which a copy of a fitted booster has its trees; empty of all else."""
    if not hasattr(part, "get_params"):
        return {}
    present = part.get_params(deep=False)
    if getattr(part, "do_early_stopping_", False) and present.get("early_stopping") == "auto":
        # Scikit-learn decides by the number of records, and halves have fewer.
        return {"early_stopping": True}
    counts = (_count(part, name) + more for name, more in KEPT)
    trees = next((count for count in counts if count > 0), None)
    if trees is None or present.get("n_iter_no_change") is not None:
        # No booster, or one that stops by a split of its own, as its copies do.
        return {}
    names = [name for name in ASKED if present.get(name) is not None] or ["n_estimators"]
    wanted = {**dict.fromkeys(names, trees), **dict.fromkeys(BESIDE)}
    return {name: value for name, value in wanted.items() if present.get(name) != value}


def _count(part: Any, name: str) -> int:
    """A number that a fitted estimator has; so few where it has none that it counts for nothing."""
    try:
        return int(getattr(part, name))
    except Exception:  # where it is not fitted, each library raises what it likes
        return -1


def _text(changes: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in changes.items())
