"""Pairs of mixtures of normals: areas with narrow needles, one pass for all, weights of zero."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import logsumexp, ndtr

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope.laws import LawPair, Normal, NormalMixture
from leakscope.measures.dispatch import over_pairs
from leakscope.measures.pair_measures import table_measures

Parameters = tuple[FloatArray, FloatArray, FloatArray]

FPR = (0.3, 0.01, 1e-5)


def by_dense_cells(member: Parameters, nonmember: Parameters, cells: int = 20_000) -> float:
    """The area of so many cells a component, ordered by the ratio in their middles."""
    laws = (member, nonmember)
    steps = np.linspace(-9.0, 9.0, cells + 1)
    ends = [m + s * steps for _, means, sds in laws for m, s in zip(means, sds, strict=True)]
    x = np.unique(np.concatenate(ends))
    middle = 0.5 * (x[1:] + x[:-1])
    masses, logs = [], []
    for weights, means, sds in laws:
        share = weights / weights.sum()
        z = (x[:, None] - means) / sds
        lower, upper = np.diff(ndtr(z), axis=0), -np.diff(ndtr(-z), axis=0)
        masses.append(np.where(z[1:] < 0.0, lower, upper) @ share)
        shape = -0.5 * ((middle[:, None] - means) / sds) ** 2 - np.log(sds)
        logs.append(logsumexp(shape, b=share, axis=1))
    order = np.argsort(logs[0] - logs[1], kind="stable")
    up, down = (mass[order] for mass in masses)
    return float(up @ (np.cumsum(down) - 0.5 * down))


def wild_law(rng: np.random.Generator, needle: float) -> Parameters:
    """One to three normals of usual width and a needle among them."""
    few = int(rng.integers(1, 4))
    weights = rng.dirichlet(np.ones(few + 1))
    if rng.random() < 0.3:
        weights[-1] = 10.0 ** rng.uniform(-7.0, -2.0)
    means = np.append(rng.normal(0.0, 1.0, few), 0.0)
    return weights, means, np.append(np.exp(rng.normal(0.0, 0.7, few)), needle)


def wild_laws(rng: np.random.Generator) -> tuple[Parameters, Parameters]:
    """Both with needles, in some pairs as wide."""
    needles = 10.0 ** rng.uniform(-6.0, -3.0, 2)
    if rng.random() < 0.4:
        needles[1] = needles[0]
    return wild_law(rng, needles[0]), wild_law(rng, needles[1])


def corner_laws(rng: np.random.Generator) -> tuple[Parameters, Parameters]:
    """Those of a hinge's score: beyond its corner, moved onto it and short of it."""
    chance, mean = rng.dirichlet(np.ones(3)), rng.uniform(0.0, 0.8, 3)
    sd, on, above, below = rng.uniform(0.05, 0.3, 4), 1e-5, mean[0], -mean[1]
    return (
        (chance, np.array([above, 0.0, below]), np.array([sd[0], on, sd[1]])),
        (chance, np.array([above, -mean[2], below - 0.2]), np.array([sd[0], sd[2], sd[3]])),
    )


@pytest.mark.parametrize("entropy", range(8))
@pytest.mark.parametrize("make", [wild_laws, corner_laws])
def test_auc_with_needles_against_dense_cells(
    make: Callable[[np.random.Generator], tuple[Parameters, Parameters]], entropy: int
) -> None:
    laws = make(np.random.default_rng(entropy))
    found = float(measures.auc(LawPair(*(NormalMixture(*law) for law in laws))))
    assert found == pytest.approx(by_dense_cells(*laws), abs=1e-8)


@pytest.mark.parametrize("needle", [2.42e-4, 1e-5])
def test_auc_of_a_needle_beyond_the_other_law(needle: float) -> None:
    """An integral over levels of the ratio was 5e-5 too large here: it found too few of them."""
    share = np.array([0.3125, 0.6875])
    member = share, np.array([0.0, -0.435]), np.array([needle, 0.274])
    nonmember = share, np.array([-0.664, -1.375]), np.array([0.139, 0.265])
    found = float(measures.auc(LawPair(NormalMixture(*member), NormalMixture(*nonmember))))
    assert found == pytest.approx(by_dense_cells(member, nonmember), abs=1e-8)


@pytest.mark.parametrize("needle", [1e-2, 1e-5, 1e-8])
@pytest.mark.parametrize(("within", "without"), [(0.3, 0.0), (0.0, 0.3), (0.5, 0.2), (1e-6, 1e-3)])
def test_auc_of_a_needle_in_closed_form(needle: float, within: float, without: float) -> None:
    # The ratio depends on |x| alone, and P(|needle Z| < |Z'|) = 2/pi arctan(1/needle).
    member, nonmember = (
        NormalMixture([1.0 - w, w], [0.0, 0.0], [1.0, needle]) for w in (within, without)
    )
    nearer = 2.0 / np.pi * np.arctan(1.0 / needle)
    gain = (within * (1.0 - without) - without * (1.0 - within)) * (nearer - 0.5)
    found = float(measures.auc(LawPair(member, nonmember)))
    assert found == pytest.approx(0.5 + abs(gain), abs=1e-9)


def kl_by_dense_cells(member: Parameters, nonmember: Parameters) -> float:
    """KL(member || nonmember) by Gauss's rule on cells at every scale around every mean."""
    wide, scales = np.linspace(-12.0, 12.0, 4001), 10.0 ** np.linspace(-9.0, 2.0, 3000)
    means, sds = (np.concatenate([law[part] for law in (member, nonmember)]) for part in (1, 2))
    around = [m + s * wide for m, s in zip(means, sds, strict=True)]
    around += [m + side * scales for m in means for side in (-1.0, 1.0)]
    ends = np.unique(np.concatenate(around))
    middle, half = 0.5 * (ends[1:] + ends[:-1]), 0.5 * np.diff(ends)
    total = 0.0
    for node, weight in zip(*np.polynomial.legendre.leggauss(20), strict=True):
        x = (middle + node * half)[:, None]
        up, down = (
            logsumexp(-0.5 * ((x - m) / s) ** 2 - np.log(s * np.sqrt(2.0 * np.pi)), b=w, axis=1)
            for w, m, s in (member, nonmember)
        )
        # p1 l - p1 + p0, which is p0 where p1 is nothing.
        with np.errstate(over="ignore", invalid="ignore"):
            terms = np.exp(up) * (up - down + np.expm1(down - up))
        total += weight * float(half @ np.where(up > -700.0, terms, np.exp(down)))
    return total


@pytest.mark.parametrize("entropy", [51, 58, 66, 100, 111])
def test_divergence_where_components_of_all_widths_give_way_to_each_other(entropy: int) -> None:
    """Without a point of the grid at each bend it was up to 2e-4 off here."""
    rng = np.random.default_rng(entropy)
    laws = []
    for _ in range(2):
        few = int(rng.integers(2, 5))
        weights = rng.dirichlet(np.ones(few))
        means = rng.normal(0.0, 1.0, few) * (rng.random(few) < 0.6)
        laws.append((weights, means, 10.0 ** rng.uniform(-6.0, 0.0, few)))
    pair = LawPair(*(NormalMixture(*law) for law in laws))
    found = float(measures.kl(pair, "member_to_nonmember"))
    assert found == pytest.approx(kl_by_dense_cells(*laws), rel=1e-7)
    found = float(measures.kl(pair, "nonmember_to_member"))
    assert found == pytest.approx(kl_by_dense_cells(*laws[::-1]), rel=1e-7)


@pytest.fixture(scope="module")
def pair() -> LawPair:
    """Mixtures with some weights of zero, normals among them, and equal laws."""
    rng = np.random.default_rng(5)
    weights = rng.dirichlet(np.ones(4), (2, 40))
    gone = rng.random((40, 4)) < 0.4
    gone[:, 0] = False
    weights[:, gone] = 0.0
    means = rng.normal(0.0, 1.0, (2, 40, 4))
    means[1, :, :2] = means[0, :, :2]
    sigmas = np.exp(rng.normal(0.0, 1.0, (2, 40, 4)))
    weights[0, :3], weights[1, :3] = [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]
    weights[1, 3:5], means[1, 3:5] = weights[0, 3:5], means[0, 3:5]
    sigmas[1, 3:5] = sigmas[0, 3:5]
    laws = [NormalMixture(*law) for law in zip(weights, means, sigmas, strict=True)]
    return LawPair(laws[0], laws[1])


def test_one_pass_gives_what_each_measure_gives(pair: LawPair) -> None:
    found, tpr = table_measures(pair, FPR)
    alone = {
        "advantage": measures.advantage(pair),
        "kl": measures.kl(pair),
        "kl_reverse": measures.kl(pair, "member_to_nonmember"),
        "auc": measures.auc(pair),
    }
    assert set(found) == set(alone)
    for name, values in alone.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-11, atol=1e-14, err_msg=name)
    for fpr in FPR:
        np.testing.assert_allclose(tpr[fpr], measures.tpr_at_fpr(pair, fpr), rtol=1e-11)


def test_components_without_weight_change_nothing(pair: LawPair) -> None:
    found, tpr = table_measures(pair, FPR)
    for row in range(40):
        laws = []
        for law in (pair.member, pair.nonmember):
            assert isinstance(law, NormalMixture)
            own = law.weights[row] > 0.0
            laws.append(
                NormalMixture(law.weights[row, own], law.means[row, own], law.sigmas[row, own])
            )
        alone, beside = table_measures(LawPair(laws[0], laws[1]), FPR)
        for name, value in alone.items():
            np.testing.assert_allclose(found[name][row], value, rtol=1e-9, atol=1e-13)
        for fpr in FPR:
            np.testing.assert_allclose(tpr[fpr][row], beside[fpr], rtol=1e-9)


def test_mixtures_of_one_component_are_normals(pair: LawPair) -> None:
    member, nonmember = pair.member, pair.nonmember
    assert isinstance(member, NormalMixture)
    assert isinstance(nonmember, NormalMixture)
    normals = LawPair(
        Normal(member.means[:3, 0], member.sigmas[:3, 0]),
        Normal(nonmember.means[:3, 2], nonmember.sigmas[:3, 2]),
    )
    for measure in (measures.advantage, measures.kl, measures.auc):
        whole = np.asarray(measure(pair))
        np.testing.assert_allclose(whole[:3], measure(normals), rtol=1e-13)
        assert whole[3] == whole[4] == (0.5 if measure is measures.auc else 0.0)


def test_no_pair_is_no_work(pair: LawPair) -> None:
    def measure(ratio: object) -> FloatArray:
        raise AssertionError

    for none in (pair.take(slice(0, 0)), LawPair(Normal(np.zeros(0), 1.0), Normal(0.0, 1.0))):
        assert over_pairs(none, measure, (2,)).shape == (0, 2)
