"""MultivariateRatio against references that share no formula with it, in many-digit arithmetic.

Every reference works on the law of l directly (normal, chi-square and exponential distributions,
or quadrature over observations); only for d = 50 and d = 200 is it an inversion integral, then on
a plain vertical line with 30 digits and the trapezoidal rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest
from mpmath import mp, mpf

from leakscope.measures.quadratic_forms import MultivariateRatio

FloatArray = npt.NDArray[np.float64]
Four = tuple[mpf, mpf, mpf, mpf]  # tpr, fpr, fnr, tnr


def ratio(mu: npt.ArrayLike, excess: npt.ArrayLike) -> MultivariateRatio:
    """One pair."""
    return MultivariateRatio(
        np.atleast_2d(np.asarray(mu, dtype=float)), np.atleast_2d(np.asarray(excess, dtype=float))
    )


def assert_log(got: float, reference: mpf, tolerance: float = 1e-11) -> None:
    """A log against the log of a positive number: relative accuracy of the probability itself,
    as far as the threshold's own rounding allows."""
    expected = float(mp.log(reference))
    assert abs(got - expected) <= tolerance * max(1.0, abs(expected)), (got, expected)


def check_tails(pair: MultivariateRatio, thresholds: Sequence[float], exact: Callable[[mpf], Four]):
    """Compare all four tails and the hockey stick at each threshold."""
    t = np.asarray(thresholds, dtype=float)[None, :]
    tails, excess = pair.tails(t), pair.log_excess(t)
    for k, threshold in enumerate(t[0]):
        reference = exact(mpf(float(threshold)))
        for got, probability in zip(tails, reference, strict=True):
            assert_log(got[0, k], probability)
        assert_log(excess[0, k], reference[0] - mp.exp(mpf(float(threshold))) * reference[1])


# ---- references ---------------------------------------------------------------------------


def normal_tails(shift: float) -> Callable[[mpf], Four]:
    """Equal covariances: l is normal with variance shift^2 and mean +-shift^2/2."""
    m = mpf(shift)

    def exact(t: mpf) -> Four:
        u1, u0 = (t - m * m / 2) / m, (t + m * m / 2) / m
        return _upper(u1), _upper(u0), _upper(-u1), _upper(-u0)

    return exact


def _upper(z: mpf) -> mpf:
    return mp.erfc(z / mp.sqrt(2)) / 2


def interval_tails(mu: float, excess: float) -> Callable[[mpf], Four]:
    """d = 1: {l > t} is an interval or the outside of one."""
    m, x = mpf(mu), mpf(excess)
    lam = 1 + x

    def exact(t: mpf) -> Four:
        a, b, c = x / (2 * lam), m / lam, -m * m / (2 * lam) - mp.log(lam) / 2 - t
        root = mp.sqrt(b * b - 4 * a * c)
        low, high = sorted([(-b - root) / (2 * a), (-b + root) / (2 * a)])
        result = []
        for centre, sigma in ((m, mp.sqrt(lam)), (mpf(0), mpf(1))):
            p, q = (low - centre) / sigma, (high - centre) / sigma
            if p > 0:
                inside = _upper(p) - _upper(q)
            else:
                inside = _upper(-q) - _upper(-p)
            outside = _upper(-p) + _upper(q)
            result.append((outside, inside) if x > 0 else (inside, outside))
        (tpr, fnr), (fpr, tnr) = result
        return tpr, fpr, fnr, tnr

    return exact


def chi_square_tails(d: int, mu: float, excess: float) -> Callable[[mpf], Four]:
    """All d coordinates alike: l is a multiple of a (noncentral) chi-square plus a constant."""
    m, x = mpf(mu), mpf(excess)
    lam = 1 + x

    def chi_square(value: mpf, noncentrality: mpf) -> tuple[mpf, mpf]:
        """Lower and upper tail by the Poisson mixture."""
        lower = upper = mpf(0)
        weight, k = mp.exp(-noncentrality / 2), 0
        while True:
            part = mp.gammainc(mpf(d) / 2 + k, 0, value / 2, regularized=True)
            rest = mp.gammainc(mpf(d) / 2 + k, value / 2, mp.inf, regularized=True)
            lower, upper = lower + weight * part, upper + weight * rest
            k += 1
            weight *= noncentrality / 2 / k
            if weight <= mpf(10) ** -40 * min(upper, 1) and weight * part <= lower / mpf(10) ** 40:
                return lower, upper

    def exact(t: mpf) -> Four:
        vertex = d * (-mp.log(lam) / 2 - m * m / (2 * x))
        value0 = (t - vertex) * 2 * lam / x  # sum (z + mu/x)^2
        lower0, upper0 = chi_square(value0, d * (m / x) ** 2)
        lower1, upper1 = chi_square(value0 / lam, d * (m + m / x) ** 2 / lam)
        return (upper1, upper0, lower1, lower0) if x > 0 else (lower1, lower0, upper1, upper0)

    return exact


def exponential_upper(scales: Sequence[mpf], value: mpf) -> tuple[mpf, mpf]:
    """Upper and lower tail of sum a_i E_i, E_i standard exponential, all a_i different."""
    side = 1 if value >= 0 else -1
    tail = mpf(0)
    for i, a in enumerate(scales):
        if side * a > 0:
            term = mp.exp(-value / a)
            for k, other in enumerate(scales):
                if k != i:
                    term *= a / (a - other)
            tail += term
    return (tail, 1 - tail) if side > 0 else (1 - tail, tail)


def exponential_tails(excess: Sequence[float]) -> Callable[[mpf], Four]:
    """mu = 0 and each lam twice: l is a sum of exponentials of either sign."""
    x = [mpf(float(v)) for v in excess]
    constant = sum(mp.log(1 + v) for v in x)

    def exact(t: mpf) -> Four:
        tpr, fnr = exponential_upper(x, t + constant)
        fpr, tnr = exponential_upper([v / (1 + v) for v in x], t + constant)
        return tpr, fpr, fnr, tnr

    return exact


def doubled(excess: Sequence[float]) -> MultivariateRatio:
    x = np.repeat(np.asarray(excess, dtype=float), 2)
    return ratio(np.zeros(x.size), x)


def vertical_tails(mu: FloatArray, excess: FloatArray, t: float, line: float) -> list[mpf]:
    """|(1/(2 pi i)) int M(s) e^((p - s) t) / (s - p) ds| on Re s = line for the poles p = 1 and 0,
    by the trapezoidal rule, halved until it stands."""
    data = [(mpf(float(m)) ** 2, mpf(float(x))) for m, x in zip(mu, excess, strict=True)]
    constant = sum(mp.log(1 + x) for _, x in data) / 2

    def values(u: mpf) -> list[mpf]:
        s = mp.mpc(line, u)
        total = (1 - s) * constant - s * mpf(t)
        for m2, x in data:
            d = 1 + (1 - s) * x
            total -= (mp.log(d) + s * (1 - s) * m2 / d) / 2
        return [(mp.exp(total + t) / (s - 1)).real, (mp.exp(total) / s).real]

    peak = abs(values(mpf(0))[1])
    step = mpf(1)
    while abs(values(step)[1]) < peak * 3 / 4:
        step /= 2
    sums = [v / 2 for v in values(mpf(0))]
    previous = [mpf(0), mpf(0)]
    first, stride = 1, 1
    while True:
        k, small = first, 0
        while small < 3:
            term = values(k * step)
            sums = [a + b for a, b in zip(sums, term, strict=True)]
            small = small + 1 if abs(term[1]) < peak * mpf(10) ** -14 else 0
            k += stride
        result = [abs(a * step / mp.pi) for a in sums]
        # Each halving squares the error.
        if all(abs(p / r - 1) < 1e-7 for p, r in zip(previous, result, strict=True)):
            return result
        previous, step, stride = result, step / 2, 2


# ---- tails and hockey sticks --------------------------------------------------------------


@pytest.mark.parametrize("shift", [1e-9, 1e-4, 0.3, 2.0, 25.0, 900.0])
def test_equal_covariances(shift):
    pair = ratio([0.6 * shift, 0.0, -0.8 * shift], [0.0, 0.0, 0.0])
    z = np.array([-36.0, -11.0, -2.0, -0.3, 0.0, 0.4, 3.0, 11.0, 36.0])
    shift = float(np.hypot(0.6 * shift, 0.8 * shift))
    with mp.workdps(60):
        # the shift is squared in the exponent: what hypot rounds shows at 36 sigma
        exact = mp.sqrt(sum(mpf(float(m)) ** 2 for m in pair.mu[0]))
        thresholds = np.concatenate([shift * z, shift * z + shift**2 / 2, shift * z - shift**2 / 2])
        check_tails(pair, thresholds, normal_tails(exact))


@pytest.mark.parametrize("mu", [0.0, 1e-5, 0.4, 3.0, 40.0])
@pytest.mark.parametrize(
    "excess", [1e6, 30.0, 0.7, 1e-3, 1e-9, -1e-9, -1e-3, -0.4, -0.97, -1.0 + 1e-6]
)
def test_one_coordinate(mu, excess):
    pair = ratio([mu], [excess])
    lowest, highest = pair.llr_bounds()
    scale = pair.llr_scale()[0]
    spread = scale * np.array([-30.0, -4.0, -1.0, -0.2, -1e-3, 0.0, 1e-3, 0.2, 1.0, 4.0, 30.0])
    edge = lowest[0] if excess > 0 else highest[0]
    close = edge + np.sign(excess) * abs(edge) * np.array([1e-3, 1e-6])
    thresholds = np.concatenate([spread, close])
    thresholds = thresholds[(thresholds > lowest) & (thresholds < highest)]
    # far below 1e-10000 a reference needs more digits than it is worth
    keep = pair.tails(thresholds[None, :])
    thresholds = thresholds[np.min([p[0] for p in keep], axis=0) > -3e4]
    assert thresholds.size >= 3
    with mp.workdps(120):
        exact = interval_tails(mu, excess)
        tails, sticks = pair.tails(thresholds[None, :]), pair.log_excess(thresholds[None, :])
        for k, t in enumerate(thresholds):
            reference = exact(mpf(float(t)))
            # Near an edge the rounding of t - edge, which is not ours, is what remains.
            room = 1e-11 + 1e-14 * abs(edge) / abs(t - edge)
            for got, p in zip(tails, reference, strict=True):
                assert_log(got[0, k], p, room)
            stick = reference[0] - mp.exp(mpf(float(t))) * reference[1]
            assert_log(sticks[0, k], stick, room)


@pytest.mark.parametrize(
    ("d", "mu", "excess"),
    [
        (2, 0.0, 0.5),
        (3, 0.0, -0.9),
        (7, 0.0, 1e-6),
        (50, 0.0, 0.2),
        (200, 0.0, -0.05),
        (500, 0.0, 1e-3),
        (3, 0.7, 2.0),
        (6, -0.5, -0.6),
        (50, 0.1, 0.3),
        (200, 0.05, -0.1),
    ],
)
def test_equal_coordinates(d, mu, excess):
    pair = ratio(np.full(d, mu), np.full(d, excess))
    mean1, mean0 = pair.renyi(1.0)[0], -pair.reversed().renyi(1.0)[0]
    scale = np.sqrt(0.5 * d) * abs(excess) + np.sqrt(d) * abs(mu)
    thresholds = np.concatenate(
        [mean0 + scale * np.array([-1.0, 0.0, 1.0]), mean1 + scale * np.array([1.0, 6.0, 20.0])]
    )
    lowest, highest = pair.llr_bounds()
    thresholds = thresholds[(thresholds > lowest) & (thresholds < highest)]
    with mp.workdps(60):
        check_tails(pair, thresholds, chi_square_tails(d, mu, excess))


@pytest.mark.parametrize(
    "excess",
    [
        [1e6 - 1.0, -1.0 + 1e-6],
        [1e6, 300.0, 0.01, -0.02, -0.999, -1.0 + 1e-6],
        [0.5, 0.4, 0.3, 0.2, 0.1],
        [0.5, -0.3],
        [0.5, -1.0 / 3.0],
        [-0.1, -0.5, -0.9, -0.99],
        [1e-9, -2e-9, 3e-9],
        [1e-9, 1.0, -0.5],
        [1e-5, 4e-3, -0.7, 2e4],
        [20.0, 21.0, 1e-4, -1e-4],
    ],
)
def test_sums_of_exponentials(excess):
    pair = doubled(excess)
    lowest, highest = pair.llr_bounds()
    mean1, mean0 = pair.renyi(1.0)[0], -pair.reversed().renyi(1.0)[0]
    scale = min(pair.llr_scale()[0], 50.0)
    thresholds = np.concatenate(
        [
            np.linspace(mean0, mean1, 6),
            scale * np.array([-20.0, -3.0, -0.5, -1e-4, 0.0, 1e-3, 0.7, 4.0, 25.0]),
            [mean1 * 10, mean0 * 10],
        ]
    )
    thresholds = thresholds[(thresholds > lowest) & (thresholds < highest)]
    kept = pair.tails(thresholds[None, :])
    thresholds = thresholds[np.min([p[0] for p in kept], axis=0) > -2e3]
    assert thresholds.size >= 6
    with mp.workdps(1200):
        exact = exponential_tails(excess)
        check_tails(pair, thresholds, exact)


def test_tails_of_exp_minus_70_and_minus_700():
    excess = [0.8, 0.3, -0.4]
    pair = doubled(excess)
    with mp.workdps(700):
        exact = exponential_tails(excess)
        for target in (-70.0, -700.0):
            low, high = 0.0, 5000.0
            for _ in range(60):
                middle = 0.5 * (low + high)
                above = pair.tails(np.array([[middle]])).log_fpr[0, 0] > target
                low, high = (middle, high) if above else (low, middle)
            assert float(mp.log(exact(mpf(low))[1])) == pytest.approx(target, abs=1e-9)
            check_tails(pair, [low], exact)
            check_tails(pair, [-low / 3], exact)


@pytest.mark.parametrize(("d", "seed", "far"), [(25, 0, 0.0), (50, 1, 1.5), (200, 2, 1.0)])
def test_many_coordinates(d, seed, far):
    rng = np.random.default_rng(seed)
    mu = rng.normal(size=d) * 0.2
    excess = np.expm1(rng.normal(size=d) * 0.3)
    pair = ratio(mu, excess)
    mean1, mean0 = pair.renyi(1.0)[0], -pair.reversed().renyi(1.0)[0]
    t = mean1 + far * (mean1 - mean0) if far else 0.3 * mean0 + 0.7 * mean1

    def height(s: float) -> float:
        left = 1.0 + (1.0 - s) * excess
        terms = (1.0 - s) * np.log1p(excess) - np.log(left) - s * (1.0 - s) * mu**2 / left
        return 0.5 * float(terms.sum()) - s * t

    branch = 1.0 + 1.0 / excess.max()
    grid = np.linspace(1.0, branch, 402)[1:-1] if far else np.linspace(0.0, 1.0, 402)[1:-1]
    line = float(grid[np.argmin([height(s) for s in grid])])
    tails = pair.tails(np.array([[t]]))
    with mp.workdps(30):
        member, nonmember = vertical_tails(mu, excess, t, line)
        assert_log((tails.log_tpr if far else tails.log_fnr)[0, 0], member)
        assert_log(tails.log_fpr[0, 0], nonmember)
    if far:
        assert tails.log_fpr[0, 0] < -10.0


# ---- advantage, overlap, AUC --------------------------------------------------------------


@pytest.mark.parametrize("shift", [1e-12, 2.5e-9, 1e-3, 1.0, 10.0, 30.0, 60.0])
def test_summaries_for_equal_covariances(shift):
    pair = ratio([shift, 0.0], [0.0, 0.0])
    with mp.workdps(60):
        m = mpf(shift)
        assert_log(np.log(pair.advantage()[0]), mp.erf(m / mp.sqrt(8)))
        assert_log(np.log(pair.overlap())[0], mp.erfc(m / mp.sqrt(8)))
        assert_log(pair.log_auc_complement()[0], mp.erfc(m / 2) / 2)


@pytest.mark.parametrize(
    "excess",
    [
        [1e-9],
        [3e-9, -1e-9],
        [0.01, -0.02],
        [1.0, 3.3, -0.6],
        [1e6, -1.0 + 1e-6, 0.1],
        [1e60],
        [1e9, 1e8, 1e7, 1e6, -1.0 + 1e-9, -1.0 + 1e-8, -1.0 + 1e-7, -1.0 + 1e-6],
    ],
)
def test_summaries_for_sums_of_exponentials(excess):
    pair = doubled(excess)
    with mp.workdps(400):
        tpr, fpr, fnr, _ = exponential_tails(excess)(mpf(0))
        assert_log(np.log(pair.advantage()[0]), tpr - fpr)
        assert_log(np.log(pair.overlap())[0], fnr + fpr)
        x = [mpf(v) for v in excess]
        above, _ = exponential_upper([v / (1 + v) for v in x] + [-v for v in x], mpf(0))
        assert_log(pair.log_auc_complement()[0], above)


def test_the_extremes_are_reached():
    nearly_equal = doubled([3e-9, -1e-9])
    assert 1e-10 < nearly_equal.advantage()[0] < 1e-8
    nearly_singular = ratio([30.0, 0.0], [0.0, 0.0])
    assert np.log(1e-52) < np.log(nearly_singular.overlap()[0]) < np.log(1e-48)


def test_auc_is_the_area_under_the_roc_curve():
    pair = ratio([0.7, -0.2, 0.4], [0.5, -0.3, 1.0])
    scale = pair.llr_scale()[0]
    t = np.linspace(-20.0 * scale, 20.0 * scale, 8001)
    tails = pair.tails(t[None, :])
    fpr, fnr = np.exp(tails.log_fpr[0]), np.exp(tails.log_fnr[0])
    area = -np.sum(0.5 * (fnr[1:] + fnr[:-1]) * np.diff(fpr))
    assert np.exp(pair.log_auc_complement()[0]) == pytest.approx(area, rel=3e-5)


# ---- identities ---------------------------------------------------------------------------


def random_pairs(seed: int, batch: int, d: int, spread: float, shift: float) -> MultivariateRatio:
    rng = np.random.default_rng(seed)
    log_lam = np.clip(rng.normal(size=(batch, d)) * spread, -17.0, 17.0)
    mu = rng.normal(size=(batch, d)) * shift
    log_lam[rng.random((batch, d)) < 0.1] = 0.0
    mu[rng.random((batch, d)) < 0.2] = 0.0
    return MultivariateRatio(mu, np.expm1(log_lam))


@pytest.mark.parametrize(
    ("d", "spread", "shift"), [(1, 1.0, 1.0), (2, 6.0, 0.1), (5, 1e-6, 1e-7), (5, 3.0, 20.0)]
)
def test_identities(d, spread, shift):
    pair = random_pairs(d, 60, d, spread, shift)
    rng = np.random.default_rng(1)
    t = rng.normal(size=(60, 4)) * pair.llr_scale()[:, None]
    tails, swapped = pair.tails(t), pair.reversed().tails(-t)
    for upper, lower in ((tails.log_tpr, tails.log_fnr), (tails.log_fpr, tails.log_tnr)):
        np.testing.assert_allclose(np.exp(upper) + np.exp(lower), 1.0, rtol=1e-13)
    for one, other in (
        (tails.log_tpr, swapped.log_tnr),
        (tails.log_fpr, swapped.log_fnr),
        (tails.log_fnr, swapped.log_fpr),
        (tails.log_tnr, swapped.log_tpr),
    ):
        # lam -> 1/lam rounds, which shows in deep tails in proportion to their logs
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)
    zero = np.zeros((60, 1))
    np.testing.assert_allclose(pair.advantage(), np.exp(pair.log_excess(zero)[:, 0]), rtol=1e-14)
    np.testing.assert_allclose(pair.advantage(), pair.reversed().advantage(), rtol=1e-9)
    np.testing.assert_allclose(pair.advantage() + pair.overlap(), 1.0, rtol=1e-12)
    stick = np.exp(tails.log_tpr) - np.exp(np.minimum(t, 600.0) + tails.log_fpr)
    small = np.abs(t) < 600.0
    np.testing.assert_allclose(np.exp(pair.log_excess(t))[small], stick[small], atol=1e-12)


# ---- degenerate pairs and thresholds ------------------------------------------------------


def test_equal_laws():
    pair = ratio(np.zeros(3), np.zeros(3))
    tails = pair.tails(np.array([[-1.0, 0.0, 1.0]]))
    np.testing.assert_array_equal(tails.log_tpr, [[0.0, -np.inf, -np.inf]])
    np.testing.assert_array_equal(tails.log_fpr, [[0.0, -np.inf, -np.inf]])
    np.testing.assert_array_equal(tails.log_fnr, [[-np.inf, 0.0, 0.0]])
    np.testing.assert_array_equal(tails.log_tnr, [[-np.inf, 0.0, 0.0]])
    assert pair.advantage()[0] == 0.0
    assert np.log(pair.overlap())[0] == 0.0
    assert np.exp(pair.log_auc_complement()[0]) == 0.5
    assert pair.llr_scale()[0] == 0.0
    assert [pair.renyi(a)[0] for a in (0.5, 1.0, 2.0, np.inf)] == [0.0] * 4
    sticks = pair.log_excess(np.array([[-1.0, 0.0, 1.0]]))[0]
    assert sticks[0] == pytest.approx(np.log(1 - np.exp(-1.0)))
    assert sticks[1] == sticks[2] == -np.inf


def test_thresholds_outside_the_range():
    bounded_above = ratio([0.3, 0.0], [-0.5, -0.1])
    top = bounded_above.llr_bounds()[1][0]
    assert bounded_above.llr_bounds()[0][0] == -np.inf
    tails = bounded_above.tails(np.array([[top, top + 1.0, np.inf, -np.inf, np.nan]]))
    np.testing.assert_array_equal(tails.log_fpr[0], [-np.inf, -np.inf, -np.inf, 0.0, np.nan])
    np.testing.assert_array_equal(tails.log_fnr[0], [0.0, 0.0, 0.0, -np.inf, np.nan])
    assert bounded_above.log_excess(np.array([[top + 1.0]]))[0, 0] == -np.inf
    bounded_below = bounded_above.reversed()
    bottom = bounded_below.llr_bounds()[0][0]
    assert bottom == pytest.approx(-top, rel=1e-14)
    tails = bounded_below.tails(np.array([[bottom - 1.0]]))
    assert tails.log_tpr[0, 0] == 0.0
    assert tails.log_tnr[0, 0] == -np.inf
    stick = bounded_below.log_excess(np.array([[bottom - 1.0]]))[0, 0]
    assert stick == pytest.approx(np.log(-np.expm1(bottom - 1.0)), rel=1e-14)


def test_a_mixed_batch_with_equal_laws_and_wild_thresholds_has_no_nan():
    pair = random_pairs(5, 50, 3, 10.0, 100.0)
    mu, excess = pair.mu.copy(), pair.excess.copy()
    mu[:5], excess[:5] = 0.0, 0.0
    pair = MultivariateRatio(mu, excess)
    t = np.array([-np.inf, -1e300, -1e20, -1e8, -1.0, 0.0, 1e-300, 1.0, 1e8, 1e20, 1e300, np.inf])
    for values in (*pair.tails(np.tile(t, (50, 1))), pair.log_excess(np.tile(t, (50, 1)))):
        assert not np.isnan(values).any()
        assert np.all(values <= 0.0)


# ---- closed forms -------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1e-6, 0.3, 0.5, 0.999999, 1.0, 1.000001, 1.7, 2.0, 30.0])
def test_renyi(order):
    pair = random_pairs(11, 6, 4, 0.5, 0.4)
    tiny = MultivariateRatio(1e-9 * pair.mu, 1e-9 * pair.excess)
    for one in (pair, tiny):
        got = one.renyi(order)
        for k in range(6):
            with mp.workdps(80):
                a, total = mpf(order), mpf(0)
                for m, x in zip(one.mu[k], one.excess[k], strict=True):
                    m, lam = mpf(float(m)), 1 + mpf(float(x))
                    if order == 1.0:
                        total += (lam - 1 - mp.log(lam) + m * m) / 2
                        continue
                    left = lam + a * (1 - lam)
                    if left <= 0:
                        total = mp.inf
                        break
                    total += a * m * m / (2 * left)
                    total += (mp.log(left) + (a - 1) * mp.log(lam)) / (2 * (1 - a))
                assert got[k] == pytest.approx(float(total), rel=1e-11)
