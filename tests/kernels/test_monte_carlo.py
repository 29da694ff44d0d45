"""Kernels against wide random networks: within four standard errors, entry by entry."""

from __future__ import annotations

import numpy as np
import pytest
from random_networks import FUNCTIONS, conv_units, convolved, dense_units, second_moments

from leakscope import kernels

WEIGHT, BIAS = 1.6, 0.2
DRAWS = 48


def assert_within_four_standard_errors(draws, expected):
    draws = np.asarray(draws)
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    # The test means something only where the standard error is small beside the kernel.
    assert np.all(error < 0.05 * np.sqrt(np.outer(np.diagonal(expected), np.diagonal(expected))))
    assert np.all(np.abs(draws.mean(axis=0) - expected) < 4.0 * error)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_dense(name):
    rng = np.random.default_rng(11)
    X = rng.normal(size=(5, 6))
    X[1] = X[0] + 0.1
    settings = {"depth": 2, "width": 700, "weight": WEIGHT, "bias": BIAS}
    draws = [
        WEIGHT * second_moments(dense_units(rng, X, FUNCTIONS[name], **settings)) + BIAS
        for _ in range(DRAWS)
    ]
    k = kernels.nngp(2, name, WEIGHT, BIAS)
    assert_within_four_standard_errors(draws, k(X))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_convolutional_with_flatten(name):
    rng = np.random.default_rng(12)
    images = rng.normal(size=(4, 5, 4, 2))
    settings = {"depth": 2, "size": 3, "width": 240, "weight": WEIGHT, "bias": BIAS}
    draws = [
        WEIGHT * second_moments(conv_units(rng, images, FUNCTIONS[name], **settings)) + BIAS
        for _ in range(DRAWS)
    ]
    conv = kernels.conv(3, 1, "same", WEIGHT, BIAS)
    phi = kernels.activation(name)
    k = kernels.sequential(conv, phi, conv, phi, kernels.flatten(), kernels.dense(WEIGHT, BIAS))
    assert_within_four_standard_errors(draws, k(images))


@pytest.mark.parametrize("name", ["relu", "gelu", "tanh"])
def test_convolutional_with_pooling(name):
    rng = np.random.default_rng(13)
    images = rng.normal(size=(3, 4, 4, 2)) + 0.5
    settings = {"depth": 2, "size": 3, "width": 240, "weight": WEIGHT, "bias": BIAS}
    draws = []
    for _ in range(DRAWS):
        pooled = conv_units(rng, images, FUNCTIONS[name], **settings).mean(axis=(1, 2))
        draws.append(WEIGHT * second_moments(pooled) + BIAS)
    conv, phi = kernels.conv(3, 1, "same", WEIGHT, BIAS), kernels.activation(name)
    k = kernels.sequential(
        conv, phi, conv, phi, kernels.global_average_pool(), kernels.dense(WEIGHT, BIAS)
    )
    assert_within_four_standard_errors(draws, k(images))


def test_residual_and_layer_normalisation():
    rng = np.random.default_rng(14)
    X, width, relu = rng.normal(size=(4, 6)), 700, FUNCTIONS["relu"]
    draws = []
    for _ in range(DRAWS):

        def weights(h):
            W = rng.normal(size=(h.shape[1], width)) * np.sqrt(WEIGHT / h.shape[1])
            return h @ W + rng.normal(size=width) * np.sqrt(BIAS)

        h = weights(X)
        h = h + weights(relu(h))
        h = (h - h.mean(axis=1, keepdims=True)) / np.sqrt(h.var(axis=1, keepdims=True) + 1e-5)
        draws.append(WEIGHT * second_moments(relu(h)) + BIAS)
    dense, phi = kernels.dense(WEIGHT, BIAS), kernels.activation("relu")
    k = kernels.sequential(dense, kernels.residual(phi, dense), kernels.layer_norm(), phi, dense)
    assert_within_four_standard_errors(draws, k(X))


def test_convolutional_residual_with_a_branch_of_its_own():
    rng = np.random.default_rng(15)
    images, relu = rng.normal(size=(3, 4, 3, 2)), FUNCTIONS["relu"]
    settings = {"width": 240, "weight": WEIGHT, "bias": BIAS}
    draws = []
    for _ in range(DRAWS):
        h = convolved(rng, images, size=3, **settings)
        h = convolved(rng, relu(h), size=3, **settings) + convolved(rng, h, size=1, **settings)
        draws.append(WEIGHT * second_moments(relu(h)) + BIAS)
    conv, phi = kernels.conv(3, 1, "same", WEIGHT, BIAS), kernels.activation("relu")
    block = kernels.residual(phi, conv, skip=kernels.conv(1, 1, "same", WEIGHT, BIAS))
    k = kernels.sequential(conv, block, phi, kernels.flatten(), kernels.dense(WEIGHT, BIAS))
    assert_within_four_standard_errors(draws, k(images))
