"""Feldman's memorisation in closed form, against answers drawn from two refits."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope import InputError, kernels, lood

RNG = np.random.default_rng(5)
X = RNG.normal(size=(25, 2))
KERNEL, NOISE, DRAWS = kernels.rbf(1.0), 0.05, 40_000


@pytest.mark.parametrize("classes", [2, 3])
def test_against_draws_of_two_refits(classes: int) -> None:
    labels = RNG.integers(0, classes, len(X))
    y = labels - 0.5 if classes == 2 else np.eye(classes)[labels] - 1.0 / classes
    found = lood.all_records(KERNEL(X), y, noise_variance=NOISE).accuracy_memorisation
    assert found.shape == (25,)
    for row in (0, 7, 13):
        shares = []
        for kept in (np.arange(25), np.delete(np.arange(25), row)):
            cross = KERNEL(X[[row]], X[kept])
            weights = cross @ np.linalg.inv(KERNEL(X[kept]) + NOISE * np.eye(len(kept)))
            spread = np.sqrt(float(KERNEL(X[[row]])[0, 0] - (weights @ cross.T)[0, 0]))
            drawn = np.atleast_1d((weights @ y[kept])[0]) + spread * RNG.normal(
                size=(DRAWS, 1 if classes == 2 else classes)
            )
            right = drawn[:, 0] > 0 if classes == 2 else drawn.argmax(axis=1)
            shares.append(np.mean(right == labels[row]))
        error = np.sqrt(sum(share * (1 - share) for share in shares) / DRAWS)
        assert abs(shares[0] - shares[1] - found[row]) < 4 * error + 1e-4


def test_it_is_of_classes() -> None:
    y = RNG.normal(size=25)
    with pytest.raises(InputError, match="both sides of 0"):
        _ = lood.all_records(KERNEL(X), np.abs(y), noise_variance=NOISE).accuracy_memorisation
