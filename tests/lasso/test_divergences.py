"""Overlap, laws of an estimate and on-average divergences against integration and sampling."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import integrate, special, stats

from leakscope import measures
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.lasso import LassoSetting, law_over_data, noise_overlap, onavg_kl, state_evolution
from leakscope.lasso.estimate_laws import cw_onavg_kl_at, law_over_noise, neighbouring_laws
from leakscope.lasso.noise_overlap import lost_moment
from leakscope.lasso.onaverage_kl import information, mean_information, onavg_kl_with_slope
from leakscope.laws import LawPair, SpikeAndSlab

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


@pytest.mark.parametrize("t", [0.01, 0.3, 1.0, 2.5])
def test_lost_moment_against_bivariate_integration(t: float) -> None:
    """E soft(Z)^2 - E soft(Z)soft(Z') with the inner expectation in closed form, outer by quad."""
    for e in (1e-4, 0.05, 0.5, 1.0):
        r = 1.0 - e

        def inner(z: float, r: float = r) -> float:
            spread = np.sqrt(1.0 - r * r)
            other = float(noise_average(r * z, spread, t)) if spread > 0 else 0.0
            return float(np.sign(z) * max(abs(z) - t, 0.0) * other * stats.norm.pdf(z))

        square = integral(
            lambda z: max(abs(z) - t, 0.0) ** 2 * stats.norm.pdf(z), [-12.0, -t, t, 12.0]
        )
        product = 2.0 * integral(inner, [t, t + 0.05, t + 1.0, 12.0])
        found = lost_moment(np.array([t]), np.array([e]))
        assert found.value[0] == pytest.approx(square - product, rel=1e-6, abs=1e-10)
        if e < 1.0:
            step = 1e-4 * e
            for name, up, down in (
                ("by_e", (t, e + step), (t, e - step)),
                ("by_t", (t + 1e-5, e), (t - 1e-5, e)),
            ):
                values = [lost_moment(np.array([a]), np.array([b])) for a, b in (up, down)]
                width = 2.0 * (step if name == "by_e" else 1e-5)
                slope = (values[0].value[0] - values[1].value[0]) / width
                assert getattr(found, name)[0] == pytest.approx(slope, rel=2e-5, abs=1e-7)
                second = (values[0].by_e[0] - values[1].by_e[0]) / width
                name = "by_ee" if name == "by_e" else "by_et"
                assert getattr(found, name)[0] == pytest.approx(second, rel=2e-4, abs=1e-6)


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
    value, slope_x, slope_theta = information(np.array(x), np.array(theta))
    assert float(value) == pytest.approx(total, rel=1e-6, abs=1e-12)
    up_x, down_x = (information(np.array(x + h), np.array(theta))[0] for h in (step, -step))
    assert float(slope_x) == pytest.approx(float(up_x - down_x) / (2 * step), rel=1e-5, abs=1e-9)
    up_t, down_t = (information(np.array(x), np.array(theta + h))[0] for h in (step, -step))
    assert float(slope_theta) == pytest.approx(
        float(up_t - down_t) / (2 * step), rel=1e-5, abs=1e-9
    )


@pytest.mark.parametrize("theta", [0.5, 3.0, 30.0, 100.0])
def test_mean_information_sees_the_step(theta: float) -> None:
    """Weak noise makes the integrand a step of width 1 at theta under a density of width sd."""
    for sd in (0.3 * theta, theta, 5.0 * theta):

        def integrand(x: float, sd: float = sd) -> float:
            return float(information(np.array(x), np.array(theta))[0] * stats.norm.pdf(x, 0, sd))

        near = [theta + k for k in (-9.0, -4.0, -1.0, 1.0, 4.0, 9.0)]
        breaks = sorted({x for x in (0.0, sd, 3 * sd, 12 * sd, *near) if 0.0 <= x <= 12 * sd})
        exact = 2.0 * integral(integrand, breaks)
        y = np.array([sd**2])
        one, zero = np.ones(1), np.zeros(1)
        found = mean_information((one, zero), (y, y), np.array([theta])).value[0]
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


@pytest.mark.parametrize("divergence", ["joint", "component_wise", "printed"])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("parameter", ["lam", "sigma_eta"])
def test_slopes(divergence: str, mechanism: str, parameter: str) -> None:
    values = {"lam": np.array([[1.0, 0.7]]), "sigma_eta": np.array([[0.5], [0.1]])}

    def at(**change: object) -> object:
        merged = {**values, **change}
        return state_evolution(LassoSetting(*BASE, mechanism=mechanism, **merged))  # type: ignore[arg-type]

    found = onavg_kl_with_slope(at(), divergence, parameter)  # type: ignore[arg-type]
    up, down = (
        onavg_kl(at(**{parameter: values[parameter] + h}), divergence)  # type: ignore[arg-type]
        for h in (1e-6, -1e-6)
    )
    np.testing.assert_allclose(found.slope, (up - down) / 2e-6, rtol=1e-5, atol=1e-8)


def test_finite_number_of_records_by_sampling() -> None:
    """Eq. (62), corrected: draw locations, take the KL of the pair of laws from `measures`."""
    records = 40
    both = noise_overlap(state_evolution(LassoSetting(*BASE, 1.0, 0.5)))
    rng = np.random.default_rng(0)
    draws = 60_000
    beta = np.where(rng.random(draws) < 0.1, rng.normal(size=draws), 0.0)
    location = float(both.overlap_error) / 0.5
    delta = location * float(both.amplification) / records
    shared = beta + np.sqrt(location - delta) * rng.normal(size=draws)
    here, there = (shared + np.sqrt(delta) * rng.normal(size=draws) for _ in range(2))
    pair = LawPair(law_over_noise(both, here), law_over_noise(both, there))
    kl = np.asarray(measures.kl(pair)) * (records / 0.5)
    error = kl.std() / np.sqrt(draws)
    assert abs(kl.mean() - float(cw_onavg_kl_at(both, records))) < 4.0 * error
    assert float(cw_onavg_kl_at(both, 1e9)) == pytest.approx(
        float(onavg_kl(both, "component_wise")), rel=1e-6
    )


def test_laws_over_noise_average_to_the_law_over_both() -> None:
    """Corrected and printed laws differ at fixed data and agree once data are averaged over."""
    point = state_evolution(LassoSetting(*BASE, 1.0, 0.7))
    both = noise_overlap(point)
    rng = np.random.default_rng(3)
    z = rng.normal(size=200_000)
    atoms = []
    for form, spread in (
        ("corrected", both.sigma_location),
        ("printed", np.sqrt(point.error / 0.5)),
    ):
        atom = law_over_noise(both, 1.0 + float(spread) * z, form).atom  # type: ignore[arg-type]
        atoms.append((atom.mean(), atom.std() / np.sqrt(z.size)))
    assert abs(atoms[0][0] - atoms[1][0]) < 4.0 * np.hypot(atoms[0][1], atoms[1][1])
    eta = rng.normal(0.0, 0.7, 200_000)
    direct = law_over_data(point, 1.0, eta).atom
    error = np.hypot(direct.std() / np.sqrt(eta.size), atoms[0][1])
    assert abs(direct.mean() - atoms[0][0]) < 4.0 * error


def test_neighbouring_laws_carry_their_provenance() -> None:
    point = state_evolution(LassoSetting(*BASE, 1.0, 0.5))
    pair = neighbouring_laws(point, [0.0, 2.0], 0.05)
    assert pair.provenance.adjacency == "replaced"
    assert any("differential-privacy" in a.statement for a in pair.provenance.assumptions)
    output = state_evolution(LassoSetting(*BASE, 1.0, 0.5, "output"))
    assert neighbouring_laws(output, 1.0, 0.1).member.batch_shape == ()
    with pytest.raises(InputError, match="objective perturbation"):
        law_over_noise(output, 1.0)


def test_no_noise_is_infinite_and_said_so() -> None:
    point = state_evolution(LassoSetting(*BASE, 1.0, [0.0, 0.1]))
    for divergence in ("joint", "component_wise", "printed"):
        found = onavg_kl(point, divergence)  # type: ignore[arg-type]
        assert np.isinf(found[0])
        assert np.isfinite(found[1])
    with pytest.raises(InputError, match="divergence must be one of"):
        onavg_kl(point, "total")  # type: ignore[arg-type]
