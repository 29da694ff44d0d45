"""The joint divergence of Eq. (9) of **lasso** in the limit, and what an attacker makes of it.

Ours, not the paper's.  Adding a record (x', y') to a dataset multiplies the density of an estimate
beta (see `joint_density`) by exp(Lambda); as p grows

    Lambda = -r b/sigma_eta^2 - r^2 g/(2 sigma_eta^4) + log(1 + V),

where r = y' - x'beta, b = sum_i x'_i E[eta_i | beta], g = sum_i E[eta_i | beta]^2/p, and 1 + V is
the change of the determinant.  Over the privacy noise r and b are jointly normal: r has mean
c ~ N(0, E12) (over records) and variance E - E12; b has mean 0 and variance g; by Stein's lemma
their covariance is sigma_eta^2 V.  E exp(Lambda) is then exactly 1.  g = sigma_eta^2 E J is the
mean Fisher information of `fisher_information` at location variance E/alpha and scale
Sigma sigma_eta, which is what the printed Eq. (64) averages.  Replacing a record is removing one
and adding one, and the mean of the log ratio over pairs and noise is

    KL = V^2/(1 + V) + (E E[J]/(2 sigma_eta^2)) (1 + 1/(1 + V)^2).

The same normals give the advantage, the AUC and epsilon(delta) of a typical pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.lasso.onaverage_kl import onavg_kl
from leakscope.lasso.overlap import Overlap

_POINTS = 1 << 14


class _Scalars(NamedTuple):
    gain: float
    error: float
    overlap: float
    information: float
    """g / sigma_eta^4."""
    kappa: float
    """V / sqrt(E - E12)."""


@dataclass(frozen=True, eq=False)
class LikelihoodRatios:
    """log p(beta | D)/p(beta | D') of typical pairs: normals N(mean, variance), equally weighted.

    ``mean`` and ``variance`` are under the member's law; under the other's the log ratio of the
    same pair is N(``mean_other``, ``variance_other``).

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.lasso import LikelihoodRatios
    >>> one = np.array([0.5])
    >>> found = LikelihoodRatios(one, 2.0 * one, -one, 2.0 * one)  # a shift by one sd
    >>> round(found.advantage, 4), round(found.auc, 4), round(found.epsilon_at_delta(1e-5), 3)
    (0.3829, 0.7602, 4.377)
    """

    mean: FloatArray
    variance: FloatArray
    mean_other: FloatArray
    variance_other: FloatArray

    @property
    def kl(self) -> float:
        """Mean KL of a pair, by the same points as the rest."""
        return float(self.mean.mean())

    @property
    def advantage(self) -> float:
        """Mean best TPR - FPR over pairs: E[(1 - exp(-L))+] under the member's law."""
        return self.delta_at_epsilon(0.0)

    @property
    def auc(self) -> float:
        """Mean area under the ROC curve of a pair's likelihood ratio."""
        spread = np.sqrt(self.variance + self.variance_other)
        gap = self.mean - self.mean_other
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.where(spread > 0.0, gap / spread, 0.0)
        return float(special.ndtr(score).mean())

    def delta_at_epsilon(self, epsilon: float) -> float:
        """E[(1 - exp(epsilon - L))+], averaged over pairs."""
        m, v = self.mean - epsilon, np.maximum(self.variance, 1e-300)
        s = np.sqrt(v)
        low = np.exp(np.minimum(-m + 0.5 * v + special.log_ndtr((m - v) / s), 0.0))
        return float(np.maximum(special.ndtr(m / s) - low, 0.0).mean())

    def epsilon_at_delta(self, delta: float) -> float:
        """The least epsilon at which the average of delta over pairs is at most ``delta``."""
        if not 0.0 < delta < 1.0:
            raise InputError(f"delta must lie between 0 and 1, both excluded, not {delta!r}.")
        if self.delta_at_epsilon(0.0) <= delta:
            return 0.0
        high = 1.0
        while self.delta_at_epsilon(high) > delta:
            high *= 2.0
        root = optimize.brentq(lambda x: self.delta_at_epsilon(x) - delta, 0.0, high, rtol=1e-9)
        return float(root)


def likelihood_ratios(both: Overlap) -> LikelihoodRatios:
    """The law of the log likelihood ratio over typical pairs at one setting.

    Averages over pairs are quasi-random, 16,384 points, good to about three digits.

    Examples
    --------
    >>> from leakscope.lasso import LassoSetting, likelihood_ratios, overlap, state_evolution
    >>> both = overlap(state_evolution(LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=0.5)))
    >>> found = likelihood_ratios(both)
    >>> round(found.kl, 3), round(found.advantage, 3), round(found.auc, 3)
    (0.156, 0.186, 0.637)
    """
    setting = both.fixed_point.setting
    if setting.shape != ():
        raise InputError("likelihood_ratios takes one setting at a time.")
    if not bool(both.fixed_point.stable) or not setting.sigma_eta > 0.0:
        raise InputError("A likelihood ratio needs a stable setting with sigma_eta above zero.")
    if setting.mechanism == "output":
        # two fits differ by a normal of variance proportional to r^2 + r'^2, that is Exp(1)
        kl = float(onavg_kl(both)) * -np.log(_lattice(1)[0])
        return LikelihoodRatios(kl, 2.0 * kl, -kl, 2.0 * kl)
    s = _scalars(both)
    z = special.ndtri(_lattice(6))
    c, other_c = np.sqrt(s.overlap) * z[0], np.sqrt(s.overlap) * z[1]
    own, other = _trained(s, c, z[2]), _fresh(s, other_c, z[3])
    back, forth = _fresh(s, c, z[4]), _trained(s, other_c, z[5])
    return LikelihoodRatios(
        own[0] - other[0], own[1] + other[1], back[0] - forth[0], back[1] + forth[1]
    )


def average_auc(mean_kl: float) -> float:
    """Mean AUC of pairs whose log ratios are N(K, 2K) with K = mean_kl times Exp(1).

    Phi(sqrt(K)) averaged: (1 + sqrt(k/(k + 2)))/2.  Exact for output perturbation, where K is
    proportional to the two records' squared residuals; close for objective perturbation.

    Examples
    --------
    >>> from leakscope.lasso import average_auc
    >>> round(average_auc(0.5), 4)
    0.7236
    """
    _require_kl(mean_kl)
    return 0.5 * (1.0 + _share(mean_kl, 2.0))


def average_advantage(mean_kl: float) -> float:
    """Mean advantage of the same pairs: 2 Phi(sqrt(K/2)) - 1 averaged, sqrt(k/(k + 4)).

    Examples
    --------
    >>> from leakscope.lasso import average_advantage
    >>> round(average_advantage(0.5), 4)
    0.3333
    """
    _require_kl(mean_kl)
    return _share(mean_kl, 4.0)


def _share(k: float, more: float) -> float:
    return 1.0 if np.isinf(k) else float(np.sqrt(k / (k + more)))


def _require_kl(value: float) -> None:
    if not value >= 0.0:
        raise InputError(f"A mean KL must be zero or above, but it is {value!r}.")


def _scalars(both: Overlap) -> _Scalars:
    point = both.fixed_point
    gain = 1.0 + float(point.response)
    # Where there is nothing to learn, rounding may leave either below zero.
    error = max(float(point.error), float(np.finfo(np.float64).tiny))
    shared = min(max(float(both.overlap_error), 0.0), error)
    free = error - shared
    # from the divergence itself: KL = (gain - 1)^2/gain + (E g/2)(1 + gain^-2)
    kl = float(onavg_kl(both, "joint"))
    # beside a large gain the difference may be rounding, and below zero
    information = max(2.0 * (kl - (gain - 1.0) ** 2 / gain) / (error * (1.0 + gain**-2)), 0.0)
    kappa = (gain - 1.0) / np.sqrt(free) if free > 0.0 else 0.0
    return _Scalars(gain, error, shared, information, min(kappa, np.sqrt(information)))


def _fresh(s: _Scalars, c: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of Lambda for a record the estimate was not trained on."""
    r = c + np.sqrt(s.error - s.overlap) * z
    free = max(s.information - s.kappa**2, 0.0)
    return -s.kappa * z * r - 0.5 * r * r * s.information + np.log(s.gain), r * r * free


def _trained(s: _Scalars, c: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same for a record it was trained on: the law above tilted by exp(Lambda)."""
    r = (c + np.sqrt(s.error - s.overlap) * z) / s.gain
    free = max(s.information - s.kappa**2, 0.0)
    tilt = s.kappa * (z - s.kappa * c) / s.gain  # V e / (E - E12)
    mean = -tilt * r + r * r * (free - 0.5 * s.information) + np.log(s.gain)
    return mean, r * r * free


def _lattice(dimensions: int) -> FloatArray:
    """A low-discrepancy sequence (additive recurrence of the generalised golden ratio), (d, N)."""
    root = optimize.brentq(lambda x: x ** (dimensions + 1) - x - 1.0, 1.0, 2.0)
    steps = root ** -np.arange(1.0, dimensions + 1.0)
    return np.asarray((0.5 + np.outer(steps, np.arange(1, _POINTS + 1))) % 1.0)
