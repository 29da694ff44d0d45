"""A kernel of the user's own is tried on the records before anything is computed from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import leakscope
from leakscope import lood
from leakscope.errors import InputError

RNG = np.random.default_rng(7)
X, Y = RNG.normal(size=(150, 3)), RNG.normal(size=150)


@dataclass
class Exponential:
    """exp(-|x - z|), with one fault put in."""

    fault: str = "none"

    def __call__(self, X: Any, Z: Any = None) -> Any:
        left, right = np.asarray(X), np.asarray(X if Z is None else Z)
        apart = left[:, None] - right[None]
        matrix = np.exp(-np.sqrt((apart**2).sum(axis=2)))
        if self.fault == "asymmetric":
            matrix = matrix * (1.0 + 0.02 * np.tanh(apart[..., 0]))
        elif self.fault == "not a number":
            # Of one pair in 11,175, both in one block of those that are tried.
            matrix[
                (left == X_TRIED[0]).all(axis=1)[:, None] & (right == X_TRIED[1]).all(axis=1)
            ] = np.nan
        elif self.fault == "flat":
            matrix = matrix.ravel()
        elif self.fault == "complex":
            matrix = matrix.astype(complex)
        elif self.fault == "noise on itself" and Z is None:
            # As scikit-learn's white kernel gives.
            matrix = matrix + 0.3 * np.eye(len(left))
        elif self.fault == "centred":
            matrix = matrix - matrix.mean()
        return matrix

    def diagonal(self, X: Any) -> Any:
        values = np.ones(len(X)) + 0.3 * (self.fault == "noise on itself")
        if self.fault == "centred":
            return np.diagonal(self(X))
        if self.fault == "one diagonal entry":
            values[(np.asarray(X) == X_TRIED[0]).all(axis=1)] = 1.01
        return values[:-1] if self.fault == "short diagonal" else values

    def resolved(self, X: Any) -> Exponential:
        return self

    def describe(self) -> dict[str, Any]:
        return {"name": "exponential"}


X_TRIED = X[np.random.default_rng(0).permutation(150)[70:72]]
FAULTS = (
    "asymmetric", "not a number", "flat", "complex", "noise on itself", "centred",
    "one diagonal entry", "short diagonal",
)  # fmt: skip
DOORS: dict[str, Callable[[Any], Any]] = {
    "process": lambda k: lood.ProcessOnRecords(X, Y, k, 0.1),
    "audit": lambda k: leakscope.audit(X, Y, kernel=k, sensitivity=False),
    "posterior": lambda k: lood.posterior(X, Y, kernel=k, noise_variance=0.1),
    "distinguish": lambda k: lood.distinguish(X, Y, leave_out=[1], kernel=k, noise_variance=0.1),
    "influence": lambda k: lood.influence(X, Y, kernel=k, noise_variance=0.1, queries=X[:2]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_kernel_that_is_no_covariance_function_is_refused(fault: str) -> None:
    with pytest.raises(InputError, match="the kernel Exponential"):
        lood.ProcessOnRecords(X, Y, Exponential(fault), 0.1)


@pytest.mark.parametrize("door", DOORS)
def test_at_every_door(door: str) -> None:
    DOORS[door](Exponential())
    with pytest.raises(InputError, match="the kernel Exponential"):
        DOORS[door](Exponential("asymmetric"))
    with pytest.raises(InputError, match="but it is a function"):
        DOORS[door](lambda X, Z=None: np.eye(len(X)))


def test_a_matrix_that_is_not_symmetric_is_refused() -> None:
    matrix = Exponential()(X)
    lood.all_records(matrix, Y, noise_variance=0.1)
    with pytest.raises(InputError, match="not symmetric"):
        lood.all_records(Exponential("asymmetric")(X), Y, noise_variance=0.1)
