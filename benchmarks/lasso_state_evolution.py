"""State-evolution solves a second, beside damped iteration of the paper's own maps.

    python benchmarks/lasso_state_evolution.py

A million random settings away from the edge (stability ratio of at most 0.8; alpha from 0.2 to 3,
rho to 0.5, sigma_xi from 0.01 to 2, lambda from 0.05 to 5), then 200,000 within 1e-3 to 1e-8 of it.
The alternative is Eqs. (38)-(39) iterated with damping 1/2, closed forms in NumPy, on one thread,
until the same residual or a thousand steps, on a sample.  On a busy machine read the solves in a
second of one core's time, times the number of cores.
"""

from __future__ import annotations

import time

import numpy as np
from scipy import special

from leakscope.lasso import LassoSetting, stability_edge, state_evolution


def away(size: int, rng: np.random.Generator) -> LassoSetting:
    alpha = rng.uniform(0.2, 3.0, size)
    lam = np.exp(rng.uniform(np.log(0.05), np.log(5.0), size))
    edge = np.maximum(stability_edge(alpha), 0.5)
    return LassoSetting(
        alpha,
        rng.uniform(0.0, 0.5, size),
        np.exp(rng.uniform(np.log(0.01), np.log(2.0), size)),
        lam,
        rng.uniform(0.0, 0.8, size) * lam / edge,
    )


def near(size: int, rng: np.random.Generator) -> LassoSetting:
    alpha, lam = rng.uniform(0.1, 0.95, size), rng.uniform(0.1, 3.0, size)
    room = 10.0 ** rng.uniform(-8.0, -3.0, size)
    return LassoSetting(alpha, 0.1, 0.1, lam, (1.0 - room) * lam / stability_edge(alpha))


def damped(setting: LassoSetting, most: int = 1000) -> tuple[np.ndarray, int]:
    """Relative residuals after damped iteration, and the steps taken."""
    alpha, rho, lam, noise = setting.alpha, setting.rho, setting.lam, setting.sigma_eta
    error, response = setting.sigma_xi**2 + rho, np.full(alpha.shape, 0.1)
    residual, steps = np.ones(alpha.shape), 0
    while steps < most:
        steps += 1
        scale = (1.0 + response) / alpha
        new_error, active = setting.sigma_xi**2, 0.0
        for weight, signal in ((1.0 - rho, 0.0), (rho, 1.0)):
            tau2 = signal + error / alpha + (scale * noise) ** 2
            t = lam * scale / np.sqrt(tau2)
            q, phi = special.ndtr(-t), np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)
            second = 2.0 * tau2 * ((1.0 + t * t) * q - t * phi)
            new_error = new_error + weight * (signal - 4.0 * signal * q + second)
            active = active + weight * 2.0 * q
        new_response = scale * active
        residual = np.maximum(
            np.abs(new_error - error) / error, np.abs(new_response - response) / (1.0 + response)
        )
        if residual.max() < 1e-12:
            break
        error = 0.5 * (error + new_error)
        response = 0.5 * (response + new_response)
    return residual, steps


def report(name: str, setting: LassoSetting, sample: LassoSetting) -> None:
    best = used = np.inf
    for _ in range(3):
        start, begun = time.perf_counter(), time.process_time()
        found = state_evolution(setting)
        used = min(used, time.process_time() - begun)
        best = min(best, time.perf_counter() - start)
    rate = found.error.size / best
    start = time.perf_counter()
    with np.errstate(all="ignore"):
        residual, steps = damped(sample)
    other = sample.alpha.size / (time.perf_counter() - start)
    good = np.mean(residual < 1e-12)
    print(
        f"{name}: {rate:,.0f} solves a second ({found.error.size / used:,.0f} a second of one "
        f"core's time), residual {found.residual.max():.1e} at most, "
        f"{np.median(found.residual):.1e} in the middle\n"
        f"   damped iteration: {other:,.0f} a second on one thread, {steps} steps, {good:.1%} "
        f"reach 1e-12; ratio {rate / other:.1f}"
    )


if __name__ == "__main__":
    generator = np.random.default_rng(0)
    report("away from the edge", away(1_000_000, generator), away(8192, generator))
    report("near the edge", near(200_000, generator), near(8192, generator))
