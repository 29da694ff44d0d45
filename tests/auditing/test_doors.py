"""What stands at the door of an audit: names, keywords beside a dataset, kernels of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import leakscope
from leakscope import data, kernels, lood
from leakscope.errors import InputError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + RNG.normal(size=60)


@pytest.mark.filterwarnings("ignore")
def test_names_of_numbers_and_text_are_taken_by_their_text() -> None:
    """A person whose name is an int in some rows and text in others was two people."""
    mixed = [row // 2 if row % 2 else str(row // 2) for row in range(60)]
    audit = leakscope.audit(X, Y, model=Ridge(1.0), groups=mixed)
    plain = leakscope.audit(X, Y, model=Ridge(1.0), groups=[str(name) for name in mixed])
    assert audit.units == 30
    np.testing.assert_array_equal(audit.advantage, plain.advantage)


@pytest.mark.parametrize(
    "beside", [{"groups": list(range(442))}, {"record_ids": list(range(442))}, {"y": Y}]
)
def test_what_stands_beside_a_dataset_is_refused(beside: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(beside))):
        leakscope.audit(data.read_example("diabetes"), **beside)


class Changed:
    """A covariance function whose values are changed."""

    def __init__(self, change: Callable[[np.ndarray], np.ndarray], factor: float = 1.0) -> None:
        self.kernel, self.change, self.factor = kernels.rbf(1.0), change, factor

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        return self.change(self.kernel(X, Z))

    def diagonal(self, X: Any) -> np.ndarray:
        return self.factor * self.kernel.diagonal(X)

    def resolved(self, X: Any) -> Changed:
        return self

    def describe(self) -> dict[str, Any]:
        return {"name": "changed"}


@pytest.mark.parametrize(
    "kernel",
    [
        Changed(lambda K: K + 0.1 * np.triu(K, 1) if K.shape[0] == K.shape[1] else K),
        Changed(lambda K: K, factor=2.0),
        Changed(lambda K: np.where(K < 0.5, np.nan, K)),
    ],
    ids=["not symmetric", "wrong diagonal", "not finite"],
)
def test_a_kernel_that_is_no_covariance_function_is_refused(kernel: Changed) -> None:
    with pytest.raises(InputError, match="Changed"):
        leakscope.audit(X, Y, model=lood.Process(kernel, 0.1))


@pytest.mark.filterwarnings("ignore")
def test_a_kernel_of_one_s_own_gives_the_same_numbers() -> None:
    own = leakscope.audit(X, Y, model=lood.Process(Changed(lambda K: K), 0.1))
    known = leakscope.audit(X, Y, model=lood.Process(kernels.rbf(1.0), 0.1))
    np.testing.assert_allclose(own.advantage, known.advantage, rtol=1e-9)
