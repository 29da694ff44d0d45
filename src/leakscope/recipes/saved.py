"""A fitted estimator as one to fit: a booster keeps as many trees as it answers with.

Scikit-learn's ``clone`` copies parameters alone.  Of a booster that stopped after 31 of 300 trees,
by records that ``fit`` was given beside the others, it makes one of 300.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from leakscope.errors import InputError

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
        Where a copy would not be fitted as the given one was.
    """
    from sklearn.base import clone

    name = type(estimator).__name__
    try:
        fresh = clone(estimator)
    except (RuntimeError, TypeError) as error:
        raise InputError(
            f"{name} cannot be copied by scikit-learn's clone: its constructor changes a parameter "
            "or does not keep it; give a function train(X, y, seed) that makes one, fits it and "
            "returns it."
        ) from error
    notes = _frozen(fresh)
    for place, part in _steps(estimator):
        name = type(part).__name__
        if methods := replaced_methods(part):
            raise InputError(
                f"{', '.join(methods)} of this {name} was replaced on the object, and no copy has "
                "it; write a class that has it."
            )
        if any(_changes(inner) for inner in _inside(part)):
            raise InputError(
                f"a booster inside this {name} stopped early, and a copy would not stop where it "
                "did; give a function train(X, y, seed) that splits its rows, fits and returns a "
                "predictor."
            )
        if changes := _changes(part):
            fresh.set_params(**{f"{place}{key}": value for key, value in changes.items()})
            words = ", ".join(f"{key}={value}" for key, value in changes.items())
            notes.append(f"This {name} stopped early: every model has {words}.")
    return fresh, tuple(notes)


def replaced_methods(estimator: Any) -> list[str]:
    """The methods of its class that were replaced on this object alone, which no copy has."""
    present, kind = getattr(estimator, "__dict__", {}), type(estimator)
    return [k for k, v in present.items() if callable(v) and callable(getattr(kind, k, None))]


def _frozen(estimator: Any) -> list[str]:
    """What is said of parts that no training changes; one that predicts is refused."""
    frozen = [
        part.estimator
        for part in (estimator, *estimator.get_params(deep=True).values())
        if any(kind.__name__ == "FrozenEstimator" for kind in type(part).__mro__)
    ]
    names = ", ".join(dict.fromkeys(type(part).__name__ for part in frozen))
    if any(hasattr(part, "predict") for part in frozen):
        raise InputError(
            f"models of halves would keep what is frozen ({names}) as it was fitted, on whichever "
            "records; give the estimator without FrozenEstimator."
        )
    told = (
        f"What is frozen ({names}) stays as it was fitted in every model; what it learned from "
        "these records is not counted."
    )
    return [told] if frozen else []


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
    trees = next((count for name, more in KEPT if (count := _count(part, name) + more) > 0), None)
    if trees is None or present.get("n_iter_no_change") is not None:
        # No booster, or one that stops by a split of its own, as its copies do.
        return {}
    names = [name for name in ASKED if present.get(name) is not None] or ["n_estimators"]
    wanted = {**dict.fromkeys(names, trees), **dict.fromkeys(BESIDE)}
    return {name: value for name, value in wanted.items() if present.get(name) != value}


def _count(part: Any, name: str) -> int:
    """A number that a fitted estimator has; -2 where it has none."""
    try:
        return int(getattr(part, name))
    except Exception:  # where it is not fitted, each library raises what it likes
        return -2
