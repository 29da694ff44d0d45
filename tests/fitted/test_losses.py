"""Losses: derivatives against differences, proximal maps against their own equation."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import cast

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate

from leakscope.errors import InputError
from leakscope.fitted.losses import (
    LogisticLoss,
    Loss,
    PoissonLoss,
    SquareLoss,
    TweedieLoss,
    _inverse_times,
    diagonal_yield,
    moments,
    sigma_points,
    softmax,
    softmax_prox,
    square_root,
)
from leakscope.fitted.problem import ConvexProblem
from leakscope.fitted.responses import coupled_diagonal
from leakscope.fitted.softmax_cavity import SoftmaxCavity, _settled

FloatArray = NDArray[np.floating]

LOSSES: list[Loss] = [
    *(SquareLoss(), LogisticLoss(), PoissonLoss()),
    *(TweedieLoss(power) for power in (1.1, 1.5, 1.9, 2.0)),
]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_derivatives(loss: Loss) -> None:
    z, y, h = np.linspace(-4.0, 4.0, 33), np.repeat([0.0, 1.0, 1.0], 11), 1e-5
    force = (loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h)
    np.testing.assert_allclose(loss.force(z, y), force, atol=1e-7)
    curvature = (loss.force(z + h, y) - loss.force(z - h, y)) / (2 * h)
    np.testing.assert_allclose(loss.curvature(z, y), curvature, atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("scale", [0.0, 1e-8, 1e-2, 1.0, 1e3, 1e7])
def test_prox_solves_its_equation(loss: Loss, scale: float) -> None:
    generator = np.random.default_rng(1)
    m = generator.normal(0.0, 1.0 + min(scale, 300.0), 400)
    y = generator.integers(0, 2, 400).astype(float)
    k = scale * generator.random(400)
    z = loss.prox(m, k, y)
    np.testing.assert_allclose(z + k * loss.force(z, y), m, atol=1e-8 * (1.0 + scale), rtol=1e-9)


def test_softmax_prox_solves_its_equation() -> None:
    generator = np.random.default_rng(2)
    for scale in (0.0, 0.1, 10.0, 1e4):
        m, k = generator.normal(0, 3, (200, 6)), scale * generator.random((200, 6))
        target = np.eye(6)[generator.integers(0, 6, 200)]
        z = softmax_prox(m, k, target, m)
        np.testing.assert_allclose(z + k * (softmax(z) - target), m, atol=1e-5 * (1.0 + scale))


def test_softmax_prox_has_its_digits_where_a_class_is_sure() -> None:
    """A column that one record alone has: 1 - p'q was 0 by rounding, and the warning was shown."""
    target = np.array([1.0, 0.0, 0.0, 0.0])
    p = np.array([1.0 - 3e-9, 1e-9, 1e-9, 1e-9])
    for kind, close in ((np.float32, 1e-6), (np.float64, 1e-12)):
        for size in (1e3, 1e9, 1e17):
            k = np.array([size, 1.0, 2.0, 3.0])
            x = np.array([1.0, -1.0, 0.5, 2.0])
            small = [value.astype(kind) for value in (p, k * p, x)]
            found = _inverse_times(*small)
            exact = _exactly(p.astype(kind), k, x)
            np.testing.assert_allclose(found, exact, rtol=close, atol=close)
    m, k = np.zeros((1, 4), np.float32), np.full((1, 4), 1e8, np.float32)
    with np.errstate(all="raise", under="ignore"):
        z = softmax_prox(m, k, target.astype(np.float32)[None], m + k * target * 0.5)
    assert np.isfinite(z).all()


def _exactly(p: FloatArray, k: FloatArray, x: FloatArray) -> FloatArray:
    """(I + k h)^{-1} x in sixty digits."""
    with mpmath.workdps(60):
        total = mpmath.fsum(map(float, p))
        share = [mpmath.mpf(float(value)) / total for value in p]
        rows = [
            [(i == j) + mpmath.mpf(k[i]) * share[i] * ((i == j) - share[j]) for j in range(len(p))]
            for i in range(len(p))
        ]
        solved = mpmath.lu_solve(mpmath.matrix(rows), mpmath.matrix([float(v) for v in x]))
        return np.array([float(value) for value in solved])


def test_moments_against_integration() -> None:
    loss = LogisticLoss()
    m, v, kappa = np.array([0.3, -2.0]), np.array([0.8, 2.0]), np.array([1.5, 0.2])
    y, weight = np.array([1.0, 0.0]), np.array([1.0, 2.5])
    found = moments(loss, m, v, kappa, y, weight)
    for i in range(2):

        def force(x: float, i: int = i) -> float:
            at = np.array([m[i] + np.sqrt(v[i]) * x])
            z = loss.prox(at, kappa[i : i + 1] * weight[i], y[i : i + 1])
            return float(weight[i] * loss.force(z, y[i : i + 1])[0])

        def density(x: float) -> float:
            return float(np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi))

        mean = integrate.quad(lambda x: force(x) * density(x), -9, 9)[0]
        square = integrate.quad(lambda x: force(x) ** 2 * density(x), -9, 9)[0]
        stein = integrate.quad(lambda x: x * force(x) * density(x), -9, 9)[0] / np.sqrt(v[i])
        np.testing.assert_allclose(found.force[i], mean, rtol=1e-4)
        np.testing.assert_allclose(found.square[i], square, rtol=1e-3)
        np.testing.assert_allclose(found.slope[i], stein, rtol=1e-3)


def test_sigma_points_have_unit_covariance() -> None:
    points = sigma_points(7, 24, 0)
    np.testing.assert_allclose(points.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(points.T @ points / len(points), np.eye(7), atol=1e-12)


def test_diagonal_yield_is_exact_for_three_classes() -> None:
    generator = np.random.default_rng(3)
    k = generator.random((5, 3))
    u = generator.normal(size=(5, 3))
    kappa = k[:, :, None] * np.eye(3) + u[:, :, None] + u[:, None, :]
    np.testing.assert_allclose(diagonal_yield(kappa, softmax(u)), k, atol=1e-6)


def test_coupled_diagonal() -> None:
    a = np.random.default_rng(4).dirichlet(np.ones(6), 50)
    diagonal = a - a**2 / a.sum(axis=1, keepdims=True)
    found = coupled_diagonal(diagonal)
    np.testing.assert_allclose(
        found - found**2 / found.sum(axis=1, keepdims=True), diagonal, atol=1e-5
    )


def test_roots_of_covariances_that_rounding_left_negative() -> None:
    """Cholesky refused Location-30's, whose least eigenvalues were -6e-5 of the mean one."""
    rng = np.random.default_rng(0)
    half = rng.normal(size=(5, 30, 3))
    covariances = half @ np.swapaxes(half, 1, 2)
    vectors = np.linalg.eigh(covariances)[1]
    away = vectors[:, :, :1] @ np.swapaxes(vectors[:, :, :1], 1, 2)
    covariances[[1, 4]] -= (
        6e-5 * covariances[[1, 4]].trace(axis1=1, axis2=2)[:, None, None] * (away[[1, 4]] / 30)
    )
    root = square_root(covariances.astype(np.float32))
    assert root.dtype == np.float32
    largest = np.abs(covariances).max()
    np.testing.assert_allclose(root @ np.swapaxes(root, 1, 2), covariances, atol=2e-4 * largest)


@pytest.mark.parametrize("ends", ["in nothing", "in no inverse"])
def test_rounds_that_run_away_are_one_sentence(ends: str) -> None:
    """Location-30 with C = 1,000: four warnings of NumPy's, and laws that are no numbers."""

    def solve(problem: ConvexProblem, fraction: float) -> SoftmaxCavity:
        if ends == "in no inverse":
            raise np.linalg.LinAlgError
        grown = np.exp(np.full((2, 3), 1e3))
        found = SimpleNamespace(mean=grown - grown, variance=grown)
        return cast("SoftmaxCavity", found)

    problem = cast("ConvexProblem", SimpleNamespace(name="Softmax(C=1000)", records=400))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match=r"C=1000\) follows its 400 records .* penalty\.$"):
            _settled(problem, 0.5, solve)
