from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from leakscope import InputError
from leakscope._numerics.keys import Key
from leakscope.verifying import (
    DenseNetwork,
    NetworkTrainer,
    influence,
    influence_functions,
    parameters_at,
    trac_in,
)
from leakscope.verifying.influence import tangent_products


@dataclass(frozen=True)
class Linear:
    """A network without hidden layers: everything about it is known from regression."""

    def apply(self, parameters, x):
        return x @ parameters[0]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    return rng.normal(size=(9, 4)), rng.normal(size=(9, 2)), rng.normal(size=(3, 4))


def ridge(X, y, weights, decay):
    """Minimises sum_j w_j |x_j b - y_j|^2/(2 n) + decay |b|^2/2."""
    matrix = X.T @ (weights[:, None] * X) / len(X) + decay * np.eye(X.shape[1])
    return np.linalg.solve(matrix, X.T @ (weights[:, None] * y) / len(X))


def test_influence_is_the_derivative_of_ridge_by_a_records_weight(data):
    X, y, queries = data
    fitted = [ridge(X, y, np.ones(9), 0.05)]
    found = influence_functions(Linear(), [fitted], X, y, queries, damping=0.05)
    for record in range(9):
        step = 1e-6 * np.eye(9)[record]
        ends = [queries @ ridge(X, y, np.ones(9) + s * step, 0.05) for s in (1, -1)]
        np.testing.assert_allclose(found.shift[record], (ends[0] - ends[1]) / 2e-6, atol=1e-7)


def test_leave_one_out_of_a_linear_network_is_refitting(data):
    X, y, queries = data
    fitted = [ridge(X, y, np.ones(9), 0.05)]
    found = influence_functions(Linear(), [fitted, fitted], X, y, queries, damping=0.05)
    for record in range(9):
        without = ridge(X, y, np.ones(9) - np.eye(9)[record], 0.05)
        expected = queries @ (fitted[0] - without)
        np.testing.assert_allclose(found.leave_one_out[record], expected, atol=1e-10)


def test_influence_functions_refuse_what_is_none(data):
    X, y, _ = data
    network = DenseNetwork((6,), activation="tanh")
    trainer = NetworkTrainer(network, epochs=1, batch_size=None)
    (models,) = parameters_at(trainer, X, 30.0 * y, np.ones((1, 9), dtype=bool), Key(0))
    with pytest.raises(InputError, match="damping must be positive"):
        influence_functions(network, models, X, y, damping=0.0)
    with pytest.raises(InputError, match="at least one model"):
        influence_functions(network, [], X, y, damping=1.0)
    with pytest.raises(InputError, match="queries must be rows of 4"):
        influence_functions(network, models, X, y, X[:, :2], damping=1.0)
    with pytest.raises(InputError, match="9 records and 2 queries"):
        influence_functions(network, models, X, y, X[:2], damping=1.0).self_shift()


def relu_answers(weights, x):
    first, second = weights[:20].reshape(4, 5), weights[20:].reshape(5, 2)
    return np.maximum(x @ first, 0.0) @ second


def slopes(weights, x):
    """(outputs, weights) by central differences."""
    steps = 1e-6 * np.eye(len(weights))
    return np.array(
        [(relu_answers(weights + s, x) - relu_answers(weights - s, x)) / 2e-6 for s in steps]
    ).T


def test_trac_in_by_loops_of_finite_differences(data):
    X, y, queries = data
    trainer = NetworkTrainer(
        DenseNetwork((5,)),
        optimiser="sgd",
        learning_rate=0.05,
        momentum=0.5,
        epochs=6,
        batch_size=4,
    )
    stops = (0, 2, 5)
    found = trac_in(trainer, X, y, queries, checkpoints=stops, models=2, random_state=3)
    trained = parameters_at(trainer, X, y, np.ones((2, 9), dtype=bool), Key(3), stops)
    shift = np.zeros((9, 3, 2))
    for epochs, models in zip((2, 3, 1), trained, strict=True):
        for model in models:
            weights = np.concatenate([np.float64(layer).ravel() for layer in model])
            for record in range(9):
                slope = slopes(weights, X[record])
                own = (relu_answers(weights, X[record]) - y[record]) @ slope
                for query in range(3):
                    moved = -slopes(weights, queries[query]) @ own
                    shift[record, query] += epochs * 0.05 / 0.5 / 4 / 2 * moved
    np.testing.assert_allclose(found, shift, atol=1e-6)


def test_trac_in_adds_up_to_what_small_steps_do(data):
    """The shifts of all records together are the change of the answers during training."""
    X, y, queries = data
    trainer = NetworkTrainer(
        DenseNetwork((64,), activation="tanh"),
        optimiser="sgd",
        learning_rate=1e-3,
        momentum=0.0,
        epochs=40,
        batch_size=None,
    )
    found = trac_in(trainer, X, y, queries, checkpoints=range(40))
    key, everything = Key(0), np.ones((1, 9), dtype=bool)
    (start,), (end,) = parameters_at(trainer, X, y, everything, key, (0, 40))
    change = [np.asarray(trainer.network.apply(p, np.float32(queries))) for p in (start, end)]
    np.testing.assert_allclose(found.sum(axis=0), change[1] - change[0], atol=1e-3)


def test_trac_in_refuses_what_it_cannot_follow(data):
    X, y, _ = data
    with pytest.raises(InputError, match="use sgd"):
        trac_in(NetworkTrainer(DenseNetwork((4,))), X, y)
    trainer = NetworkTrainer(DenseNetwork((4,)), optimiser="sgd", epochs=5, learning_rate=0.01)
    with pytest.raises(InputError, match="no epoch follows the checkpoint 5"):
        trac_in(trainer, X, y, checkpoints=(0, 5))
    with pytest.raises(InputError, match=r"rise from 0 to 5"):
        trac_in(trainer, X, y, checkpoints=(3, 1))
    with pytest.raises(InputError, match="the shapes are"):
        trac_in(trainer, X, y[:3])


def test_parameters_at_checkpoints_are_those_of_training(data):
    X, y, queries = data
    trainer = NetworkTrainer(DenseNetwork((8,)), epochs=7, batch_size=4)
    included = np.ones((2, 9), dtype=bool)
    included[1, 2] = False
    whole = trainer.train(X, y, included, queries, Key(5))
    ends = parameters_at(trainer, X, y, included, Key(5), (0, 3, 7))[-1]
    for model, parameters in enumerate(ends):
        answers = trainer.network.apply(parameters, np.float32(queries))
        np.testing.assert_allclose(whole.answers[model], answers, atol=1e-5)


def test_tangent_products_in_blocks(data, monkeypatch):
    X, y, queries = data
    trainer = NetworkTrainer(DenseNetwork((8,)), epochs=1)
    ((model,),) = parameters_at(trainer, X, y, np.ones((1, 9), dtype=bool), Key(0))
    whole = tangent_products(trainer.network, model, X, queries)
    monkeypatch.setattr(influence, "BLOCK_BYTES", 8 * 2 * (48 + 60) * 2)
    np.testing.assert_allclose(tangent_products(trainer.network, model, X, queries), whole)
    back = tangent_products(trainer.network, model, queries, X)
    np.testing.assert_allclose(np.transpose(back, (2, 3, 0, 1)), whole)
