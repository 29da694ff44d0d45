"""What a defence costs: the cross-validated error of the answers that are released.

A released answer is one draw from the posterior, with noise of variance v added where that is the
defence.  Its expected squared error at a record held out is

    (mean - y)^2 + posterior variance + v,

averaged over outputs; the draw and the noise are averaged over exactly, not simulated.  For classes
the chance that the sign, or the largest output, of the released answer is the right one is
computed the same way.

Folds hold whole units: a person's records never stand on both sides.  Records that a defence drops
or merges are so treated in the training part only; every record is predicted once per repetition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope._numerics.largest_normal import chance_of_largest
from leakscope.errors import InputError
from leakscope.lood import Process

Rows = NDArray[np.intp]
Task = Literal["regression", "classification"]


@dataclass(frozen=True)
class Folds:
    """Which fold holds out each record, repetition by repetition, (R, n).

    Examples
    --------
    >>> from leakscope.advising import Folds
    >>> folds = Folds.of([0, 0, 1, 2, 2, 3], count=2, repeats=1, random_state=0)
    >>> bool(folds.number[0, 0] == folds.number[0, 1])
    True
    """

    number: Rows
    count: int

    @classmethod
    def of(
        cls,
        labels: object,
        *,
        count: int = 5,
        repeats: int = 4,
        random_state: int | np.random.Generator | Key | None = None,
    ) -> Folds:
        """Random folds of whole units; ``labels`` has each record's unit."""
        units = np.asarray(labels, dtype=np.intp)
        total = int(units.max()) + 1
        if count < 2 or count > total:
            raise InputError(
                f"folds must be from 2 to the {total} units there are, but they are {count}."
            )
        if repeats < 1:
            raise InputError(f"repeats must be 1 or more, but it is {repeats}.")
        key, number = as_key(random_state), np.empty((repeats, len(units)), dtype=np.intp)
        for repeat in range(repeats):
            place = np.empty(total, dtype=np.intp)
            place[key.child(repeat).generator().permutation(total)] = np.arange(total) % count
            number[repeat] = place[units]
        return cls(number, count)

    def released(self, loss: FloatArray, right: FloatArray | None = None) -> ReleasedError:
        """Fold by fold, the mean of every record's loss, (R, n), and of being right."""
        sizes = np.array([np.bincount(row, minlength=self.count) for row in self.number])

        def means(values: FloatArray) -> FloatArray:
            sums = [
                np.bincount(row, weights=each, minlength=self.count)
                for row, each in zip(self.number, values, strict=True)
            ]
            return np.asarray(np.array(sums) / sizes)

        return ReleasedError(means(loss), sizes, None if right is None else means(right))


@dataclass(frozen=True)
class ReleasedError:
    """The error of released answers, fold by fold.

    Attributes
    ----------
    by_fold
        (R, K) mean squared error of each fold.
    sizes
        (R, K) records held out.
    accuracy_by_fold
        (R, K) share of right classes; None where the target is a quantity.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.advising import ReleasedError
    >>> found = ReleasedError(np.array([[1.0, 3.0]]), np.array([[5, 5]]))
    >>> found.error, found.cost(found)
    (2.0, (0.0, 0.0, None))
    """

    by_fold: FloatArray
    sizes: Rows
    accuracy_by_fold: FloatArray | None = None

    @property
    def error(self) -> float:
        """Mean squared error over all records and repetitions."""
        return float(np.mean(self._by_repeat(self.by_fold)))

    @property
    def accuracy(self) -> float | None:
        """The share of right classes."""
        if self.accuracy_by_fold is None:
            return None
        return float(np.mean(self._by_repeat(self.accuracy_by_fold)))

    @property
    def stderr(self) -> float:
        """Of the error, over folds; repeating the split does not make it smaller."""
        return _over_folds(self.by_fold)

    def cost(self, own: ReleasedError) -> tuple[float, float, float | None]:
        """The error minus that of ``own`` on the same folds, with two standard errors.

        The first is over folds (other records would give another cost), the second over
        repetitions (another split of these records would); None where there is one repetition.
        """
        difference = self.by_fold - own.by_fold
        # What is the same in every fold, such as output noise, has no error but rounding.
        if np.ptp(difference) <= 1e-12 * np.max(np.abs(self.by_fold)):
            difference = np.full_like(difference, np.mean(difference))
        repeats = self._by_repeat(difference)
        split = None
        if len(repeats) > 1:
            split = float(np.std(repeats, ddof=1) / np.sqrt(len(repeats)))
        return float(np.mean(repeats)), _over_folds(difference), split

    def _by_repeat(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.sum(values * self.sizes, axis=1) / np.sum(self.sizes, axis=1))


def _over_folds(values: FloatArray) -> float:
    variance = np.var(values, axis=1, ddof=1) / values.shape[1]
    return float(np.sqrt(np.mean(variance)))


@dataclass(frozen=True)
class HeldOut:
    """Posterior mean (R, n, C) and variance (R, n) at every record, trained without its fold."""

    mean: FloatArray
    variance: FloatArray
    targets: FloatArray
    folds: Folds
    task: Task

    def released(self, output_variance: float = 0.0) -> ReleasedError:
        """The error of a draw with noise of this variance added."""
        spread = self.variance + output_variance
        squared = np.mean((self.mean - self.targets) ** 2, axis=2) + spread
        right = None
        if self.task == "classification":
            right = _right(self.mean, spread, self.targets)
        return self.folds.released(squared, right)


Predicted = Callable[[Rows, Rows], tuple[FloatArray, FloatArray]]
"""From the records outside a fold, and those in it, to the posterior mean (b, C) and variance (b,)
at the latter of what is trained on the former."""


def held_out(model: Process, folds: Folds, predicted: Predicted) -> HeldOut:
    """Train on what a defence leaves of each fold's training part, and predict the fold."""
    repeats, count = folds.number.shape
    mean = np.zeros((repeats, count, model.outputs.shape[1]))
    variance = np.empty((repeats, count))
    for repeat, number in enumerate(folds.number):
        for fold in range(folds.count):
            asked = np.flatnonzero(number == fold)
            found = predicted(np.flatnonzero(number != fold), asked)
            mean[repeat, asked], variance[repeat, asked] = found
    return HeldOut(mean, variance, model.outputs, folds, model.task)


def predicted_by_kernel(
    own: FloatArray,
    across: FloatArray,
    prior: FloatArray,
    targets: FloatArray,
    noise_variance: float,
) -> tuple[FloatArray, FloatArray]:
    """Posterior mean and variance from the kernel between the rows trained on, which is lost.

    ``across`` is the kernel from them to those asked, ``prior`` that of those asked with
    themselves.
    """
    own[np.diag_indices_from(own)] += noise_variance
    solved = linalg.solve_triangular(
        _factor(own, noise_variance),
        np.column_stack([across, targets]),
        lower=True,
        overwrite_b=True,
        check_finite=False,
    )
    root, white = solved[:, : len(prior)], solved[:, len(prior) :]
    left = prior - np.einsum("ij,ij->j", root, root)
    return root.T @ white, np.maximum(left, 0.0)


def _factor(matrix: FloatArray, noise_variance: float) -> FloatArray:
    """L, beside what is left of the matrix in the other triangle."""
    try:
        return cholesky.factorise(matrix, overwrite=True).packed
    except linalg.LinAlgError as error:
        raise InputError(
            f"the kernel matrix of a fold with noise_variance {noise_variance:g} on its diagonal "
            "is not positive definite in float64: audit with a larger noise_variance."
        ) from error


def _right(mean: FloatArray, spread: FloatArray, targets: FloatArray) -> FloatArray:
    """The chance that the released answer's sign, or largest output, is the record's class."""
    sigma = np.sqrt(np.maximum(spread, np.finfo(np.float64).tiny))
    if targets.shape[1] == 1:
        return np.asarray(special.ndtr(np.sign(targets[:, 0]) * mean[:, :, 0] / sigma))
    own = np.argmax(targets, axis=1)
    return chance_of_largest(mean / sigma[:, :, None], own)
