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
from scipy.special import betainc, digamma
from sklearn.metrics import roc_auc_score

from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.measures import empirical_estimates as ee
from leakscope.measures.empirical_estimates import _plugin
from leakscope.measures.empirical_kl import _null_bias, _reach, _windows, kl
from leakscope.measures.empirical_ranks import _ranked, by_blocks, dkw_sum, held_out

Floats = npt.NDArray[np.float64]
ROWS = 400
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

    def kl(self) -> float:
        return float(np.sum(self.nonmember * np.log(self.nonmember / self.member)))


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
    """Return the largest TPR - FPR over thresholds on these samples, which is biased upward."""
    return by_blocks(member, nonmember, lambda ranks: (_plugin(ranks, 1.0),))[0]


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
    found = ee.auc(member, nonmember)
    enough(found.contains(truth))
    assert abs(found.value.mean() - truth) < 5 * found.value.std() / np.sqrt(ROWS)


def test_tpr_at_fpr_and_roc_coverage(case: tuple[Discrete, Floats, Floats]) -> None:
    law, member, nonmember = case
    truth = np.interp(FPRS, *law.curve)
    found = ee.tpr_at_fpr(member, nonmember, FPRS)
    enough(found.contains(truth))
    grid = np.linspace(0, 1, 41)
    band = ee.roc(member, nonmember, grid)
    inside = (band.low <= np.interp(grid, *law.curve) + 1e-12) & (
        np.interp(grid, *law.curve) <= band.high + 1e-12
    )
    enough(inside.all(axis=-1))


def test_advantage_and_delta_coverage(case: tuple[Discrete, Floats, Floats]) -> None:
    law, member, nonmember = case
    found = ee.advantage(member, nonmember)
    enough(found.contains(law.delta(0.0)))
    assert np.all(found.value <= plugin(member, nonmember) + 1e-12)
    both = ee.delta_at_epsilon(member, nonmember, [0.5, 1.5], direction="both")
    truth = [max(law.delta(e), law.delta(e, mirrored=True)) for e in (0.5, 1.5)]
    enough(both.contains(truth))


def test_epsilon_coverage(case: tuple[Discrete, Floats, Floats]) -> None:
    law, member, nonmember = case
    found = ee.epsilon_at_delta(member, nonmember, [0.0, 0.05])
    enough(found.contains([law.epsilon(0.0), law.epsilon(0.05)]))
    assert np.all(np.isinf(found.high))


def test_kl_coverage(case: tuple[Discrete, Floats, Floats]) -> None:
    law, member, nonmember = case
    guaranteed = kl(member, nonmember)
    enough(guaranteed.contains(law.kl()))
    assert np.all(np.isinf(guaranteed.high))


@pytest.mark.parametrize("size", [(100, 100), (300, 600)], ids=str)
def test_kl_coverage_where_nonmembers_have_heavier_tails(size: tuple[int, int]) -> None:
    generator = np.random.default_rng(12)
    member = generator.normal(size=(ROWS, size[0]))
    nonmember = generator.laplace(size=(ROWS, size[1]))
    # E_P[log p/q] with p = exp(-|x|)/2, E|x| = 1, E x**2 = 2.
    truth = -np.log(2) - 1 + 0.5 * np.log(2 * np.pi) + 1
    enough(kl(member, nonmember).contains(truth))


@pytest.mark.parametrize("confidence", [0.5, 0.99])
def test_other_confidences(confidence: float) -> None:
    law = LAWS["rounded normal"]
    member, nonmember = law.draw(3, 100, 120)
    fpr, tpr = law.curve
    enough(
        ee.auc(member, nonmember, confidence).contains(integrate.trapezoid(tpr, fpr)), confidence
    )
    enough(ee.advantage(member, nonmember, confidence).contains(law.delta(0)), confidence)
    enough(kl(member, nonmember, confidence=confidence).contains(law.kl()), confidence)
    found = ee.tpr_at_fpr(member, nonmember, 0.1, confidence)
    enough(found.contains(np.interp(0.1, fpr, tpr)), confidence)


def test_auc_near_and_at_perfect_separation() -> None:
    generator = np.random.default_rng(0)
    for sizes in [(5, 5), (20, 30), (200, 200)]:
        for shift, scale in [(2.0, 1.0), (3.0, 0.2), (5.0, 1.0)]:
            member = generator.normal(shift, scale, (ROWS, sizes[0]))
            nonmember = generator.normal(size=(ROWS, sizes[1]))
            truth = stats.norm.cdf(shift / np.hypot(1.0, scale))
            enough(ee.auc(member, nonmember).contains(truth))


# --- null calibration -----------------------------------------------------------------------


@pytest.mark.parametrize("size", [(2, 2), (8, 9), (20, 30), (300, 30), (1000, 500)], ids=str)
@pytest.mark.parametrize("name", ["null", "null, three values"])
def test_no_leakage_is_reported_on_null_data(name: str, size: tuple[int, int]) -> None:
    member, nonmember = LAWS[name].draw(7, *size)
    enough(ee.auc(member, nonmember).contains(0.5))
    adv = ee.advantage(member, nonmember)
    enough(adv.low == 0)
    scale = np.sqrt(1 / size[0] + 1 / size[1])
    naive = plugin(member, nonmember).mean()
    # A few values only leave the plug-in little to choose from, and so little bias to remove.
    assert adv.value.mean() < (0.5 if name == "null" else 0.7) * naive
    # What a floor at 0 alone makes of an unbiased difference of two shares, and a little.
    assert adv.value.mean() < 0.25 * scale
    eps = ee.epsilon_at_delta(member, nonmember, [0.0, 0.01])
    enough(eps.low == 0)
    assert np.all(eps.value.mean(axis=0) < 0.05)
    divergence = kl(member, nonmember)
    enough(divergence.low == 0)
    if min(size) >= 8:
        # What a floor at 0 alone makes of a mean of 0 is 0.4 sd for a normal law.
        assert divergence.value.mean() < 0.55 * null_kl(size[1], size[0]).std()
    else:
        assert np.isnan(divergence.value).all()
        assert np.isinf(divergence.high).all()
        assert "fewer than 8" in divergence.bias


def null_kl(n: int, m: int) -> Floats:
    """Return the estimate before the floor for random orders of n and m scores."""
    generator = np.random.default_rng(n)
    first = generator.permuted(np.broadcast_to(np.arange(n + m) < n, (2000, n + m)), axis=-1)
    below = np.cumsum(~first, axis=-1)[first].reshape(2000, n)
    narrow, broad = _windows(below, m, _reach(n, m))
    return 2 * narrow - broad


@pytest.mark.parametrize("size", [(8, 9), (20, 30), (300, 30), (30, 300), (500, 400)], ids=str)
def test_kl_is_unbiased_on_null_data_before_the_floor(size: tuple[int, int]) -> None:
    found = null_kl(*size)
    assert abs(found.mean()) < 4 * found.std() / np.sqrt(len(found))


def test_null_bias_of_kl_is_the_exact_sum() -> None:
    for n, m, s in [(20, 30, 4), (1000, 20, 100), (50, 500, 3), (9, 8, 3)]:
        inside = np.arange(m + 1)
        chance = stats.betabinom(m, s, n + 1 - s).pmf(inside)
        expected = (chance * digamma(inside + 1)).sum() - digamma(m + 1)
        expected -= digamma(s) - digamma(n + 1)
        assert _null_bias(n, m, np.array([s]))[0] == pytest.approx(expected, abs=3e-4)


@pytest.mark.parametrize("name", ["null", "null, three values"])
def test_cross_fitted_gain_is_unbiased_on_null_data_before_the_floor(name: str) -> None:
    ranks = _ranked(*LAWS[name].draw(5, 40, 30))
    held = held_out(ranks, "both", lambda x, y, n, m: x / n - 1.0 * y / m, Key(0))
    gain = (held.hits / held.numerators - held.misses / held.denominators).mean(axis=0)
    assert abs(gain.mean()) < 4 * gain.std() / np.sqrt(ROWS)


# --- exact values ---------------------------------------------------------------------------


def test_auc_is_the_double_loop_and_scikit_learns() -> None:
    generator = np.random.default_rng(2)
    for digits in (0, 1, 8):
        member = np.round(generator.normal(0.7, 1, 23), digits)
        nonmember = np.round(generator.normal(size=31), digits)
        loop = np.mean([[(a > b) + 0.5 * (a == b) for b in nonmember] for a in member])
        truth = np.append(np.ones(23), np.zeros(31))
        theirs = roc_auc_score(truth, np.append(member, nonmember))
        assert float(ee.auc(member, nonmember).value) == pytest.approx(loop, abs=1e-12)
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
    found = ee.auc(member, nonmember)
    assert float(found.low) == pytest.approx(1 / (1 + np.exp(half - centre)), rel=1e-9)
    assert float(found.high) == pytest.approx(1 / (1 + np.exp(-half - centre)), rel=1e-9)


def test_auc_exact_fallbacks() -> None:
    apart = ee.auc(np.arange(10.0) + 20, np.arange(12.0))
    assert (float(apart.value), float(apart.high)) == (1.0, 1.0)
    assert float(apart.low) == pytest.approx(0.025 ** (1 / 10))
    equal = ee.auc(np.ones(10), np.ones(12))
    assert float(equal.value) == 0.5
    assert float(equal.high - 0.5) == pytest.approx((1 - 0.025 ** (1 / 10)) / 2)


scores = st.lists(st.integers(-3, 3), min_size=2, max_size=9).map(lambda x: np.array(x, float))


@settings(max_examples=80, deadline=None)
# an FPR within rounding of a whole number of nonmembers counts as that number
@given(scores, scores, st.integers(0, 10_000).map(lambda k: k / 10_000))
def test_threshold_values_by_brute_force(member: Floats, nonmember: Floats, fpr: float) -> None:
    cuts = [-np.inf, *np.unique(np.append(member, nonmember)), np.inf]
    tests = sorted({((nonmember >= t).mean(), (member >= t).mean()) for t in cuts})
    allowed = [tpr for false, tpr in tests if false <= fpr]
    assert float(ee.tpr_at_fpr(member, nonmember, fpr).value) == pytest.approx(max(allowed))
    corners = [max(tpr for f, tpr in tests if f == false) for false, _ in tests]
    falses = [false for false, _ in tests]
    # At an FPR of its own the curve is at its top; between, straight through the tie.
    if fpr in falses:
        expected = corners[len(falses) - 1 - falses[::-1].index(fpr)]
    else:
        right = next(i for i, false in enumerate(falses) if false > fpr)
        left, low_tpr = falses[right - 1], corners[right - 1]
        first = min(tpr for false, tpr in tests if false == falses[right])
        expected = low_tpr + (fpr - left) / (falses[right] - left) * (first - low_tpr)
    assert float(ee.roc(member, nonmember, fpr).value) == pytest.approx(expected, abs=1e-9)
    best = max(tpr - false for false, tpr in tests)
    assert float(plugin(member, nonmember)) == pytest.approx(best, abs=1e-12)


def test_order_statistic_bounds_at_the_edges() -> None:
    generator = np.random.default_rng(5)
    member, nonmember = generator.normal(3, 1, 500), generator.normal(size=50)
    found = ee.tpr_at_fpr(member, nonmember, [0.0, 1e-3, 0.05, 1.0])
    assert found.low[0] == found.low[1] == found.low[2] == 0.0
    assert found.low[3] == found.value[3] == found.high[3] == 1.0
    assert "50 nonmember scores" in found.bias
    needed = 1 - (0.05 / 4) ** (1 / 50)
    assert float(ee.tpr_at_fpr(member, nonmember, needed * 1.001).low) > 0
    assert betainc(1, 50, needed) == pytest.approx(1 - 0.05 / 4)


def test_trade_off_is_one_minus_the_roc() -> None:
    member, nonmember = LAWS["rounded normal"].draw(1, 30, 40)
    curve, trade = ee.roc(member, nonmember, FPRS), ee.trade_off(member, nonmember, FPRS)
    np.testing.assert_allclose(trade.value, 1 - curve.value)
    np.testing.assert_allclose(trade.low, 1 - curve.high)
    np.testing.assert_allclose(trade.high, 1 - curve.low)


def test_dkw_sum_holds_and_beats_the_union_bound() -> None:
    generator = np.random.default_rng(0)
    n, m = 40, 60
    first, second = (np.sort(generator.random((20000, k)), axis=-1) for k in (n, m))
    largest = (np.arange(1, n + 1) / n - first).max(-1) + 2 * (
        np.arange(1, m + 1) / m - second
    ).max(-1)
    bound = dkw_sum(n, m, 2.0, 0.05)
    assert 0.005 < (largest > bound).mean() <= 0.05
    union = np.sqrt(np.log(40) / (2 * n)) + 2 * np.sqrt(np.log(40) / (2 * m))
    assert bound < 0.9 * union


# --- symmetries -----------------------------------------------------------------------------

MEASURES: dict[str, Callable[[npt.ArrayLike, npt.ArrayLike], ee.Estimate]] = {
    "auc": ee.auc,
    "tpr_at_fpr": lambda a, b: ee.tpr_at_fpr(a, b, FPRS),
    "roc": lambda a, b: ee.roc(a, b, FPRS),
    "advantage": lambda a, b: ee.advantage(a, b, key=Key(3)),
    "delta": lambda a, b: ee.delta_at_epsilon(a, b, [0.0, 1.0], key=Key(3), direction="both"),
    "epsilon": lambda a, b: ee.epsilon_at_delta(a, b, [0.0, 0.1], key=Key(3)),
    "kl": lambda a, b: kl(a, b, key=Key(3)),
}


def same(one: ee.Estimate, other: ee.Estimate) -> None:
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


def test_blocks_of_memory_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    member, nonmember = LAWS["rounded normal"].draw(1, 20, 30)
    whole = [measure(member, nonmember) for measure in MEASURES.values()]
    monkeypatch.setattr("leakscope.measures.empirical_ranks._BLOCK_NUMBERS", 50 * 37)
    for one, measure in zip(whole, MEASURES.values(), strict=True):
        same(one, measure(member, nonmember))


def test_swapping_and_negating() -> None:
    member, nonmember = LAWS["rounded normal"].draw(8, 40, 30)
    one, swapped = ee.auc(member, nonmember), ee.auc(nonmember, member)
    np.testing.assert_allclose(one.value, 1 - swapped.value)
    np.testing.assert_allclose(one.low, 1 - swapped.high, atol=1e-9)
    same(one, ee.auc(-nonmember, -member))
    np.testing.assert_allclose(plugin(member, nonmember), plugin(-nonmember, -member))
    forward = ee.delta_at_epsilon(member, nonmember, 0.7)
    mirrored = ee.delta_at_epsilon(-nonmember, -member, 0.7, direction="nonmember_to_member")
    np.testing.assert_allclose(forward.high, mirrored.high)
    generator = np.random.default_rng(8)
    member, nonmember = generator.normal(0.5, 1, (20, 200)), generator.normal(size=(20, 200))
    divergence = kl(member, nonmember)
    swapped = kl(nonmember, member, "member_to_nonmember")
    np.testing.assert_allclose(divergence.value, swapped.value, rtol=1e-12)
    np.testing.assert_allclose(divergence.value, kl(-member, -nonmember).value, atol=1e-9)


def test_keys_repeat_and_matter() -> None:
    member, nonmember = LAWS["normal"].draw(9, 60, 60)
    one = ee.advantage(member, nonmember, key=Key(1)).value
    np.testing.assert_array_equal(one, ee.advantage(member, nonmember, key=Key(1)).value)
    assert np.any(one != ee.advantage(member, nonmember, key=Key(2)).value)


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
        ee.auc(member, nonmember, **options)


def test_bad_levels() -> None:
    good = [0.0, 1.0]
    with pytest.raises(InputError, match="fpr must be between 0 and 1, but at position 1 it is 1"):
        ee.tpr_at_fpr(good, good, [0.5, 1.5])
    with pytest.raises(InputError, match="fpr must be between"):
        ee.roc(good, good, -0.1)
    with pytest.raises(InputError, match="delta"):
        ee.epsilon_at_delta(good, good, np.nan)
    with pytest.raises(InputError, match="epsilon must be finite"):
        ee.delta_at_epsilon(good, good, -1.0)
    with pytest.raises(InputError, match="one-dimensional"):
        ee.roc(good, good, np.zeros((2, 2)))
    with pytest.raises(InputError, match="direction"):
        ee.epsilon_at_delta(good, good, 0.0, direction="up")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="direction"):
        kl(good, good, "both")  # type: ignore[arg-type]
