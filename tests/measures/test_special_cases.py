"""Special cases that the papers print come out of the general code."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from leakscope import measures
from leakscope.laws import LawPair, MultivariateNormal, Normal, SpikeAndSlab
from leakscope.measures.normals import NormalRatio


@pytest.mark.parametrize(("sigma0", "sigma1"), [(0.7, 1.4), (0.2, 1.0), (1.0, 1.001)])
def test_linear_equations_3_and_4(sigma0: float, sigma1: float) -> None:
    # linear Eq. (3): the threshold on |y|; Eq. (4): the advantage given x0
    ratio = sigma0**2 * sigma1**2 * np.log(sigma1**2 / sigma0**2) / (sigma1**2 - sigma0**2)
    alpha = np.sqrt(ratio)
    printed = 2.0 * (stats.norm.cdf(alpha / sigma0) - stats.norm.cdf(alpha / sigma1))
    pair = LawPair(member=Normal(0.0, sigma1), nonmember=Normal(0.0, sigma0))
    np.testing.assert_allclose(measures.advantage(pair), printed, rtol=1e-11)
    # Remark 3.3: the roles of the variances swap, the advantage stays
    np.testing.assert_allclose(measures.advantage(pair.swapped()), printed, rtol=1e-11)


def test_lasso_equation_57() -> None:
    # p coordinates moved by mu under Gaussian noise of variance sigma^2: KL = p mu^2/(2 sigma^2)
    p, mu, sigma = 40, 0.3, 1.7
    printed = p * mu**2 / (2.0 * sigma**2)
    coordinates = LawPair(Normal(np.full(p, mu), sigma), Normal(0.0, sigma))
    np.testing.assert_allclose(np.sum(measures.kl(coordinates)), printed, rtol=1e-13)
    joint = LawPair(
        MultivariateNormal(np.full(p, mu), sigma**2 * np.eye(p)),
        MultivariateNormal(np.zeros(p), sigma**2 * np.eye(p)),
    )
    np.testing.assert_allclose(measures.kl(joint), printed, rtol=1e-12)
    np.testing.assert_allclose(measures.kl(joint, "member_to_nonmember"), printed, rtol=1e-12)


@pytest.mark.parametrize("releases", [1, 4, 50])
@pytest.mark.parametrize("shift", [0.05, 0.5])
def test_releases_of_normals_are_one_joint_law(releases: int, shift: float) -> None:
    joint = LawPair(
        MultivariateNormal(np.full(releases, shift), np.eye(releases)),
        MultivariateNormal(np.zeros(releases), np.eye(releases)),
    )
    closed = LawPair(Normal(shift * np.sqrt(releases), 1.0), Normal(0.0, 1.0))
    for delta in (1e-3, 1e-6):
        exact = float(measures.epsilon_at_delta(closed, delta))
        assert float(measures.epsilon_at_delta(joint, delta)) == pytest.approx(exact, rel=1e-9)
    exact = float(measures.advantage(closed))
    assert float(measures.advantage(joint)) == pytest.approx(exact, rel=1e-9)


def test_trade_off_next_to_an_atom_keeps_its_digits() -> None:
    """Sizes just below one minus an atom: the search stopped with 1.8e-3 of relative error."""
    pair = LawPair(SpikeAndSlab(3.5, 1.0, 1.0), SpikeAndSlab(2.0, 1.0, 0.0))
    fnr = np.asarray(measures.trade_off(pair, 1e-9))
    assert float(measures.trade_off(pair.swapped(), fnr)) == pytest.approx(1e-9, rel=1e-6, abs=0.0)


def test_total_variation_of_any_two_normals_has_all_its_digits() -> None:
    # Down to laws that differ by 1e-14 of a deviation, and up to scales beyond e^39, where the
    # advantage once was 0 instead of 1.  The reference subtracts masses at 60 digits.
    rng = np.random.default_rng(0)
    d = 10.0 ** rng.uniform(-14.0, 2.0, 300)
    log_s = 10.0 ** rng.uniform(-14.0, 2.4, 300) * rng.choice([-1.0, 1.0], 300)
    d[:40], log_s[40:80] = 0.0, 0.0
    found = NormalRatio(d, log_s).advantage()
    known = [_difference(*pair) for pair in zip(d, log_s, strict=True)]
    np.testing.assert_allclose(found, known, rtol=2e-14)
    assert NormalRatio(np.zeros(1), np.zeros(1)).advantage() == 0.0
    assert found.max() <= 1.0


def _difference(shift: float, log_scale: float) -> float:
    with mp.workdps(60):
        d, s = mp.mpf(shift), mp.exp(log_scale)
        if log_scale == 0.0:
            return float(mp.erf(d / mp.sqrt(8)))
        g = s**2 - 1
        root = s * mp.sqrt(d**2 + 2 * g * mp.mpf(log_scale))
        low, high = sorted([(-d + root) / g, (-d - root) / g])
        inside = [
            mp.ncdf(b) - mp.ncdf(a) for a, b in ((low, high), ((low - d) / s, (high - d) / s))
        ]
        return float(abs(inside[1] - inside[0]))
