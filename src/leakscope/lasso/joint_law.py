"""The laws behind the joint divergence of Eq. (9) of **lasso**, in the limit.

Ours, not the paper's.  Adding a record (x', y') to a dataset multiplies the density of an estimate
beta (see `joint_density`) by exp(Lambda); as p grows

    Lambda = -r b/sigma_eta^2 - r^2 g/(2 sigma_eta^4) + log(1 + V),

where r = y' - x'beta, b = sum_i x'_i E[eta_i | beta], g = sum_i E[eta_i | beta]^2/p, and 1 + V is
the change of the determinant.  Over the privacy noise r and b are jointly normal: r has mean
c ~ N(0, E12) (over records) and variance E - E12; b has mean 0 and variance g; by Stein's lemma
their covariance is sigma_eta^2 V.  E exp(Lambda) is then exactly 1.  g = sigma_eta^2 E J is the
mean Fisher information of `fisher_information` at location variance E/alpha and scale
Sigma sigma_eta, which is what the printed Eq. (64) averages.

The attacker knows both records, hence c, and sees r and b.  Over typical records (r, b) has mean
zero, and Lambda is a quadratic form in it.  So a record that was not trained on shows N(0, I) in
suitable coordinates (u, w), r = sqrt(E) u, and one that was trained on shows N(0, P^-1) with

    P = [[1 + 2 V + a^2, sqrt(a^2 - V^2)], [sqrt(a^2 - V^2), 1]],   a^2 = E g/sigma_eta^4,

whose determinant is (1 + V)^2.  E12 has dropped out.  Replacing a record is removing one and
adding one: member and nonmember are two independent such pairs of coordinates, the first trained
on and the second not, or the other way round.  Every measure of a typical pair is a measure of
these two normals of four dimensions, and their KL is

    KL = V^2/(1 + V) + (a^2/2) (1 + 1/(1 + V)^2).

Under output perturbation a pair's log ratio is N(K, 2 K) with K the mean KL times Exp(1), which is
the same law at V = 0 and a^2 the mean KL.
"""

from __future__ import annotations

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.lasso.assumptions import provenance_of
from leakscope.lasso.noise_overlap import Overlap
from leakscope.lasso.onaverage_kl import joint_parameters
from leakscope.lasso.state_evolution import FixedPoint
from leakscope.laws import LawPair, MultivariateNormal


def joint_law_pair(point: FixedPoint | Overlap) -> LawPair:
    """What an attacker sees of a typical pair of datasets: one record, or another in its place.

    One setting, stable, with privacy noise.  A measure of this pair is that of one test for all
    pairs of records, which compares their likelihood ratio with one threshold: its advantage,
    delta and KL are the means over pairs, its AUC and TPR are those of the single threshold.

    Examples
    --------
    >>> from leakscope import measures
    >>> from leakscope.lasso import LassoSetting, joint_law_pair, state_evolution
    >>> pair = joint_law_pair(state_evolution(LassoSetting(0.5, 0.1, 0.1, 1.0, sigma_eta=0.5)))
    >>> round(float(measures.kl(pair)), 6), round(float(measures.advantage(pair)), 6)
    (0.156528, 0.185642)
    >>> measures.epsilon_at_delta(pair, [1e-2, 1e-5, 1e-12]).round(4).tolist()
    [1.5678, 5.8958, 16.4861]
    """
    fixed = point.fixed_point if isinstance(point, Overlap) else point
    setting = fixed.setting
    if setting.shape != ():
        raise InputError("joint_law_pair takes one setting at a time.")
    if not bool(fixed.stable) or not setting.sigma_eta > 0.0:
        raise InputError("A likelihood ratio needs a stable setting with sigma_eta above zero.")
    gain, square = (float(part) for part in joint_parameters(fixed))
    trained = _variances(gain, square)
    fresh = np.ones(2)
    centre = np.zeros(4)
    return LawPair(
        MultivariateNormal(centre, np.diag(np.concatenate([trained, fresh]))),
        MultivariateNormal(centre, np.diag(np.concatenate([fresh, trained]))),
        provenance_of(setting),
    )


def _variances(gain: float, square: float) -> FloatArray:
    """The eigenvalues of P^-1: their product is gain^-2 and their sum (2 gain + a^2)/gain^2."""
    middle = (1.0 + 0.5 * square / gain) / gain
    # middle^2 - gain^-2, factored so that nothing cancels
    root = np.sqrt(0.5 * square * (middle + 1.0 / gain)) / gain
    large = middle + root
    return np.array([large, 1.0 / (gain * gain * large)])
