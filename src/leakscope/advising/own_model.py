"""The user's own model, changed and fitted again: its laws, and its loss on records held out.

A change is made where the pipeline ends: the transformers stay as fitted, as the laws assume.  The
price is the model's own loss at records that it was not fitted on, with the noise on its answers
averaged over: squared error, log loss, or Poisson deviance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from leakscope import fitted
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import as_key
from leakscope._numerics.largest_normal import chance_of_largest
from leakscope.advising.released_error import Folds, ReleasedError
from leakscope.auditing import Examined
from leakscope.errors import InputError

Rows = NDArray[np.intp]

# What the error of each loss is called.
LOSSES = {
    "square": "squared error",
    "logistic": "log loss",
    "softmax": "log loss",
    "poisson": "Poisson deviance",
}

# Normal draws over which the log loss of several noised scores is averaged.
DRAWS = 64
NODES = 61


@dataclass(frozen=True, eq=False)
class OwnModel:
    """A fitted estimator with its records, and what the audit asked of it.

    Attributes
    ----------
    estimator, design, labels, weights
        The innermost estimator, the numbers that reach it, what it predicts, and their weights.
    features
        The names of the design's columns.
    question, fraction, observes
        As in the audit.
    loss, task
        Which loss it minimises, and whether it predicts classes.
    """

    estimator: Any
    design: FloatArray
    labels: NDArray[Any]
    weights: FloatArray | None
    features: tuple[str, ...]
    question: Any
    fraction: float
    observes: Any
    loss: str
    task: str

    @classmethod
    def of(cls, examined: Examined, question: Any, fraction: float, observes: Any) -> OwnModel:
        """The model that an audit examined, with the question it was asked."""
        inner, design = fitted.inner_model(examined.estimator, examined.X)
        labels = np.ravel(np.asarray(examined.y))
        weights = examined.sample_weight
        weights = None if weights is None else np.asarray(weights, dtype=np.float64)
        told = fitted.from_sklearn(inner, design, labels, sample_weight=weights)
        names = examined.feature_names
        if names is None or len(names) != design.shape[1]:
            names = tuple(str(column) for column in range(design.shape[1]))
        return cls(
            inner,
            np.asarray(design, dtype=np.float64),
            labels,
            weights,
            names,
            question,
            fraction,
            observes,
            told.problems[0].loss,
            told.task,
        )

    @property
    def records(self) -> int:
        """How many records it is fitted on."""
        return len(self.labels)

    @property
    def work(self) -> float:
        """Products in one computation of the laws, in rough."""
        classes = len(getattr(self.estimator, "classes_", ())) if self.loss == "softmax" else 1
        return float(self.records) * float(self.design.shape[1] * max(1, classes)) ** 2

    def changed(
        self,
        *,
        rows: Rows | None = None,
        columns: Rows | None = None,
        penalty: float | None = None,
    ) -> OwnModel:
        """The same fitted again: on these records, on these features, with this penalty."""
        design = self.design if columns is None else self.design[:, columns]
        design = design if rows is None else design[rows]
        labels = self.labels if rows is None else self.labels[rows]
        weights = self.weights if rows is None or self.weights is None else self.weights[rows]
        names = self.features if columns is None else tuple(self.features[k] for k in columns)
        self._require_classes(labels, "what is left")
        fresh = fitted.fresh_copy(self.estimator, penalty=penalty)
        again = fitted.fit_again(fresh, self.estimator, design, labels, weights)
        return replace(
            self, estimator=again, design=design, labels=labels, weights=weights, features=names
        )

    def laws(self) -> fitted.FittedLaws:
        """Both laws of every record of this model, as the audit asked for them."""
        return fitted.laws_of(
            self.estimator,
            self.design,
            self.labels,
            question=self.question,
            fraction=self.fraction,
            observes=self.observes,
            sample_weight=self.weights,
        )

    def held_out(self, folds: Folds, kept: Rows | None = None) -> HeldOutScores:
        """The scores of every record by models fitted without its fold, and on ``kept`` only."""
        fresh = fitted.fresh_copy(self.estimator)
        scores = None
        for repeat, number in enumerate(folds.number):
            for fold in range(folds.count):
                asked, others = np.flatnonzero(number == fold), number != fold
                train = np.flatnonzero(others) if kept is None else kept[others[kept]]
                part = None if self.weights is None else self.weights[train]
                self._require_classes(self.labels[train], "a fold's training part")
                fitted.fit_again(
                    fresh, self.estimator, self.design[train], self.labels[train], part
                )
                found = self._scores(fresh, self.design[asked])
                if scores is None:
                    scores = np.empty((*folds.number.shape, *found.shape[1:]))
                scores[repeat, asked] = found
        assert scores is not None
        return HeldOutScores(scores, self._targets(), self.loss, self.task, folds)

    def _require_classes(self, labels: NDArray[Any], where: str) -> None:
        """Refuse records among which a class is missing: a model of them has other scores."""
        if self.task != "classification":
            return
        missing = np.setdiff1d(self.estimator.classes_, labels)
        if missing.size:
            raise InputError(
                f"{where} has no record of the class {missing[0]}; give the rarest class more "
                "records, or ask for more folds."
            )

    def _scores(self, estimator: Any, design: FloatArray) -> FloatArray:
        if self.task == "classification":
            return np.asarray(estimator.decision_function(design), dtype=np.float64)
        found = np.asarray(estimator.predict(design), dtype=np.float64).reshape(len(design))
        return np.log(found) if self.loss == "poisson" else found

    def _targets(self) -> FloatArray:
        if self.task != "classification":
            return np.asarray(self.labels, dtype=np.float64)
        return np.searchsorted(self.estimator.classes_, self.labels).astype(np.float64)


@dataclass(frozen=True)
class HeldOutScores:
    """Scores (R, n) or (R, n, C) of records held out: predictions, log-odds or logits."""

    scores: FloatArray
    targets: FloatArray
    loss: str
    task: str
    folds: Folds

    def released(self, noise: float = 0.0) -> ReleasedError:
        """The loss of answers with normal noise of this standard deviation on every score."""
        if self.task != "classification":
            return self.folds.released(self._of_numbers(noise))
        codes = self.targets.astype(np.intp)
        if self.scores.ndim == 3:
            return self._of_classes(codes, noise)
        own = np.where(codes == 1, self.scores, -self.scores)
        right = special.ndtr(own / noise) if noise > 0.0 else (own > 0.0).astype(np.float64)
        if self.loss == "square":
            return self.folds.released((own - 1.0) ** 2 + noise**2, right)
        return self.folds.released(noised_log_loss(own, noise), right)

    def _of_numbers(self, noise: float) -> FloatArray:
        if self.loss != "poisson":
            return np.asarray((self.scores - self.targets) ** 2 + noise**2)
        mean = np.exp(np.minimum(self.scores + 0.5 * noise**2, 700.0))
        return np.asarray(
            2.0 * (special.xlogy(self.targets, self.targets) - self.targets * self.scores
                   - self.targets + mean)
        )  # fmt: skip

    def _of_classes(self, codes: Rows, noise: float) -> ReleasedError:
        if noise > 0.0:
            right = chance_of_largest(self.scores / noise, codes)
        else:
            right = (np.argmax(self.scores, axis=2) == codes).astype(np.float64)
        place = (slice(None), np.arange(len(codes)), codes)
        if self.loss == "square":
            aim = -np.ones(self.scores.shape[1:])
            aim[np.arange(len(codes)), codes] = 1.0
            loss = np.mean((self.scores - aim) ** 2, axis=2) + noise**2
            return self.folds.released(loss, right)
        if noise == 0.0:
            loss = special.logsumexp(self.scores, axis=2) - self.scores[place]
            return self.folds.released(loss, right)
        generator = as_key(0).generator()
        loss = np.zeros(self.scores.shape[:2])
        for _ in range(DRAWS // 2):
            draw = noise * generator.standard_normal(self.scores.shape[1:])
            for sign in (1.0, -1.0):
                loss += special.logsumexp(self.scores + sign * draw, axis=2)
        # The own score's noise has mean zero.
        return self.folds.released(loss / DRAWS - self.scores[place], right)


def noised_log_loss(margin: FloatArray, noise: float) -> FloatArray:
    """E log(1 + exp(-(m + noise e))) over a standard normal e.

    Up to a noise of 1 by Gauss-Hermite.  Above that log(1 + exp(x)) = max(x, 0) + log(1 +
    exp(-|x|)), the first part in closed form and the second, which is narrow, by Gauss-Laguerre.
    """
    if noise <= 1.0:
        nodes, weights = special.roots_hermitenorm(NODES if noise > 0.0 else 1)
        parts = [
            w * np.logaddexp(0.0, -(margin + noise * x))
            for x, w in zip(nodes, weights, strict=True)
        ]
        return np.asarray(np.sum(parts, axis=0) / weights.sum())
    ratio = -margin / noise
    density = np.exp(-0.5 * ratio**2) / np.sqrt(2.0 * np.pi)
    total = -margin * special.ndtr(ratio) + noise * density
    nodes, weights = special.roots_laguerre(NODES)
    for x, w in zip(nodes, weights, strict=True):
        near = np.exp(-0.5 * ((x + margin) / noise) ** 2) + np.exp(
            -0.5 * ((x - margin) / noise) ** 2
        )
        total += w * np.exp(x) * np.log1p(np.exp(-x)) * near / (noise * np.sqrt(2.0 * np.pi))
    return np.asarray(total)
