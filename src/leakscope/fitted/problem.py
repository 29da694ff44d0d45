"""A fitted convex model: data, loss, penalty and weights, and whose score is whose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.fitted.refits import WholeFit
from leakscope.single_fit.losses import LOSSES, label_log_odds
from leakscope.single_fit.problem import (
    ConvexProblem,
    LossName,
)

Task = Literal["regression", "classification", "counts"]


class NoLawsError(InputError):
    """No laws follow from a fit of this estimator; a few models of it have them."""


class NotOptimalError(InputError):
    """Coefficients that are not the optimum on the records they are said to be fitted on."""


@dataclass(frozen=True, eq=False)
class Away:
    """How far a released fit is from the optimum whose laws are given.

    Attributes
    ----------
    scores
        (N,) each record's score by the released coefficients, less that by the optimum.
    gradient
        The objective's gradient there over that at zero coefficients, as norms.
    penalty_found
        Whether the penalty was found from the coefficients: it makes them look nearer than the
        training is, which may have been stopped early.
    """

    scores: FloatArray
    gradient: float
    penalty_found: bool = False


@dataclass(frozen=True, eq=False)
class FittedModel:
    """What is known of a fitted model: its convex problems and whose score is whose.

    Parameters
    ----------
    problems
        One problem, or one per class (a ridge classifier fits each class on its own).
    own
        For every record, the number of the problem that scores its own label.
    sign
        +1 or -1 for every record: what turns a prediction into a score of the own label.
    task
        What the model does.
    whole
        The estimator with all that its ``fit`` learns beside the optimum of these problems; None
        where it learns nothing else.
    codes
        (N,) the number of each record's group, from 0, where whole groups leave; None where records
        leave singly.
    away
        How far the released coefficients are from the optimum, where they need not be it.
    """

    problems: tuple[ConvexProblem, ...]
    own: npt.NDArray[np.intp]
    sign: FloatArray
    task: Task
    whole: WholeFit | None = None
    codes: npt.NDArray[np.intp] | None = None
    away: Away | None = None

    @classmethod
    def of(cls, problem: ConvexProblem) -> FittedModel:
        """The model of one problem."""
        size = problem.records
        own = np.zeros(size, dtype=np.intp)
        if problem.loss == "logistic":
            return cls((problem,), own, 2.0 * problem.y - 1.0, "classification")
        if problem.loss == "softmax":
            return cls((problem,), own, np.ones(size), "classification")
        task: Task = "counts" if LOSSES[problem.loss].log_link else "regression"
        return cls((problem,), own, np.ones(size), task)

    @property
    def joint(self) -> ConvexProblem:
        """The problems as one with as many outputs, where each fits a class on its own."""
        first = self.problems[0]
        if len(self.problems) == 1:
            return first
        coefficients = [problem.coefficients for problem in self.problems]
        known = [part for part in coefficients if part is not None]
        return replace(
            first,
            y=np.column_stack([problem.y for problem in self.problems]),
            coefficients=np.column_stack(known) if len(known) == len(coefficients) else None,
        )

    @property
    def name(self) -> str:
        """The model in words."""
        return self.problems[0].name

    @property
    def records(self) -> int:
        """How many records there are."""
        return self.problems[0].records

    def scores(self, predictions: Sequence[FloatArray]) -> FloatArray:
        """(N,) each record's score, from what the problems predict: (N,) each, or (N, C)."""
        if self.loss == "softmax":
            return label_log_odds(predictions[0], self.targets)
        chosen = np.stack(predictions)[self.own, np.arange(self.records)]
        return np.asarray(self.sign * chosen)

    def in_groups(self, codes: npt.NDArray[np.intp] | None) -> FittedModel:
        """The same where whole groups leave; ``codes`` (N,) has each record's group."""
        return replace(self, codes=codes)

    def with_whole(self, whole: WholeFit) -> FittedModel:
        """The same inside another estimator, which is kept where it learns more than this."""
        return replace(self, whole=whole if whole.learned else None)

    @property
    def loss(self) -> LossName:
        """The loss that it minimises."""
        return self.problems[0].loss

    @property
    def targets(self) -> FloatArray:
        """The labels as the loss wants them."""
        return self.problems[0].y

    @property
    def parameters(self) -> int | None:
        """How many coefficients it has; None of a kernel."""
        total = 0
        for problem in self.problems:
            if problem.X is None:
                return None
            total += problem.X.shape[1] * (problem.classes if problem.loss == "softmax" else 1)
        return total

    @property
    def unit(self) -> Literal["record", "group"]:
        """What leaves."""
        return "record" if self.codes is None else "group"

    @property
    def units(self) -> int:
        """How many records, or groups of them, can leave."""
        return self.records if self.codes is None else int(self.codes.max()) + 1
