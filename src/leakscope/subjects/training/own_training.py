"""The user's own training, a function or a scikit-learn estimator: one model's scores in one call.

A score is what an attacker looks at for a record whose label he knows: the log-odds of that label,
or for a quantity the residual, prediction minus target.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
from leakscope.lood.inputs import require_real
from leakscope.recipes.answers import ANSWERS, ASKED_AGAIN, alike
from leakscope.running.own_code import (
    TimeLimitError,
    code_text,
    load_by_name,
    made,
    seeded,
    staying,
    within,
)
from leakscope.settings.audit import TrainingSettings
from leakscope.single_fit.losses import label_log_odds, softmax
from leakscope.subjects.handed import Handed
from leakscope.subjects.training.saved_trees import as_saved

# What an estimator must do, where one fails.
HALVES_HINT = (
    ": it must fit one target on half of the records and predict the others; change its "
    "parameters, or give a function train(X, y, seed) that does."
)
# So many records at most are trained on to see whether a function looks at its rows and its seed.
TRIED_ON = 200
# Sentences of warnings that are kept of one model.
KEPT_WARNINGS = 3
# Answers are squared and summed.
LARGEST = 1e150


@dataclass(frozen=True, eq=False)
class Scored:
    """What one model answers: the scores of all records, and whether it repeats its answers."""

    scores: FloatArray
    repeats: bool


@dataclass(frozen=True)
class OwnTraining:
    """What is trained, and how its answers become scores.

    Parameters
    ----------
    subject
        ``train(X, y, seed)`` that returns a predictor, or a scikit-learn estimator; or
        ``train(X, y, rows, seeds)``, which trains many at once and returns a predictor of each.
    name
        What people call it.
    task
        Whether the target is a class or a quantity.
    time_limit
        Seconds that one model may take; None for no limit.
    notes
        What was changed of a fitted estimator to train it again, in sentences.

    """

    subject: Any
    name: str
    task: Task
    time_limit: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_estimator(self) -> bool:
        """Whether it is a scikit-learn estimator, and no function."""
        return hasattr(self.subject, "fit") and hasattr(self.subject, "get_params")

    @property
    def together(self) -> bool:
        """Whether it is a function that trains many models at once."""
        if self.is_estimator:
            return False
        try:
            return list(inspect.signature(self.subject).parameters)[2:4] == ["rows", "seeds"]
        except (TypeError, ValueError):
            return False

    def describe(self) -> dict[str, Any]:
        """Name and a digest of what is run, by which a changed training is not taken for it."""
        told = {"kind": "function", "name": self.name, "task": self.task}
        if self.is_estimator:
            parts = [self.subject, *self.subject.get_params(deep=True).values()]
            # Functions and classes by their own names, objects by their class.
            run = [part if hasattr(part, "__qualname__") else type(part) for part in parts]
            text = f"{type(self.subject).__qualname__} {sorted_parameters(self.subject)}"
            told["kind"] = "estimator"
        else:
            inner = self.subject.func if isinstance(self.subject, partial) else self.subject
            run = [inner if hasattr(inner, "__qualname__") else type(inner)]
            fixed = getattr(self.subject, "keywords", None)
            text = f"{sorted(fixed.items())}" if isinstance(fixed, dict) else ""
        code = code_text(run)
        whole = hashlib.sha256(f"{text}\n{code}".encode()).hexdigest()
        return {**told, "digest": whole if code else "unknown"}

    def scores(
        self, X: Any, y: NDArray[Any], rows: NDArray[np.bool_], seed: int
    ) -> tuple[Scored, list[str]]:
        """Train on ``rows``, and give every record's score and what was warned of on the way."""
        found, said = self.all_scores(X, y, rows[None], [seed])
        return found[0], said

    def all_scores(
        self, X: Any, y: NDArray[Any], rows: NDArray[np.bool_], seeds: list[int]
    ) -> tuple[list[Scored], list[str]]:
        """The same of several models, ``rows`` (models x records), at once where it can."""
        limit = None if self.time_limit is None else self.time_limit * len(seeds)
        return within(self.name, limit, partial(self._all_scores, X, y, rows, seeds))

    def _all_scores(
        self, X: Any, y: NDArray[Any], rows: NDArray[np.bool_], seeds: list[int]
    ) -> tuple[list[Scored], list[str]]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with self._held(seeds[0]):
                models = self._models(X, y, rows, seeds)
                answers = [self._answers(model, X, y) for model in models]
                count = min(ASKED_AGAIN, len(y) // 2)
                order = np.random.default_rng(seeds[0]).permutation(len(y))[:count]
                some = taken(X, order)
                again = [self._answers(model, some, y) for model in models]
        # What a later version of a library will change says nothing of these models.
        said = [
            f"{each.category.__name__}: {str(each.message).split(chr(10))[0]}"
            for each in caught
            if not issubclass(each.category, (FutureWarning, DeprecationWarning))
        ]
        found = [
            Scored(self._scored(model, first, y), alike(first[order], second))
            for model, first, second in zip(models, answers, again, strict=True)
        ]
        return found, list(dict.fromkeys(said))[:KEPT_WARNINGS]

    def scores_of(self, model: Any, X: Any, y: NDArray[Any]) -> FloatArray:
        """The scores that a model which is there already gives every record."""
        return self._scored(model, self._answers(model, X, y), y)

    def answers(
        self, X: Any, y: NDArray[Any], rows: NDArray[np.bool_], seed: int, queries: Any
    ) -> FloatArray:
        """(q, C) what one model says of queries: a number, or the probabilities of all classes."""
        ask = partial(self._asked, X, y, rows, seed, queries)
        return within(self.name, self.time_limit, ask)

    def _asked(
        self, X: Any, y: NDArray[Any], rows: NDArray[np.bool_], seed: int, queries: Any
    ) -> FloatArray:
        with self._held(seed):
            model = self._models(X, y, rows[None], [seed])[0]
            told = self._answers(model, queries, y)
        found = self._numbers(told, len(queries))
        if self.task == "regression":
            return found.reshape(len(queries), -1)
        if self._decides(model):
            margins = found if found.ndim == 2 else np.stack([np.zeros(len(found)), found], axis=1)
            found = softmax(margins)
        return chances(self.name, found, np.unique(y), getattr(model, "classes_", None))

    @contextmanager
    def _held(self, seed: int) -> Iterator[None]:
        """Whatever the user's code raises is one sentence, but for Ctrl-C."""
        try:
            with seeded(seed), staying(self.name):
                yield
        except (InputError, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise InputError(
                f"{self.name} failed ({type(error).__name__}: {reason(error)}{_line(error)})"
                f"{HALVES_HINT if self.is_estimator else '.'}"
            ) from error

    def _models(
        self, X: Any, y: NDArray[Any], rows: NDArray[np.bool_], seeds: list[int]
    ) -> list[Any]:
        if not self.together:
            pairs = zip(rows, seeds, strict=True)
            return [self._trained(taken(X, own), y[own], seed) for own, seed in pairs]
        # Its own copies: what it writes into them is nobody's data.
        found = list(self.subject(copied(X), y.copy(), rows.copy(), list(seeds)))
        if len(found) != len(seeds):
            raise InputError(
                f"{self.name} was asked for {len(seeds)} models at once and gave {len(found)}: one "
                "predictor for each row of rows is needed."
            )
        return found

    def _trained(self, X: Any, y: NDArray[Any], seed: int) -> Any:
        if not self.is_estimator:
            return self.subject(X, y, seed)
        from sklearn.base import clone

        model = clone(self.subject)
        states = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
        model.set_params(**dict.fromkeys(states, seed))
        return model.fit(X, y)

    def _decides(self, model: Any) -> bool:
        """Whether an estimator answers with decision values, having no probabilities."""
        return (
            self.is_estimator
            and not hasattr(model, "predict_proba")
            and hasattr(model, "decision_function")
        )

    def _answers(self, model: Any, X: Any, y: NDArray[Any]) -> NDArray[Any]:
        names = ANSWERS if self.task == "classification" else ("predict",)
        way = next((name for name in names if hasattr(model, name)), None)
        ask = model if way is None else getattr(model, way)
        if self.task == "classification" and self.is_estimator and way == "predict":
            # Neither a probability nor a score: a label is all or nothing.
            classes = getattr(model, "classes_", np.unique(y))
            return np.asarray(np.asarray(ask(copied(X)))[:, None] == classes, np.float64)
        if not callable(ask):
            raise InputError(
                f"{self.name} returned {type(model).__name__}, which does not predict: an "
                "object with predict_proba or predict, or a function of records, is needed."
            )
        if hasattr(model, "named_parameters") and way is None:
            raise InputError(
                f"{self.name} returned a {type(model).__name__}, which takes tensors and not "
                "arrays; return lambda rows: net(torch.tensor(rows, dtype=torch.float32))."
            )
        found = ask(copied(X))
        # A tensor that is still part of a graph, or on a device.
        found = found.detach().cpu() if hasattr(found, "detach") else found
        try:
            require_real(found, f"what the model of {self.name} answers")
            return np.asarray(found)
        except InputError:
            raise
        except (TypeError, ValueError) as problem:
            raise InputError(
                f"what the model of {self.name} answers is no array of numbers."
            ) from problem

    def _numbers(self, answers: NDArray[Any], count: int) -> FloatArray:
        """Finite numbers, one row per record, or a sentence that says what came instead."""
        if answers.dtype.kind not in "fiub":
            raise InputError(f"{self.name} answered with {answers.dtype}, and not with numbers.")
        found = answers.astype(np.float64)
        if found.ndim not in (1, 2) or len(found) != count:
            raise InputError(
                f"the model of {self.name} answered {count} records with an array of shape "
                f"{found.shape}: one row per record is needed."
            )
        bad = ~np.isfinite(found).reshape(count, -1).all(axis=1)
        if bad.any():
            raise InputError(
                f"the model of {self.name} gave an answer that is not finite, for record "
                f"{int(np.argmax(bad))} (counting from 0)."
            )
        largest = float(np.abs(found).max(initial=0.0))
        if largest > LARGEST:
            raise InputError(
                f"the model of {self.name} gave an answer of {largest:g}, whose square is beyond "
                "float64."
            )
        return found

    def _scored(self, model: Any, answers: NDArray[Any], y: NDArray[Any]) -> FloatArray:
        found = self._numbers(answers, len(y))
        if self.task == "regression":
            if found.size != len(y):
                raise InputError(
                    f"the model of {self.name} answered {len(y)} records with an array of shape "
                    f"{found.shape}: one number per record is needed."
                )
            return np.asarray(found.reshape(len(y)) - y)
        classes = np.unique(y)
        if self._decides(model):
            own = getattr(model, "classes_", classes)
            return own_label_margin(self.name, found, classes, own, y)
        table = chances(self.name, found, classes, getattr(model, "classes_", None))
        return own_label_log_odds(table, np.searchsorted(classes, y))


def named_training(text: str, task: Task, time_limit: float | None) -> OwnTraining:
    """What ``module:name`` names (a function, an estimator, its class), or a .skops file holds."""
    if text.lower().endswith(".skops"):
        return training_of(read_model(text).estimator, task, time_limit)
    found = made(load_by_name(text, option="--train"), option="--train")
    return training_of(found, task, time_limit, name=text)


def trains_classes(settings: TrainingSettings) -> bool:
    """Whether the estimator that is named predicts classes; a function does not say."""
    if settings.train is None:
        return False
    training = named_training(settings.train, "regression", None)
    return training.is_estimator and predicts_classes(training.subject) is True


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


def training_of(
    subject: Any, task: Task, time_limit: float | None, *, name: str = ""
) -> OwnTraining:
    """The training that was given in Python, or that a name led to; an estimator names itself."""
    if hasattr(subject, "fit") and hasattr(subject, "get_params"):
        subject, notes = as_saved(subject)
        # A pipeline by its steps, as a fitted one is named: the last with its settings.
        steps = any(kind.__name__ == "Pipeline" for kind in type(subject).__mro__)
        *around, last = [part for _, part in subject.steps] if steps else [subject]
        first = [part if isinstance(part, str) else type(part).__name__ for part in around]
        told = " → ".join([*first, _named(last)])
        return OwnTraining(subject, told, task, time_limit, notes)
    if hasattr(subject, "fit") and not inspect.isfunction(subject):
        raise InputError(
            f"{type(subject).__name__} has fit but no get_params, so leakscope cannot make a fresh "
            "copy; give a function train(X, y, seed) that makes one, fits it and returns it."
        )
    if not callable(subject) or any("Module" in kind.__name__ for kind in type(subject).__mro__):
        raise InputError(
            "a model must be a scikit-learn estimator, or a function train(X, y, seed) that trains "
            f"one and returns a predictor, but it is {type(subject).__name__}."
        )
    name = name or getattr(subject, "__qualname__", type(subject).__name__)
    return OwnTraining(subject, name, task, time_limit)


def tried(training: OwnTraining, forms: Sequence[Handed], seed: int) -> tuple[Handed, list[str]]:
    """The first form of the records that a training takes; what is odd about it, in sentences.

    A function is trained three times on few records, before the models that take long: one that
    ignores its rows is refused, and where it ignores its seed, that is said.  Where so few make it
    fail in every form, the models themselves will show what is wrong.
    """
    notes = [*training.notes, *_frozen_told(training)]
    if len(forms) == 1 and training.is_estimator:
        return forms[0], notes
    records = len(forms[0].y)
    order = np.random.default_rng(seed).permutation(records)
    size = min(TRIED_ON, records // 2)
    some, others = (np.isin(np.arange(records), part) for part in (order[:size], order[-size:]))
    kept = np.flatnonzero(some | others)
    for each in forms:
        few, labels = taken(each.X, kept), each.y[kept]
        try:
            first, _ = training.scores(few, labels, some[kept], seed=1)
            if training.is_estimator:
                return each, notes
            second, _ = training.scores(few, labels, others[kept], seed=1)
            third, _ = training.scores(few, labels, some[kept], seed=2)
        except TimeLimitError:
            raise
        except InputError:
            continue
        return each, _oddities(training.name, first.scores, second.scores, third.scores)
    return forms[0], notes


def _frozen_told(training: OwnTraining) -> list[str]:
    """What is said of parts that no training changes; one that predicts is refused."""
    if not training.is_estimator:
        return []
    parts = [training.subject, *training.subject.get_params(deep=True).values()]
    frozen = [
        part.estimator
        for part in parts
        if any(kind.__name__ == "FrozenEstimator" for kind in type(part).__mro__)
    ]
    names = ", ".join(dict.fromkeys(type(part).__name__ for part in frozen))
    if any(hasattr(part, "predict") for part in frozen):
        raise InputError(
            f"models of halves would keep what is frozen ({names}) as it was fitted, on whichever "
            "records; give the estimator without FrozenEstimator."
        )
    if not frozen:
        return []
    return [
        f"What is frozen ({names}) stays as it was fitted in every model; what it learned from "
        "these records is not counted."
    ]


def _oddities(name: str, first: FloatArray, other: FloatArray, again: FloatArray) -> list[str]:
    """Of scores with one set of records, with another, and with another seed."""
    if np.array_equal(first, other):
        raise InputError(
            f"{name} ignores the rows it is given: trained on two different sets of records it "
            "gave the same answers; it must train on its arguments X and y."
        )
    if np.array_equal(first, again):
        return [
            f"{name} gives the same model for every seed. That is right if training is not random; "
            "otherwise let it use its seed, or the spread between models, and so every number, "
            "misses that randomness."
        ]
    return []


def kinds_of(X: Any) -> NDArray[np.intp]:
    """A number for each record, the same where the features are the same."""
    if hasattr(X, "iloc"):
        from pandas.util import hash_pandas_object

        keys = hash_pandas_object(X, index=False).to_numpy()
    else:
        if hasattr(X, "tocsr"):
            rows = X.tocsr()
            rows.sort_indices()
            ends = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
            texts = [rows.indices[a:b].tobytes() + rows.data[a:b].tobytes() for a, b in ends]
        else:
            texts = [row.tobytes() for row in np.ascontiguousarray(X)]
        keys = np.array([hash(text) for text in texts])
    return np.unique(keys, return_inverse=True)[1].reshape(-1).astype(np.intp)


def _named(estimator: Any) -> str:
    """An estimator as text, in one line.

    Of xgboost, whose constructor takes parameters that it does not name, those that are set: its
    own text is forty times None.
    """
    named = inspect.signature(type(estimator)).parameters
    present = estimator.get_params(deep=False)
    if set(present) <= set(named):
        return " ".join(repr(estimator).split())
    changed = [
        f"{name}={value!r}"
        for name, value in present.items()
        if value is not None and (name not in named or named[name].default != value)
    ]
    return f"{type(estimator).__name__}({', '.join(changed)})"


def copied(X: Any) -> Any:
    """The same again, which the user's code may change."""
    return X.copy() if hasattr(X, "copy") else X


def taken(X: Any, rows: NDArray[Any]) -> Any:
    """Some rows of an array, a sparse matrix or a data frame."""
    chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
    return X.iloc[chosen] if hasattr(X, "iloc") else X[chosen]


def sorted_parameters(estimator: Any) -> str:
    """An estimator's parameters as text, the same for the same parameters wherever they lie."""
    text = ", ".join(f"{name}={value!r}" for name, value in sorted(estimator.get_params().items()))
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def _line(error: BaseException) -> str:
    """Where in the user's code it happened."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
    return f"; {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""


# A probability of zero counts as half of the smallest that the model gave, but within these: the
# votes of a forest are a share of its trees, and those of a single tree are all or nothing.
LEAST_CHANCE, MOST_CHANCE = 1e-40, 0.25
# Rows of probabilities sum to one up to this; float32 does.
ROUNDING = 1e-3


def own_label_log_odds(table: FloatArray, codes: NDArray[np.intp]) -> FloatArray:
    """Log p - log(1 - p) of each record's own class; the others are added up, not taken from one.

    One minus p has no digits left where p is nearly one.
    """
    rest = table.copy()
    rest[np.arange(len(codes)), codes] = 0.0
    own, others = table[np.arange(len(codes)), codes], rest.sum(axis=1)
    positive = np.concatenate([own[own > 0.0], others[others > 0.0]])
    least = np.clip(0.5 * positive.min(initial=1.0), LEAST_CHANCE, MOST_CHANCE)
    return np.asarray(np.log(np.maximum(own, least)) - np.log(np.maximum(others, least)))


def own_label_margin(
    name: str, answers: FloatArray, classes: NDArray[Any], columns: Any, y: NDArray[Any]
) -> FloatArray:
    """Decision values as scores: that of a record's own class against the others.

    Taken as log-odds before a softmax, without the softmax, so that nothing saturates.
    """
    codes = np.searchsorted(classes, y)
    if answers.ndim == 1 or answers.shape[1] == 1:
        if len(classes) != 2 or len(columns) != 2:
            raise InputError(
                f"the model of {name} gave one decision value per record, and there are "
                f"{len(classes)} classes."
            )
        return np.asarray(np.where(codes == 1, 1.0, -1.0) * answers.reshape(len(y)))
    if answers.shape[1] != len(classes) or len(columns) != len(classes):
        raise InputError(
            f"the model of {name} gave {answers.shape[1]} decision values per record, and there "
            f"are {len(classes)} classes: one for each is needed."
        )
    return label_log_odds(answers, codes)


def chances(name: str, answers: FloatArray, classes: NDArray[Any], columns: Any) -> FloatArray:
    """Probabilities, records x classes, whatever of the allowed forms the model answers in."""
    count = len(classes)
    if answers.ndim == 1 or answers.shape[1] == 1:
        chance = answers.reshape(len(answers))
        if count != 2:
            raise InputError(
                f"the model of {name} gave one number per record, and there are {count} classes: "
                "one column of probabilities for each class is needed."
            )
        if chance.min() < 0.0 or chance.max() > 1.0:
            raise InputError(
                f"the model of {name} gave one number per record, and not all lie between 0 and 1: "
                f"it must be the probability of the class {classes[1]}."
            )
        return np.stack([1.0 - chance, chance], axis=1)
    if columns is not None:
        # A half may lack a class; its probability is then zero.
        place = {value: at for at, value in enumerate(classes.tolist())}
        known = [place.get(value, -1) for value in np.asarray(columns).tolist()]
        if -1 in known or len(known) != answers.shape[1]:
            raise InputError(f"the model of {name} has other classes than y.")
        table = np.zeros((len(answers), count))
        table[:, known] = answers
        answers = table
    if answers.shape[1] != count:
        raise InputError(
            f"the model of {name} gave {answers.shape[1]} scores per record, and there are {count} "
            "classes: one column for each is needed, in the order of the sorted classes."
        )
    if answers.min() >= 0.0 and answers.max() <= 1.0 + ROUNDING:
        if (np.abs(answers.sum(axis=1) - 1.0) > ROUNDING).any():
            raise InputError(
                f"the model of {name} gave numbers between 0 and 1 that do not sum to 1: give "
                "probabilities, or scores before the softmax."
            )
        return answers
    # Scores before the softmax; the largest is taken off first, so that nothing overflows.
    shifted = np.exp(answers - answers.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


# Options that a sentence names.
MOST_SHOWN = 8


def options_of(training: OwnTraining) -> dict[str, Any]:
    """What can be changed of a training, with its present values.

    Of an estimator its parameters, of a function its keyword arguments that have a default.  The
    last step of a pipeline comes first: how it is trained matters most.
    """
    if training.is_estimator:
        found = dict(training.subject.get_params())
        steps = getattr(training.subject, "steps", None)
        last = f"{steps[-1][0]}__" if steps else ""
        return {**{name: found[name] for name in found if last and name.startswith(last)}, **found}
    try:
        parameters = list(inspect.signature(training.subject).parameters.values())
    except (TypeError, ValueError):
        return {}
    return {one.name: one.default for one in parameters[3:] if one.default is not one.empty}


def with_options(training: OwnTraining, options: Mapping[str, Any]) -> OwnTraining:
    """The same training with some of its options changed."""
    known = options_of(training)
    for name in options:
        if name not in known:
            there = ", ".join(f"{key}={value!r}" for key, value in list(known.items())[:MOST_SHOWN])
            more = " and more" if len(known) > MOST_SHOWN else ""
            has = f"it has {there}{more}" if known else "it has none"
            raise InputError(
                f"{training.name} has no option {name!r}: {has}. An option of a function is a "
                "keyword argument with a default, train(X, y, seed, epochs=20)."
            )
    if not options:
        return training
    if training.is_estimator:
        from sklearn.base import clone

        changed = clone(training.subject).set_params(**options)
        return training_of(changed, training.task, training.time_limit)
    told = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return training_of(
        partial(training.subject, **options),
        training.task,
        training.time_limit,
        name=f"{training.name} with {told}",
    )
