"""Latent space, Fourier series and random ReLU features: variances against sampled predictions."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope import linear
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.laws import NormalMixture

MODELS = [
    linear.LatentSpace(12, 7, 3),
    linear.LatentSpace(12, 30, 3),
    linear.LatentSpace(12, 30, 3, convention="published"),
    linear.RandomRelu(20, 16, 40),
    linear.RandomRelu(10, 30, 40),
]


def latent_prediction(
    model: linear.LatentSpace, query: linear.Query, rng: np.random.Generator, own: bool
) -> float:
    """One training run as the paper does it: sample everything, lstsq, predict."""
    W, x0 = query.fixed[:, :-1], query.fixed[:, -1]
    Z = rng.standard_normal((model.n, model.latent))
    X = Z @ W.T + rng.standard_normal((model.n, model.p))
    beta = rng.standard_normal(model.latent) / np.sqrt(model.latent)
    y = Z @ beta + model.sigma * rng.standard_normal(model.n)
    if own:
        X[0] = x0
        if model.convention == "text":
            y[0] = query.features @ beta + model.sigma * rng.standard_normal()
    return float(x0 @ np.linalg.lstsq(X, y, rcond=None)[0])


def relu_prediction(
    model: linear.RandomRelu, query: linear.Query, rng: np.random.Generator, own: bool
) -> float:
    z0 = query.features
    Z = rng.standard_normal((model.n, model.dim))
    if own:
        Z[0] = z0
    V = rng.standard_normal((model.dim, model.p))
    V /= np.linalg.norm(V, axis=1 if model.convention == "text" else 0, keepdims=True)
    beta = rng.standard_normal(model.dim) / np.sqrt(model.dim)
    y = Z @ beta + model.sigma * rng.standard_normal(model.n)
    fit = np.linalg.lstsq(np.maximum(Z @ V, 0.0), y, rcond=None)[0]
    asked = np.maximum(z0 @ V, 0.0) if model.convention == "text" else z0 @ V
    return float(asked @ fit)


@pytest.mark.parametrize("model", [*MODELS, linear.RandomRelu(20, 16, 40, convention="published")])
@pytest.mark.parametrize("own", [False, True])
def test_predictions_are_normal_given_the_design(model: linear.DataModel, own: bool) -> None:
    query = model.query(3)
    rng = np.random.default_rng(4)
    draw = latent_prediction if isinstance(model, linear.LatentSpace) else relu_prediction
    runs = np.array([draw(model, query, rng, own) for _ in range(1200)])  # type: ignore[arg-type]
    pair = linear.data_model_law_pair(model, query, designs=1200, random_state=5)
    law = pair.member if own else pair.nonmember
    assert isinstance(law, NormalMixture)
    for x in (0.3, 0.8, 1.5):
        inside = law.cdf(x) - law.cdf(-x)
        spread = np.sqrt(inside * (1.0 - inside) / runs.size) * np.sqrt(2.0)
        assert abs((np.abs(runs) < x).mean() - inside) < 4.0 * spread


def test_published_relu_is_the_same_in_the_reduced_basis() -> None:
    model = linear.RandomRelu(8, 20, 30, convention="published")
    query = model.query(1)
    rng = np.random.default_rng(2)
    runs = np.array([relu_prediction(model, query, rng, False) for _ in range(1500)])
    law = linear.data_model_law_pair(model, query, designs=1500, random_state=3).nonmember
    assert isinstance(law, NormalMixture)
    for x in (0.2, 0.6, 1.2):
        inside = float(law.cdf(x) - law.cdf(-x))
        spread = np.sqrt(inside * (1.0 - inside) / runs.size) * np.sqrt(2.0)
        assert abs((np.abs(runs) < x).mean() - inside) < 4.0 * spread


@pytest.mark.parametrize("convention", ["text", "published"])
def test_fourier_series(convention: linear.data_model.Convention) -> None:
    model = linear.FourierSeries(10, 24, times=40, convention=convention)
    query = model.query(0)
    member, nonmember = model.variances(query, Key(1).generator())
    # without noise a prediction is a projection of the signal at most
    if convention == "published":
        assert nonmember <= member * (1.0 + 1e-9)
        assert member == pytest.approx(1.0 / 24.0)
    full = linear.FourierSeries(10, 40, times=40, convention=convention)
    row = full._rows(query.features.astype(int))[0]
    member, _ = full.variances(query, Key(1).generator())
    assert member == pytest.approx(row @ row / 40.0)
    with pytest.raises(InputError, match="Fourier"):
        linear.FourierSeries(50, 24, times=40)


def test_histogram_adversary() -> None:
    rng = np.random.default_rng(0)
    member, nonmember = 1.4 * rng.standard_normal(100_000), 0.7 * rng.standard_normal(100_000)
    for convention in ("text", "published"):
        found = linear.histogram_advantage(member, nonmember, convention=convention)  # type: ignore[arg-type]
        assert found == pytest.approx(0.322675, abs=4.0 * np.sqrt(0.5 / 100_000) + 0.01)
    # by hand: members 0, 0, 1, 1 and non-members 0, 1, 1, 1 differ by a quarter in the first bin
    assert linear.histogram_advantage([0, 0, 1, 1], [0, 1, 1, 1]) == 0.25
