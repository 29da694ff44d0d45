"""The joint laws of the limit against the definition, integrated or drawn by other means."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from leakscope import measures
from leakscope._numerics.quadrature import panels
from leakscope.errors import InputError
from leakscope.lasso import (
    FixedPoint,
    LassoSetting,
    joint_law_pair,
    noise_overlap,
    onavg_kl,
    state_evolution,
)
from leakscope.planning import plan_lasso

DELTAS = (1e-2, 1e-4, 1e-5, 1e-8, 1e-12)
SETTINGS = (
    (0.7, 0.15, 0.2, 0.5, 0.25, "objective"),
    (0.4, 0.2, 0.05, 0.8, 0.45, "objective"),
    (0.5, 0.1, 0.1, 1.0, 0.7, "objective"),
    (0.3, 0.1, 0.1, 1.0, 0.4, "objective"),
    (0.5, 0.1, 0.1, 0.2, 0.05, "objective"),
    (0.5, 0.1, 0.1, 0.1, 0.3, "output"),
)


def fixed_point(values: tuple[object, ...]) -> FixedPoint:
    return state_evolution(LassoSetting(*values))  # type: ignore[arg-type]


def scalars(point: FixedPoint) -> tuple[float, float, float]:
    """E, V and J = g/sigma_eta^4 of the page, J from the divergence."""
    error, kl = float(point.error), float(onavg_kl(point))
    if point.setting.mechanism == "output":
        return 1.0, 0.0, kl
    gain = 1.0 + float(point.response)
    return error, gain - 1.0, 2.0 * (kl - (gain - 1.0) ** 2 / gain) / (error * (1.0 + gain**-2))


def conditional_delta(mean: np.ndarray, variance: np.ndarray, epsilon: float) -> np.ndarray:
    """E[(1 - exp(epsilon - L))+] of a normal L."""
    m, s = mean - epsilon, np.sqrt(variance)
    low = np.exp(0.5 * variance - m + special.log_ndtr((m - variance) / s))
    return np.maximum(special.ndtr(m / s) - low, 0.0)


def integrated_delta(point: FixedPoint, epsilon: float) -> float:
    """Over both residuals on a grid: given them the log ratio is normal."""
    error, v, info = scalars(point)
    gain, free = 1.0 + v, info - v * v / error
    x, weight = panels(np.linspace(-13.0, 13.0, 105), 6)
    mass = weight * np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)
    own, other = (np.sqrt(error) / gain * x)[:, None], (np.sqrt(error) * x)[None, :]
    # Lambda = -r B - r^2 J/2 + log gain; trained on, B has the mean (V/E - free) r
    trained = -(own**2) * (v / error - free + 0.5 * info)
    fresh = -(other**2) * (v / error + 0.5 * info)
    variance = free * (own**2 + other**2)
    value = conditional_delta(trained - fresh, variance, epsilon)
    return float(mass @ value @ mass)


@pytest.mark.parametrize("values", SETTINGS)
def test_epsilon_against_integration_over_the_residuals(values: tuple[object, ...]) -> None:
    """Six settings, five deltas, 1e-2 to 1e-12: eleven digits of epsilon."""
    point = fixed_point(values)
    pair = joint_law_pair(point)
    found = np.asarray(measures.epsilon_at_delta(pair, DELTAS, "member_to_nonmember"))
    for epsilon, delta in zip(found, DELTAS, strict=True):
        assert integrated_delta(point, float(epsilon)) == pytest.approx(delta, rel=1e-10, abs=0.0)
        # the slope of log delta turns that into epsilon's own digits
        step = 1e-4 * float(epsilon)
        slope = (
            np.log(integrated_delta(point, float(epsilon) + step))
            - np.log(integrated_delta(point, float(epsilon) - step))
        ) / (2.0 * step)
        wrong = (np.log(integrated_delta(point, float(epsilon))) - np.log(delta)) / slope
        assert abs(wrong) < 1e-11 * float(epsilon)
    # at epsilon = 0 the integrand has a cone at the origin, which the grid sees to seven digits
    assert float(measures.advantage(pair)) == pytest.approx(integrated_delta(point, 0.0), rel=1e-6)


@pytest.mark.parametrize("values", SETTINGS[:3])
def test_delta_against_draws_from_the_definition(values: tuple[object, ...]) -> None:
    """Records, noises and residuals drawn as the page says, E12 included, with wide draws."""
    point = fixed_point(values)
    both = noise_overlap(point)
    error, v, info = scalars(point)
    shared, gain = float(both.overlap_error), 1.0 + v
    free = error - shared
    kappa = v / np.sqrt(free)
    rest = info - kappa**2
    rng = np.random.default_rng(5)
    wide = 2.5
    z = wide * rng.standard_normal((4, 1_000_000))
    log_weight = (0.5 * z * z * (wide**-2 - 1.0) + np.log(wide)).sum(axis=0)
    c, other_c = np.sqrt(shared) * z[0], np.sqrt(shared) * z[1]
    # trained on: the laws of (z, b) tilted by exp(Lambda)
    r = (c + np.sqrt(free) * z[2]) / gain
    own = -kappa * (z[2] - kappa * c) / gain * r + r * r * (rest - 0.5 * info) + np.log(gain)
    s = other_c + np.sqrt(free) * z[3]
    other = -kappa * z[3] * s - 0.5 * s * s * info + np.log(gain)
    pair = joint_law_pair(both)
    for delta in (1e-2, 1e-5, 1e-8):
        epsilon = float(measures.epsilon_at_delta(pair, delta, "member_to_nonmember"))
        draws = np.exp(log_weight) * conditional_delta(own - other, rest * (r * r + s * s), epsilon)
        stderr = draws.std() / np.sqrt(draws.size)
        assert stderr < 0.03 * delta
        assert abs(draws.mean() - delta) < 4.0 * stderr


@pytest.mark.parametrize(
    ("values", "wrong", "right"), [(SETTINGS[0], 17.07, 18.739), (SETTINGS[1], 15.63, 16.430)]
)
def test_plan_no_longer_understates_epsilon(
    values: tuple[object, ...], wrong: float, right: float
) -> None:
    found = plan_lasso(LassoSetting(*values), delta=(1e-5,))  # type: ignore[arg-type]
    epsilon = found.epsilon_at_delta["1e-05"]
    assert epsilon == pytest.approx(right, rel=1e-4)
    assert epsilon > wrong + 0.7


@pytest.mark.parametrize("values", SETTINGS)
def test_divergence_of_the_laws_is_the_closed_form(values: tuple[object, ...]) -> None:
    """Both directions: the pairs are exchangeable."""
    point = fixed_point(values)
    pair = joint_law_pair(point)
    kl = float(onavg_kl(point))
    assert float(measures.kl(pair)) == pytest.approx(kl, rel=1e-12)
    assert float(measures.kl(pair, "member_to_nonmember")) == pytest.approx(kl, rel=1e-12)
    assert pair.provenance.question == "population"
    assert pair.provenance.adjacency == "replaced"


@pytest.mark.parametrize("noise", [0.02, 0.3, 3.0, 300.0])
def test_output_perturbation_has_a_closed_advantage(noise: float) -> None:
    """2 Phi(sqrt(K/2)) - 1 over K = k Exp(1) is sqrt(k/(k + 4))."""
    point = fixed_point((0.5, 0.1, 0.1, 1.0, noise, "output"))
    k = float(onavg_kl(point))
    found = float(measures.advantage(joint_law_pair(point)))
    assert found == pytest.approx(np.sqrt(k / (k + 4.0)), rel=1e-8)


def test_one_threshold_serves_all_pairs() -> None:
    """The AUC is above the mean of the pairs' own, (1 + sqrt(k/(k + 2)))/2 by Phi(sqrt(K))."""
    point = fixed_point((0.5, 0.1, 0.1, 1.0, 0.1, "output"))
    k = float(onavg_kl(point))
    pair = joint_law_pair(point)
    rng = np.random.default_rng(2)
    own, other = k * rng.exponential(size=(2, 500_000))
    gap = (own + other) / np.sqrt(2.0 * (own + other))
    draws = special.ndtr(gap)
    stderr = draws.std() / np.sqrt(draws.size)
    found = float(measures.auc(pair))
    assert abs(found - draws.mean()) < 4.0 * stderr
    assert found > 0.5 * (1.0 + np.sqrt(k / (k + 2.0)))


@pytest.mark.parametrize("noise", [1e-6, 0.9404])
def test_weak_noise_and_the_edge_keep_their_laws(noise: float) -> None:
    point = fixed_point((0.5, 0.1, 0.1, 1.0, noise))
    pair = joint_law_pair(point)
    assert float(measures.kl(pair)) == pytest.approx(float(onavg_kl(point)), rel=1e-9)
    assert 0.0 < float(measures.advantage(pair)) <= 1.0


def test_silent_settings_are_refused() -> None:
    with pytest.raises(InputError, match="sigma_eta above zero"):
        joint_law_pair(fixed_point((0.5, 0.1, 0.1, 1.0, 0.0)))
    with pytest.raises(InputError, match="sigma_eta above zero"):
        joint_law_pair(state_evolution(LassoSetting(0.5, 0.1, 0.1, 1.0, [0.1, 0.0])))


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_a_batch_is_its_settings_one_by_one(mechanism: str) -> None:
    setting = LassoSetting(0.5, 0.1, 0.1, [[0.8], [1.0]], [0.1, 0.2, 0.5], mechanism=mechanism)
    found = measures.advantage(joint_law_pair(state_evolution(setting)))
    alone = [float(measures.advantage(joint_law_pair(state_evolution(one)))) for one in setting]
    assert found.shape == (2, 3)
    np.testing.assert_allclose(found.ravel(), alone, rtol=1e-12)
