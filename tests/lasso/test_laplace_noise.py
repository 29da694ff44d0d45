"""Laplace noise: closed forms against quadrature, the limit against refits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from leakscope import measures
from leakscope.errors import InputError
from leakscope.lasso import (
    LassoSetting,
    joint_law_pair,
    noise_overlap,
    onavg_kl,
    prediction_errors,
    simulate_lasso,
    stability_edge,
    state_evolution,
    trajectory,
)
from leakscope.lasso.noise_laws import information, tails

SETTING = LassoSetting(0.5, 0.1, 0.1, 1.0, 0.4, noise="laplace")


@pytest.mark.parametrize(
    ("x", "sd", "scale"), [(1.0, 0.5, 0.3), (-0.7, 0.5, 0.3), (2.0, 1.0, 0.01), (5.0, 2.0, 0.2)]
)
def test_tails_are_integrals_over_the_laplace_part(x: float, sd: float, scale: float) -> None:
    def over(value: object) -> float:
        def part(u: float) -> float:
            return float(stats.laplace.pdf(u, scale=scale) * value((x - u) / sd))  # type: ignore[operator]

        reach = 40.0 * scale + 12.0 * sd + abs(x)
        found = integrate.quad(part, -reach, reach, points=[0.0, x], limit=800, epsabs=1e-13)
        return float(found[0])

    norm = stats.norm
    found = tails(np.asarray(x), np.asarray(sd), np.asarray(scale * 2**0.5), "laplace")
    assert found.beyond == pytest.approx(over(norm.sf), rel=1e-8)
    assert found.excess == pytest.approx(
        sd * over(lambda z: norm.pdf(z) - z * norm.sf(z)), rel=1e-8
    )
    square = over(lambda z: (1 + z * z) * norm.sf(z) - z * norm.pdf(z))
    assert found.square == pytest.approx(sd**2 * square, rel=1e-8)


def kl_of_cut_laplace(m: float, other: float, cut: float) -> float:
    """KL of soft(m + l, cut) and soft(other + l, cut) by summing over a fine grid and the atom."""
    laws = [stats.laplace(loc=place) for place in (m, other)]
    zero = [law.cdf(cut) - law.cdf(-cut) for law in laws]
    total = zero[0] * np.log(zero[0] / zero[1])
    for low, high in ((cut, max(cut, m, other) + 40.0), (min(-cut, m, other) - 40.0, -cut)):
        kinks = [point for point in (m, other) if low < point < high]
        total += integrate.quad(
            lambda y: laws[0].pdf(y) * (laws[0].logpdf(y) - laws[1].logpdf(y)),
            low,
            high,
            points=kinks or None,
            limit=400,
            epsabs=1e-14,
        )[0]
    return float(total)


@pytest.mark.parametrize("x", [0.0, 0.4, 0.95, 2.0])
def test_information_is_the_curvature_of_kl(x: float) -> None:
    step = 2e-3
    both = [kl_of_cut_laplace(x, x + sign * step, 1.0) for sign in (1.0, -1.0)]
    found = float(information(np.asarray(x), np.asarray(1.0), "laplace"))
    assert sum(both) / step**2 == pytest.approx(found, rel=2e-3)


def test_state_evolution_is_where_the_steps_lead() -> None:
    for lam, sigma in ((1.0, 0.2), (1.0, 0.5), (1.5, 1.0)):
        setting = LassoSetting(0.5, 0.1, 0.1, lam, sigma, noise="laplace")
        point = state_evolution(setting)
        assert point.residual < 1e-12
        assert trajectory(setting, 300).error[-1] == pytest.approx(float(point.error), rel=1e-9)
    # Without noise, and on the output, its law does not matter to the fit.
    for same in ({"sigma_eta": 0.0}, {"mechanism": "output"}):
        one, other = (
            state_evolution(SETTING.change(**same, noise=law)).error
            for law in ("laplace", "gaussian")
        )
        assert one == pytest.approx(other, rel=1e-12)


@pytest.mark.parametrize("alpha", [0.2, 0.5])
def test_the_edge_is_where_the_error_runs_off(alpha: float) -> None:
    edge = float(stability_edge(alpha, "laplace"))
    inside = LassoSetting(alpha, 0.1, 0.1, 1.05 * edge, 1.0, noise="laplace")
    outside = inside.change(lam=0.95 * edge)
    held, lost = (trajectory(one, 2000).error for one in (inside, outside))
    assert held[-1] == pytest.approx(held[-200], rel=1e-3)
    assert lost[-1] > 100.0 * held[-1]
    with pytest.raises(InputError, match="lam must be above"):
        state_evolution(outside)


def test_the_limit_is_what_refits_show() -> None:
    point = state_evolution(SETTING)
    both = noise_overlap(point)
    errors = prediction_errors(point)
    limit = {
        "generalization_error": errors.generalization_error,
        "training_error": errors.training_error,
        "active_fraction": errors.active_fraction,
        "overlap_error": both.overlap_error,
        "joint_kl": onavg_kl(point),
        "advantage": measures.advantage(joint_law_pair(point)),
    }
    seen = simulate_lasso(
        SETTING,
        coefficients=300,
        datasets=16,
        noises=6,
        neighbours=6,
        random_state=11,
    )
    for name, value in limit.items():
        counted = getattr(seen, name)
        assert abs(counted.value - float(np.asarray(value))) < 4.0 * counted.stderr, name
    assert seen.mean_ratio is not None
    assert abs(seen.mean_ratio.value - 1.0) < 4.0 * seen.mean_ratio.stderr
    # It is told apart from normal noise of the same sd.
    normal = state_evolution(SETTING.change(noise="gaussian"))
    away = abs(float(normal.error) - seen.generalization_error.value)
    assert away > 4.0 * seen.generalization_error.stderr


def test_on_the_output_it_gives_away_twice_as_much() -> None:
    output = SETTING.change(mechanism="output", lam=0.4)
    one, other = (
        simulate_lasso(
            output.change(noise=law), coefficients=600, datasets=4, neighbours=10, random_state=3
        )
        for law in ("laplace", "gaussian")
    )
    limit = [
        float(onavg_kl(state_evolution(output.change(noise=law))))
        for law in ("laplace", "gaussian")
    ]
    assert limit[0] == pytest.approx(2.0 * limit[1], rel=1e-12)
    # Same datasets; what is left is that a shift is not small against the noise, of order p^-1/2.
    assert 1.8 < one.joint_kl.value / other.joint_kl.value < 2.0
    assert one.advantage.value > other.advantage.value


def test_a_batch_is_each_alone() -> None:
    batch = LassoSetting([0.5, 0.8], 0.1, 0.1, 1.0, [[0.2], [0.5]], noise="laplace")
    together = onavg_kl(state_evolution(batch), "joint")
    alone = [float(onavg_kl(state_evolution(one), "joint")) for one in batch]
    np.testing.assert_allclose(together.ravel(), alone, rtol=1e-10)


def test_what_is_for_normal_noise_says_so() -> None:
    with pytest.raises(InputError, match="noise"):
        SETTING.change(noise="cauchy")
    with pytest.raises(InputError, match="Gaussian"):
        onavg_kl(state_evolution(SETTING), "component_wise")
