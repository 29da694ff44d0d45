"""The user's own training function: ``train(X, y, seed)`` returns a predictor."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.lood import require_real
from leakscope.running import load_by_name, staying
from leakscope.verifying.experiments.network_training import TrainedAnswers

# Answers are squared and summed.
LARGEST = 1e150


@dataclass(frozen=True)
class FunctionTrainer:
    """Trains with a function of the user's, one model after another.

    Parameters
    ----------
    train_function
        From records, targets (one number per record, or a row where there are several outputs) and
        a seed to a predictor: a function of records, or an object with ``predict``.
    name
        What a run calls it.
    labels
        Each record's target as it was written, which the function gets in place of numbers; None
        for numbers.  Of classes ``predict_proba`` is asked where the model has it.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope._numerics.keys import Key
    >>> from leakscope.verifying import FunctionTrainer
    >>> def nearest(X, y, seed):
    ...     return lambda Q: y[np.argmin(np.abs(Q - X.T), axis=1)]
    >>> trainer = FunctionTrainer(nearest)
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([[5.0], [6.0], [7.0]])
    >>> trainer.train(X, y, np.array([[True, True, False]]), X, Key(0)).answers[0, :, 0].tolist()
    [5.0, 6.0, 6.0]
    """

    train_function: Callable[[FloatArray, FloatArray, int], Any]
    name: str = ""
    labels: NDArray[Any] | None = None

    def describe(self) -> dict[str, Any]:
        """Its name and a digest of its source, so that a changed function is not resumed."""
        try:
            source = inspect.getsource(self.train_function)
        except (OSError, TypeError):
            source = ""
        name = self.name or getattr(self.train_function, "__qualname__", "function")
        return {
            "kind": "function",
            "name": name,
            "source": hashlib.sha256(source.encode()).hexdigest() if source else "unknown",
            **({} if self.labels is None else {"labels": "written"}),
        }

    def arrives(self, X: FloatArray, y: FloatArray) -> str:
        """What the function gets, in words."""
        if self.labels is not None:
            first = ", ".join(repr(value) for value in self.labels[:3].tolist())
            targets = f"{len(y)} labels as written ({first}, ...)"
        elif y.shape[1] == 1:
            values = np.unique(y)
            low, high = float(values[0]), float(values[-1])
            kind = f"{low:g} or {high:g}" if len(values) == 2 else f"from {low:.3g} to {high:.3g}"
            targets = f"{len(y)} numbers, {kind}"
        else:
            targets = f"{len(y)} rows of {y.shape[1]} numbers, one per class"
        return (
            f"X, {len(X)} records of {X.shape[1]} numbers, encoded and scaled as for the audit, "
            f"and y, {targets}"
        )

    def train(
        self,
        X: FloatArray,
        y: FloatArray,
        included: NDArray[np.bool_],
        queries: FloatArray,
        key: Key,
    ) -> TrainedAnswers:
        """Train a model for every row of ``included`` (models, n)."""
        seeds = key.generator().integers(2**31, size=len(included))
        answers, losses = [], []
        for rows, seed in zip(included, seeds, strict=True):
            targets = y[rows]
            given = targets[:, 0].copy() if y.shape[1] == 1 else targets
            if self.labels is not None:
                given = self.labels[rows].copy()
            with staying(self.describe()["name"]):
                model = self.train_function(X[rows].copy(), given, int(seed))
            answers.append(self._answers(model, queries, y))
            residual = self._answers(model, X[rows], y) - targets
            losses.append(0.5 * float(np.mean(np.sum(residual**2, axis=1))))
        return TrainedAnswers(np.array(answers), np.array(losses))

    def _answers(self, model: Any, queries: FloatArray, y: FloatArray) -> FloatArray:
        name, outputs = self.describe()["name"], y.shape[1]
        with staying(name):
            predict = getattr(model, "predict", model)
            if self.labels is not None:
                predict = getattr(model, "predict_proba", predict)
        if not callable(predict):
            raise InputError(
                f"{name} returned {type(model).__name__}, which is no function of records and has "
                "no predict."
            )
        with staying(name):
            told = _array(predict(queries.copy()), name)
        found = self._coded(told, y, name)
        if found.size != len(queries) * outputs:
            raise InputError(
                f"the model of {name} answered {len(queries)} records with an array of shape "
                f"{found.shape}; {outputs} number{'s' * (outputs > 1)} a record are needed."
            )
        if not np.isfinite(found).all():
            raise InputError(f"the model of {name} gave an answer that is not finite.")
        if np.abs(found).max(initial=0.0) > LARGEST:
            raise InputError(
                f"the model of {name} gave an answer of {np.abs(found).max():g}, whose square is "
                "beyond float64."
            )
        return found.reshape(len(queries), outputs)

    def _coded(self, told: NDArray[Any], y: FloatArray, name: str) -> FloatArray:
        """Answers in the numbers of y, whatever the model was given as y."""
        if self.labels is None:
            return _numbers(told, name)
        is_classes = y.shape[1] > 1 or set(np.unique(y)) == {-0.5, 0.5}
        if not is_classes:
            # In the target's own units, brought to those of the audit.
            written = _numbers(self.labels, name)
            low, high = int(np.argmin(written)), int(np.argmax(written))
            slope = float(y[high, 0] - y[low, 0]) / (float(written[high] - written[low]) or 1.0)
            return np.asarray(y[low, 0] + slope * (_numbers(told, name) - written[low]))
        classes = np.unique(self.labels)
        if told.ndim == 1:
            # Labels: all of the probability on one class.
            told = (told[:, None].astype(str) == classes[None, :].astype(str)).astype(np.float64)
        if told.shape[1:] != (len(classes),):
            raise InputError(
                f"the model of {name} answered with an array of shape {told.shape}; a label or the "
                f"probabilities of {len(classes)} classes are needed for each record."
            )
        centred = _numbers(told, name) - 1.0 / len(classes)
        return centred if y.shape[1] > 1 else centred[:, 1:]


def _array(answered: Any, name: str) -> NDArray[Any]:
    """The answers as an array; what NumPy would cut down to numbers is refused."""
    try:
        require_real(answered, f"what the model of {name} answers")
        return np.asarray(answered)
    except (TypeError, ValueError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(f"what the model of {name} answers is no array of numbers.") from problem


def _numbers(told: NDArray[Any], name: str) -> FloatArray:
    try:
        return np.asarray(told, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"the model of {name} answered {told.reshape(-1)[0]!r}, which is no number; if it is a "
            "class, give --labels written."
        ) from None


def load_trainer(text: str) -> FunctionTrainer:
    """The trainer that ``module:function`` names; modules of the working directory count.

    Examples
    --------
    >>> from leakscope.verifying import load_trainer
    >>> load_trainer("json")
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: --train needs module:function, but it is 'json'.
    """
    function = load_by_name(text, option="--train")
    if not callable(function):
        raise InputError(f"--train: {text} is no function.")
    return FunctionTrainer(function, text)
