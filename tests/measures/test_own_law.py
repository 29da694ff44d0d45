"""A law of the user's own: every measure from its density and distribution function alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

import leakscope
from leakscope import measures
from leakscope.laws import LawPair, Normal, ScalarLaw
from leakscope.laws.text import parse_law, register
from leakscope.measures.density_ratio import ratio_of_densities
from leakscope.measures.normal_ratio import NormalRatio


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


PAIR = LawPair(Student([1.0, 0.05, 0.0], [1.0, 1.0, 2.0]), Student([0.0, 0.0, 0.0], 1.0))


def densities(row):
    sides = [
        (float(law.location[row]), float(law.scale[row])) for law in (PAIR.member, PAIR.nonmember)
    ]
    return [lambda x, a=a, b=b: stats.t.pdf(x, 4, a, b) for a, b in sides]


@pytest.mark.parametrize("row", range(3))
def test_measures_against_quadrature(row):
    p1, p0 = densities(row)

    def over_the_line(f):
        cuts = [-np.inf, -5.0, -1.0, 0.0, 0.5, 1.0, 3.0, np.inf]
        return sum(
            integrate.quad(f, a, b, limit=400, epsabs=1e-12)[0] for a, b in itertools.pairwise(cuts)
        )

    advantage = over_the_line(lambda x: 0.5 * abs(p1(x) - p0(x)))
    kl = over_the_line(lambda x: p1(x) * np.log(p1(x) / p0(x)))
    assert measures.advantage(PAIR)[row] == pytest.approx(advantage, rel=2e-4)
    found = measures.kl(PAIR, "member_to_nonmember")[row]
    assert found == pytest.approx(kl, rel=2e-4)


def test_the_roc_is_what_draws_show():
    """The best test by the ratio itself, on a million draws of each side."""
    generator = np.random.default_rng(0)
    p1, p0 = densities(0)
    inside, outside = (generator.standard_t(4, size=10**6) + shift for shift in (1.0, 0.0))
    scores = [np.log(p1(x) / p0(x)) for x in (inside, outside)]
    one = PAIR.take(slice(0, 1))
    for fpr in (0.01, 0.2):
        threshold = np.quantile(scores[1], 1.0 - fpr)
        counted = float(np.mean(scores[0] > threshold))
        # The threshold's own error moves the rate by the slope of the ROC.
        error = 4.0 * np.exp(threshold) * np.sqrt(fpr / 10**6) + 4.0 * np.sqrt(counted / 10**6)
        assert abs(float(measures.tpr_at_fpr(one, fpr)[0]) - counted) < error


def test_normal_laws_taken_as_any_others_are_right():
    member = Normal([1.0, 0.01, 2.0], [1.0, 1.0, 1.5])
    nonmember = Normal([0.0, 0.0, 0.0], [1.0, 1.0, 1.0])
    ours, exact = ratio_of_densities(member, nonmember), NormalRatio.of(member, nonmember)
    for name in ("advantage", "auc", "jeffreys", "log_overlap"):
        assert getattr(ours, name)() == pytest.approx(getattr(exact, name)(), rel=2e-4)
        # Coarser than the number itself: never too large.
    assert (ours.advantage() <= exact.advantage() * (1.0 + 1e-12)).all()
    assert (ours.auc() <= exact.auc() + 1e-12).all()
    levels = np.log(np.array([[1e-6, 1e-3, 0.1, 0.9]]))
    for part in (0, 1):
        got, right = (np.exp(ratio.tpr_at(levels)[part]) for ratio in (ours, exact))
        assert got == pytest.approx(right, rel=3e-4)
    assert ours.epsilon_at(levels[:, :2]) == pytest.approx(
        exact.epsilon_at(levels[:, :2]), rel=1e-4
    )
    turned = ours.reversed()
    assert turned.renyi(1.0) == pytest.approx(exact.reversed().renyi(1.0), rel=2e-4)
    thresholds = np.array([[-1.0, 0.3]])
    for got, right in zip(ours.tails(thresholds), exact.tails(thresholds), strict=True):
        assert np.exp(got) == pytest.approx(np.exp(right), abs=2e-3)


def test_normal_laws_far_apart_or_of_unlike_widths_are_right():
    """Cells at quantiles of the mean of both laws alone refused these."""
    member = Normal([6.0, 12.0, 40.0, 100.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0, 30.0, 1e-3])
    nonmember = Normal(np.zeros(6), np.ones(6))
    ours, exact = ratio_of_densities(member, nonmember), NormalRatio.of(member, nonmember)
    assert ours.advantage() == pytest.approx(exact.advantage(), rel=1e-6)
    assert ours.auc() == pytest.approx(exact.auc(), rel=1e-6)
    # A coarser observation never diverges by more; nor by much less, however far apart.
    for turn in (lambda ratio: ratio, lambda ratio: ratio.reversed()):
        got, right = (turn(ratio).renyi(1.0) for ratio in (ours, exact))
        assert np.all(got <= right * (1.0 + 1e-9))
        assert got == pytest.approx(right, rel=1e-2)
        assert np.all(np.isneginf(turn(ours).log_certain()))
    levels = np.log(np.array([[1e-6, 1e-3]]))
    assert np.exp(ours.tpr_at(levels)[0]) == pytest.approx(
        np.exp(exact.tpr_at(levels)[0]), rel=1e-4
    )
    assert ours.epsilon_at(levels) == pytest.approx(exact.epsilon_at(levels), rel=1e-3)


def test_nearly_equal_laws_keep_their_digits():
    member, nonmember = Normal([1e-4, 0.0], [1.0, 1.0 + 1e-5]), Normal([0.0, 0.0], [1.0, 1.0])
    ours, exact = ratio_of_densities(member, nonmember), NormalRatio.of(member, nonmember)
    for order in (0.5, 1.0, 2.0, 8.0):
        assert ours.renyi(order) == pytest.approx(exact.renyi(order), rel=1e-4)


def test_a_density_of_another_law_is_refused():
    pair = LawPair(Mistaken(0.0, 1.0), Mistaken(1.0, 1.0))
    with pytest.raises(leakscope.InputError, match="do not belong together"):
        measures.advantage(pair)


def test_a_registered_law_is_read_as_text():
    register("student", Student)
    assert float(parse_law("student:1,2").scale) == 2.0
    found = leakscope.measure("student:1,1", "student:0,1")
    assert found.advantage == pytest.approx(float(measures.advantage(PAIR)[0]))
    with pytest.raises(leakscope.InputError, match="student needs 2 numbers"):
        parse_law("student:1")
    with pytest.raises(leakscope.InputError, match="not taken"):
        register("normal", Student)
