from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import optimize

from leakscope import InputError
from leakscope._numerics.keys import Key
from leakscope.running.cell_store import open_cells
from leakscope.verifying import (
    DenseNetwork,
    FunctionTrainer,
    NetworkTrainer,
    RetrainingPlan,
    SubsetPlan,
    influence_functions,
    parameters_at,
    prediction_difference,
    retrain,
    trac_in,
    train_subsets,
)
from leakscope.verifying.experiments import influence
from leakscope.verifying.experiments.influence import tangent_products


@dataclass(frozen=True)
class Linear:
    """A network without hidden layers: everything about it is known from regression."""

    def apply(self, parameters, x):
        return x @ parameters[0]["w"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    return rng.normal(size=(9, 4)), rng.normal(size=(9, 2)), rng.normal(size=(3, 4))


def ridge(X, y, weights, decay):
    """Minimises sum_j w_j |x_j b - y_j|^2/(2 n) + decay |b|^2/2."""
    matrix = X.T @ (weights[:, None] * X) / len(X) + decay * np.eye(X.shape[1])
    return np.linalg.solve(matrix, X.T @ (weights[:, None] * y) / len(X))


@pytest.mark.parametrize("curvature", ["gauss-newton", "hessian"])
def test_influence_is_the_derivative_of_ridge_by_a_records_weight(data, curvature):
    X, y, queries = data
    fitted = [{"w": ridge(X, y, np.ones(9), 0.05)}]
    found = influence_functions(
        Linear(), [fitted], X, y, queries, damping=0.05, curvature=curvature
    )
    for record in range(9):
        step = 1e-6 * np.eye(9)[record]
        ends = [queries @ ridge(X, y, np.ones(9) + s * step, 0.05) for s in (1, -1)]
        np.testing.assert_allclose(found.shift[record], (ends[0] - ends[1]) / 2e-6, atol=1e-7)


def test_leave_one_out_of_a_linear_network_is_refitting(data):
    X, y, queries = data
    fitted = [{"w": ridge(X, y, np.ones(9), 0.05)}]
    found = influence_functions(Linear(), [fitted, fitted], X, y, queries, damping=0.05)
    assert found.models == 2
    for record in range(9):
        without = ridge(X, y, np.ones(9) - np.eye(9)[record], 0.05)
        expected = queries @ (fitted[0]["w"] - without)
        np.testing.assert_allclose(found.leave_one_out[record], expected, atol=1e-10)


def minimised(X, y, weights, decay, start, shapes):
    """The minimum of a small tanh network's penalised loss near a start, by Newton's method."""

    def forward(vector):
        first, second = np.split(vector, [shapes[0] * shapes[1]])
        return first.reshape(shapes[:2]), second.reshape(shapes[1:])

    def loss_and_slope(vector):
        first, second = forward(vector)
        hidden = np.tanh(X @ first)
        residual = weights[:, None] * (hidden @ second - y)
        value = 0.5 * np.sum(residual * (hidden @ second - y)) / len(X)
        back = (residual @ second.T) * (1.0 - hidden**2)
        slope = np.concatenate([(X.T @ back).ravel(), (hidden.T @ residual).ravel()]) / len(X)
        return value + 0.5 * decay * vector @ vector, slope + decay * vector

    found = optimize.minimize(loss_and_slope, start, jac=True, method="BFGS", tol=1e-7).x
    for _ in range(6):
        slope = loss_and_slope(found)[1]
        steps = 1e-5 * np.eye(len(found))
        hessian = [
            (loss_and_slope(found + s)[1] - loss_and_slope(found - s)[1]) / 2e-5 for s in steps
        ]
        found = found - np.linalg.solve(hessian, slope)
    return found, lambda vector, Q: np.tanh(Q @ forward(vector)[0]) @ forward(vector)[1]


def test_influence_of_a_nonlinear_network_is_what_refitting_finds(data):
    """Trained to the minimum, a record's weight moved a little, and trained again."""
    X, y, queries = data
    start = np.random.default_rng(1).normal(size=4 * 3 + 3 * 2)
    everything, answer = minimised(X, y, np.ones(9), 0.02, start, (4, 3, 2))
    layers = [{"w": everything[:12].reshape(4, 3)}, {"w": everything[12:].reshape(3, 2)}]
    network = DenseNetwork((3,), activation="tanh")
    found = influence_functions(network, [layers], X, y, queries, damping=0.02, curvature="hessian")
    for record in (0, 5):
        step = 1e-4 * np.eye(9)[record]
        ends = [
            answer(minimised(X, y, np.ones(9) + s * step, 0.02, everything, (4, 3, 2))[0], queries)
            for s in (1, -1)
        ]
        expected = (ends[0] - ends[1]) / 2e-4
        np.testing.assert_allclose(found.shift[record], expected, rtol=1e-3, atol=1e-5)


def test_an_indefinite_hessian_and_a_short_solve_are_refused(data):
    X, y, _ = data
    network = DenseNetwork((6,), activation="tanh")
    trainer = NetworkTrainer(network, epochs=1, batch_size=None)
    (models,) = parameters_at(trainer, X, 30.0 * y, np.ones((1, 9), dtype=bool), Key(0))
    with pytest.raises(InputError, match=r"negative curvature|left a residual"):
        influence_functions(network, models, X, 30.0 * y, damping=1e-3, curvature="hessian")
    with pytest.raises(InputError, match=r"after 1 iterations"):
        influence_functions(network, models, X, y, damping=30.0, curvature="hessian", iterations=1)
    with pytest.raises(InputError, match="damping must be positive"):
        influence_functions(network, models, X, y, damping=0.0)
    with pytest.raises(InputError, match="curvature must be"):
        influence_functions(network, models, X, y, damping=1.0, curvature="fisher")
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
    wanted = np.ones((3, 2))
    trainer = NetworkTrainer(
        DenseNetwork((5,)),
        optimiser="sgd",
        learning_rate=0.05,
        momentum=0.5,
        epochs=6,
        batch_size=4,
    )
    stops = (0, 2, 5)
    found = trac_in(trainer, X, y, queries, wanted, checkpoints=stops, models=2, random_state=3)
    trained = parameters_at(trainer, X, y, np.ones((2, 9), dtype=bool), Key(3), stops)
    shift, drop = np.zeros((9, 3, 2)), np.zeros((9, 3))
    for epochs, models in zip((2, 3, 1), trained, strict=True):
        for model in models:
            weights = np.concatenate([np.float64(layer["w"]).ravel() for layer in model])
            for record in range(9):
                slope = slopes(weights, X[record])
                own = (relu_answers(weights, X[record]) - y[record]) @ slope
                for query in range(3):
                    moved = -slopes(weights, queries[query]) @ own
                    missing = relu_answers(weights, queries[query]) - wanted[query]
                    size = epochs * 0.05 / 0.5 / 4 / 2
                    shift[record, query] += size * moved
                    drop[record, query] -= size * missing @ moved
    np.testing.assert_allclose(found.shift, shift, atol=1e-6)
    np.testing.assert_allclose(found.loss_drop, drop, atol=1e-6)


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
    assert found.loss_drop is None
    key, everything = Key(0), np.ones((1, 9), dtype=bool)
    (start,), (end,) = parameters_at(trainer, X, y, everything, key, (0, 40))
    change = [np.asarray(trainer.network.apply(p, np.float32(queries))) for p in (start, end)]
    np.testing.assert_allclose(found.shift.sum(axis=0), change[1] - change[0], atol=1e-3)


def test_trac_in_refuses_what_it_cannot_follow(data):
    X, y, _ = data
    with pytest.raises(InputError, match="use sgd"):
        trac_in(NetworkTrainer(DenseNetwork((4,))), X, y)
    trainer = NetworkTrainer(DenseNetwork((4,)), optimiser="sgd", epochs=5, learning_rate=0.01)
    with pytest.raises(InputError, match="no epoch follows the checkpoint 5"):
        trac_in(trainer, X, y, checkpoints=(0, 5))
    with pytest.raises(InputError, match=r"rise from 0 to 5"):
        trac_in(trainer, X, y, checkpoints=(3, 1))
    with pytest.raises(InputError, match="shape of their targets"):
        trac_in(trainer, X, y, X[:2], y[:1])
    with pytest.raises(InputError, match="the shapes are"):
        trac_in(trainer, X, y[:3])


def test_parameters_at_checkpoints_are_those_of_training(data):
    X, y, queries = data
    trainer = NetworkTrainer(DenseNetwork((8,), bias=True), epochs=7, batch_size=4)
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
    monkeypatch.setattr(influence, "RIGHT_BLOCK", 2)
    np.testing.assert_allclose(tangent_products(trainer.network, model, X, queries), whole)
    back = tangent_products(trainer.network, model, queries, X)
    np.testing.assert_allclose(np.transpose(back, (2, 3, 0, 1)), whole)


def mean(X, y, seed):
    return lambda Q: np.broadcast_to(y.mean(axis=0), (len(Q), *y.shape[1:]))


def test_subsets_of_a_mean_have_a_closed_form(tmp_path):
    """With a subset of m of n records, record i moves the mean by (y_i - mean of others)/m."""
    y = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 30.0])
    X, plan = np.arange(8.0)[:, None], SubsetPlan(models=400, share=0.5, models_per_cell=100)
    with open_cells(tmp_path / "run", settings=plan.describe(), seed=2) as store:
        found = train_subsets(X, y, FunctionTrainer(mean), plan, store, seed=2, queries=X[:2])
        more = SubsetPlan(models=500, share=0.5, models_per_cell=100)
        grown = train_subsets(X, y, FunctionTrainer(mean), more, store, seed=2, queries=X[:2])
    assert (found.included.sum(axis=1) == 4).all()
    np.testing.assert_array_equal(grown.included[:400], found.included)
    contrast = found.memorisation("answer")
    expected = (y - (y.sum() - y) / 7) / 4
    assert (np.abs(contrast.value - expected) < 4.0 * contrast.stderr).all()
    assert (contrast.models_with + contrast.models_without == 400).all()
    # The standard error, against the closed form's own variance over subsets of 4.
    others = np.array([np.delete(y, i).var() * 7 / 6 for i in range(8)])
    spread = others * (3 * (1 - 3 / 7) / 16 + (1 - 4 / 7) / 4) / 200
    np.testing.assert_allclose(contrast.stderr, np.sqrt(spread), rtol=0.25)
    influence = found.influence(np.zeros(2), "answer")
    assert influence.value.shape == influence.stderr.shape == (8, 2)
    np.testing.assert_allclose(influence.value[:, 0], contrast.value)
    np.testing.assert_allclose(influence.stderr[:, 1], contrast.stderr)


def test_scores_of_subsets(tmp_path):
    def table(X, y, seed):
        """Knows the labels it saw, and says the first class elsewhere."""
        seen = {row.tobytes(): label for row, label in zip(X, y, strict=True)}
        return lambda Q: np.array([seen.get(q.tobytes(), np.array([1.0, 0.0])) for q in Q])

    X, y = np.arange(6.0)[:, None], np.eye(2)[[0, 1, 0, 1, 0, 1]]
    plan = SubsetPlan(models=40)
    with open_cells(tmp_path / "run", settings=plan.describe(), seed=0) as store:
        found = train_subsets(X, y, FunctionTrainer(table), plan, store, seed=0, queries=X)
    np.testing.assert_allclose(found.memorisation().value, y[:, 1])
    assert (found.memorisation().stderr > 0.02).all()
    np.testing.assert_allclose(found.memorisation("loss").value, y[:, 1])
    np.testing.assert_allclose(found.memorisation("answer").value, y[:, 1])
    np.testing.assert_allclose(np.diag(found.influence(y).value), y[:, 1])
    with pytest.raises(InputError, match="targets' shape is"):
        found.influence(y[:2])
    with pytest.raises(InputError, match="score must be"):
        found.memorisation("logit")
    with pytest.raises(InputError, match="share must be"):
        SubsetPlan(share=1.0)
    with pytest.raises(InputError, match="at least 4 models"):
        SubsetPlan(models=1)
    with (
        open_cells(tmp_path / "small", settings={}, seed=0) as store,
        pytest.raises(InputError, match="leaves a subset of 6"),
    ):
        train_subsets(X, y, FunctionTrainer(table), SubsetPlan(share=0.99), store, seed=0)


def test_prediction_differences_of_a_mean(tmp_path):
    def noisy(X, y, seed):
        value = y.mean() + 0.1 * np.random.default_rng(seed).normal()
        return lambda Q: np.full(len(Q), value)

    X, y = np.arange(6.0)[:, None], np.arange(6.0)
    plan = RetrainingPlan(records=(0, 5), models=100, models_per_cell=100, auc_half_width=None)
    with open_cells(tmp_path / "run", settings=plan.describe(), seed=0) as store:
        found = prediction_difference(retrain(X, y, FunctionTrainer(noisy), plan, store, seed=0))
    expected = np.array([[-0.5], [0.5]])
    assert (np.abs(found.shift - expected) < 4.0 * found.stderr).all()
    np.testing.assert_allclose(found.stderr, 0.1 * np.sqrt(2 / 100), rtol=0.25)
    assert found.rows.tolist() == [0, 5]
