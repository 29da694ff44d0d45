from __future__ import annotations

import numpy as np
import pytest

from leakscope import InputError
from leakscope._numerics.keys import Key
from leakscope.verifying import (
    DenseNetwork,
    NetworkTrainer,
)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 5))
    return X, np.sign(X[:, :1]) / 2


def by_hand(X, y, included, queries, weights, rate, epochs):
    """Full-batch gradient descent on one hidden ReLU layer, in NumPy and float64."""
    (first, second), counts = [w.astype(float) for w in weights], included[:, None].astype(float)
    for _ in range(epochs):
        hidden = np.maximum(X @ first, 0.0)
        slope = counts * (hidden @ second - y) / counts.sum()
        back = (slope @ second.T) * (hidden > 0.0)
        first, second = first - rate * X.T @ back, second - rate * hidden.T @ slope
    return np.maximum(queries @ first, 0.0) @ second


def test_steps_are_those_of_gradient_descent_by_hand(data):
    import jax

    X, y = data
    network = DenseNetwork((16,))
    trainer = NetworkTrainer(
        network, optimiser="sgd", momentum=0.0, learning_rate=0.2, epochs=30, batch_size=None
    )
    included = np.ones((2, 12), dtype=bool)
    included[1, 3] = False
    found = trainer.train(X, y, included, X[:4], Key(7))
    seeds = Key(7).generator().integers(2**32, size=2, dtype=np.uint32)
    for model in range(2):
        begin, _ = jax.random.split(jax.random.key(seeds[model]))
        weights = [np.asarray(layer) for layer in network.initial(begin, 5, 1)]
        expected = by_hand(X, y, included[model], X[:4], weights, 0.2, 30)
        np.testing.assert_allclose(found.answers[model], expected, rtol=2e-4, atol=2e-5)


def test_a_record_that_is_left_out_does_not_matter(data):
    X, y = data
    included = np.ones((1, 12), dtype=bool)
    included[0, 3] = False
    trainer = NetworkTrainer(DenseNetwork((8,)), epochs=10, batch_size=4)
    changed = y.copy()
    changed[3] = 100.0
    one = trainer.train(X, y, included, X, Key(1))
    two = trainer.train(X, changed, included, X, Key(1))
    np.testing.assert_array_equal(one.answers, two.answers)
    np.testing.assert_array_equal(one.losses, two.losses)


@pytest.mark.parametrize("activation", ["relu", "gelu", "erf", "tanh", "elu", "sin"])
def test_wide_networks_begin_as_the_gaussian_process(activation):
    """Their answers' covariance at the start is the NNGP kernel, within 4 standard errors."""
    import jax

    from leakscope.kernels import nngp

    X = np.random.default_rng(2).normal(size=(3, 4))
    network = DenseNetwork((256, 256), activation=activation)
    keys = jax.random.split(jax.random.key(0), 2000)
    answers = np.asarray(
        jax.lax.map(
            lambda k: network.apply(network.initial(k, 4, 1), np.float32(X))[:, 0],
            keys,
            batch_size=100,
        )
    )
    products = answers[:, :, None] * answers[:, None, :]
    kernel = nngp(depth=2, activation=activation, weight_variance=2.0)(X, X)
    stderr = products.std(axis=0) / np.sqrt(len(products))
    # A finite width moves the kernel by order 1/width.
    assert (np.abs(products.mean(axis=0) - kernel) < 4.0 * stderr + 0.02 * np.abs(kernel)).all()


def test_refusals(data):
    X, y = data
    with pytest.raises(InputError, match="training diverged with learning_rate 1000"):
        NetworkTrainer(DenseNetwork((8,)), optimiser="sgd", learning_rate=1e3).train(
            X, y, np.ones((1, 12), dtype=bool), X, Key(0)
        )
    for bad, word in (
        (lambda: DenseNetwork(()), "widths"),
        (lambda: DenseNetwork((4,), activation="step"), "activation"),
        (lambda: DenseNetwork((4,), weight_variance=0.0), "weight_variance"),
        (lambda: NetworkTrainer(DenseNetwork(), epochs=0), "epochs"),
        (lambda: NetworkTrainer(DenseNetwork(), optimiser="lbfgs"), "optimiser"),
        (lambda: NetworkTrainer(DenseNetwork(), learning_rate=0.0), "learning_rate"),
        (lambda: NetworkTrainer(DenseNetwork(), batch_size=0), "batch_size"),
    ):
        with pytest.raises(InputError, match=word):
            bad()
