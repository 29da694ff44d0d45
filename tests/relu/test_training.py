"""Training against a plain loop of differences in full dimension, and against the residual."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from leakscope._numerics.x64 import double_precision
from leakscope.errors import InputError
from leakscope.relu import SphereData, TrainingPlan, kkt_residual, train
from leakscope.relu.training import drawn_weights


def slow_descent(
    x: np.ndarray, y: np.ndarray, plan: TrainingPlan, seed: int, steps: int
) -> np.ndarray:
    """Descent on log L in all d dimensions by central differences, a step at a time."""
    k, d = plan.width, x.shape[1]
    with double_precision():
        theta = np.concatenate([np.asarray(t).ravel() for t in drawn_weights(plan, d, seed)])

    def margins(t: np.ndarray) -> np.ndarray:
        w, b, v = t[: k * d].reshape(k, d), t[k * d : -k], t[-k:]
        return np.asarray(y * (np.maximum(x @ w.T + b, 0.0) @ v))

    def loss(q: np.ndarray) -> np.ndarray:
        return np.exp(-q) if plan.loss == "exponential" else np.log1p(np.exp(-q))

    h = 1e-6
    radius = np.sqrt(1.0 + (x**2).sum(axis=1).max())
    for _ in range(steps):
        q = margins(theta)
        unit = h * np.eye(len(theta))
        rows = np.array([(margins(theta + e) - margins(theta - e)) / (2 * h) for e in unit])
        p = (loss(q - h) - loss(q + h)) / (2 * h) / loss(q).sum()
        eta = plan.step / (p @ (rows**2).sum(axis=0) + radius)
        theta = theta + eta * (rows @ p)
    return theta


@pytest.mark.parametrize(
    "plan",
    [
        TrainingPlan(width=8, steps=12, initial_scale=0.3, flow_steps=0, check_every=12),
        TrainingPlan(
            width=8, steps=12, initial_scale=0.3, flow_steps=0, loss="logistic", check_every=12
        ),
    ],
    ids=["exponential", "logistic"],
)
def test_the_span_gives_what_the_whole_space_gives(plan: TrainingPlan) -> None:
    x, y = SphereData(12).training_sets(1, 4, random_state=3)
    trained = train(x, y, plan, random_state=1)
    slow = slow_descent(x[0], y[0], plan, trained.seeds[0], 12)
    network = trained.network(0)
    whole = np.concatenate([network.w.ravel(), network.b, network.v])
    assert whole == pytest.approx(slow, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_training_ends_near_a_kkt_point(loss: Any) -> None:
    x, y = SphereData(60).training_sets(3, 10, random_state=0)
    plan = TrainingPlan(width=100, steps=8000, flow_steps=2000, loss=loss)
    trained = train(x, y, plan, random_state=0)
    assert trained.correct.all()
    assert trained.residual.max() < 0.02
    for i in range(3):
        found = kkt_residual(trained.network(i), x[i], y[i])
        assert found.residual < 0.02
        # The residual along the path is a residual of points nearby, kinks included.
        assert found.stationarity < 2.0 * trained.residual[i] + 1e-3
    plain = train(x, y, TrainingPlan(width=100, steps=8000, flow_steps=0), random_state=0)
    assert plain.residual.min() > trained.residual.max()


def test_a_batch_is_the_same_as_one_after_another() -> None:
    x, y = SphereData(30).training_sets(4, 6, random_state=0)
    plan = TrainingPlan(width=20, steps=400, flow_steps=100, check_every=100)
    together = train(x, y, plan, random_state=0, batch=4)
    alone = train(x, y, plan, random_state=0, batch=2)
    assert together.margins == pytest.approx(alone.margins, rel=1e-6)


def test_the_residual_stops_the_training() -> None:
    x, y = SphereData(60).training_sets(2, 8, random_state=0)
    plan = TrainingPlan(width=60, steps=20_000, flow_steps=1000, tolerance=0.02, check_every=500)
    trained = train(x, y, plan, random_state=0)
    assert trained.residual.max() <= 0.02
    full = train(x, y, replace(plan, tolerance=0.0), random_state=0)
    assert full.margins.min() > trained.margins.min()


def test_outputs_are_those_of_the_networks() -> None:
    x, y = SphereData(30).training_sets(2, 5, random_state=0)
    trained = train(x, y, TrainingPlan(width=20, steps=500, flow_steps=100), random_state=0)
    fresh = SphereData(30).sample(7, random_state=1)
    for i in range(2):
        assert trained.outputs(fresh)[i] == pytest.approx(trained.network(i)(fresh), rel=1e-10)
    with pytest.raises(InputError, match="30 features"):
        trained.outputs(fresh[:, :5])


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.ones((3, 2)), [1.0, -1.0], "one label per point"),
        (np.full((2, 2), np.nan), [1.0, -1.0], "must be finite"),
        (np.ones((2, 2)), [1.0, 0.0], "-1 or 1"),
        (np.ones(3), [1.0], "shape"),
    ],
)
def test_bad_training_sets_are_refused(x: Any, y: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        train(x, y, TrainingPlan(width=3, steps=1))


def test_remark_b6_has_a_factor_too_many() -> None:
    """The logistic loss's slope in the answer, by differences: the printed bound fails below 1."""
    m, h = 0.1, 1e-6
    slope = abs(np.logaddexp(0.0, -(m + h)) - np.logaddexp(0.0, -(m - h))) / (2.0 * h)
    share = np.exp(-m) / (1.0 + np.exp(-m))
    assert slope == pytest.approx(share, rel=1e-8)
    assert slope > 9.0 * m * share
