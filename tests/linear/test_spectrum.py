"""Deterministic equivalents of a covariance's spectrum against simulation."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope import linear
from leakscope.laws import Normal
from leakscope.linear.spectrum import SpectrumDesign


@pytest.mark.parametrize("ridge", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("p", [60, 250])
def test_spectrum_agrees_with_simulation(p: int, ridge: float) -> None:
    n, trials = 120, 250
    rng = np.random.default_rng(p)
    spectrum = np.linspace(0.1, 3.0, p)
    x0 = np.sqrt(spectrum) * rng.standard_normal(p)
    found = np.empty((2, trials))
    for trial in range(trials):
        X = np.sqrt(spectrum) * rng.standard_normal((n, p))
        for own in (0, 1):
            if own:
                X[0] = x0
            if ridge == 0.0:
                w = np.linalg.lstsq(X.T, x0, rcond=None)[0]
            else:
                w = np.linalg.solve(X @ X.T + n * ridge * np.eye(n), X @ x0)
            through = X.T @ w
            found[own, trial] = 0.02 * (through @ through) + w @ w
    pair = linear.spectrum_law_pair(SpectrumDesign(spectrum, n, 1.0, 0.02, ridge), x0)
    for law, drawn in zip((pair.nonmember, pair.member), found, strict=True):
        assert isinstance(law, Normal)
        error = drawn.std(ddof=1) / np.sqrt(trials)
        # the limit's own bias is of order 1/n
        assert abs(float(law.sigma[0]) ** 2 - drawn.mean()) < 4.0 * error + 0.015 * drawn.mean()


def test_flat_spectrum_is_the_gaussian_design() -> None:
    for p, ridge in ((400, 0.0), (400, 0.5), (40, 0.0), (40, 0.5)):
        flat = SpectrumDesign(np.ones(p), 100, 1.0, 1.0 / p, ridge)
        x0 = np.ones((1, p))
        design = linear.GaussianDesign(100, p, p, 1.0, ridge)
        one = linear.spectrum_law_pair(flat, x0)
        other = linear.law_pair(design, method="asymptotic")
        for a, b in ((one.member, other.member), (one.nonmember, other.nonmember)):
            assert isinstance(a, Normal)
            assert isinstance(b, Normal)
            # Thm 3.2 keeps a p - n - 1 where the limit has p - n
            np.testing.assert_allclose(a.sigma, b.sigma, rtol=1e-9 if ridge else 0.01)
