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
from leakscope.running import load_by_name, staying
from leakscope.verifying.network_training import TrainedAnswers


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
        }

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
            with staying(self.describe()["name"]):
                model = self.train_function(
                    X[rows].copy(), targets[:, 0].copy() if y.shape[1] == 1 else targets, int(seed)
                )
            answers.append(self._answers(model, queries, y.shape[1]))
            residual = self._answers(model, X[rows], y.shape[1]) - targets
            losses.append(0.5 * float(np.mean(np.sum(residual**2, axis=1))))
        return TrainedAnswers(np.array(answers), np.array(losses))

    def _answers(self, model: Any, queries: FloatArray, outputs: int) -> FloatArray:
        name = self.describe()["name"]
        with staying(name):
            predict = getattr(model, "predict", model)
        if not callable(predict):
            raise InputError(
                f"{name} returned {type(model).__name__}, which is no function of records and has "
                "no predict."
            )
        with staying(name):
            found = np.asarray(predict(queries.copy()), dtype=np.float64)
        if found.size != len(queries) * outputs:
            raise InputError(
                f"the model of {name} answered {len(queries)} records with an array of shape "
                f"{found.shape}; {outputs} number{'s' * (outputs > 1)} a record are needed."
            )
        if not np.isfinite(found).all():
            raise InputError(f"the model of {name} gave an answer that is not finite.")
        return found.reshape(len(queries), outputs)


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
