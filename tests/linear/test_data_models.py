"""Latent space, Fourier series and random ReLU features: variances against sampled predictions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import special

from leakscope import linear
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.laws import NormalMixture
from leakscope.linear.data_models import Query, design_moments

MODELS = [
    linear.LatentSpace(12, 7, 3),
    linear.LatentSpace(12, 30, 3),
    linear.LatentSpace(12, 30, 3, convention="published"),
    linear.RandomRelu(20, 16, 40),
    linear.RandomRelu(10, 30, 40),
]


def latent_prediction(
    model: linear.LatentSpace, query: Query, rng: np.random.Generator, own: bool
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
    model: linear.RandomRelu, query: Query, rng: np.random.Generator, own: bool
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


@pytest.mark.parametrize(
    "model",
    [
        linear.LatentSpace(12, 7, 3),
        linear.LatentSpace(12, 30, 3),
        linear.LatentSpace(12, 30, 3, convention="published"),
        linear.RandomRelu(20, 16, 40),
        linear.RandomRelu(20, 16, 40, convention="published"),
    ],
)
def test_the_covariance_with_the_label_is_that_of_runs(model: linear.DataModel) -> None:
    """E y0 yhat0, from sampled labels and predictions: what the label-known attacker goes by."""
    query, rng = model.query(3), np.random.default_rng(7)
    label = model.label_variance(query)
    for own in (False, True):
        products = []
        for _ in range(1200):
            y0, prediction = (latent_run if isinstance(model, linear.LatentSpace) else relu_run)(
                model,  # type: ignore[arg-type]
                query,
                rng,
                own,
            )
            # the clip keeps the rare huge prediction near p = n from deciding alone
            products.append(y0 * np.clip(prediction, -4.0, 4.0))
        sides, _ = design_moments(model, query, designs=500, random_state=8)
        variance, covariance = sides[0 if own else 1]
        # Stein: Cov(y0, clip(yhat0)) = Cov(y0, yhat0) P(abs(yhat0) < 4)
        expected = covariance * (2.0 * special.ndtr(4.0 / np.sqrt(variance)) - 1.0)
        error = np.hypot(np.std(products) / np.sqrt(1200.0), expected.std() / np.sqrt(500.0))
        assert abs(np.mean(products) - expected.mean()) < 4.0 * error
        assert np.all(covariance**2 <= variance * label * (1.0 + 1e-9))


def latent_run(
    model: linear.LatentSpace, query: Query, rng: np.random.Generator, own: bool
) -> tuple[float, float]:
    W, x0 = query.fixed[:, :-1], query.fixed[:, -1]
    Z = rng.standard_normal((model.n, model.latent))
    X = Z @ W.T + rng.standard_normal((model.n, model.p))
    beta = rng.standard_normal(model.latent) / np.sqrt(model.latent)
    y = Z @ beta + model.sigma * rng.standard_normal(model.n)
    y0 = query.features @ beta + model.sigma * rng.standard_normal()
    if own:
        X[0] = x0
        if model.convention == "text":
            y[0] = y0
    return float(y0), float(x0 @ np.linalg.lstsq(X, y, rcond=None)[0])


def relu_run(
    model: linear.RandomRelu, query: Query, rng: np.random.Generator, own: bool
) -> tuple[float, float]:
    z0 = query.features
    Z = rng.standard_normal((model.n, model.dim))
    V = rng.standard_normal((model.dim, model.p))
    V /= np.linalg.norm(V, axis=1 if model.convention == "text" else 0, keepdims=True)
    beta = rng.standard_normal(model.dim) / np.sqrt(model.dim)
    y = Z @ beta + model.sigma * rng.standard_normal(model.n)
    y0 = z0 @ beta + model.sigma * rng.standard_normal()
    if own:
        Z[0], y[0] = z0, y0
    fit = np.linalg.lstsq(np.maximum(Z @ V, 0.0), y, rcond=None)[0]
    asked = np.maximum(z0 @ V, 0.0) if model.convention == "text" else z0 @ V
    return float(y0), float(asked @ fit)


@pytest.mark.parametrize("convention", ["text", "published"])
def test_fourier_series(convention: linear.data_model.Convention) -> None:
    model = linear.FourierSeries(10, 24, times=40, convention=convention)
    query = model.query(0)
    (member, _), (nonmember, _) = model.moments(query, Key(1).generator())
    # without noise a prediction is a projection of the signal at most
    if convention == "published":
        assert nonmember <= member * (1.0 + 1e-9)
        assert member == pytest.approx(model.label_variance(query))
    full = linear.FourierSeries(10, 40, times=40, convention=convention)
    row = full._rows(query.features.astype(int))[0]
    (member, _), _ = full.moments(query, Key(1).generator())
    assert member == pytest.approx(row @ row / 40.0)
    with pytest.raises(InputError, match="Fourier"):
        linear.FourierSeries(50, 24, times=40)


@pytest.mark.parametrize(("n", "p"), [(12, 5), (12, 14), (30, 20)])
def test_repeated_rows_in_exact_arithmetic(n: int, p: int) -> None:
    """Rows of distinct phases have Gram matrix (M/4) I + 11'/2, with M/2 for phase 0.

    So a design that misses the record's phase predicts with b'G^{-1}b, b = 1/2 everywhere, and one
    that holds it predicts exactly.
    """
    model = linear.FourierSeries(n, p, times=64, convention="published", rounding=False)
    query = model.query(1)
    period, time = 2 * p - 1, int(query.features[0])
    fold = np.array([min(t % period, period - t % period) for t in range(64)])
    rng = np.random.default_rng(0)
    hits, ratios = 0, []
    for _ in range(2000):
        chosen = rng.choice(np.delete(np.arange(64), time), n, replace=False)
        phases = set(fold[chosen].tolist())
        if fold[time] in phases:
            hits += 1
            continue
        total = sum(2.0 / period if phase == 0 else 4.0 / period for phase in phases)
        explained = 0.25 * total / (1.0 + 0.5 * total)
        ratios.append(explained / (p if fold[time] == 0 else period / 4.0 + 0.5))
    settled = model.settled(query)
    assert abs(hits / 2000.0 - settled) <= 4.0 * np.sqrt(settled * (1.0 - settled) / 2000.0)
    if settled < 1.0:
        (_, (variance, _)), _ = design_moments(model, query, designs=400, random_state=3)
        found = variance / model.label_variance(query)
        error = np.hypot(found.std() / 20.0, np.std(ratios) / np.sqrt(len(ratios)))
        assert abs(found.mean() - np.mean(ratios)) <= 4.0 * error + 1e-9


def test_fig_5b_rests_on_rounding() -> None:
    """At n = 128, p = 64 rows repeat; only rounding lets lstsq see the record's missing phase."""
    found = []
    for rounding in (True, False):
        model = linear.FourierSeries(128, 64, convention="published", rounding=rounding)
        query = model.query(4)
        (_, (variance, _)), _ = design_moments(model, query, designs=20, random_state=1)
        found.append(float(np.median(variance)) / model.label_variance(query))
    assert found[0] > 0.5
    assert found[1] < 0.05


@pytest.mark.parametrize("sigma", [-1.0, -np.inf, np.inf, np.nan])
def test_a_world_whose_noise_is_no_standard_deviation_is_refused(sigma: float) -> None:
    """-1 was taken for 1, and -inf left a warning of NumPy's."""
    for make in (linear.LatentSpace, linear.RandomRelu):
        with pytest.raises(InputError, match="sigma must be zero or above"):
            make(6, 4, 9, sigma)


@pytest.mark.parametrize(
    ("make", "sizes"),
    [
        (linear.LatentSpace, (6, 4, 10**12)),
        (linear.FourierSeries, (6, 4, 10**13)),
        (linear.RandomRelu, (6, 4, 10**12)),
    ],
)
def test_a_world_too_large_for_memory_is_refused_before_it_is_drawn(
    make: Callable[..., linear.DataModel], sizes: tuple[int, ...]
) -> None:
    """A latent space of a thousand million took gigabytes and half a minute, and went on."""
    with pytest.raises(InputError, match=r"One design of this .* GB"):
        make(*sizes)
