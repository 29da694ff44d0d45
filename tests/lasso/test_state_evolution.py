"""State evolution: against numerical integration of its own definition, near the edge."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from leakscope.errors import InputError
from leakscope.lasso import (
    LassoSetting,
    message_passing,
    prediction_errors,
    solve_lasso,
    stability_edge,
    state_evolution,
    trajectory,
)
from leakscope.lasso.stability import stability_ratio

SETTINGS = [
    (0.5, 0.1, 0.1, 1.0, 0.5, 1.0),
    (0.5, 0.1, 0.1, 1.0, 0.0, 1.0),
    (0.3, 0.2, 0.5, 0.7, 0.2, 2.0),
    (2.0, 0.5, 0.1, 0.1, 3.0, 1.0),
    (1.5, 1.0, 0.01, 0.02, 0.1, 0.3),
    (0.9, 0.0, 1.0, 0.5, 0.3, 1.0),
]


def soft(x: float, t: float) -> float:
    return float(np.sign(x) * max(abs(x) - t, 0.0))


def by_quadrature(setting: LassoSetting, error: float, scale: float) -> tuple[float, float]:
    """One step of Eqs. (38)-(39) by numerical integration over the field."""
    alpha, rho, signal = (
        float(setting.alpha),
        float(setting.rho),
        float(setting.signal_variance),
    )
    cut = float(setting.lam) * scale
    squared, active = 0.0, 0.0
    for weight, s in ((1.0 - rho, 0.0), (rho, signal)):
        tau = np.sqrt(s + error / alpha + (scale * float(setting.sigma_eta)) ** 2)

        def integrand(z: float, s: float = s, tau: float = tau) -> float:
            h = tau * z
            # beta0 given the field is normal with mean s h / tau^2 and variance s (1 - s / tau^2)
            gap = s * h / tau**2 - soft(h, cut)
            return float((gap**2 + s * (1.0 - s / tau**2)) * stats.norm.pdf(z))

        ends = [-12.0, -cut / tau, 0.0, cut / tau, 12.0]
        ends = sorted(x for x in ends if -12.0 <= x <= 12.0)
        for low, high in itertools.pairwise(ends):
            squared += weight * integrate.quad(integrand, low, high, epsabs=1e-14)[0]
        active += weight * 2.0 * stats.norm.sf(cut / tau)
    return float(setting.sigma_xi) ** 2 + squared, scale * active


@pytest.mark.parametrize("values", SETTINGS)
def test_fixed_point_of_the_definition(values: tuple[float, ...]) -> None:
    setting = LassoSetting(*values[:5], signal_variance=values[5])
    found = state_evolution(setting)
    error, response = by_quadrature(setting, float(found.error), float(found.scale))
    assert error == pytest.approx(float(found.error), rel=1e-9)
    assert response == pytest.approx(float(found.response), rel=1e-9, abs=1e-15)
    assert float(found.scale * setting.alpha) == pytest.approx(1.0 + response, rel=1e-10)
    errors = prediction_errors(found)
    assert float(errors.ratio) == pytest.approx((1.0 + response) ** 2)


def test_residual_far_from_the_edge_and_near_it() -> None:
    rng = np.random.default_rng(1)
    alpha = rng.uniform(0.1, 0.95, 4000)
    lam = rng.uniform(0.1, 3.0, 4000)
    room = 10.0 ** rng.uniform(-8.0, 0.0, 4000)
    setting = LassoSetting(alpha, 0.1, 0.1, lam, (1.0 - room) * lam / stability_edge(alpha))
    found = state_evolution(setting)
    assert found.stable.all()
    assert found.residual.max() < 1e-12
    assert (found.active_fraction < alpha).all()


def test_the_error_diverges_as_the_inverse_of_the_distance() -> None:
    room = 10.0 ** -np.arange(4.0, 8.0)
    noise = (1.0 - room) / stability_edge(0.5)
    grown = state_evolution(LassoSetting(0.5, 0.1, 0.1, 1.0, noise)).error * room
    np.testing.assert_allclose(grown[1:], grown[-1], rtol=2e-2)


@settings(max_examples=60, deadline=None)
@given(
    alpha=st.floats(0.1, 4.0),
    rho=st.floats(0.0, 1.0),
    sigma_xi=st.floats(0.01, 3.0),
    lam=st.floats(0.01, 20.0),
    share=st.floats(0.0, 0.999),
    signal=st.floats(0.01, 30.0),
)
@example(alpha=1.0, rho=0.0, sigma_xi=1.0, lam=1.0, share=5e-323, signal=1.0)  # lam / noise is inf
def test_residual_anywhere(
    alpha: float, rho: float, sigma_xi: float, lam: float, share: float, signal: float
) -> None:
    edge = float(stability_edge(alpha))
    noise = share * lam / edge if edge > 0.2 else share * lam
    found = state_evolution(LassoSetting(alpha, rho, sigma_xi, lam, noise, signal_variance=signal))
    assert float(found.residual) < 1e-11
    assert float(found.error) >= sigma_xi**2 * (1.0 - 1e-12)


def test_the_edge_is_where_the_plain_iteration_runs_off() -> None:
    """Damped iteration of the maps, which knows nothing of the closed form."""
    edge = float(stability_edge(0.5))
    assert edge == pytest.approx(1.0633, abs=1e-4)
    for ratio, bounded in ((1.03, True), (0.97, False)):
        setting = LassoSetting(0.5, 0.1, 0.1, ratio * edge, 1.0)
        error, scale = 1.0, 2.0
        for _ in range(4000):
            tau = np.sqrt(np.array([0.0, 1.0]) + error / 0.5 + scale**2)
            t = float(setting.lam) * scale / tau
            q = stats.norm.sf(t)
            second = 2.0 * tau**2 * ((1.0 + t * t) * q - t * stats.norm.pdf(t))
            weight, s = np.array([0.9, 0.1]), np.array([0.0, 1.0])
            error = 0.5 * error + 0.5 * (0.01 + float(weight @ (s - 4.0 * s * q + second)))
            response = scale * float(weight @ (2.0 * q))
            scale = 0.5 * scale + 0.5 * (1.0 + response) / 0.5
            if error > 1e8:
                break
        assert (error < 1e8) == bounded
        found = state_evolution(setting, unstable="mark")
        assert bool(found.stable) == bounded
        if bounded:
            assert float(found.error) == pytest.approx(error, rel=1e-3)


def test_always_stable_from_alpha_one() -> None:
    assert stability_edge([1.0, 2.0]).tolist() == [0.0, 0.0]
    found = state_evolution(LassoSetting([1.0, 2.0], 0.1, 0.1, 0.1, 5.0))
    assert np.isfinite(found.error).all()
    assert stability_ratio(found.setting).tolist() == [0.0, 0.0]


def test_batches_agree_with_single_settings() -> None:
    lam, noise = np.array([[0.5], [1.0], [2.0]]), np.array([0.0, 0.1, 0.4, 3.0])
    batch = state_evolution(LassoSetting(0.5, 0.1, 0.1, lam, noise), unstable="mark")
    assert batch.error.shape == (3, 4)
    for i in range(3):
        for j in range(4):
            one = LassoSetting(0.5, 0.1, 0.1, float(lam[i, 0]), float(noise[j]))
            single = state_evolution(one, unstable="mark")
            np.testing.assert_allclose(single.error, batch.error[i, j], rtol=1e-13)
    assert not batch.stable[0, 3]
    assert np.isnan(batch.error[0, 3])


def test_output_noise_adds_to_both_errors() -> None:
    plain = prediction_errors(state_evolution(LassoSetting(0.5, 0.1, 0.1, 1.0, 0.0)))
    noisy = prediction_errors(state_evolution(LassoSetting(0.5, 0.1, 0.1, 1.0, 0.3, "output")))
    for name in ("generalization_error", "training_error"):
        assert float(getattr(noisy, name)) == pytest.approx(float(getattr(plain, name)) + 0.09)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"alpha": 0.0}, "alpha must be above zero"),
        ({"lam": [1.0, -1.0]}, "lam must be above zero, but it is -1.0 at position 1"),
        ({"rho": 1.5}, "rho must be a fraction"),
        ({"sigma_eta": np.nan}, "sigma_eta must be finite"),
        ({"mechanism": "both"}, "mechanism must be objective or output"),
        ({"lam": [1.0, 2.0], "rho": [0.1, 0.2, 0.3]}, "shapes do not fit together"),
        ({"rho": 0.0, "sigma_xi": 0.0, "sigma_eta": 0.0}, "nothing to fit"),
        ({"alpha": "many"}, "alpha must be a number"),
    ],
)
def test_bad_settings(change: dict[str, object], sentence: str) -> None:
    values: dict[str, object] = {
        "alpha": 0.5,
        "rho": 0.1,
        "sigma_xi": 0.1,
        "lam": 1.0,
        "sigma_eta": 0.2,
    }
    with pytest.raises(InputError, match=sentence):
        LassoSetting(**{**values, **change})  # type: ignore[arg-type]


def test_unstable_settings_say_what_to_change() -> None:
    with pytest.raises(InputError, match=r"setting number 1.*lam must be above"):
        state_evolution(LassoSetting(0.5, 0.1, 0.1, 1.0, [0.1, 2.0]))


def test_the_free_energy_is_the_least_value_of_the_objective() -> None:
    """Refits: ||y - X beta||^2/2 + lambda ||beta||_1 + eta'beta at the minimiser, divided by p."""
    setting = LassoSetting(0.6, 0.15, 0.2, lam=0.5, sigma_eta=0.2)
    limit = float(state_evolution(setting).free_energy)
    rng, p, values = np.random.default_rng(11), 400, []
    for _ in range(40):
        X = rng.standard_normal((240, p)) / np.sqrt(p)
        beta0 = rng.standard_normal(p) * (rng.random(p) < 0.15)
        y = X @ beta0 + 0.2 * rng.standard_normal(240)
        eta = 0.2 * rng.standard_normal(p)
        beta = solve_lasso(X, y, 0.5, eta).coef
        value = 0.5 * np.sum((y - X @ beta) ** 2) + 0.5 * np.abs(beta).sum() + eta @ beta
        values.append(value / p)
    stderr = np.std(values, ddof=1) / np.sqrt(len(values))
    assert abs(np.mean(values) - limit) < 4.0 * stderr
    assert stderr < 0.05 * limit


def test_message_passing_follows_the_trajectory() -> None:
    """E, V, Q and m after every iteration, over 12 datasets; the overlaps at the end are those of
    the fixed point."""
    setting = LassoSetting(0.6, 0.15, 0.2, lam=0.5, sigma_eta=0.2)
    way, steps = trajectory(setting, 8), 8
    rng, p, seen = np.random.default_rng(12), 1000, []
    for _ in range(12):
        X = rng.standard_normal((600, p)) / np.sqrt(p)
        beta0 = rng.standard_normal(p) * (rng.random(p) < 0.15)
        y = X @ beta0 + 0.2 * rng.standard_normal(600)
        eta = 0.2 * rng.standard_normal(p)
        rows = []
        for step in range(1, steps + 1):
            found = message_passing(X, y, 0.5, eta, max_iterations=step)
            beta, v = found.coef[0], float(found.susceptibility[0])
            big_q, m = float(np.mean(beta**2)), float(np.mean(beta * beta0))
            rows.append([big_q - 2.0 * m + np.mean(beta0**2) + 0.04, v, big_q, m])
        seen.append(np.transpose(rows))
    mean, stderr = np.mean(seen, axis=0), np.std(seen, axis=0, ddof=1) / np.sqrt(12)
    limit = np.stack([way.error, way.response, *way.overlaps])[:, 1:]
    assert np.all(np.abs(mean - limit) < 4.5 * stderr)
    point, far = state_evolution(setting), trajectory(setting, 80)
    assert far.error[-1] == pytest.approx(float(point.error), rel=1e-9)
    assert [part[-1] for part in far.overlaps] == pytest.approx(
        [float(part) for part in point.overlaps], rel=1e-9
    )
