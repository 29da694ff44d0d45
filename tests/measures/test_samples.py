"""Empirical measures: exact values on small samples, and measured coverage and null calibration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from sklearn.metrics import roc_auc_score

from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.measures import samples

Floats = npt.NDArray[np.float64]
ROWS = 200
FPRS = np.array([0.001, 0.01, 0.1, 0.3, 0.8])
SIZES = [(20, 30), (150, 40), (400, 250)]


@dataclass(frozen=True)
class Discrete:
    """A pair of laws on a common set of values; ``step`` of 0 is a fine grid for normals."""

    values: Floats
    member: Floats
    nonmember: Floats

    def draw(self, seed: int, n_member: int, n_nonmember: int) -> tuple[Floats, Floats]:
        generator = np.random.default_rng(seed)
        return (
            generator.choice(self.values, (ROWS, n_member), p=self.member),
            generator.choice(self.values, (ROWS, n_nonmember), p=self.nonmember),
        )

    @property
    def curve(self) -> tuple[Floats, Floats]:
        fpr = np.append(0.0, np.cumsum(self.nonmember[::-1]))
        tpr = np.append(0.0, np.cumsum(self.member[::-1]))
        return fpr / fpr[-1], tpr / tpr[-1]

    def delta(self, epsilon: float, mirrored: bool = False) -> float:
        fpr, tpr = self.curve
        if mirrored:
            fpr, tpr = 1 - tpr, 1 - fpr
        return float(np.max(tpr - np.exp(epsilon) * fpr))

    def epsilon(self, delta: float) -> float:
        fpr, tpr = self.curve
        best = 0.0
        for top, bottom in ((tpr, fpr), (1 - fpr, 1 - tpr)):
            use = (top - delta > 0) & (bottom > 1e-15)
            best = max(best, float(np.log((top[use] - delta) / bottom[use]).max()))
        return best


def binned_normal(shift: float, width: float) -> Discrete:
    values = np.arange(-5.0, 5.0 + shift + width, width)
    edges = np.concatenate([[-np.inf], (values[1:] + values[:-1]) / 2, [np.inf]])
    return Discrete(values, np.diff(stats.norm.cdf(edges, shift)), np.diff(stats.norm.cdf(edges)))


LAWS = {
    "null": binned_normal(0.0, 0.001),
    "null, three values": Discrete(np.arange(3.0), np.full(3, 1 / 3), np.full(3, 1 / 3)),
    "normal": binned_normal(1.0, 0.001),
    "rounded normal": binned_normal(1.0, 0.5),
    "two values": Discrete(np.arange(2.0), np.array([0.7, 0.3]), np.array([0.9, 0.1])),
    "four values": Discrete(
        np.arange(4.0), np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.5, 0.2, 0.2, 0.1])
    ),
}


def enough(covered: npt.NDArray[np.bool_], nominal: float = 0.95) -> None:
    slack = 4 * np.sqrt(nominal * (1 - nominal) / len(covered))
    share = covered.mean(axis=0)
    assert np.all(share >= nominal - slack), share


def plugin(member: Floats, nonmember: Floats) -> Floats:
    """The largest TPR - FPR over thresholds on these samples, which is biased upward."""
    rows = zip(np.atleast_2d(member), np.atleast_2d(nonmember), strict=True)
    found = [
        stats.ks_2samp(one, other, alternative="less", method="asymp").statistic
        for one, other in rows
    ]
    return np.reshape(found, np.shape(member)[:-1])


def advantage(member: Floats, nonmember: Floats, *options: float, **named: Key) -> samples.Estimate:
    """The hockey stick at epsilon 0, without its axis of levels."""
    found = samples.delta_at_epsilon(member, nonmember, np.zeros(1), *options, **named)
    value, low, high = (part[..., 0] for part in (found.value, found.low, found.high))
    return samples.Estimate(value, low, high, found.confidence, found.method)


@pytest.fixture(scope="module", params=[(law, size) for law in LAWS for size in SIZES], ids=str)
def case(request: pytest.FixtureRequest) -> tuple[Discrete, Floats, Floats]:
    name, size = request.param
    law = LAWS[name]
    return (law, *law.draw(1, *size))


# --- coverage -------------------------------------------------------------------------------


def test_auc_coverage(case: tuple[Discrete, Floats, Floats]) -> None:
    law, member, nonmember = case
    fpr, tpr = law.curve
    truth = float(integrate.trapezoid(tpr, fpr))
    found = samples.auc(member, nonmember)
    enough(found.contains(truth))
    assert abs(found.value.mean() - truth) < 5 * found.value.std() / np.sqrt(ROWS)


def test_tpr_at_fpr_coverage(case: tuple[Discrete, Floats, Floats]) -> None:
    law, member, nonmember = case
    truth = np.interp(FPRS, *law.curve)
    found = samples.tpr_at_fpr(member, nonmember, FPRS)
    enough(found.contains(truth))


def test_advantage_and_delta_coverage(case: tuple[Discrete, Floats, Floats]) -> None:
    law, member, nonmember = case
    found = advantage(member, nonmember)
    enough(found.contains(law.delta(0.0)))
    assert np.all(found.value <= plugin(member, nonmember) + 1e-12)
    both = samples.delta_at_epsilon(member, nonmember, np.array([0.5, 1.5]), direction="both")
    truth = [max(law.delta(e), law.delta(e, mirrored=True)) for e in (0.5, 1.5)]
    enough(both.contains(truth))


def test_epsilon_coverage(case: tuple[Discrete, Floats, Floats]) -> None:
    law, member, nonmember = case
    found = samples.epsilon_at_delta(member, nonmember, np.array([0.0, 0.05]))
    enough(found.contains([law.epsilon(0.0), law.epsilon(0.05)]))
    assert np.all(np.isinf(found.high))


@pytest.mark.parametrize("confidence", [0.5, 0.99])
def test_other_confidences(confidence: float) -> None:
    law = LAWS["rounded normal"]
    member, nonmember = law.draw(3, 100, 120)
    fpr, tpr = law.curve
    enough(
        samples.auc(member, nonmember, confidence).contains(integrate.trapezoid(tpr, fpr)),
        confidence,
    )
    enough(advantage(member, nonmember, confidence).contains(law.delta(0)), confidence)
    found = samples.tpr_at_fpr(member, nonmember, np.array([0.1]), confidence)
    enough(found.contains(np.interp(0.1, fpr, tpr)), confidence)


def test_auc_near_and_at_perfect_separation() -> None:
    generator = np.random.default_rng(0)
    for sizes in [(5, 5), (20, 30), (200, 200)]:
        for shift, scale in [(2.0, 1.0), (3.0, 0.2), (5.0, 1.0)]:
            member = generator.normal(shift, scale, (ROWS, sizes[0]))
            nonmember = generator.normal(size=(ROWS, sizes[1]))
            truth = stats.norm.cdf(shift / np.hypot(1.0, scale))
            enough(samples.auc(member, nonmember).contains(truth))


# --- null calibration -----------------------------------------------------------------------


@pytest.mark.parametrize("size", [(2, 2), (8, 9), (20, 30), (300, 30), (1000, 500)], ids=str)
@pytest.mark.parametrize("name", ["null", "null, three values"])
def test_no_leakage_is_reported_on_null_data(name: str, size: tuple[int, int]) -> None:
    member, nonmember = LAWS[name].draw(7, *size)
    enough(samples.auc(member, nonmember).contains(0.5))
    adv = advantage(member, nonmember)
    enough(adv.low == 0)
    scale = np.sqrt(1 / size[0] + 1 / size[1])
    naive = plugin(member, nonmember).mean()
    # A few values only leave the plug-in little to choose from, and so little bias to remove.
    assert adv.value.mean() < (0.5 if name == "null" else 0.7) * naive
    # What a floor at 0 alone makes of an unbiased difference of two shares, and a little.
    assert adv.value.mean() < 0.25 * scale
    eps = samples.epsilon_at_delta(member, nonmember, np.array([0.0, 0.01]))
    enough(eps.low == 0)
    assert np.all(eps.value.mean(axis=0) < 0.05)


# --- exact values ---------------------------------------------------------------------------


def test_auc_is_the_double_loop_and_scikit_learns() -> None:
    generator = np.random.default_rng(2)
    for digits in (0, 1, 8):
        member = np.round(generator.normal(0.7, 1, 23), digits)
        nonmember = np.round(generator.normal(size=31), digits)
        loop = np.mean([[(a > b) + 0.5 * (a == b) for b in nonmember] for a in member])
        truth = np.append(np.ones(23), np.zeros(31))
        theirs = roc_auc_score(truth, np.append(member, nonmember))
        assert float(samples.auc(member, nonmember).value) == pytest.approx(loop, abs=1e-12)
        assert loop == pytest.approx(theirs, abs=1e-12)


def test_delong_variance_is_the_textbook_one() -> None:
    generator = np.random.default_rng(4)
    member, nonmember = generator.normal(0.8, 1, 40), generator.normal(size=60)
    wins = (member[:, None] > nonmember).astype(float)
    part = wins.mean(1).var(ddof=1) / 40, wins.mean(0).var(ddof=1) / 60
    value, variance = wins.mean(), sum(part)
    freedom = variance**2 / (part[0] ** 2 / 39 + part[1] ** 2 / 59)
    half = stats.t.ppf(0.975, freedom) * np.sqrt(variance) / (value * (1 - value))
    centre = np.log(value / (1 - value))
    found = samples.auc(member, nonmember)
    # The hull of this and of Newcombe's, which is nearly the same here.
    assert float(found.low) == pytest.approx(1 / (1 + np.exp(half - centre)), rel=0.02)
    assert float(found.high) == pytest.approx(1 / (1 + np.exp(-half - centre)), rel=0.02)


scores = st.lists(st.integers(-3, 3), min_size=2, max_size=9).map(lambda x: np.array(x, float))


@settings(max_examples=80, deadline=None)
# an FPR within rounding of a whole number of nonmembers counts as that number
@given(scores, scores, st.integers(0, 10_000).map(lambda k: k / 10_000))
def test_threshold_values_by_brute_force(member: Floats, nonmember: Floats, fpr: float) -> None:
    cuts = [-np.inf, *np.unique(np.append(member, nonmember)), np.inf]
    tests = sorted({((nonmember >= t).mean(), (member >= t).mean()) for t in cuts})
    allowed = [tpr for false, tpr in tests if false <= fpr]
    assert float(samples.tpr_at_fpr(member, nonmember, np.array([fpr])).value[0]) == pytest.approx(
        max(allowed)
    )
    best = max(tpr - false for false, tpr in tests)
    assert float(plugin(member, nonmember)) == pytest.approx(best, abs=1e-12)


def test_order_statistic_bounds_at_the_edges() -> None:
    generator = np.random.default_rng(5)
    member, nonmember = generator.normal(3, 1, 500), generator.normal(size=50)
    found = samples.tpr_at_fpr(member, nonmember, np.array([0.0, 1e-3, 0.05, 1.0]))
    assert found.low[0] == found.low[1] == found.low[2] == 0.0
    assert found.low[3] == found.value[3] == found.high[3] == 1.0
    needed = 1 - (0.05 / 4) ** (1 / 50)
    assert samples.tpr_at_fpr(member, nonmember, np.array([needed * 1.001])).low[0] > 0


# --- symmetries -----------------------------------------------------------------------------

MEASURES: dict[str, Callable[[npt.ArrayLike, npt.ArrayLike], samples.Estimate]] = {
    "auc": samples.auc,
    "tpr_at_fpr": lambda a, b: samples.tpr_at_fpr(a, b, FPRS),
    "delta": lambda a, b: samples.delta_at_epsilon(
        a, b, np.array([0.0, 1.0]), key=Key(3), direction="both"
    ),
    "epsilon": lambda a, b: samples.epsilon_at_delta(a, b, np.array([0.0, 0.1]), key=Key(3)),
}


def same(one: samples.Estimate, other: samples.Estimate) -> None:
    for field in ("value", "low", "high"):
        np.testing.assert_allclose(getattr(one, field), getattr(other, field), rtol=1e-12)


@pytest.mark.parametrize("name", MEASURES)
def test_batch_is_the_loop_and_monotone_transforms_change_nothing(name: str) -> None:
    measure = MEASURES[name]
    generator = np.random.default_rng(6)
    member = np.round(generator.normal(1, 1, (2, 3, 40)), 1)
    nonmember = np.round(generator.normal(size=(2, 3, 30)), 1)
    batch = measure(member, nonmember)
    same(batch, measure(np.exp(member), np.exp(nonmember)))
    same(batch, measure(member, nonmember))
    for row in np.ndindex(2, 3):
        single = measure(member[row], nonmember[row])
        for field in ("value", "low", "high"):
            np.testing.assert_allclose(
                getattr(batch, field)[row], getattr(single, field), rtol=1e-12
            )
    assert np.all((batch.low <= batch.value) & (batch.value <= batch.high))
    shared = measure(member, nonmember[0, 0])
    assert shared.value.shape == batch.value.shape


def test_swapping_and_negating() -> None:
    member, nonmember = LAWS["rounded normal"].draw(8, 40, 30)
    one, swapped = samples.auc(member, nonmember), samples.auc(nonmember, member)
    np.testing.assert_allclose(one.value, 1 - swapped.value)
    np.testing.assert_allclose(one.low, 1 - swapped.high, atol=1e-9)
    same(one, samples.auc(-nonmember, -member))
    np.testing.assert_allclose(plugin(member, nonmember), plugin(-nonmember, -member))
    forward = samples.delta_at_epsilon(member, nonmember, np.array([0.7]))
    mirrored = samples.delta_at_epsilon(
        -nonmember, -member, np.array([0.7]), direction="nonmember_to_member"
    )
    np.testing.assert_allclose(forward.high, mirrored.high)


def test_keys_repeat_and_matter() -> None:
    member, nonmember = LAWS["normal"].draw(9, 60, 60)
    one = advantage(member, nonmember, key=Key(1)).value
    np.testing.assert_array_equal(one, advantage(member, nonmember, key=Key(1)).value)
    assert np.any(one != advantage(member, nonmember, key=Key(2)).value)


# --- input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "nonmember", "options", "message"),
    [
        ([1.0, np.nan], [0.0, 1.0], {}, "member score at position 1 is nan"),
        ([1.0, 2.0], [[0.0, 1.0], [0.0, np.inf]], {}, r"nonmember score at position \(1, 1\)"),
        ([1.0], [0.0, 1.0], {}, "At least 2 member scores"),
        (1.0, [0.0, 1.0], {}, "At least 2 member scores"),
        ([1.0, 2.0], [0.0], {}, "At least 2 nonmember scores"),
        (["a", "b"], [0.0, 1.0], {}, "not an array of numbers"),
        (np.zeros((2, 3)), np.zeros((3, 3)), {}, "batch shapes"),
        ([1.0, 2.0], [0.0, 1.0], {"confidence": 1.0}, "confidence"),
        ([1.0, 2.0], [0.0, 1.0], {"confidence": np.nan}, "confidence"),
    ],
)
def test_bad_scores(
    member: npt.ArrayLike, nonmember: npt.ArrayLike, options: dict[str, float], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        samples.auc(member, nonmember, **options)
