"""Theorem C.1's conditions, and its setting: a network that is right and leaks at once."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope import measures, relu
from leakscope.errors import InputError


def two_gaussians(
    n: int, d: int, squared: float, seed: int, spread: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Labels in turn, records from N(y mu, spread^2 I) with |mu|^2 = spread^2 squared."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    x = rng.standard_normal((n, d))
    x[:, 0] += y * np.sqrt(squared)
    return spread * x, y


def test_conditions_are_those_of_the_law() -> None:
    """Against |mu|^2 = 400 of the law itself, whatever the unit of the features."""
    for spread in (1.0, 3.0):
        values = [
            relu.learnable_conditions(*two_gaussians(40, 900, 400.0, seed, spread), width=50)
            for seed in range(12)
        ]
        squared = np.array([one.squared_means for one in values]).ravel()
        error = squared.std(ddof=1) / np.sqrt(len(squared))
        assert abs(squared.mean() - 400.0) < 4.0 * error
        assert values[0].mean == pytest.approx(min(values[0].squared_means) / (40**0.51 * 30.0))
        assert values[0].dimension == pytest.approx(900 / (1600 * max(values[0].squared_means)))
        assert values[0].width == pytest.approx(50 / 40**0.02)
        assert not values[0].hold


@pytest.mark.parametrize("squared", [60.0, 0.0])
def test_a_network_that_generalises_leaks_too(squared: float) -> None:
    x, y = two_gaussians(16, 800, squared, 1)
    others, labels = two_gaussians(200, 800, squared, 2)
    trained = relu.train(x, y, relu.TrainingPlan(width=50, steps=3000), random_state=0)
    answers = trained.outputs(others)[0]
    accuracy = float((labels * answers > 0.0).mean())
    if squared:
        assert accuracy > 0.97
    else:
        assert abs(accuracy - 0.5) < 4 * 0.5 / np.sqrt(200)
    assert relu.margin_bounds(x, y).covered
    assert (trained.margins[0] <= 1.01 * trained.margin[0]).all()
    attack = relu.KnownMargin(trained.margin[0])
    own, new = attack.attack(trained.margins[0] * y), attack.attack(answers)
    assert measures.auc(relu.scores_law_pair(own.scores, new.scores)).value > 0.99


def test_a_label_with_a_single_record_is_refused() -> None:
    with pytest.raises(InputError):
        relu.learnable_conditions([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1, 1, -1], width=5)
