from __future__ import annotations

import numpy as np
import pytest

from leakscope import kernels
from leakscope.lood.mean_distance import stationarity_conditions


class Written:
    """A kernel by its formula on two arrays of vectors."""

    def __init__(self, formula):
        self.formula = formula

    def __call__(self, X, Z=None):
        X, Z = np.asarray(X), np.asarray(X if Z is None else Z)
        return self.formula(X[:, None, :], Z[None, :, :])

    def diagonal(self, X):
        return np.array([self(row[None, :])[0, 0] for row in np.asarray(X)])


def distance(x, z):
    return np.sqrt(np.sum((x - z) ** 2, axis=-1))


def cosine(x, z):
    return np.sum(x * z, axis=-1) / np.sqrt(np.sum(x * x, axis=-1) * np.sum(z * z, axis=-1))


def matern32(x, z):
    r = np.sqrt(3.0) * distance(x, z)
    return (1 + r) * np.exp(-r)


@pytest.mark.parametrize(
    ("kernel", "normalised", "stationary"),
    [
        (kernels.rbf(1.0), True, True),
        (kernels.rbf(1e-3), True, True),
        (kernels.rbf(300.0, 5.0), True, True),
        (Written(lambda x, z: np.exp(-distance(x, z))), True, False),
        (Written(matern32), True, True),
        (Written(lambda x, z: np.sum(x * z, axis=-1)), False, False),
        (Written(cosine), True, True),
        (Written(lambda x, z: (1 + np.sum(x * z, axis=-1)) ** 2), False, False),
    ],
    ids=["rbf", "short", "long", "laplace", "matern32", "linear", "cosine", "polynomial"],
)
def test_known_kernels(kernel, normalised, stationary):
    X = np.random.default_rng(0).normal(size=(30, 4))
    found = stationarity_conditions(kernel, X)
    assert (found.normalised, found.stationary) == (normalised, stationary)
    assert found.on_sphere is None


@pytest.mark.parametrize(
    ("kernel", "along"),
    [
        (Written(lambda x, z: np.sum(x * z, axis=-1)), True),
        (kernels.nngp(depth=3), True),
        (Written(lambda x, z: np.exp(-distance(x, z))), False),
    ],
    ids=["linear", "nngp", "laplace"],
)
def test_a_kernel_on_the_sphere(kernel, along):
    """Prop. D.4: a slope along the record, and none along the sphere; a kink is one everywhere."""
    X = np.random.default_rng(1).normal(size=(30, 4))
    X *= 2.0 / np.linalg.norm(X, axis=1, keepdims=True)
    found = stationarity_conditions(kernel, X)
    assert (found.normalised, found.stationary, found.on_sphere) == (True, False, along)
