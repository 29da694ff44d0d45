"""Scored tests, population measures, targets and trade-offs of linear models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from leakscope import linear, measures
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.laws import LawPair, Normal, NormalMixture
from leakscope.linear import GaussianDesign, OutputNoise, RecordNorms
from leakscope.linear.moments import FloatArray, Moments, moments
from leakscope.measures import scored_advantage
from leakscope.planning import equivalence_gap, linear_advantage, plan_linear, trade_off_curve
from leakscope.planning.linear_plan import GaussianWorld, largest_p, least_noise
from leakscope.settings.plan import LinearAttacker, LinearMethod

DESIGN = GaussianDesign(100, 400, 3000, 1.0)


def world(
    design: GaussianDesign = DESIGN,
    method: LinearMethod = "asymptotic",
    draws: int | None = None,
    seed: int = 0,
) -> GaussianWorld:
    return GaussianWorld(design, method, draws, Key(seed))


@pytest.mark.parametrize("p", [120, 200, 400])
def test_scored_advantage_is_the_mixtures_total_variation(p: int) -> None:
    pair = linear.law_pair(GaussianDesign(100, p, 3000, 1.0), draws=3000, random_state=2)
    exact = float(measures.advantage(pair)[0])  # type: ignore[index]
    found = scored_advantage(pair)
    assert abs(found.value - exact) < 4.0 * found.stderr + 1e-4


def test_scored_advantage_has_an_honest_standard_error() -> None:
    values, errors = [], []
    for seed in range(40):
        found = scored_advantage(linear.law_pair(DESIGN, draws=400, random_state=seed))
        values.append(found.value)
        errors.append(found.stderr)
    spread = np.std(values, ddof=1)
    # 40 repetitions know their own spread to about 11%
    assert 0.6 < np.mean(errors) / spread < 1.6


def test_of_normals_nothing_is_random() -> None:
    pair = LawPair(Normal([0.0], 1.4), Normal([0.0], 0.7))
    found = scored_advantage(pair)
    assert found.stderr == 0.0
    assert found.value == pytest.approx(0.322675, abs=1e-5)


def test_population_measures_of_one_pair_are_the_measures() -> None:
    pair = linear.law_pair(GaussianDesign(100, 200, 3000, 1.0), draws=40, random_state=1)
    found = measures.population_measures(pair, fpr=(0.1, 0.001))
    exact = measures.summary(pair, fpr=(0.1, 0.001))
    assert found.advantage == pytest.approx(float(exact.advantage[0]), rel=1e-3)
    assert found.kl == pytest.approx(float(exact.kl[0]), rel=1e-3)
    assert found.kl_reverse == pytest.approx(float(exact.kl_reverse[0]), rel=1e-3)
    assert found.auc == pytest.approx(float(exact.auc[0]), abs=1e-5)
    for level in (0.1, 0.001):
        assert found.tpr_at_fpr[level] == pytest.approx(float(exact.tpr_at_fpr[level][0]), rel=5e-3)


def test_gathered_components_change_nothing_that_counts() -> None:
    sigmas = np.sqrt(np.random.default_rng(0).chisquare(20, 3000) / 20.0)
    many = LawPair(Normal([0.0], 1.3), NormalMixture.scale(sigmas[None, :]))
    found = measures.population_measures(many)
    assert found.advantage == pytest.approx(float(measures.advantage(many)[0]), abs=2e-5)  # type: ignore[index]


def test_one_threshold_beats_the_mean_of_thresholds() -> None:
    pair = LawPair(Normal([0.0, 0.0], [1.0, 3.0]), Normal([0.0, 0.0], [0.9, 0.5]))
    together = measures.population_measures(pair, fpr=(0.01,)).tpr_at_fpr[0.01]
    apart = float(np.mean(np.asarray(measures.tpr_at_fpr(pair, 0.01))))
    assert together > apart


def test_plan_gives_the_same_keys_by_every_route() -> None:
    small = GaussianDesign(30, 90, 200, 1.0, 0.5)
    answers = [
        plan_linear(small, method=method, draws=draws, random_state=1)
        for method, draws in (("exact", 3000), ("asymptotic", None), ("simulated", 400))
    ]
    keys = {tuple(a.model_dump()) for a in answers}
    assert len(keys) == 1
    exact, limit, solved = answers
    for name in ("advantage", "advantage_label_known"):
        error = np.hypot(getattr(exact, f"{name}_stderr"), getattr(solved, f"{name}_stderr"))
        assert abs(getattr(exact, name) - getattr(solved, name)) < 4.0 * error + 0.003
        assert getattr(limit, name) == pytest.approx(getattr(exact, name), abs=0.03)


def log_density(side: Moments, y: FloatArray, prediction: FloatArray) -> FloatArray:
    """Log density of (y0, yhat0) under the mixture of bivariate normals, written out."""
    a, c, b = (
        np.broadcast_to(m[0], side.prediction[0].shape)[:, None]
        for m in (side.label, side.covariance, side.prediction)
    )
    det = a * b - c * c
    form = (b * y**2 - 2.0 * c * y * prediction + a * prediction**2) / det
    density = np.exp(-0.5 * form) / np.sqrt(det)
    return np.asarray(np.log(density.mean(axis=0)))


def test_label_known_advantage_against_sampled_log_ratios() -> None:
    """Monte Carlo of E max(0, 1 - p0/p1) over x0 and (y0, yhat0) from the member law."""
    design = GaussianDesign(100, 400, 3000, 1.0, 1.0)
    found = linear_advantage(design, attacker="label_known", draws=3000)
    norms = RecordNorms.sample(design, 40, random_state=4)
    rng = np.random.default_rng(5)
    totals = []
    for j in range(40):
        one = RecordNorms.of(norms.used[j], norms.unused[j])
        member, nonmember = moments(design, one, "exact", 1000, Key(j))
        drawn = moments(design, one, "exact", 100, Key(j + 100))[0]
        y = np.sqrt(drawn.label[0, 0]) * rng.standard_normal(100)
        slope, variance = drawn.given_label()
        prediction = slope[0] * y + np.sqrt(variance[0]) * rng.standard_normal(100)
        ratio = log_density(nonmember, y, prediction) - log_density(member, y, prediction)
        totals.append(np.maximum(0.0, -np.expm1(ratio)).mean())
    error = np.std(totals, ddof=1) / np.sqrt(len(totals))
    assert error < 0.01
    assert abs(np.mean(totals) - found.value) < 4.0 * error


def test_interpolation_is_given_away_by_the_label() -> None:
    answer = plan_linear(GaussianDesign(100, 250, 3000, 1.0), draws=2000)
    assert answer.advantage == pytest.approx(0.106, abs=0.006)
    assert answer.advantage_label_known == 1.0
    noisy = plan_linear(DESIGN, noise=OutputNoise(1.0), draws=2000)
    assert 0.3 < noisy.advantage_label_known < 0.45


def test_near_p_equal_n_moments_are_infinite_and_said_so() -> None:
    found = plan_linear(GaussianDesign(100, 100, 3000, 1.0), draws=500)
    assert found.kl is None
    assert found.generalization_error is None
    assert found.advantage is not None
    assert 0.7 < found.advantage < 0.9


@pytest.mark.parametrize("attacker", ["label_known", "label_hidden"])
def test_largest_p_is_the_largest(attacker: LinearAttacker) -> None:
    design = GaussianDesign(40, 100, 400, 1.0)
    found = largest_p(world(design), 0.3, attacker)
    assert found.setting is not None
    p = int(found.setting)

    def at(size: int) -> float:
        if abs(size - 40) <= 1:
            return 1.0
        trial = replace(design, p=size)
        return linear_advantage(trial, attacker=attacker, method="asymptotic").value

    assert at(p) <= 0.3
    assert all(at(size) > 0.3 for size in range(p + 1, 401))


def test_least_noise_meets_the_target_and_no_less_does() -> None:
    found = least_noise(world(method="exact", draws=800), 0.3, "label_known")
    assert found.setting is not None
    assert found.advantage is not None
    assert found.advantage <= 0.3
    less = world(method="exact", draws=800).advantage(
        "label_known", OutputNoise(0.98 * found.setting)
    )
    assert less.value > 0.3
    plain = linear.generalization_error(DESIGN).value
    assert found.generalization_error == pytest.approx(plain + found.setting**2)
    assert least_noise(world(), 0.5, "label_hidden").setting == 0.0


def test_unreachable_targets() -> None:
    assert largest_p(world(), 1e-4, "label_known").setting is None
    with pytest.raises(InputError, match="between 0 and 1"):
        least_noise(world(), 1.5, "label_known")


def test_ridge_is_a_knob_and_not_a_defence() -> None:
    curve = trade_off_curve(DESIGN, "ridge", [0.0, 0.1, 1.0, 5.0])
    assert np.all(np.diff(curve.advantage) > 0.0)
    assert np.all(np.diff(curve.advantage_label_known) < 0.0)


def test_fig_4_equivalence() -> None:
    assert equivalence_gap(GaussianDesign(100, 3000, 3000, 1.0), points=10) < 0.002


def test_answers_wear_noise_down_and_memoisation_does_not() -> None:
    one, many = (
        linear_advantage(
            DESIGN, attacker="label_known", noise=OutputNoise(1.0, answers=k), method="asymptotic"
        ).value
        for k in (1, 16)
    )
    kept = linear_advantage(
        DESIGN,
        attacker="label_known",
        noise=OutputNoise(1.0, answers=16, memoised=True),
        method="asymptotic",
    ).value
    assert many > one == kept


@pytest.mark.parametrize("attacker", ["label_hidden", "label_known"])
@pytest.mark.parametrize("draws", [None, 300])
def test_one_design_and_seed_have_one_number(attacker: LinearAttacker, draws: int | None) -> None:
    """The plan, the targets and the curve draw the same designs."""
    design = GaussianDesign(20, 40, 100, 1.0, ridge=0.5)
    plan = plan_linear(design, draws=draws, random_state=3)
    value = plan.advantage if attacker == "label_hidden" else plan.advantage_label_known
    target = least_noise(world(design, "exact", draws, 3), 0.99, attacker)
    assert target.setting == 0.0
    curve = trade_off_curve(design, "features", [40.0], method="exact", draws=draws, random_state=3)
    along = curve.advantage if attacker == "label_hidden" else curve.advantage_label_known
    assert target.advantage == along[0] == value
    assert target.generalization_error == curve.generalization_error[0]
    assert curve.generalization_error[0] == plan.generalization_error
    everything = largest_p(world(replace(design, dim=40), "exact", draws), 0.99, attacker)
    whole = plan_linear(replace(design, dim=40), draws=draws, random_state=0)
    assert everything.setting == 40
    assert everything.advantage in (whole.advantage, whole.advantage_label_known)


def test_noise_for_a_small_target_is_found() -> None:
    large, small = (least_noise(world(), target, "label_known").setting for target in (1e-3, 1e-9))
    assert small is not None
    assert large is not None
    # With much noise the advantage falls as its standard deviation rises.
    assert small / large == pytest.approx(1e6, rel=1e-2)


@pytest.mark.parametrize("p", [6, 7, 14, 30])
def test_the_spread_of_least_squares_is_exact(p: int) -> None:
    """Whole matrices, solved by pseudo-inverses: mean squares over fresh records and designs."""
    n, dim, sigma = 10, 40, 0.6
    found = plan_linear(GaussianDesign(n, p, dim, sigma), draws=200, random_state=1)
    rng = np.random.default_rng(p)
    X, beta = rng.standard_normal((3000, n, dim)), rng.standard_normal((3000, dim)) / np.sqrt(dim)
    y = np.einsum("kij,kj->ki", X, beta) + sigma * rng.standard_normal((3000, n))
    fit = np.einsum("kij,kj->ki", np.linalg.pinv(X[:, :, :p]), y)
    squares = [np.einsum("kij,kj->ki", X[:, :, :p], fit) ** 2]
    squares.append(np.einsum("kij,kj->ki", rng.standard_normal((3000, 40, p)), fit) ** 2)
    exact = (found.sigma_member, found.sigma_nonmember)
    for drawn, sd in zip((square.mean(axis=1) for square in squares), exact, strict=True):
        assert sd is not None
        assert abs(drawn.mean() - sd**2) < 4.0 * drawn.std() / np.sqrt(3000)
    assert found.sigma_member_stderr == found.sigma_nonmember_stderr == 0.0


def test_the_spread_next_to_the_edge_is_known() -> None:
    """2,000 draws printed 7.195 without a standard error; n (1 + sigma^2 - p/D) + n/D is exact."""
    found = plan_linear(GaussianDesign(50, 52, 200, 0.6), draws=50, random_state=1)
    assert found.sigma_nonmember == pytest.approx(np.sqrt(50 * 1.1 + 0.25), rel=1e-12)


def test_ridge_has_a_standard_error_of_the_spread() -> None:
    found = [
        plan_linear(GaussianDesign(20, 22, 80, 0.6, ridge=0.01), draws=100, random_state=k)
        for k in range(12)
    ]
    values = [plan.sigma_nonmember for plan in found]
    told = [plan.sigma_nonmember_stderr for plan in found]
    assert 0.5 < np.std(values, ddof=1) / np.mean(told) < 2.0


def test_kl_next_to_the_edge_does_not_hang_on_the_draws() -> None:
    """At p = n + 2 a prediction's variance has no variance: seeds were 7 apart before."""
    found = [
        plan_linear(GaussianDesign(50, 52, 200, 0.6), draws=1000, random_state=k).kl
        for k in range(3)
    ]
    assert np.ptp(found) < 0.5
