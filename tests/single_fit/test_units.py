"""Units: points, moments and joint proximal maps against quadrature and their equations."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate

from leakscope.single_fit.losses import LOSSES, contrasts, softmax
from leakscope.single_fit.problem import ConvexProblem
from leakscope.single_fit.units import Stack, normal_points, renewed, sizes_of, square_root

FloatArray = NDArray[np.floating]


def stack_of(loss: str, rows: int, units: int = 40, classes: int = 1, seed: int = 0) -> Stack:
    generator = np.random.default_rng(seed)
    size = units * rows
    y = generator.integers(0, max(classes, 2), size).astype(float)
    problem = ConvexProblem(
        y=y,
        loss=loss,
        X=np.ones((size, 1)),
        weights=generator.uniform(0.5, 2.0, size),
        classes=classes,
    )
    return Stack.of(problem, np.arange(units), np.arange(size).reshape(units, rows))


def random_blocks(count: int, size: int, scale: float, seed: int) -> FloatArray:
    half = np.random.default_rng(seed).normal(size=(count, size, size + 2))
    return scale * half @ np.swapaxes(half, 1, 2) / size


def test_moments_against_integration() -> None:
    loss = LOSSES["logistic"]
    m, v, kappa = np.array([0.3, -2.0]), np.array([0.8, 2.0]), np.array([1.5, 0.2])
    y, weight = np.array([1.0, 0.0]), np.array([1.0, 2.5])
    every = np.arange(2)
    stack = Stack(every, every[:, None], y[:, None, None], weight[:, None], "logistic", 1)
    f = 0.5
    blocks = [part[:, None, None] for part in (v, kappa)]
    state = renewed(stack, m[:, None], *blocks, m[:, None], np.zeros((2, 1)), f)
    for i in range(2):

        def force(x: float, i: int = i) -> float:
            at = np.array([m[i] + np.sqrt(v[i]) * x])
            z = loss.prox(at, kappa[i : i + 1] * weight[i], y[i : i + 1])
            return float(weight[i] * loss.force(z, y[i : i + 1])[0])

        def density(x: float) -> float:
            return float(np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi))

        mean = integrate.quad(lambda x: force(x) * density(x), -9, 9)[0]
        square = integrate.quad(lambda x: force(x) ** 2 * density(x), -9, 9)[0]
        along = integrate.quad(lambda x: x * force(x) * density(x), -9, 9)[0]
        stein = along / np.sqrt(v[i])
        # one Newton step of m - f kappa E[F] = z from m = z
        missed = -f * kappa[i] * mean / (1.0 - f * kappa[i] * stein)
        np.testing.assert_allclose(m[i] - state.m[i, 0], missed, rtol=1e-3)
        np.testing.assert_allclose(state.force[i, 0], mean - stein * missed, rtol=1e-3)
        np.testing.assert_allclose(state.square[i, 0, 0], square, rtol=1e-3)
        np.testing.assert_allclose(state.slope[i, 0, 0], stein, rtol=1e-3)
        np.testing.assert_allclose(state.explained[i, 0, 0], mean**2 + along**2, rtol=1e-3)
        c = f * stein / (1.0 - f * kappa[i] * stein)
        np.testing.assert_allclose(state.c[i, 0, 0], c, rtol=1e-3)
        t = f * square - f**2 * (mean**2 + along**2)
        np.testing.assert_allclose(state.t[i, 0, 0], t * (1 + c * kappa[i]) ** 2, rtol=1e-3)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 9, 20])
def test_points_have_the_moments_of_a_normal(size: int) -> None:
    points, shares = normal_points(size, 9)
    assert np.all(shares > 0.0)
    np.testing.assert_allclose(shares.sum(), 1.0, atol=1e-12)
    np.testing.assert_allclose(shares @ points, 0.0, atol=1e-10)
    np.testing.assert_allclose((points.T * shares) @ points, np.eye(size), atol=1e-10)
    if size <= 7:
        fourth = np.einsum("s,si,sj->ij", shares, points**2, points**2)
        np.testing.assert_allclose(fourth, 1.0 + 2.0 * np.eye(size), atol=1e-9)


@pytest.mark.parametrize(("loss", "classes"), [("logistic", 1), ("softmax", 3), ("poisson", 1)])
@pytest.mark.parametrize("scale", [0.1, 10.0, 300.0])
def test_several_rows_fall_to_their_equation(loss: str, classes: int, scale: float) -> None:
    stack = stack_of(loss, 3, classes=classes)
    q = stack.size
    kappa = random_blocks(40, q, scale, 1)
    width = 1.0 if loss == "poisson" else 4.0
    m = width * np.random.default_rng(2).normal(size=(40, 5, q))
    start = np.zeros((40, q))
    fallen = stack.joined(m, kappa, start, start)
    left = fallen.z + stack.force(fallen.z) @ kappa - m
    assert np.abs(left).max() < 1e-4 * (1.0 + np.abs(m).max())


def test_a_row_with_classes_falls_as_rows_do() -> None:
    """The diagonal yield against the joint equation; exact for up to three classes."""
    stack = stack_of("softmax", 1, classes=3)
    k, basis = 3.0 * np.random.default_rng(1).random((40, 3, 1)), contrasts(3)
    kappa = basis.T @ (k * basis)
    m = 2.0 * np.random.default_rng(2).normal(size=(40, 4, 2))
    fallen = stack.joined(m, kappa, np.zeros((40, 2)), m[:, 0])
    left = fallen.z + stack.force(fallen.z) @ kappa - m
    assert np.abs(left).max() < 1e-4
    shares = np.full(4, 0.25)
    slope = fallen.slope(stack, kappa, shares)
    h = stack.curvature(fallen.z)
    exact = np.linalg.solve(np.eye(2) + h @ kappa[:, None], h).mean(axis=1)
    np.testing.assert_allclose(slope, exact, atol=1e-5)


@pytest.mark.parametrize(("loss", "classes"), [("logistic", 1), ("softmax", 4)])
def test_forces_and_curvatures_are_derivatives(loss: str, classes: int) -> None:
    stack = stack_of(loss, 2, classes=classes)
    z = np.random.default_rng(3).normal(size=(40, 1, stack.size))
    for k in range(stack.size):
        step = 1e-5 * np.eye(stack.size)[k]
        force = (stack.value(z + step) - stack.value(z - step)) / 2e-5
        np.testing.assert_allclose(stack.force(z)[..., k], force, atol=1e-8)
        bend = (stack.force(z + step) - stack.force(z - step)) / 2e-5
        np.testing.assert_allclose(stack.curvature(z)[..., k], bend, atol=1e-8)


def test_contrasts_lose_a_constant_only() -> None:
    basis, z = contrasts(5), np.random.default_rng(0).normal(size=(7, 5))
    np.testing.assert_allclose(softmax(z @ basis @ basis.T), softmax(z), atol=1e-12)
    np.testing.assert_allclose(basis.T @ basis, np.eye(4), atol=1e-12)


def test_groups_of_each_size_have_their_rows() -> None:
    codes = np.array([2, 0, 1, 0, 2, 2])
    found = {len(rows[0]): (units.tolist(), rows.tolist()) for units, rows in sizes_of(codes)}
    assert found == {1: ([1], [[2]]), 2: ([0], [[1, 3]]), 3: ([2], [[0, 4, 5]])}


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
