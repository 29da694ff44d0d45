"""The density of a whole estimate, the joint divergence in the limit, and refits against theory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate

from leakscope import measures
from leakscope.errors import InputError
from leakscope.lasso import (
    LassoSetting,
    joint_law_pair,
    log_density,
    noise_overlap,
    onavg_kl,
    prediction_errors,
    simulate_lasso,
    state_evolution,
)
from leakscope.lasso.estimate_laws import log_ratios

X = np.array([[1.0, 0.4], [-0.3, 0.8], [0.2, 0.5]])
Y = np.array([0.9, -0.4, 0.3])
LAM, SIGMA = 0.4, 0.5


def brute_force(X: np.ndarray, y: np.ndarray, lam: float, eta: np.ndarray) -> np.ndarray:
    """Plain coordinate descent with the linear term, run long."""
    beta = np.zeros(X.shape[1])
    norms = (X**2).sum(axis=0)
    for _ in range(3000):
        before = beta.copy()
        for j in range(beta.size):
            gradient = X[:, j] @ (y - X @ beta) + norms[j] * beta[j] - eta[j]
            beta[j] = np.sign(gradient) * max(abs(gradient) - lam, 0.0) / norms[j]
        if np.abs(beta - before).max() < 1e-13:
            break
    return beta


def test_density_has_mass_one() -> None:
    """Over the four quadrants, the four half axes and the origin of two coefficients."""
    far, tiny = 12.0, 1e-9

    def density(*beta: float) -> float:
        return float(np.exp(log_density(X, Y, np.array(beta), LAM, SIGMA)))

    total = density(0.0, 0.0)
    axes = []
    for sign in (1.0, -1.0):
        first, second = (
            integrate.quad(lambda v, k=k, s=sign: density(*(np.eye(2)[k] * s * v)), tiny, far)[0]
            for k in (0, 1)
        )
        axes += [first, second]
    total += sum(axes)
    for a in (1.0, -1.0):
        for b in (1.0, -1.0):
            total += integrate.dblquad(
                lambda v, u, a=a, b=b: density(a * u, b * v), tiny, far, tiny, far, epsabs=1e-6
            )[0]
    assert total == pytest.approx(1.0, abs=1e-4)
    rng = np.random.default_rng(0)
    draws = np.array([brute_force(X, Y, LAM, e) for e in rng.normal(0.0, SIGMA, (1500, 2))])
    zero = (draws == 0.0).all(axis=1).mean()
    first = ((draws[:, 0] > 0.0) & (draws[:, 1] == 0.0)).mean()
    for share, exact in ((zero, density(0.0, 0.0)), (first, axes[0])):
        assert abs(share - exact) < 4.0 * np.sqrt(exact * (1.0 - exact) / 1500)


def test_ratios_are_differences_of_densities() -> None:
    rng = np.random.default_rng(1)
    X, truth = rng.normal(0.0, 0.2, (12, 25)), np.zeros(25)
    truth[:4] = 2.0
    y = X @ truth
    new_X, new_y, rows = rng.normal(0.0, 0.2, (3, 25)), rng.normal(size=3), np.array([0, 5, 7])
    betas = np.stack([brute_force(X, y, 0.3, rng.normal(0.0, 0.1, 25)) for _ in range(4)], axis=1)
    found = log_ratios(X, y, betas, rows, new_X, new_y, 0.3, 0.1)
    for j, row in enumerate(rows):
        other_X, other_y = X.copy(), y.copy()
        other_X[row], other_y[row] = new_X[j], new_y[j]
        for i, beta in enumerate(betas.T):
            exact = log_density(X, y, beta, 0.3, 0.1) - log_density(
                other_X, other_y, beta, 0.3, 0.1
            )
            assert found[i, j] == pytest.approx(exact, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("values", "mechanism"),
    [((0.5, 0.1, 0.1, 1.0, 0.5), "objective"), ((0.8, 0.2, 0.1, 0.4, 0.3), "objective")],
)
def test_theory_against_refits(values: tuple[float, ...], mechanism: str) -> None:
    setting = LassoSetting(*values, mechanism)  # type: ignore[arg-type]
    found = simulate_lasso(
        setting, coefficients=700, datasets=16, noises=8, neighbours=20, random_state=4
    )
    point = state_evolution(setting)
    both, errors = noise_overlap(point), prediction_errors(point)
    expected = {
        "generalization_error": errors.generalization_error,
        "training_error": errors.training_error,
        "active_fraction": errors.active_fraction,
        "overlap_error": both.overlap_error,
        "joint_kl": onavg_kl(both),
        "advantage": measures.advantage(joint_law_pair(both)),
    }
    for name, theory in expected.items():
        value, stderr = getattr(found, name)
        assert abs(value - float(theory)) < 4.0 * stderr, name
    assert found.mean_ratio is not None
    assert abs(found.mean_ratio.value - 1.0) < 5.0 * found.mean_ratio.stderr
    # what the pairs' own KL spread looks like: mean times an exponential
    assert found.kl_pairs.mean() == pytest.approx(found.joint_kl.value, rel=0.25)


def test_component_wise_divergence_against_refits_and_the_printed_one_fails() -> None:
    setting = LassoSetting(0.5, 0.1, 0.1, 1.0, 0.7)
    found = simulate_lasso(
        setting,
        coefficients=400,
        datasets=8,
        noises=24,
        neighbours=8,
        component_wise=True,
        random_state=1,
    )
    assert found.cw_kl is not None
    value, stderr = found.cw_kl
    point = state_evolution(setting)
    assert abs(value - float(onavg_kl(point, "component_wise"))) < 4.0 * stderr
    assert abs(value - float(onavg_kl(point, "printed"))) > 8.0 * stderr


def test_output_divergence_against_refits_and_equation_60_fails() -> None:
    setting = LassoSetting(0.5, 0.1, 0.1, 0.1, 0.3, "output")
    found = simulate_lasso(setting, coefficients=700, datasets=24, neighbours=12, random_state=3)
    value, stderr = found.joint_kl
    point = state_evolution(setting)
    assert abs(value - float(onavg_kl(point))) < 4.0 * stderr
    assert value - float(onavg_kl(point, "printed")) > 4.0 * stderr
    assert found.cw_kl == found.joint_kl


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"datasets": 1}, "2 datasets"),
        ({"neighbours": 40}, "fewer than 40 neighbours"),
    ],
)
def test_bad_simulations(change: dict[str, int], sentence: str) -> None:
    setting = LassoSetting(0.5, 0.1, 0.1, 1.0, 0.5)
    sizes = {"coefficients": 40, "datasets": 2, "noises": 2, "neighbours": 2}
    with pytest.raises(InputError, match=sentence):
        simulate_lasso(setting, **{**sizes, **change})


def test_silent_and_unstable_settings_are_refused() -> None:
    with pytest.raises(InputError, match="infinite"):
        simulate_lasso(LassoSetting(0.5, 0.1, 0.1, 1.0, 0.0))
    with pytest.raises(InputError, match="too close to its stability edge"):
        simulate_lasso(LassoSetting(0.5, 0.1, 0.1, 0.3, 0.4), coefficients=60, datasets=2, noises=2)
