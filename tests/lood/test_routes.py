"""The feature-space route against the dense one and against refitting."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import refit_features

from leakscope import InputError, kernels, lood
from leakscope.lood import features


@pytest.mark.parametrize("outputs", [1, 4])
@pytest.mark.parametrize("noise", [1e-4, 0.1, 100.0])
def test_features_against_refitting(outputs, noise):
    rng = np.random.default_rng(0)
    phi, y = rng.normal(size=(50, 4)), rng.normal(size=50 if outputs == 1 else (50, outputs))
    found = lood.audit_features(phi, y, noise)
    exact = refit_features(phi, y, noise, np.longdouble, list(range(50)))
    np.testing.assert_allclose(found.kl, exact.kl().astype(float), rtol=1e-9)
    np.testing.assert_allclose(found.mean_without, exact.mean_without.astype(float), rtol=1e-8)
    np.testing.assert_allclose(found.variance_with, exact.variance_with.astype(float), rtol=1e-10)
    assert found.trusted.all()
    assert found.route == "features"


def test_features_in_blocks_and_in_float32(monkeypatch, tmp_path):
    rng = np.random.default_rng(1)
    phi, y = rng.normal(size=(101, 3)).astype(np.float32), rng.normal(size=101)
    whole = lood.audit_features(phi, y, 0.1)
    monkeypatch.setattr(features, "BLOCK_BYTES", 8 * 3 * 7)
    np.save(tmp_path / "phi.npy", phi)
    parts = lood.audit_features(np.load(tmp_path / "phi.npy", mmap_mode="r"), y, 0.1)
    np.testing.assert_allclose(parts.kl, whole.kl, rtol=1e-11)


@pytest.mark.parametrize(
    ("phi", "y", "noise", "sentence"),
    [
        (np.zeros(3), np.zeros(3), 0.1, "records by features"),
        (np.ones((3, 2)), np.zeros(4), 0.1, "phi has 3 records"),
        (np.array([[1.0, 2.0], [np.nan, 1.0]]), np.zeros(2), 0.1, "not finite in row 1"),
        (np.array([[1.0, 2.0], [0.0, 0.0]]), np.zeros(2), 0.1, "row 1 are all zero"),
        (np.array([["a", "b"]]), np.zeros(1), 0.1, "numbers only"),
        (np.ones((3, 2)), np.zeros(3), 0.0, "noise_variance must be positive"),
        (np.full((3, 2), 1e9), np.zeros(3), 1e-9, "too small beside these features"),
    ],
)
def test_features_refusals(phi, y, noise, sentence):
    with pytest.raises(InputError, match=sentence):
        lood.audit_features(phi, y, noise)


class Polynomial:
    """k(x, z) = (x.z)^2 of two inputs: three features."""

    def __init__(self, honest=True):
        self.honest = honest

    def __call__(self, X, Z=None):
        return (np.asarray(X) @ np.asarray(X if Z is None else Z).T) ** 2

    def diagonal(self, X):
        return np.sum(np.asarray(X) ** 2, axis=1) ** 2

    def resolved(self, X):
        return self

    def describe(self):
        return {"name": "polynomial"}

    def features(self, X):
        a, b = np.asarray(X).T
        cross = a * b * np.sqrt(2.0)
        return np.column_stack([a * a, b * b, cross if self.honest else a])


class Linear:
    def __call__(self, X, Z=None):
        return 2.0 * np.asarray(X) @ np.asarray(X if Z is None else Z).T + 0.5

    def diagonal(self, X):
        return 2.0 * np.sum(np.asarray(X) ** 2, axis=1) + 0.5

    def resolved(self, X):
        return self

    def describe(self):
        return {"name": "linear", "weight_variance": 2.0, "bias_variance": 0.5}


def test_finite_features_are_found_and_checked():
    X = np.random.default_rng(3).normal(size=(20, 2))
    assert features.finite_features(Polynomial(), X).shape == (20, 3)
    assert features.finite_features(Linear(), X).shape == (20, 3)
    shared = kernels.linear(3.0, bias_variance=0.1, divide_by_features=True)
    assert features.finite_features(shared, X).shape == (20, 3)
    assert features.finite_features(kernels.linear(), X).shape == (20, 2)
    assert features.finite_features(Polynomial(honest=False), X) is None
    assert features.finite_features(kernels.rbf(1.0), X) is None


def test_two_hundred_thousand_records_at_once():
    rng = np.random.default_rng(4)
    phi, y = rng.normal(size=(200_000, 5)).astype(np.float32), rng.normal(size=200_000)
    found = lood.audit_features(phi, y, 0.1)
    assert found.trusted.all()
    assert found.kl.shape == (200_000,)
