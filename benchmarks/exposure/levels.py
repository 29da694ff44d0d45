"""Our levels against the truth's, its noise counted in: coverage, TPRs, each record's FPR."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm
from truth_files import laws

from leakscope.halves.estimate import model_effects, tabulated
from leakscope.halves.population import record_sums

FPRS = (1e-2, 1e-3)
# So many records' draws are looked at together.
AT_ONCE = 500


def levels(answer: Any, far: np.ndarray, far_mask: np.ndarray) -> dict[str, Any]:
    """On the levelled log-odds of the truth's models."""
    levelled = model_effects(far, answer.effects.typical).level(far)
    u, s, n_out, m, r, n_in = laws(levelled, far_mask)
    advantage = tabulated(m - u, s, r)
    # How the two means of the truth are correlated, as they are for any complementary halves.
    correlation = record_sums(levelled, far_mask).correlation
    rng = np.random.default_rng(0)

    def noisy(U: Any, S: Any, M: Any, R: Any, a: Any, b: Any, c: Any) -> tuple[np.ndarray, ...]:
        """What as many models as the truth's would show of these laws: shift and two spreads."""
        e = rng.standard_normal(U.shape)
        f = c * e + np.sqrt(1 - c**2) * rng.standard_normal(U.shape)
        return (
            M + R / np.sqrt(b) * f - U - S / np.sqrt(a) * e,
            S * np.sqrt(rng.chisquare(a - 1, U.shape) / (a - 1)),
            R * np.sqrt(rng.chisquare(b - 1, U.shape) / (b - 1)),
        )

    low, high = np.ones(answer.records), np.zeros(answer.records)
    for at in np.array_split(np.arange(len(low)), -(-len(low) // AT_ONCE)):
        pair = answer.draws.pairs(at)
        drawn = pair.nonmember.mean, pair.nonmember.sigma, pair.member.mean, pair.member.sigma
        seen = noisy(*drawn, n_out[at, None], n_in[at, None], correlation[at, None])
        ends = np.quantile(tabulated(*seen), [0.025, 0.975], axis=1)
        low[at], high[at] = np.minimum(low[at], ends[0]), np.maximum(high[at], ends[1])
    covered = (advantage >= low) & (advantage <= high)
    count = max(1, len(covered) // 100)
    top = np.argsort(-answer.advantage.value)[:count]
    direct = (advantage >= answer.advantage.low) & (advantage <= answer.advantage.high)
    observed = np.array([tabulated(m - u, s, r, level).mean() for level in FPRS])
    # The truth's own noise makes its TPRs read high: by as much as noise added to it once more.
    again = [noisy(u, s, m, r, n_out, n_in, correlation) for _ in range(4)]
    noisier = [np.mean([tabulated(*seen, level).mean() for seen in again]) for level in FPRS]
    threshold = answer.pair.nonmember.mean + norm.isf(0.01) * answer.pair.nonmember.sigma
    return {
        "cover": float(covered.mean()),
        "cover_top": float(covered[top].mean()),
        "cover_direct": float(direct.mean()),
        "tpr_predicted": [float(answer.tpr_at_fpr[level].value.mean()) for level in FPRS],
        "tpr_observed": observed.tolist(),
        "tpr_corrected": (2 * observed - noisier).tolist(),
        "fpr": np.quantile(norm.sf((threshold - u) / s), [0.1, 0.5, 0.9]).tolist(),
        "fpr_counted": float(((levelled > threshold) & ~far_mask).sum() / (~far_mask).sum()),
    }
