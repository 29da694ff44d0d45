"""Losses: derivatives against differences, proximal maps against their equation."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from leakscope.single_fit import losses
from leakscope.single_fit.losses import (
    Loss,
    diagonal_yield,
    joined_move,
    softmax,
    softmax_prox,
    tweedie,
)
from leakscope.single_fit.structured import coupled_diagonal

FloatArray = NDArray[np.floating]

NAMES = ["square", "logistic", "poisson", *map(tweedie, (1.1, 1.5, 1.9, 2.0))]
LOSSES: list[Loss] = [losses.LOSSES[name] for name in NAMES]


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
            found = joined_move(*small)
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
