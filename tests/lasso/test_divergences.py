"""Overlap, laws of an estimate and on-average divergences against integration and sampling."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import integrate, special, stats

from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.lasso import LassoSetting, law_over_data, noise_overlap, onavg_kl, state_evolution
from leakscope.lasso.noise_laws import information, over_locations, spread_at
from leakscope.laws import SpikeAndSlab

BASE = (0.5, 0.1, 0.1)
POINTS = [(1.0, 0.2), (1.0, 0.5), (1.0, 0.7), (1.5, 1.0), (1.0, 0.01), (0.3, 0.1)]


def integral(function: object, breaks: list[float]) -> float:
    total = 0.0
    for low, high in itertools.pairwise(breaks):
        total += integrate.quad(function, low, high, epsabs=1e-13, epsrel=1e-11, limit=400)[0]  # type: ignore[arg-type]
    return total


def noise_average(location: object, sigma: object, threshold: object) -> np.ndarray:
    """F(m) = E soft(N(m, s^2), T): an estimate's mean over the privacy noise at fixed data."""
    m, s, t = np.broadcast_arrays(*(np.asarray(a, float) for a in (location, sigma, threshold)))
    a, b = (t - m) / s, (t + m) / s
    phi_a, phi_b = (np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi) for z in (a, b))
    return s * (phi_a - a * special.ndtr(-a)) - s * (phi_b - b * special.ndtr(-b))


@pytest.mark.parametrize(("lam", "noise"), POINTS)
def test_overlap_solves_its_own_definition(lam: float, noise: float) -> None:
    """E12 = sigma_xi^2 + E[(beta0 - F(m))^2], F and the outer mean by numerical integration."""
    point = state_evolution(LassoSetting(*BASE, lam, noise))
    both = noise_overlap(point)
    cut, s = float(point.threshold), float(both.sigma)
    assert s**2 == pytest.approx(
        float((point.scale * noise) ** 2 + (point.error - both.overlap_error) / 0.5), rel=1e-12
    )
    total = 0.01
    for weight, signal in ((0.9, 0.0), (0.1, 1.0)):
        omega2 = signal + float(both.overlap_error) / 0.5
        omega = np.sqrt(omega2)

        def integrand(m: float, signal: float = signal, omega: float = omega) -> float:
            share = signal / omega**2
            gap = share * m - float(noise_average(m, s, cut))
            return float((gap**2 + signal * (1.0 - share)) * stats.norm.pdf(m, 0.0, omega))

        near = [cut + k * s for k in (-8.0, -3.0, 0.0, 3.0, 8.0)]
        breaks = [x for x in (0.0, omega, 3.0 * omega, 12.0 * omega, *near) if 0 <= x <= 12 * omega]
        total += weight * 2.0 * integral(integrand, sorted(set(breaks)))
    assert total == pytest.approx(float(both.overlap_error), rel=1e-8)


def test_noise_average_is_the_mean_of_the_law() -> None:
    law = SpikeAndSlab([-1.0, 0.3, 2.0], 0.7, 1.0)
    draws = law.sample(Key(1), 400_000)
    error = draws.std(axis=1) / np.sqrt(draws.shape[1])
    exact = noise_average(law.location, law.sigma, law.threshold)
    assert (np.abs(draws.mean(axis=1) - exact) < 4.0 * error).all()


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_spread_at_a_location_against_draws(noise: str) -> None:
    rng = np.random.default_rng(5)
    m, cut, rest, own = np.array([0.0, 0.4, 0.9, 1.1, 4.0]), np.array(1.0), 0.3, 0.4
    draw = rng.laplace if noise == "laplace" else rng.normal
    eta = draw(0.0, own * (np.sqrt(0.5) if noise == "laplace" else 1.0), 1_000_000)
    field = m[:, None] + rest * rng.normal(size=eta.size) + eta
    soft = np.sign(field) * np.maximum(np.abs(field) - 1.0, 0.0)
    spread, active = spread_at(m, cut, np.array(rest), np.array(own), noise)  # type: ignore[arg-type]
    np.testing.assert_allclose(spread, soft.var(axis=1), rtol=0.02)
    np.testing.assert_allclose(active, (soft != 0.0).mean(axis=1), rtol=0.02)


@pytest.mark.parametrize(
    ("x", "theta"), [(0.0, 1.0), (0.7, 1.0), (3.0, 2.0), (9.0, 1.5), (2.0, 8.0)]
)
def test_information_is_the_mean_squared_score(x: float, theta: float) -> None:
    """Numerical derivative of the law's own log density, squared and averaged."""
    step = 1e-5
    up, down, at = (SpikeAndSlab(x + h, 1.0, theta) for h in (step, -step, 0.0))

    def integrand(value: float) -> float:
        score = float(up.log_density(value) - down.log_density(value)) / (2.0 * step)
        return float(score**2 * np.exp(at.log_density(value)))

    total = (
        float(((up.log_atom - down.log_atom) / (2.0 * step)) ** 2 * np.exp(at.log_atom))
        + integral(integrand, [-25.0, -5.0, -1e-12])
        + integral(integrand, [1e-12, 5.0, 12.0, 40.0])
    )
    value = information(np.array(x), np.array(theta), "gaussian")
    assert float(value) == pytest.approx(total, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("theta", [0.5, 3.0, 30.0, 100.0])
def test_mean_information_sees_the_step(theta: float) -> None:
    """Weak noise makes the integrand a step of width 1 at theta under a density of width sd."""
    for sd in (0.3 * theta, theta, 5.0 * theta):

        def integrand(x: float, sd: float = sd) -> float:
            at = information(np.array(x), np.array(theta), "gaussian")
            return float(at * stats.norm.pdf(x, 0, sd))

        near = [theta + k for k in (-9.0, -4.0, -1.0, 1.0, 4.0, 9.0)]
        breaks = sorted({x for x in (0.0, sd, 3 * sd, 12 * sd, *near) if 0.0 <= x <= 12 * sd})
        exact = 2.0 * integral(integrand, breaks)
        one, zero, y = np.ones(1), np.zeros(1), np.array([sd**2])

        def at(x: np.ndarray) -> tuple[np.ndarray]:
            return (information(x, np.full_like(x, theta), "gaussian"),)

        found = over_locations(at, (one, zero), (y, y), np.array([theta]), one)[0][0]
        assert found == pytest.approx(exact, rel=1e-8, abs=1e-15)


def test_printed_and_published_values() -> None:
    """The printed Eq. (63) at four points, from an independent script of the project's notes."""
    point = state_evolution(LassoSetting(*BASE, [1.0, 1.0, 1.0, 1.5], [0.2, 0.5, 0.7, 1.0]))
    np.testing.assert_allclose(
        onavg_kl(point, "printed"), [0.0457, 0.1107, 0.2629, 0.1767], atol=6e-5
    )
    np.testing.assert_allclose(
        noise_overlap(point).overlap_error, [0.0961, 0.0844, 0.0757, 0.0812], atol=6e-5
    )


def test_all_forms_agree_for_weak_noise_and_few_active() -> None:
    point = state_evolution(LassoSetting(*BASE, 2.0, 1e-3))
    joint, cw, printed = (
        float(onavg_kl(point, name)) for name in ("joint", "component_wise", "printed")
    )
    assert cw == pytest.approx(printed, rel=2e-3)
    assert joint == pytest.approx(printed, rel=2e-3)


def test_the_law_over_the_noise_averages_to_the_law_over_data() -> None:
    """Claim 5.1, corrected: location N(beta0, E12/alpha) and scale s, averaged over data."""
    point = state_evolution(LassoSetting(*BASE, 1.0, 0.7))
    both = noise_overlap(point)
    rng = np.random.default_rng(3)
    location = 1.0 + float(both.sigma_location) * rng.normal(size=200_000)
    atom = SpikeAndSlab(location, both.sigma, point.threshold).atom
    direct = law_over_data(point, 1.0, rng.normal(0.0, 0.7, 200_000)).atom
    error = np.hypot(direct.std(), atom.std()) / np.sqrt(atom.size)
    assert abs(direct.mean() - atom.mean()) < 4.0 * error


def test_no_noise_is_infinite_and_said_so() -> None:
    point = state_evolution(LassoSetting(*BASE, 1.0, [0.0, 0.1]))
    for divergence in ("joint", "component_wise", "printed"):
        found = onavg_kl(point, divergence)  # type: ignore[arg-type]
        assert np.isinf(found[0])
        assert np.isfinite(found[1])
    with pytest.raises(InputError, match="divergence must be one of"):
        onavg_kl(point, "total")  # type: ignore[arg-type]
