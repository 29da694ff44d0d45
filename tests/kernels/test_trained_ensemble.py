"""The law of trained wide networks, against gradient descent on networks linearised at random."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope import InputError, kernels


def test_ensembles_of_linear_models_trained_from_random_weights():
    """For f(x) = w.phi(x), K = E[f f] and T = phi.phi; training to the end is a projection."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(9, 12))
    train, query = features[:5], features[5:]
    covariance = np.diag(rng.uniform(0.5, 2.0, size=12))
    y = rng.normal(size=5)
    law = kernels.trained_ensemble(
        train @ covariance @ train.T,
        query @ covariance @ train.T,
        query @ covariance @ query.T,
        train @ train.T,
        query @ train.T,
        y,
    )
    start = rng.normal(size=(40000, 12)) @ np.sqrt(covariance)
    trained = start + (y - start @ train.T) @ np.linalg.pinv(train).T
    np.testing.assert_allclose(trained @ train.T, np.tile(y, (40000, 1)), atol=1e-9)
    outputs = trained @ query.T
    error = 4 * np.sqrt(np.diagonal(law.covariance) / len(outputs))
    assert np.all(np.abs(outputs.mean(axis=0) - law.mean) < error)
    scale = np.sqrt(np.outer(np.diagonal(law.covariance), np.diagonal(law.covariance)))
    assert np.all(np.abs(np.cov(outputs.T) - law.covariance) < 4 * scale * np.sqrt(2 / 40000))


def test_it_interpolates_and_is_not_the_posterior_formula():
    rng = np.random.default_rng(1)
    X, Q, y = rng.normal(size=(6, 4)), rng.normal(size=(2, 4)), rng.normal(size=(6, 2))
    k = kernels.nngp(2)
    own = kernels.trained_ensemble(k(X), k(X), k(X), k.ntk(X), k.ntk(X, X), y)
    np.testing.assert_allclose(own.mean, y, atol=1e-6)
    np.testing.assert_allclose(own.covariance, 0.0, atol=1e-6)
    law = kernels.trained_ensemble(k(X), k(Q, X), k(Q), k.ntk(X), k.ntk(Q, X), y)
    posterior = k.ntk(Q) - k.ntk(Q, X) @ np.linalg.solve(k.ntk(X), k.ntk(X, Q))
    assert np.linalg.eigvalsh(law.covariance).min() > 0
    assert np.abs(law.covariance - posterior).max() > 0.1


def test_refusals():
    K = np.eye(2)
    with pytest.raises(InputError, match="must have shapes"):
        kernels.trained_ensemble(K, K, K, K, np.eye(3), [1.0, 2.0])
    with pytest.raises(InputError, match="not positive definite"):
        kernels.trained_ensemble(K, K, K, np.ones((2, 2)), K, [1.0, 2.0])
    with pytest.raises(InputError, match="ridge must be"):
        kernels.trained_ensemble(K, K, K, K, K, [1.0, 2.0], ridge=-1.0)
    ridged = kernels.trained_ensemble(K, K, K, np.ones((2, 2)), K, [1.0, 2.0], ridge=0.1)
    assert np.isfinite(ridged.mean).all()
