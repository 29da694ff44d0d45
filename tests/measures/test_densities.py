"""Densities as atoms: against dense cells, quadrature and closed forms, and at their extremes."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp, ndtr

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws import LawPair, Normal, NormalMixture, ScalarLaw, SpikeAndSlab
from leakscope.measures.densities import DensityAtoms
from leakscope.measures.engines import over_pairs
from leakscope.measures.normals import NormalRatio
from leakscope.measures.pair_measures import table_measures

Parameters = tuple[FloatArray, FloatArray, FloatArray]
# What atoms promise (test_against_mpmath.ATOMS), absolutely.
CLOSE = 4e-5


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


def wild_laws(rng: np.random.Generator) -> list[Parameters]:
    """Up to three normals of usual width and a needle among them, in some pairs as wide."""
    needles = 10.0 ** rng.uniform(-6.0, -3.0, 2)
    if rng.random() < 0.4:
        needles[1] = needles[0]
    laws = []
    for needle in needles:
        few = int(rng.integers(1, 4))
        weights = rng.dirichlet(np.ones(few + 1))
        if rng.random() < 0.3:
            weights[-1] = 10.0 ** rng.uniform(-7.0, -2.0)
        means = np.append(rng.normal(0.0, 1.0, few), 0.0)
        laws.append((weights, means, np.append(np.exp(rng.normal(0.0, 0.7, few)), needle)))
    return laws


@pytest.mark.parametrize("entropy", range(6))
def test_auc_with_needles_against_dense_cells(entropy: int) -> None:
    laws = wild_laws(np.random.default_rng(entropy))
    found = float(measures.auc(LawPair(*(NormalMixture(*law) for law in laws))))
    assert found == pytest.approx(by_dense_cells(*laws), abs=CLOSE)


@pytest.mark.parametrize("needle", [1e-2, 1e-5, 1e-8])
@pytest.mark.parametrize(("within", "without"), [(0.3, 0.0), (0.0, 0.3), (1e-6, 1e-3)])
def test_auc_of_a_needle_in_closed_form(needle: float, within: float, without: float) -> None:
    # The ratio depends on |x| alone, and P(|needle Z| < |Z'|) = 2/pi arctan(1/needle).
    member, nonmember = (
        NormalMixture([1.0 - w, w], [0.0, 0.0], [1.0, needle]) for w in (within, without)
    )
    nearer = 2.0 / np.pi * np.arctan(1.0 / needle)
    gain = (within * (1.0 - without) - without * (1.0 - within)) * (nearer - 0.5)
    found = float(measures.auc(LawPair(member, nonmember)))
    assert found == pytest.approx(0.5 + abs(gain), abs=CLOSE)


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


@pytest.mark.parametrize("entropy", [51, 58, 111])
def test_divergence_where_components_of_all_widths_give_way_to_each_other(entropy: int) -> None:
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


def test_components_without_weight_change_nothing(pair: LawPair) -> None:
    found, tpr = table_measures(pair, (0.3, 1e-5))
    for row in range(0, 40, 3):
        laws = []
        for law in (pair.member, pair.nonmember):
            assert isinstance(law, NormalMixture)
            heavy = law.weights[row] > 0.0
            laws.append(
                NormalMixture(
                    law.weights[row, heavy], law.means[row, heavy], law.sigmas[row, heavy]
                )
            )
        alone, beside = table_measures(LawPair(laws[0], laws[1]), (0.3, 1e-5))
        # One component a side is a normal, measured exactly; in the batch its atoms are.
        atoms = any(law.weights.size > 1 for law in laws)
        close = 1e-9 if atoms else CLOSE
        for name, value in alone.items():
            np.testing.assert_allclose(found[name][row], value, rtol=close, atol=1e-13)
        for fpr, value in beside.items():
            np.testing.assert_allclose(tpr[fpr][row], value, rtol=1e-9 if atoms else 5e-3)


def test_mixtures_of_one_component_are_normals(pair: LawPair) -> None:
    member, nonmember = pair.member, pair.nonmember
    assert isinstance(member, NormalMixture)
    assert isinstance(nonmember, NormalMixture)
    normals = LawPair(
        Normal(member.means[:3, 0], member.sigmas[:3, 0]),
        Normal(nonmember.means[:3, 2], nonmember.sigmas[:3, 2]),
    )
    for measure, error in ((measures.advantage, 5e-4), (measures.kl, 1e-9), (measures.auc, CLOSE)):
        whole = np.asarray(measure(pair))
        np.testing.assert_allclose(whole[:3], measure(normals), rtol=error)
        assert whole[3] == whole[4] == (0.5 if measure is measures.auc else 0.0)


def test_no_pair_is_no_work(pair: LawPair) -> None:
    def measure(ratio: object) -> FloatArray:
        raise AssertionError

    for none in (pair.take(slice(0, 0)), LawPair(Normal(np.zeros(0), 1.0), Normal(0.0, 1.0))):
        assert over_pairs(none, measure, (2,)).shape == (0, 2)


def test_normals_taken_as_densities_are_right() -> None:
    member = Normal([1.0, 0.01, 2.0, 12.0, 100.0, 0.0], [1.0, 1.0, 1.5, 1.0, 1.0, 500.0])
    nonmember = Normal(np.zeros(6), np.ones(6))
    ours, exact = DensityAtoms.of_laws(member, nonmember), NormalRatio.of(member, nonmember)
    turned, back = ours.reversed(), exact.reversed()
    np.testing.assert_allclose(ours.advantage(), exact.advantage(), rtol=5e-4)
    np.testing.assert_allclose(ours.overlap()[:4], exact.overlap()[:4], rtol=5e-3)
    np.testing.assert_allclose(ours.auc(), exact.auc(), rtol=CLOSE)
    levels = np.array([1e-6, 1e-3, 0.1, 0.9])
    for got, right in zip(ours.tpr_at(levels), exact.tpr_at(levels), strict=True):
        np.testing.assert_allclose(got[:3], right[:3], rtol=2.5e-3)
    for one, other in ((ours, exact), (turned, back)):
        for order in (0.3, 1.0, 1.0 + 1e-9, 3.0):
            np.testing.assert_allclose(one.renyi(order), other.renyi(order), rtol=1e-8)
        np.testing.assert_allclose(one.renyi(np.inf), other.renyi(np.inf), rtol=1e-5)
        np.testing.assert_allclose(
            one.delta_at(levels), other.delta_at(levels), rtol=1e-3, atol=1e-9
        )
        got, right = one.epsilon_at(levels[:2]), other.epsilon_at(levels[:2])
        np.testing.assert_allclose(got, right, rtol=1e-2)


@pytest.mark.parametrize(
    "make",
    [
        lambda shift: NormalMixture([0.3, 0.7], [0.0, 1.0 + shift], [1.0, 2.0]),
        lambda shift: SpikeAndSlab(shift, 1.0, 1.0),
    ],
)
def test_laws_a_ten_millionth_apart(make: Callable[[float], ScalarLaw]) -> None:
    """All measures are those of a hundred thousandth apart, scaled."""
    near, far = (LawPair(make(shift), make(0.0)) for shift in (1e-7, 1e-5))
    ratio = float(measures.advantage(near)) / float(measures.advantage(far))
    assert ratio == pytest.approx(1e-2, rel=4e-4)
    assert float(measures.kl(near)) / float(measures.kl(far)) == pytest.approx(1e-4, rel=1e-4)


def test_extremes() -> None:
    apart = LawPair(
        NormalMixture([0.5, 0.5], [0.0, 1.0], 1.0), NormalMixture([0.5, 0.5], [1e3, 1e3 + 1.0], 1.0)
    )
    assert measures.advantage(apart) == 1.0
    assert float(measures.auc(apart)) == pytest.approx(1.0, abs=1e-14)
    assert measures.kl(apart) == pytest.approx(499500.83172569843, rel=1e-12)
    nearly = LawPair(NormalMixture([0.5, 0.5], [0.05, 0.05], 1.0), Normal(14.3, 1.0))
    exact = float(measures.overlap(LawPair(Normal(0.05, 1.0), Normal(14.3, 1.0))))
    assert exact < 2e-12
    assert float(measures.overlap(nearly)) == pytest.approx(exact, rel=5e-3)
    # an atom that members alone have
    spike = LawPair(SpikeAndSlab(0.0, 1.0, 1.0), SpikeAndSlab(0.0, 1.0, 0.0))
    assert measures.kl(spike, "member_to_nonmember") == np.inf
    assert float(measures.tpr_at_fpr(spike, 0.0)) == pytest.approx(0.6826894921370859)
    # equal tails have a bound, others have none
    bounded = LawPair(
        NormalMixture([0.5, 0.5], 0.0, [1.0, 2.0]), NormalMixture([0.2, 0.8], 0.0, [1.0, 2.0])
    )
    both = [
        float(measures.renyi(bounded, np.inf, name))
        for name in ("nonmember_to_member", "member_to_nonmember")
    ]
    assert both == pytest.approx([np.log(1.6), np.log(0.75 / 0.6)], rel=1e-4)
    assert measures.renyi(apart, np.inf) == np.inf


class Student(ScalarLaw):
    """Student's law with four degrees of freedom, which has heavy tails."""

    parameters = ("location", "scale")

    def __init__(self, location, scale):
        location, scale = (np.asarray(value, dtype=float) for value in (location, scale))
        self.location, self.scale = np.broadcast_arrays(location, scale)

    def log_density(self, x):
        return stats.t.logpdf(x, 4, self.location, self.scale)

    def cdf(self, x):
        return stats.t.cdf(x, 4, self.location, self.scale)

    def sample(self, key, size):
        drawn = key.generator().standard_t(4, size=(*self.batch_shape, size))
        return self.location[..., None] + self.scale[..., None] * drawn


class Mistaken(Student):
    def log_density(self, x):
        return super().log_density(x) + 0.1


class Scalar(Student):
    def cdf(self, x):
        return 0.5


def test_a_law_that_is_a_function_against_quadrature() -> None:
    pair = LawPair(Student([1.0, 0.05, 0.0], [1.0, 1.0, 2.0]), Student([0.0, 0.0, 0.0], 1.0))
    cuts = [-np.inf, -5.0, -1.0, 0.0, 0.5, 1.0, 3.0, np.inf]
    for row in range(3):
        sides = [law.take(row) for law in (pair.member, pair.nonmember)]
        p1, p0 = (lambda x, law=law: np.exp(law.log_density(x)) for law in sides)

        def over_the_line(f):
            parts = (integrate.quad(f, a, b, limit=400) for a, b in itertools.pairwise(cuts))
            return sum(part[0] for part in parts)

        advantage = over_the_line(lambda x, p1=p1, p0=p0: 0.5 * abs(p1(x) - p0(x)))
        assert measures.advantage(pair)[row] == pytest.approx(advantage, rel=5e-4)
        kl = over_the_line(lambda x, p1=p1, p0=p0: p1(x) * np.log(p1(x) / p0(x)))
        found = measures.kl(pair, "member_to_nonmember")[row]
        assert found == pytest.approx(kl, rel=1e-6)


@pytest.mark.parametrize("law", [Mistaken, Scalar])
def test_functions_that_do_not_belong_together_are_refused(law: type[Student]) -> None:
    with pytest.raises(InputError):
        measures.advantage(LawPair(law([1.0], 1.0), law([0.0], 1.0)))
