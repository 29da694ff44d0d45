"""The chance of being the largest of several normals, by integration and for two in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from leakscope._numerics.special_functions import chance_of_largest


@pytest.mark.parametrize("count", [2, 3, 10])
def test_against_integration(count: int) -> None:
    z = np.random.default_rng(count).normal(0.0, 1.5, (4, count))
    for which in range(count):
        found = chance_of_largest(z, which)
        for row, chance in zip(z, found, strict=True):
            others = np.delete(row, which)

            def density(x: float, own: float = row[which], rest: np.ndarray = others) -> float:
                return float(stats.norm.pdf(x, own) * np.prod(stats.norm.cdf(x - rest)))

            exact = integrate.quad(density, -12.0, 12.0, epsabs=1e-13, limit=200)[0]
            assert chance == pytest.approx(exact, abs=1e-8)
    if count == 2:
        two = stats.norm.cdf((z[:, 0] - z[:, 1]) / np.sqrt(2.0))
        np.testing.assert_allclose(chance_of_largest(z, 0), two, atol=1e-9)


def test_one_choice_for_each_row_of_a_batch() -> None:
    z = np.random.default_rng(0).normal(size=(3, 5, 4))
    which = np.array([0, 3, 1, 2, 0])
    found = chance_of_largest(z, which)
    assert found.shape == (3, 5)
    total = sum(chance_of_largest(z, c) for c in range(4))
    np.testing.assert_allclose(total, 1.0, atol=1e-8)
    np.testing.assert_allclose(found[:, 1], chance_of_largest(z[:, 1], 3))
