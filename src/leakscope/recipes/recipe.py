"""A recipe: what can be fitted again on some of its records, whatever was handed over."""

from __future__ import annotations

import inspect
import re
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import Task
from leakscope.data.files import reason
from leakscope.data.models import read_model
from leakscope.errors import InputError
from leakscope.recipes.answers import (
    ANSWERS,
    ASKED_AGAIN,
    alike,
    chances,
    numbers,
    own_label_log_odds,
    own_label_margin,
    residuals,
)
from leakscope.recipes.code import code_digest, load_by_name, made, seeded, staying, within
from leakscope.recipes.saved import as_saved
from leakscope.single_fit.losses import softmax

# Sentences of warnings that are kept of one model, and options that a sentence names.
KEPT_WARNINGS, MOST_SHOWN = 3, 8


@dataclass(frozen=True, eq=False)
class Scored:
    """What one model answers about all records.

    Attributes
    ----------
    scores
        (N,) log-odds of each record's own label, or residuals.
    repeats
        Whether it answers alike when it is asked again in another order.
    warnings
        What was warned of while it was trained, in sentences.
    """

    scores: FloatArray
    repeats: bool
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Recipe:
    """What was handed over with its records: it can be fitted again on some of them.

    Parameters
    ----------
    subject
        A scikit-learn estimator (a pipeline and a search too), not fitted, or a function
        ``train(X, y, seed)`` that returns a predictor.
    X, y
        The records as ``subject`` takes them, and one target for each.
    name
        What people call it.
    task
        Whether the target is a class or a quantity.
    weights
        Of the records in ``fit``; an estimator's last step gets them.
    time_limit
        Seconds that one model may take; None for no limit.
    notes
        What was changed of a fitted estimator to train it again, in sentences.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from leakscope.recipes.recipe import recipe_of
    >>> X = np.arange(6.0)[:, None]
    >>> recipe = recipe_of(Ridge(), X, 2.0 * X[:, 0], "regression")
    >>> recipe.name, recipe.scores(np.arange(6) < 4, seed=0).shape
    ('Ridge()', (6,))
    """

    subject: Any
    X: Any
    y: NDArray[Any]
    name: str
    task: Task
    weights: FloatArray | None = None
    time_limit: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_estimator(self) -> bool:
        """Whether it is a scikit-learn estimator, and no function."""
        return hasattr(self.subject, "fit") and hasattr(self.subject, "get_params")

    def describe(self) -> dict[str, Any]:
        """Name and a digest of what is run, by which a changed training is not taken for it."""
        if self.is_estimator:
            values = self.subject.get_params(deep=True)
            text = f"{type(self.subject).__qualname__} {sorted(values.items(), key=str)}"
            parts = [self.subject, *values.values()]
        else:
            text = f"{getattr(self.subject, 'keywords', '')}"
            parts = [self.subject.func if isinstance(self.subject, partial) else self.subject]
        parts = [part if hasattr(part, "__qualname__") else type(part) for part in parts]
        digest = code_digest(re.sub(r" at 0x[0-9a-f]+", "", text), parts)
        kind = "estimator" if self.is_estimator else "function"
        return {"kind": kind, "name": self.name, "task": self.task, "digest": digest}

    def of(self, rows: NDArray[Any]) -> Recipe:
        """The same of some records alone."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, X=taken(self.X, rows), y=self.y[rows], weights=weights)

    def lacks_a_class(self, rows: NDArray[Any]) -> bool:
        """Whether a class is missing among these records."""
        if self.task == "regression":
            return False
        return len(np.unique(self.y[rows])) < len(np.unique(self.y))

    def fit(self, rows: NDArray[Any], seed: int) -> Any:
        """The predictor that comes of training on these rows (a mask, or numbers) with a seed."""
        X, y = taken(self.X, rows), self.y[rows]
        if not self.is_estimator:
            return self.subject(X, y, seed)
        from sklearn.base import clone

        model = clone(self.subject)
        states = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
        model.set_params(**dict.fromkeys(states, seed))
        if self.weights is None:
            return model.fit(X, y)
        return model.fit(X, y, **{_weight_name(model): self.weights[rows]})

    def scores(self, rows: NDArray[Any], seed: int) -> FloatArray:
        """(N,) the scores of all records by a model of these rows."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores: FloatArray = self._held(seed, lambda: self.scores_of(self.fit(rows, seed)))
            return scores

    def scored(self, rows: NDArray[Any], seed: int) -> Scored:
        """The same within the time limit, with warnings, and asked twice."""
        return within(self.name, self.time_limit, partial(self._scored, rows, seed))

    def scores_of(self, model: Any) -> FloatArray:
        """(N,) the scores that a model gives all records."""
        return self._as_scores(model, self._asked(model, self.X))

    def answers(self, rows: NDArray[Any], seed: int, queries: Any) -> FloatArray:
        """(q, C) what a model of these rows says of queries: numbers, or chances of all classes."""

        def work() -> FloatArray:
            table: FloatArray = self._held(
                seed, lambda: self._answered(self.fit(rows, seed), queries)
            )
            return table

        return within(self.name, self.time_limit, work)

    @property
    def options(self) -> dict[str, Any]:
        """What can be changed, with present values.

        Of an estimator its parameters, those of a pipeline's last step first; of a function its
        keyword arguments that have a default.
        """
        if self.is_estimator:
            values = dict(self.subject.get_params())
            steps = getattr(self.subject, "steps", None)
            last = f"{steps[-1][0]}__" if steps else ""
            return {**{k: values[k] for k in values if last and k.startswith(last)}, **values}
        try:
            parameters = list(inspect.signature(self.subject).parameters.values())
        except (TypeError, ValueError):
            return {}
        return {p.name: p.default for p in parameters[3:] if p.default is not p.empty}

    def with_options(self, options: Mapping[str, Any]) -> Recipe:
        """The same with some of its options changed."""
        known = self.options
        for name in options:
            if name not in known:
                there = ", ".join(f"{k}={v!r}" for k, v in list(known.items())[:MOST_SHOWN])
                raise InputError(
                    f"{self.name} has no option {name!r}: it has {there or 'none'}. An option of a "
                    "function is a keyword argument with a default, train(X, y, seed, epochs=20)."
                )
        if not options:
            return self
        if self.is_estimator:
            from sklearn.base import clone

            changed = clone(self.subject).set_params(**options)
            return replace(self, subject=changed, name=estimator_name(changed), notes=())
        words = ", ".join(f"{name}={value!r}" for name, value in options.items())
        changed = partial(self.subject, **options)
        return replace(self, subject=changed, name=f"{self.name} with {words}")

    def _scored(self, rows: NDArray[Any], seed: int) -> Scored:
        order = np.random.default_rng(seed).permutation(len(self.y))
        order = order[: min(ASKED_AGAIN, len(self.y) // 2)]

        def work() -> tuple[FloatArray, bool]:
            model = self.fit(rows, seed)
            first, again = self._asked(model, self.X), self._asked(model, taken(self.X, order))
            return self._as_scores(model, first), alike(first[order], again)

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            scores, repeats = self._held(seed, work)
        # What a later version of a library will change says nothing of these models.
        sentences = [
            f"{each.category.__name__}: {str(each.message).split(chr(10))[0]}"
            for each in caught
            if not issubclass(each.category, (FutureWarning, DeprecationWarning))
        ]
        return Scored(scores, repeats, tuple(dict.fromkeys(sentences))[:KEPT_WARNINGS])

    def _held(self, seed: int, work: Any) -> Any:
        """Whatever the user's code raises is one sentence, but for Ctrl-C."""
        try:
            with seeded(seed), staying(self.name):
                return work()
        except (InputError, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise InputError(
                f"{self.name} failed ({type(error).__name__}: {reason(error)}{_line(error)}): it "
                "must fit one target on half of the records and predict the others; change it, or "
                "give a function train(X, y, seed) that does."
            ) from error

    def _asked(self, model: Any, X: Any) -> NDArray[Any]:
        """What a model answers about records, as an array of whatever type."""
        names = ANSWERS if self.task == "classification" else ("predict",)
        way = next((name for name in names if hasattr(model, name)), None)
        ask = model if way is None else getattr(model, way)
        if not callable(ask) or (way is None and hasattr(model, "named_parameters")):
            raise InputError(
                f"{self.name} returned {type(model).__name__}, which does not predict from arrays: "
                "an object with predict_proba or predict, or a function of records, is needed, "
                "such as lambda rows: net(torch.tensor(rows, dtype=torch.float32))."
            )
        X = X.copy() if hasattr(X, "copy") else X  # what it writes there is nobody's data
        if self.task == "classification" and self.is_estimator and way == "predict":
            # Neither a probability nor a score: a label is all or nothing.
            classes = getattr(model, "classes_", np.unique(self.y))
            return np.asarray(np.asarray(ask(X))[:, None] == classes, np.float64)
        answers = ask(X)
        # A tensor that is still part of a graph, or on a device.
        answers = answers.detach().cpu() if hasattr(answers, "detach") else answers
        try:
            return np.asarray(answers)
        except (TypeError, ValueError) as problem:
            raise InputError(
                f"what the model of {self.name} answers is no array of numbers."
            ) from problem

    def _decides(self, model: Any) -> bool:
        """Whether an estimator answers with decision values, having no probabilities."""
        has = hasattr(model, "decision_function") and not hasattr(model, "predict_proba")
        return self.is_estimator and has

    def _as_scores(self, model: Any, answers: NDArray[Any]) -> FloatArray:
        table = numbers(answers, len(self.y), self.name)
        if self.task == "regression":
            return residuals(table, self.y, self.name)
        classes = np.unique(self.y)
        columns = getattr(model, "classes_", None)
        if self._decides(model):
            columns = classes if columns is None else columns
            return own_label_margin(table, classes, columns, self.y, self.name)
        table = chances(table, classes, columns, self.name)
        return own_label_log_odds(table, np.searchsorted(classes, self.y))

    def _answered(self, model: Any, queries: Any) -> FloatArray:
        table = numbers(self._asked(model, queries), len(queries), self.name)
        if self.task == "regression":
            return table.reshape(len(queries), -1)
        if self._decides(model):
            both = table if table.ndim == 2 else np.stack([np.zeros(len(table)), table], axis=1)
            table = softmax(both)
        return chances(table, np.unique(self.y), getattr(model, "classes_", None), self.name)


def recipe_of(
    subject: Any,
    X: Any,
    y: NDArray[Any],
    task: Task,
    *,
    weights: FloatArray | None = None,
    time_limit: float | None = None,
    name: str = "",
) -> Recipe:
    """The recipe of an estimator, fitted or not, or of a training function.

    Raises
    ------
    InputError
        Where ``subject`` cannot be fitted again, or does not suit the task.
    """
    if hasattr(subject, "fit") and hasattr(subject, "get_params"):
        subject, notes = as_saved(subject)
        if predicts_classes(subject) not in (None, task == "classification"):
            raise InputError(
                f"{estimator_name(subject)} does not suit a target that is taken for {task}; give "
                "--task, or another estimator.",
                option="task",
            )
        return Recipe(subject, X, y, estimator_name(subject), task, weights, time_limit, notes)
    if not callable(subject) or (hasattr(subject, "fit") and not inspect.isfunction(subject)):
        raise InputError(
            "a model must be a scikit-learn estimator, with fit and get_params, or a function "
            f"train(X, y, seed) that returns a predictor, but it is {type(subject).__name__}."
        )
    if any("Module" in kind.__name__ for kind in type(subject).__mro__):
        raise InputError(
            f"{type(subject).__name__} is a network, which cannot be trained again by itself; give "
            "a function train(X, y, seed) that makes and trains one and returns a predictor."
        )
    name = name or getattr(subject, "__qualname__", type(subject).__name__)
    return Recipe(subject, X, y, name, task, weights, time_limit)


def named_subject(text: str) -> Any:
    """What ``module:name`` names (a function, an estimator, its class), or a .skops file holds."""
    if text.lower().endswith(".skops"):
        return read_model(text).estimator
    return made(load_by_name(text, option="--train"), option="--train")


def predicts_classes(subject: Any) -> bool | None:
    """Whether an estimator predicts classes; None where it does not say, as a function."""
    if not hasattr(subject, "get_params"):
        return None
    from sklearn.base import is_classifier, is_regressor

    try:
        return True if is_classifier(subject) else False if is_regressor(subject) else None
    except AttributeError:
        # One around another that it was not given: what is wrong with it is said by its fit.
        return None


def estimator_name(estimator: Any) -> str:
    """An estimator as text in one line; a pipeline by its steps, the last with its settings."""
    steps = any(kind.__name__ == "Pipeline" for kind in type(estimator).__mro__)
    *around, last = [part for _, part in estimator.steps] if steps else [estimator]
    first = [part if isinstance(part, str) else type(part).__name__ for part in around]
    named = inspect.signature(type(last)).parameters
    present = last.get_params(deep=False) if hasattr(last, "get_params") else {}
    text = " ".join(repr(last).split())
    if not set(present) <= set(named):
        # Of xgboost, whose constructor takes parameters that it does not name: those that are set.
        changed = [f"{k}={v!r}" for k, v in present.items() if v is not None]
        text = f"{type(last).__name__}({', '.join(changed)})"
    return " → ".join([*first, text])


def taken(X: Any, rows: NDArray[Any]) -> Any:
    """Some rows of an array, a sparse matrix or a data frame."""
    chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
    return X.iloc[chosen] if hasattr(X, "iloc") else X[chosen]


def _weight_name(estimator: Any) -> str:
    """By which ``fit`` takes weights of the records: they go to the last step of a pipeline."""
    prefix = ""
    while hasattr(estimator, "steps") or hasattr(estimator, "estimator"):
        if hasattr(estimator, "steps"):
            name, estimator = estimator.steps[-1]
            prefix += f"{name}__"
        else:
            estimator = estimator.estimator
    return f"{prefix}sample_weight"


def _line(error: BaseException) -> str:
    """Where in the user's code it happened."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
    return f"; {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
