"""lambda_c: certificates, scaling, and the closed form of the limit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from leakscope.errors import InputError
from leakscope.lasso.stability import stability_programme


def draw(n: int, p: int, seed: int):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)) / np.sqrt(p), rng.standard_normal(p)


def test_both_certificates_meet() -> None:
    X, eta = draw(60, 120, 0)
    found = stability_programme(X, eta)
    u = found.direction
    assert np.abs(X @ u).max() < 1e-12
    assert np.abs(u).sum() == pytest.approx(1.0)
    assert -(eta @ u) == pytest.approx(found.lower)
    assert np.abs(eta - X.T @ found.theta).max() == pytest.approx(found.upper)
    assert found.upper - found.lower < 1e-7


def test_it_scales_with_the_noise_and_not_with_the_design() -> None:
    X, eta = draw(40, 90, 1)
    one = stability_programme(X, eta).edge
    assert stability_programme(100.0 * X, 0.01 * eta).edge == pytest.approx(0.01 * one, rel=1e-6)


def test_no_edge_where_the_columns_are_independent() -> None:
    X, eta = draw(50, 30, 2)
    found = stability_programme(X, eta)
    assert found.edge == 0.0
    assert found.upper < 1e-10


def test_zero_noise_has_no_edge() -> None:
    assert stability_programme(np.ones((2, 3)), np.zeros(3)).edge == 0.0


@pytest.mark.parametrize("alpha", [0.3, 0.5, 0.7])
def test_the_mean_edge_is_the_closed_form(alpha: float) -> None:
    # THEORY: sqrt(t/(2 phi(t)/alpha - t)), t = Q^{-1}(alpha/2); here at p = 400 within 2% or 4
    # standard errors
    t = -special.ndtri(0.5 * alpha)
    phi = np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)
    limit = np.sqrt(t / (2.0 * phi / alpha - t))
    p = 400
    edges = [stability_programme(*draw(int(alpha * p), p, s)).edge for s in range(6)]
    error = np.std(edges, ddof=1) / np.sqrt(len(edges))
    assert abs(np.mean(edges) - limit) < max(0.02 * limit, 4.0 * error)


def test_bad_shapes() -> None:
    with pytest.raises(InputError, match="one entry for each"):
        stability_programme(np.ones((2, 3)), np.zeros(2))
