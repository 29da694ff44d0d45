"""Plans for a private LASSO: answers, optima against brute force over the noise, guarantees."""

from __future__ import annotations

import json

import numpy as np
import pytest

from leakscope import lasso, results
from leakscope.errors import InputError
from leakscope.lasso import LassoSetting
from leakscope.planning import (
    best_lasso,
    lasso_trade_off,
    least_error,
    least_kl,
    optimal_noise,
    plan_lasso,
    worst_case_epsilon,
)

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
    assert curve.to_frame().shape == (30, 5)
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
    assert found.joint_onavg_kl is None
    assert found.worst_case_epsilon is None
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


def test_simulated_pairs() -> None:
    found = plan_lasso(DATA.change(sigma_eta=0.5), pairs=120, coefficients=400, random_state=1)
    assert found.joint_onavg_kl is not None
    assert found.joint_onavg_kl_stderr is not None
    assert found.joint_onavg_kl_limit is not None
    gap = abs(found.joint_onavg_kl - found.joint_onavg_kl_limit)
    assert gap < 4.0 * found.joint_onavg_kl_stderr
    assert found.simulated is not None
    assert found.simulated["pairs"] >= 120


def test_worst_case_only_with_clipping_and_an_l2_term() -> None:
    none = worst_case_epsilon(100, lam=1.0, sigma_eta=0.5)
    assert none.epsilon is None
    assert "clipped" in none.reason
    flat = worst_case_epsilon(100, lam=1.0, sigma_eta=0.5, clip_norm=1.0, clip_label=1.0)
    assert flat.epsilon is None
    assert "l2" in flat.reason
    some = [
        worst_case_epsilon(
            100, lam=1.0, sigma_eta=s, l2=50.0, clip_norm=1.0, clip_label=1.0, delta=1e-5
        ).epsilon
        for s in (0.2, 0.5, 1.0)
    ]
    assert some == sorted(some, reverse=True)
    assert some[-1] > 0.0


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan])
def test_bad_targets(bad: float) -> None:
    with pytest.raises(InputError, match="must be above zero"):
        least_error(DATA, bad)
    with pytest.raises(InputError, match="must be above zero"):
        least_kl(DATA, bad)
