"""Attackers who do not know the laws: against quadrature, and against models that are refitted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from leakscope import measures, plan_linear
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.linear import GaussianDesign, OutputNoise, RecordNorms, law_pair
from leakscope.linear.moments import Moments
from leakscope.planning.real_attackers import _rivals, real_attackers


def rate(threshold: float, law: float, v1: float, v0: float, half: int) -> float:
    """P(LiRA's score > threshold) where the prediction is N(0, law), by two-dimensional quadrature.

    With A_i = nu s_i^2/v_i ~ chi2(nu), A_1 = S B and A_0 = S (1 - B): S ~ chi2(2 nu) and
    B ~ Beta(nu/2, nu/2) are independent.  (y - m0_hat, y - m1_hat) is a centred normal vector of
    length rho and angle theta before its Cholesky factor, rho^2 ~ chi2(2), so that the event is
    rho^2 q(theta, B) > C(B) S/nu and P(rho^2 > t S) = (1 + t)^-nu.
    """
    nu = half - 1
    nodes, weights = special.roots_jacobi(120, 0.5 * nu - 1.0, 0.5 * nu - 1.0)
    beta = (0.5 * (nodes + 1.0))[:, None]
    theta = (np.arange(2000) + 0.5) * np.pi / 2000
    factor = np.linalg.cholesky(np.array([[law + v0 / half, law], [law, law + v1 / half]]))
    u0, u1 = factor @ np.stack([np.cos(theta), np.sin(theta)])
    q = u0**2 / (v0 * (1.0 - beta)) - u1**2 / (v1 * beta)
    level = 2.0 * threshold + np.log(v1 * beta / (v0 * (1.0 - beta)))
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = (1.0 + level / (nu * q)) ** -float(nu)
    above = np.where(
        q > 0.0, np.where(level > 0.0, tail, 1.0), np.where(level > 0.0, 0.0, 1 - tail)
    )
    return float(weights / weights.sum() @ above.mean(axis=1))


@pytest.mark.parametrize(("v1", "v0", "models"), [(2.0, 0.7, 16), (2.0, 0.7, 64), (0.6, 1.5, 16)])
def test_lira_in_the_limit_against_quadrature(v1: float, v0: float, models: int) -> None:
    one = np.ones((1, 1))
    sides = (Moments(4.0 * one, v1 * one, 0.0 * one), Moments(4.0 * one, v0 * one, 0.0 * one))
    found = _rivals(
        "label_hidden", sides, None, None, np.ones(1), [models], None, [0.01, 0.1], Key(1)
    )
    lira = next(row for row in found if row.name == "LiRA")
    assert lira.threshold is not None
    at = [rate(lira.threshold, law, v1, v0, models // 2) for law in (v1, v0)]
    assert lira.advantage == pytest.approx(at[0] - at[1], abs=4.0 * lira.advantage_stderr + 1e-5)
    # and that threshold is the best: the curve is flat there
    for beside in (lira.threshold - 0.1, lira.threshold + 0.1):
        worse = rate(beside, v1, v1, v0, models // 2) - rate(beside, v0, v1, v0, models // 2)
        assert worse < at[0] - at[1] + 1e-6
    for level in (0.01, 0.1):
        low, high = -1.0, 50.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (
                (middle, high) if rate(middle, v0, v1, v0, models // 2) > level else (low, middle)
            )
        power = rate(low, v1, v1, v0, models // 2)
        stderr = lira.tpr_stderr[f"{level:g}"]
        assert lira.tpr_at_fpr[f"{level:g}"] == pytest.approx(power, abs=4.0 * stderr + 1e-5)


@pytest.mark.parametrize("who", ["label_hidden", "label_known"])
def test_lira_at_finite_n_against_refits(who: str) -> None:
    """Datasets drawn around one record, ridge fitted, LiRA's score at the threshold of the plan."""
    n, p, lam, half, trials = 12, 6, 0.3, 4, 4000
    design = GaussianDesign(n, p, p, 1.0, ridge=lam)
    found = real_attackers(design, models=[2 * half], method="exact", key=Key(3))
    lira = next(row for row in found if row.name == "LiRA" and row.attacker == who)
    rng = np.random.default_rng(5)
    x0 = rng.standard_normal((trials, p))
    y0 = (x0 * rng.standard_normal((trials, p))).sum(1) / np.sqrt(p) + rng.standard_normal(trials)

    def predicted(member: bool) -> np.ndarray:
        """One model for each trial, trained with the record or without it."""
        beta, noise = rng.standard_normal((trials, p)) / np.sqrt(p), rng.standard_normal(trials)
        own = (x0 * beta).sum(1) + noise
        if who == "label_known":
            # coefficients and noise given that the record's label is y0
            share = (y0 - own) / ((x0**2).sum(1) / p + 1.0)
            beta, own = beta + share[:, None] * x0 / p, y0
        rows = rng.standard_normal((trials, n, p))
        labels = np.einsum("tnp,tp->tn", rows, beta) + rng.standard_normal((trials, n))
        if member:
            rows[:, 0], labels[:, 0] = x0, own
        gram = rows.transpose(0, 2, 1) @ rows + n * lam * np.eye(p)
        fit = np.linalg.solve(gram, np.einsum("tnp,tn->tp", rows, labels)[..., None])[..., 0]
        return (x0 * fit).sum(1)

    shadows = [np.stack([predicted(member) for _ in range(half)]) for member in (True, False)]
    (m1, s1), (m0, s0) = ((one.mean(0), one.std(0, ddof=1)) for one in shadows)
    called = []
    for member in (True, False):
        seen = predicted(member)
        score = np.log(s0 / s1) + 0.5 * (((seen - m0) / s0) ** 2 - ((seen - m1) / s1) ** 2)
        called.append(score > lira.threshold)
    gained = called[0].mean() - called[1].mean()
    stderr = np.sqrt(sum(one.var() / trials for one in called))
    assert lira.advantage_stderr is not None
    assert abs(gained - lira.advantage) < 4.0 * np.hypot(stderr, lira.advantage_stderr)


def test_what_is_lost_falls_as_one_over_the_models() -> None:
    design = GaussianDesign(100, 400, 3000, 1.0, ridge=1.0)
    plan = plan_linear(
        design, method="asymptotic", attacker_models=[64, 256, 1024], attacker_sigma=1.0, fpr=[0.01]
    )
    for who in ("label_hidden", "label_known"):
        rows = [row for row in plan.rivals if row.attacker == who]
        best = rows[0].advantage
        lost = [row.models * (best - row.advantage) for row in rows if row.name == "LiRA"]
        assert lost == pytest.approx([lost[-1]] * 3, rel=0.35)
        # the right sigma is no other belief, and nobody beats who knows the laws
        right = next(row for row in rows if "sigma taken for" in row.name)
        assert right.advantage == best
        assert all(row.advantage <= best + 1e-9 for row in rows)
        threshold = next(row for row in rows if "one threshold" in row.name)
        assert threshold.advantage < best
    assert plan.rivals[0].advantage == pytest.approx(plan.advantage, abs=1e-3)


def test_what_real_attackers_are_asked() -> None:
    design = GaussianDesign(20, 40, 60, 1.0)
    with pytest.raises(InputError, match="an even number of 4 or more, not 7"):
        plan_linear(design, method="asymptotic", attacker_models=[7])
    with pytest.raises(InputError, match="zero or above"):
        plan_linear(design, method="asymptotic", attacker_sigma=-1.0)
    # an interpolating model repeats labels, until its answers are noisy
    plain, noisy = (
        {row.attacker for row in plan_linear(
            design, method="asymptotic", attacker_models=[8], noise=noise, fpr=[0.1]
        ).rivals}
        for noise in (None, OutputNoise(1.0))
    )  # fmt: skip
    assert plain == {"label_hidden"}
    assert noisy == {"label_hidden", "label_known"}


def test_who_knows_the_laws_is_the_best_attacker() -> None:
    """With the label too: TPR and advantage against the bivariate law of label and prediction."""
    design = GaussianDesign(100, 400, 3000, 1.0, ridge=1.0)
    norms = RecordNorms.nodes(design, 4, 1)
    pair = law_pair(design, norms, method="asymptotic", attacker="label_known")
    best = measures.population_measures(pair, norms.weight, fpr=[0.01, 0.001])
    found = real_attackers(design, models=[], fpr=[0.01, 0.001], key=Key(0))
    known = next(row for row in found if row.attacker == "label_known")
    assert known.advantage == pytest.approx(best.advantage, abs=2e-5)
    for level, value in best.tpr_at_fpr.items():
        assert known.tpr_at_fpr[f"{level:g}"] == pytest.approx(value, rel=5e-4)
