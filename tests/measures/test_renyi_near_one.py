"""Rényi divergences near orders 1 and 0, where the obvious formulas lose their digits.

The references are the defining integrals (closed for normals) by mpmath, from orders that are
exact doubles, with digits enough to lose what the order takes.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from leakscope import measures
from leakscope.laws import LawPair, MultivariateNormal, Normal, NormalMixture, SpikeAndSlab

NEAR_ONE = [1.0 + sign * 10.0**-k for k in (4, 6, 9, 11, 13, 15) for sign in (-1.0, 1.0)]
NEAR_ZERO = [0.3, 1e-3, 1e-6, 1e-10, 1e-14]
# An integral at 50 digits takes a second: few orders, from far to as near as doubles go.
FEW = [1.0 - 1e-4, 1.0 + 1e-9, 1.0 - 1e-15, 1e-12]
# What atoms give: laws 1e-6 apart lose digits to the rounding of their logs.
ATOMS = 1e-8
DIGITS = 50
KNOTS = [0, 0.5, 1, 2, 3, 5, 8, 14, 30]


def relative(found, expected) -> float:
    return float(abs(mp.mpf(float(found)) / expected - 1))


def normal_reference(order, mean1, sigma1, mean0, sigma0):
    a, mean1, sigma1, mean0, sigma0 = map(mp.mpf, (order, mean1, sigma1, mean0, sigma0))
    between = (1 - a) * sigma1**2 + a * sigma0**2
    if between <= 0:
        return mp.inf
    logs = mp.log(between) - 2 * (1 - a) * mp.log(sigma1) - 2 * a * mp.log(sigma0)
    return a * (mean1 - mean0) ** 2 / (2 * between) + logs / (2 * (1 - a))


def density(mean, sigma):
    mean, sigma = mp.mpf(mean), mp.mpf(sigma)
    return lambda x: mp.exp(-(((x - mean) / sigma) ** 2) / 2) / (sigma * mp.sqrt(2 * mp.pi))


def mixture_density(parts):
    total = sum(mp.mpf(weight) for weight, _, _ in parts)
    terms = [(mp.mpf(weight) / total, density(mean, sigma)) for weight, mean, sigma in parts]
    return lambda x: sum(weight * term(x) for weight, term in terms)


@pytest.mark.parametrize(
    ("mean", "sigma"),
    [(1.0, 0.8), (1.0, 5.0), (0.0, 0.05), (1e-3, 0.3), (1e-6, 1.0 + 1e-7), (5.0, 1e-6)],
)
def test_normals(mean, sigma):
    pair = LawPair(Normal(mean, sigma), Normal(0.0, 1.0))
    with mp.workdps(80):
        for order in NEAR_ONE + NEAR_ZERO:
            forward = normal_reference(order, mean, sigma, 0.0, 1.0)
            backward = normal_reference(order, 0.0, 1.0, mean, sigma)
            assert relative(measures.renyi(pair, order, "member_to_nonmember"), forward) < 1e-13
            if mp.isinf(backward):
                assert measures.renyi(pair, order) == np.inf
            else:
                assert relative(measures.renyi(pair, order), backward) < 1e-13


@pytest.mark.parametrize(
    ("mean", "variance"),
    [([1.0, 0.2], [25.0, 0.09]), ([1e-6, 0.0], [1.0 + 1e-7, 1.0]), ([0.1, 0.1], [1e12, 1.0])],
)
def test_multivariate_normals(mean, variance):
    pair = LawPair(
        MultivariateNormal(mean, np.diag(variance)), MultivariateNormal(np.zeros(2), np.eye(2))
    )
    with mp.workdps(80):
        sigmas = [mp.sqrt(mp.mpf(one)) for one in variance]
        for order in [*NEAR_ONE, *NEAR_ZERO, 0.7]:
            terms = list(zip(mean, sigmas, strict=True))
            forward = sum(normal_reference(order, m, s, 0.0, 1.0) for m, s in terms)
            backward = sum(normal_reference(order, 0.0, 1.0, m, s) for m, s in terms)
            for direction, expected in (
                ("member_to_nonmember", forward),
                ("nonmember_to_member", backward),
            ):
                found = measures.renyi(pair, order, direction)
                if mp.isinf(expected):
                    assert found == np.inf
                else:
                    assert relative(found, expected) < 1e-12


def test_variances_beyond_float64():
    """lam = 1e400 has a logarithm, and so have divergences of orders below 1."""
    pair = LawPair(Normal(0.0, 1e200), Normal(0.0, 1.0))
    with mp.workdps(80):
        for order in (1e-9, 0.3, 0.5, 1.0 - 1e-9):
            expected = normal_reference(order, 0.0, 1e200, 0.0, 1.0)
            assert relative(measures.renyi(pair, order, "member_to_nonmember"), expected) < 1e-13
    assert measures.renyi(pair, 1.0, "member_to_nonmember") == np.inf


@pytest.mark.parametrize(
    ("member", "nonmember"),
    [
        ([(0.3, 0.0, 1.0), (0.7, 2.0, 0.5)], [(0.5, 0.0, 1.25), (0.5, 1.0, 0.875)]),
        ([(0.3, 0.0, 1.0), (0.7, 1.0, 2.0)], [(0.3, 0.0, 1.0), (0.7, 1.0 + 1e-6, 2.0)]),
    ],
)
def test_mixtures(member, nonmember):
    pair = LawPair(*(NormalMixture(*map(list, zip(*p, strict=True))) for p in (member, nonmember)))
    with mp.workdps(DIGITS):
        p1, p0 = mixture_density(member), mixture_density(nonmember)
        knots = [-knot for knot in KNOTS[:0:-1]] + KNOTS

        def reference(a, up, down):
            moment = mp.quad(lambda x: up(x) ** a * down(x) ** (1 - a), knots, maxdegree=5)
            return mp.log(moment) / (a - 1)

        for place, order in enumerate(FEW):
            a = mp.mpf(order)
            if place % 2:
                expected, direction = reference(a, p1, p0), "member_to_nonmember"
            else:
                expected, direction = reference(a, p0, p1), "nonmember_to_member"
            assert relative(measures.renyi(pair, order, direction), expected) < ATOMS


@pytest.mark.parametrize(
    ("member", "nonmember"),
    [
        ((0.5, 1.0, 1.0), (0.0, 1.125, 0.875)),
        ((0.125, 1.0, 1.0), (0.126, 1.0 + 1e-6, 1.001)),
    ],
)
def test_spikes_and_slabs(member, nonmember):
    pair = LawPair(SpikeAndSlab(*member), SpikeAndSlab(*nonmember))

    def parts(location, sigma, threshold):
        location, sigma, threshold = map(mp.mpf, (location, sigma, threshold))
        inside = mp.ncdf((threshold - location) / sigma) - mp.ncdf((-threshold - location) / sigma)
        return density(location, sigma), threshold, inside

    def reference(a, first, second):
        (up, t1, atom1), (down, t0, atom0) = parts(*first), parts(*second)
        moment = atom1**a * atom0 ** (1 - a)
        for side in (1, -1):
            moment += mp.quad(
                lambda x, side=side: up(side * (x + t1)) ** a * down(side * (x + t0)) ** (1 - a),
                KNOTS,
                maxdegree=5,
            )
        return mp.log(moment) / (a - 1)

    with mp.workdps(DIGITS):
        for order in FEW:
            a = mp.mpf(order)
            forward, backward = reference(a, member, nonmember), reference(a, nonmember, member)
            assert relative(measures.renyi(pair, order, "member_to_nonmember"), forward) < ATOMS
            assert relative(measures.renyi(pair, order), backward) < ATOMS
