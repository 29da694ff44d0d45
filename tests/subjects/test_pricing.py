"""Prices of answers that were held out, against scikit-learn's deviances and against draws."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import mean_tweedie_deviance

from leakscope.single_fit.losses import tweedie
from leakscope.subjects.pricing import Folds, HeldOutScores, loss_words


@pytest.mark.parametrize("power", [1.3, 2.0])
def test_tweedie_deviance_with_and_without_noise(power: float) -> None:
    generator = np.random.default_rng(0)
    z, y = generator.normal(size=40), generator.gamma(2.0, size=40)
    folds = Folds(np.zeros((1, 40), dtype=np.intp), 1)
    held = HeldOutScores(z[None], y, tweedie(power), "counts", folds)
    known = mean_tweedie_deviance(y, np.exp(z), power=power)
    np.testing.assert_allclose(held.released().error, known, rtol=1e-9)
    drawn = [
        mean_tweedie_deviance(y, np.exp(z + 0.4 * generator.normal(size=40)), power=power)
        for _ in range(4000)
    ]
    error = np.std(drawn) / np.sqrt(len(drawn))
    assert abs(held.released(0.4).error - np.mean(drawn)) < 4.0 * error


def test_words() -> None:
    assert loss_words(tweedie(2.0)) == "gamma deviance"
    assert loss_words("poisson") == "Poisson deviance"
