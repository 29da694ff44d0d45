"""A convex model of one fit: data, loss, penalty and weights; and what is asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope._numerics.products import row_products
from leakscope.errors import InputError
from leakscope.laws.pair import Assumption
from leakscope.single_fit.losses import LOSSES, SOFTMAX_STEP, Codes

# One of "square", "logistic", "softmax", "poisson", or `losses.tweedie` of a power.
LossName = str
Question = Literal["pool", "population", "known_others"]


@dataclass(frozen=True, eq=False)
class ConvexProblem:
    """A model that minimises sum_j w_j l(x_j'theta; y_j) + theta' Lambda theta / 2.

    Parameters
    ----------
    y
        The labels as the loss wants them: numbers, 0 and 1, class codes from 0, or counts; N, or
        N x K for K outputs of the square loss.
    loss
        ``"square"``, ``"logistic"``, ``"softmax"``, ``"poisson"``, or ``"tweedie(1.5)"`` of a power
        above 1, up to 2, which is the gamma loss.
    X
        The design, N x d, with a column of ones where the model has an intercept.
    penalty
        The diagonal of Lambda, d numbers; zero for a column that is not penalised.
    kernel
        Instead of X and penalty: the kernel matrix divided by its penalty, so that the objective
        is sum_j w_j l(f_j) + f' kernel^{-1} f / 2.
    weights
        Sample weights times class weights, N numbers.
    penalty_per_record
        Whether Lambda belongs to the mean loss, and so grows with the training set's weight;
        ``penalty`` is then the one of a training set of weight one.
    classes
        How many classes a softmax model has.
    coefficients
        theta of the released fit, d numbers or d x classes; None where it is not known.
    name
        The model in words, for the provenance.
    assumptions
        What was taken for granted on the way here.
    """

    y: FloatArray
    loss: LossName
    X: FloatArray | None = None
    penalty: FloatArray | None = None
    kernel: FloatArray | None = None
    weights: FloatArray | None = None
    penalty_per_record: bool = False
    classes: int = 1
    coefficients: FloatArray | None = None
    name: str = "a convex model"
    assumptions: tuple[Assumption, ...] = field(default=())

    def __post_init__(self) -> None:
        y = np.ascontiguousarray(self.y, dtype=np.float64)
        if y.ndim != 1 + (self.loss == "square" and y.ndim == 2) or len(y) < 2:
            raise InputError("A fitted model needs one label for each of at least two records.")
        if (self.X is None) == (self.kernel is None):
            raise InputError("A fitted model is given by a design X or by a kernel, not both.")
        weights = as_weights(self.weights, len(y))
        taken = {"labels": y, "sample weights": weights}
        if self.X is not None:
            X = taken["features"] = np.ascontiguousarray(self.X, dtype=np.float64)
            if X.ndim != 2 or len(X) != len(y):
                raise InputError(
                    f"X must have one row per record, but its shape is {X.shape} and there are "
                    f"{len(y)} labels."
                )
            penalty = np.zeros(X.shape[1]) if self.penalty is None else np.asarray(self.penalty)
            penalty = np.array(np.broadcast_to(penalty, X.shape[1:]), dtype=np.float64)
            taken["penalties"] = penalty
            object.__setattr__(self, "X", X)
            object.__setattr__(self, "penalty", penalty)
        else:
            kernel = taken["kernel entries"] = np.ascontiguousarray(self.kernel, dtype=np.float64)
            if kernel.shape != (len(y), len(y)):
                raise InputError(
                    f"The kernel matrix must be {len(y)} x {len(y)}, but it is {kernel.shape}."
                )
            object.__setattr__(self, "kernel", kernel)
        for what, array in taken.items():
            _finite(array, what)
        for what in ("sample weights", "penalties"):
            if np.any(taken.get(what, 0.0) < 0.0):
                raise InputError(f"The {what} must be zero or above.")
        if not np.any(weights > 0.0):
            raise InputError("The sample weights must not all be zero.")
        object.__setattr__(self, "y", y)
        object.__setattr__(self, "weights", weights)
        self._check_labels(y)

    def _check_labels(self, y: FloatArray) -> None:
        least, classes = LOSSES[self.loss].power if self.loss != "softmax" else None, self.classes
        allowed, words = {
            "square": (np.isfinite(y), "a number"),
            "logistic": ((y == 0.0) | (y == 1.0), "0 or 1"),
            "softmax": ((y == np.round(y)) & (y >= 0) & (y < classes), f"a code below {classes}"),
        }.get(self.loss, (y > 0.0, "above zero") if least == 2.0 else (y >= 0.0, "zero or above"))
        if not np.all(allowed):
            row = int(np.argmin(allowed))
            raise InputError(
                f"A label of the {self.loss} loss must be {words}, but row {row} has {y[row]:g}."
            )
        if self.loss in ("logistic", "softmax") and len(np.unique(y)) < 2:
            raise InputError("All records have one class; a classifier needs at least two.")

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self.y)

    @property
    def outputs(self) -> int:
        """How many numbers a prediction has: of several classes contrasts, one fewer."""
        if self.loss == "softmax":
            return self.classes - 1
        return int(self.y.shape[1]) if self.y.ndim == 2 else 1

    @property
    def quadratic(self) -> bool:
        """Whether everything is linear in the labels."""
        return self.loss == "square"

    @property
    def longest_step(self) -> float:
        """The most that a Newton step may move a prediction."""
        return SOFTMAX_STEP if self.loss == "softmax" else LOSSES[self.loss].longest_step

    @property
    def sample_weights(self) -> FloatArray:
        """The weights, N numbers."""
        assert self.weights is not None
        return self.weights

    def penalty_at(self, fraction: float) -> FloatArray:
        """Lambda's diagonal for a training set that has this fraction of the records' weight."""
        assert self.penalty is not None
        if not self.penalty_per_record:
            return self.penalty
        return np.asarray(self.penalty * fraction * self.sample_weights.sum())

    def kernel_at(self, fraction: float) -> FloatArray:
        """The kernel over its penalty for a training set of this fraction."""
        if self.kernel is None:
            return self._linear_kernel(fraction)
        if not self.penalty_per_record:
            return self.kernel
        return np.asarray(self.kernel / (fraction * self.sample_weights.sum()))

    def _linear_kernel(self, fraction: float) -> FloatArray:
        """X Lambda^{-1} X' for a design with more columns than records."""
        assert self.X is not None
        size = self.records
        require_memory(
            3 * 8 * size * size,
            f"The laws of {size} records with {self.X.shape[1]} features, in function space,",
            "use fewer records, or fewer features than records",
        )
        penalty = self.penalty_at(fraction)
        free = penalty == 0.0
        scaled = self.X[:, ~free] / np.sqrt(penalty[~free])
        kernel = row_products(scaled)
        scale = max(float(np.mean(np.diagonal(kernel))), 1.0 / self.sample_weights.sum())
        for column in np.flatnonzero(free):
            values = self.X[:, column]
            norm = float(np.mean(values**2))
            if norm > 0.0:
                kernel += (1e6 * scale / norm) * np.outer(values, values)
        return np.asarray(kernel)


def as_weights(weights: npt.ArrayLike | None, records: int) -> FloatArray:
    """Sample weights, one for each record; ones where none are given."""
    if weights is None:
        return np.ones(records)
    try:
        given = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("The sample weights are not all numbers.") from None
    if given.shape != (records,):
        raise InputError(
            f"There are {given.size} sample weights for {records} records; pass one for each."
        )
    return given


def _finite(array: FloatArray, what: str) -> None:
    good = np.isfinite(array)
    if not np.all(good):
        row = int(np.argwhere(~good)[0][0])
        raise InputError(f"The {what} must be finite numbers, but row {row} has one that is not.")


def group_codes(groups: Sequence[Any], records: int) -> Codes:
    """The number of each record's group, in the order in which the groups first come."""
    if len(groups) != records:
        raise InputError(f"There are {records} records and {len(groups)} groups.")
    place: dict[Any, int] = {}
    codes = np.array([place.setdefault(value, len(place)) for value in groups], dtype=np.intp)
    if len(place) < 2:
        raise InputError("All records belong to one group; at least two are needed.")
    return codes


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
