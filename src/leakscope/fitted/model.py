"""A fitted model as its convex problems: one, or one per class where they are fitted apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.fitted.problem import ConvexProblem

Task = Literal["regression", "classification", "counts"]


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

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.fitted import ConvexProblem, FittedModel
    >>> X = np.array([[1.0], [2.0], [-1.0]])
    >>> model = FittedModel.of(ConvexProblem(y=np.array([1.0, 1.0, 0.0]), loss="logistic", X=X,
    ...                                      penalty=np.array([1.0])))
    >>> model.task, model.sign.tolist()
    ('classification', [1.0, 1.0, -1.0])
    """

    problems: tuple[ConvexProblem, ...]
    own: npt.NDArray[np.intp]
    sign: FloatArray
    task: Task

    @classmethod
    def of(cls, problem: ConvexProblem) -> FittedModel:
        """The model of one problem."""
        size = problem.records
        own = np.zeros(size, dtype=np.intp)
        if problem.loss == "logistic":
            return cls((problem,), own, 2.0 * problem.y - 1.0, "classification")
        if problem.loss == "softmax":
            return cls((problem,), own, np.ones(size), "classification")
        task: Task = "counts" if problem.loss == "poisson" else "regression"
        return cls((problem,), own, np.ones(size), task)

    @property
    def name(self) -> str:
        """The model in words."""
        return self.problems[0].name

    @property
    def records(self) -> int:
        """How many records there are."""
        return self.problems[0].records


def require_fraction(fraction: float, *, whole: bool) -> float:
    """A fraction of the records, checked; ``whole`` allows 1."""
    if not (isinstance(fraction, (int, float, np.floating)) and 0.0 < float(fraction) <= 1.0):
        raise InputError(f"fraction must be between 0 and 1, but it is {fraction!r}.")
    if float(fraction) == 1.0 and not whole:
        raise InputError(
            "fraction must be below 1 for the pool question: with all records in every training "
            "set nothing is random; ask for the population, or for known others."
        )
    return float(fraction)
