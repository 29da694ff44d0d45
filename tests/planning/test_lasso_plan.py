"""Plans for a private LASSO: answers, optima against brute force over the noise, guarantees."""

from __future__ import annotations

import json

import numpy as np
import pytest

from leakscope import lasso, measures, results
from leakscope.errors import InputError
from leakscope.lasso import LassoSetting
from leakscope.laws import LawPair, MultivariateNormal
from leakscope.planning import (
    best_lasso,
    lasso_trade_off,
    least_error,
    least_kl,
    optimal_noise,
    plan_lasso,
)
from leakscope.planning.lasso_targets import Limit, _constrained

DATA = LassoSetting(0.5, 0.1, 0.1, 1.0, 0.0)
DIVERGENCES = ("joint", "component_wise", "printed")


def dense(setting: LassoSetting, divergence: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Error and divergence on a fine grid of noises, straight from the instrument."""
    top = 0.999 / float(lasso.stability_edge(0.5)) * float(setting.lam)
    if setting.mechanism == "output":
        top = 5.0
    noise = np.geomspace(2e-3, top, 6000)
    point = lasso.state_evolution(setting.change(sigma_eta=noise))
    error = lasso.prediction_errors(point).generalization_error
    return noise, error, lasso.onavg_kl(point, divergence)  # type: ignore[arg-type]


@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("lam", [0.3, 1.0])
def test_optimal_noise_is_nearest_to_the_origin(
    mechanism: str, divergence: str, lam: float
) -> None:
    setting = DATA.change(mechanism=mechanism, lam=lam)
    found = optimal_noise(setting, divergence=divergence)  # type: ignore[arg-type]
    noise, error, kl = dense(setting, divergence)
    best = int(np.argmin(np.hypot(error, kl)))
    assert found.generalization_error is not None
    assert found.onavg_kl is not None
    assert np.hypot(found.generalization_error, found.onavg_kl) <= np.hypot(error, kl)[best]
    assert found.sigma_eta == pytest.approx(noise[best], rel=2e-3)


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_targets_against_brute_force(mechanism: str) -> None:
    setting = DATA.change(mechanism=mechanism)
    _, error, kl = dense(setting, "joint")
    for target in (0.048, 0.1, 0.5):
        found = least_error(setting, target)
        feasible = kl <= target
        assert found.met == feasible.any()
        if found.met:
            assert found.onavg_kl is not None
            assert found.onavg_kl <= target * (1.0 + 1e-8)
            assert found.generalization_error <= error[feasible].min() * (1.0 + 1e-9)
            assert found.generalization_error == pytest.approx(error[feasible].min(), rel=2e-3)
    for target in (0.0995, 0.12, 0.3):
        found = least_kl(setting, target)
        feasible = error <= target
        assert found.met == feasible.any()
        if found.met:
            assert found.generalization_error <= target * (1.0 + 1e-8)
            assert found.onavg_kl == pytest.approx(kl[feasible].min(), rel=1e-2)
            assert found.onavg_kl <= kl[feasible].min() * (1.0 + 1e-9)
    assert not least_error(setting, 1e-9).met
    assert not least_kl(setting, 1e-3).met


def test_best_lambda_beats_a_grid() -> None:
    choices = best_lasso(DATA, kl_at_most=0.1)
    assert {choice.mechanism for choice in choices} == {"objective", "output"}
    errors = [choice.generalization_error for choice in choices]
    assert errors == sorted(errors)
    objective = next(choice for choice in choices if choice.mechanism == "objective")
    grid = [
        least_error(DATA.change(lam=lam), 0.1).generalization_error
        for lam in np.geomspace(0.5, 2.0, 25)
    ]
    assert objective.generalization_error <= min(e for e in grid if e is not None) * (1 + 1e-7)
    with pytest.raises(InputError, match="one target"):
        best_lasso(DATA)


def test_trade_off_curve() -> None:
    curve = lasso_trade_off(DATA, points=30)
    assert curve.sigma_eta.shape == (30,)
    assert np.isfinite(curve.generalization_error).all()
    assert (curve.joint_onavg_kl >= curve.cw_onavg_kl * (1.0 - 1e-9)).all()
    # not monotone: the divergence falls, then rises towards the edge
    slope = np.diff(curve.joint_onavg_kl)
    assert slope[0] < 0.0 < slope[-1]


def test_answer_and_its_keys() -> None:
    found = plan_lasso(DATA.change(sigma_eta=0.2))
    assert found.generalization_error == pytest.approx(0.0971, abs=5e-5)
    assert found.overlap_error == pytest.approx(0.0961, abs=5e-5)
    assert found.cw_onavg_kl_paper == pytest.approx(0.0457, abs=5e-5)
    content = json.loads(results.to_json(found))
    assert "not a differential-privacy guarantee" in content["guarantee"]
    output = plan_lasso(DATA.change(sigma_eta=0.2, mechanism="output"))
    assert json.loads(results.to_json(output)).keys() == content.keys()
    assert output.generalization_error == pytest.approx(output.overlap_error + 0.04)  # type: ignore[operator]


def test_unstable_and_silent_answers() -> None:
    unstable = plan_lasso(DATA.change(lam=0.3, sigma_eta=0.3))
    assert not unstable.stable
    assert unstable.stability_ratio is not None
    assert unstable.stability_ratio > 1.0
    assert unstable.generalization_error is None
    assert unstable.advice is not None
    assert "sigma_eta below" in unstable.advice
    silent = plan_lasso(DATA)
    assert silent.cw_onavg_kl is None
    assert silent.auc == 1.0
    for answer in (unstable, silent):
        json.loads(results.to_json(answer))


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan])
def test_bad_targets(bad: float) -> None:
    with pytest.raises(InputError, match="must be above zero"):
        least_error(DATA, bad)
    with pytest.raises(InputError, match="must be above zero"):
        least_kl(DATA, bad)


WEAK = LassoSetting(0.65, 0.12, 0.25, 0.9, 0.55)
NOTHING = 0.12 + 0.25**2


def test_a_release_is_compared_with_the_zero_vector() -> None:
    """lambda = 3.65 with 8e-8 non-zeros was recommended without a word."""
    plan = plan_lasso(WEAK, target_advantage=0.2)
    assert plan.zero_vector_error == pytest.approx(NOTHING)
    assert "Releasing nothing does better" in " ".join(plan.in_short().sentences)
    choices = {choice.mechanism: choice for choice in plan.targets}
    assert choices["objective"].better_than_nothing
    assert not choices["output"].better_than_nothing
    (section,) = plan.sections()
    (_, rows) = section.tables[0]
    assert rows[1][:2] == ["output", "release nothing"]
    plan = plan_lasso(WEAK, target_error=0.2)
    assert not any(choice.better_than_nothing for choice in plan.targets)
    assert "nothing need be released" in " ".join(plan.in_short().sentences)


def test_the_zero_vector_is_measured() -> None:
    """Drawn labels, predicted as zero."""
    rng = np.random.default_rng(3)
    p, records = 400, 3000
    beta = rng.standard_normal(p) * (rng.random(p) < 0.12)
    beta *= np.sqrt(0.12 * p / np.sum(beta**2))
    y = rng.standard_normal((records, p)) @ beta / np.sqrt(p) + 0.25 * rng.standard_normal(records)
    squares = y**2
    assert abs(squares.mean() - NOTHING) < 4.0 * squares.std() / np.sqrt(records)


@pytest.mark.parametrize(("measure", "target"), [("advantage", 0.15), ("epsilon", 4.0)])
def test_targets_of_an_attacker_against_a_grid(measure: str, target: float) -> None:
    """The noise with the least error within an advantage or an epsilon, over 60 noises."""
    setting = DATA.change(lam=0.9)
    limit = Limit(measure, target, 1e-5)  # type: ignore[arg-type]
    found = _constrained("least_error", setting, "joint", limit)
    assert found.met
    assert found.level is not None
    assert found.level <= target * (1.0 + 1e-6)
    noise = np.linspace(0.1, 0.6, 26)
    point = lasso.state_evolution(setting.change(sigma_eta=noise))
    error = lasso.prediction_errors(point).generalization_error
    levels = []
    for one in setting.change(sigma_eta=noise):
        pair = lasso.joint_law_pair(lasso.state_evolution(one))
        if measure == "advantage":
            levels.append(float(measures.advantage(pair)))
        else:
            levels.append(float(measures.epsilon_at_delta(pair, 1e-5)))
    within = np.array(levels) <= target
    assert within.any()
    assert found.generalization_error <= error[within].min()
    assert found.generalization_error == pytest.approx(error[within].min(), rel=2e-2)


def test_curves_are_the_settings_one_by_one() -> None:
    setting = DATA.change(sigma_eta=0.3)
    plan = plan_lasso(setting, curve={"lam": [0.3, 0.8]})
    (curve,) = plan.curves
    assert curve.advantage[0] is None  # beyond the edge
    alone = plan_lasso(setting.change(lam=0.8))
    assert curve.advantage[1] == pytest.approx(alone.advantage)
    assert curve.generalization_error[1] == pytest.approx(alone.generalization_error)
    with pytest.raises(InputError, match="must be sigma_eta or lam"):
        plan_lasso(setting, curve={"rho": [0.1]})  # type: ignore[dict-item]
    with pytest.raises(InputError, match="needs sigma_eta above zero"):
        plan_lasso(DATA, curve="lam")


def test_the_tpr_is_that_of_one_threshold() -> None:
    """Drawn from the two laws of the whole estimate, and tested by their likelihood ratio."""
    setting = DATA.change(sigma_eta=0.5)
    plan = plan_lasso(setting, fpr=(0.05,))
    pair = lasso.joint_law_pair(lasso.state_evolution(setting))
    rng = np.random.default_rng(5)
    drawn = [
        rng.standard_normal((200_000, 4)) * np.sqrt(np.diag(law.covariance))
        for law in (pair.member, pair.nonmember)
    ]  # type: ignore[union-attr]
    inside, outside = (pair.member.log_density(x) - pair.nonmember.log_density(x) for x in drawn)
    cut = np.quantile(outside, 0.95)
    tpr = (inside > cut).mean()
    # Of the share, and of the quantile: there the ratio of the densities is exp(cut).
    variance = tpr * (1.0 - tpr) + np.exp(2.0 * cut) * 0.05 * 0.95
    assert abs(tpr - plan.tpr_at_fpr["0.05"]) < 4.0 * np.sqrt(variance / 200_000)


def test_near_the_edge_a_plan_warns() -> None:
    """Means over datasets lie above the limit there (benchmarks/lasso_near_edge.py)."""
    edge = 1.0 / float(lasso.stability_edge(0.5))
    assert not plan_lasso(DATA.change(sigma_eta=0.6 * edge)).warnings
    (sentence,) = plan_lasso(DATA.change(sigma_eta=0.83 * edge)).warnings
    assert "83% of the most that this setting can take" in sentence
    assert not plan_lasso(DATA.change(sigma_eta=0.83 * edge, mechanism="output")).warnings


def test_the_reference_shift_has_this_divergence() -> None:
    """Eqs. (57)-(58), by the KL of two normals of many dimensions."""
    plan = plan_lasso(DATA.change(sigma_eta=0.5))
    shift = plan.reference_shift(30)
    assert shift is not None
    moved, still = (MultivariateNormal(np.full(30, at), np.eye(30)) for at in (shift, 0.0))
    assert float(measures.kl(LawPair(moved, still))) == pytest.approx(plan.cw_onavg_kl, rel=1e-9)
    with pytest.raises(InputError, match="1 or more"):
        plan.reference_shift(0)
