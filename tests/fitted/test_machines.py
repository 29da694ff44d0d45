"""Support vector machines' margins and kernels, beside scikit-learn's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, NuSVC

from leakscope._numerics.memory import HEADROOM_BYTES
from leakscope.errors import InputError
from leakscope.fitted import machines


def wine(classes: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_wine(return_X_y=True)
    kept = y < classes
    return StandardScaler().fit_transform(X)[kept], y[kept]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "machine",
    [SVC(), SVC(kernel="poly", degree=2, coef0=0.5), SVC(kernel=rbf_kernel), NuSVC(nu=0.2)],
    ids=["SVC", "SVC-poly", "SVC-callable", "NuSVC"],
)
def test_margins_are_those_of_libsvm(
    machine: Any, classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = wine(classes)
    machine.set_params(decision_function_shape="ovo").fit(X[::2], y[::2])
    # More than one tile.
    monkeypatch.setattr(machines, "AT_ONCE", 20 * len(machine.support_vectors_))
    found = machines.margins_of_classes(machine, X)
    expected = machine.decision_function(X).reshape(len(X), -1)
    first, second = np.triu_indices(classes, 1)
    sign = -1.0 if classes == 2 else 1.0
    np.testing.assert_allclose(found[:, first, second], sign * expected, atol=1e-10)
    np.testing.assert_array_equal(found, -found.transpose(0, 2, 1))


def test_sparse_records_have_the_same_margins() -> None:
    X, y = wine(3)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    dense = SVC().fit(X, y)
    thin = SVC().fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(
        machines.margins_of_classes(thin, sparse.csr_matrix(X)),
        machines.margins_of_classes(dense, X),
        atol=5e-3,
    )


def test_kernels_of_records_with_themselves_and_with_some() -> None:
    X, y = wine(2)
    machine = SVC(kernel="poly", degree=2).fit(X, y)
    whole = machines.kernel(machine, X, X)
    np.testing.assert_allclose(machines.own_kernel(machine, X), np.diagonal(whole), rtol=1e-12)
    some = np.array([3, 50, 7])
    np.testing.assert_allclose(machines.kernel_beside(machine, X, some), whole[:, some], rtol=1e-12)
    assert machines.kernel_beside(machine, X, some[:0]).shape == (len(X), 0)


def test_a_kernel_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = wine(2)
    monkeypatch.setattr("leakscope._numerics.memory.available_memory", lambda: HEADROOM_BYTES)
    with pytest.raises(InputError, match="10 free support vectors needs"):
        machines.kernel_beside(SVC().fit(X, y), X, np.arange(10))
