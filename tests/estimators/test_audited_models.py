"""Predictions against scikit-learn, leakage against the audit."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

import leakscope
from leakscope import kernels, lood
from leakscope.estimators import AuditedClassifier, AuditedRegressor


def data(n: int = 60, d: int = 3, seed: int = 0, outputs: int = 1) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    Y = np.column_stack([np.sin(X[:, 0] + c) + 0.3 * X[:, 1] + 5.0 for c in range(outputs)])
    Y = Y + 0.1 * rng.standard_normal(Y.shape)
    return X, Y[:, 0] if outputs == 1 else Y, rng.standard_normal((25, d))


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (kernels.rbf(1.3), RBF(1.3)),
        (kernels.rbf(0.7, variance=4.0), ConstantKernel(4.0) * RBF(0.7)),
        (kernels.matern(nu=2.5, length_scale=2.0), Matern(2.0, nu=2.5)),
        (kernels.linear(bias_variance=0.25), DotProduct(0.5)),
    ],
    ids=["rbf", "scaled rbf", "matern", "linear"],
)
def test_predictions_are_scikit_learns(ours: Any, theirs: Any, outputs: int) -> None:
    X, y, queries = data(outputs=outputs)
    mine = AuditedRegressor(ours, noise_variance=0.05).fit(X, y)
    other = GaussianProcessRegressor(theirs, alpha=0.05, optimizer=None).fit(X, y)
    mean, spread = other.predict(queries, return_std=True)
    np.testing.assert_allclose(mine.predict(queries), mean, rtol=1e-8, atol=1e-8)
    variance = mine.posterior_.at(queries)[1]
    spread = spread.reshape(len(queries), -1)[:, 0]
    np.testing.assert_allclose(np.sqrt(variance), spread, rtol=1e-7, atol=1e-8)


def test_the_noise_that_the_data_chose_is_used_for_predictions() -> None:
    X, y, queries = data()
    mine = AuditedRegressor(kernels.rbf(1.0), noise_variance="marginal_likelihood").fit(X, y)
    s2 = mine.result_.details.noise_variance
    other = GaussianProcessRegressor(RBF(1.0), alpha=s2, optimizer=None).fit(X, y)
    np.testing.assert_allclose(mine.predict(queries), other.predict(queries), rtol=1e-7)
    np.testing.assert_allclose(mine.predict(X), mine.result_.laws.separation.mean_with, rtol=1e-8)


@pytest.mark.parametrize("outputs", [1, 2])
def test_leakage_is_the_audits(outputs: int) -> None:
    X, y, _ = data(outputs=outputs)
    k = kernels.matern(nu=1.5, length_scale=1.0)
    model = AuditedRegressor(k, noise_variance=0.1).fit(X, y)
    result = leakscope.audit(X, y, kernel=k, noise_variance=0.1)
    for ours, theirs in (("leakage_", "advantage"), ("kl_", "kl"), ("auc_", "auc")):
        np.testing.assert_allclose(getattr(model, ours), getattr(result, theirs), rtol=1e-12)
    assert model.ranking_ == result.ranking()


def test_the_posterior_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, queries = data()
    trained = lood.posterior(X, y, kernel=kernels.rbf(1.0), noise_variance=0.1)
    whole = trained.at(queries)
    module = sys.modules["leakscope.lood.posterior"]
    monkeypatch.setattr(module, "BLOCK_BYTES", 8 * 60 * 7)
    for part, other in zip(trained.at(queries), whole, strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-12)


def test_classifier_is_the_coded_regression() -> None:
    X, y, queries = data(n=80)
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    model = AuditedClassifier(kernels.rbf(1.0), noise_variance=0.05).fit(X, labels)
    coded = np.eye(3)[labels] - 1.0 / 3.0
    other = GaussianProcessRegressor(RBF(1.0), alpha=0.05, optimizer=None).fit(X, coded)
    np.testing.assert_array_equal(model.predict(queries), other.predict(queries).argmax(axis=1))
    audit = leakscope.audit(X, coded, kernel=kernels.rbf(1.0), noise_variance=0.05)
    np.testing.assert_allclose(model.leakage_, audit.advantage, rtol=1e-12)
