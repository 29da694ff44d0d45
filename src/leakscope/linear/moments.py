"""From a design to the second moments of (y0, prediction), for a member and for a non-member.

Given the design both are zero-mean Gaussian, so three numbers say everything: Var y0 (the same for
both), Var yhat0 and Cov(y0, yhat0).  The member's come from those of the model trained on the other
n - 1 records, f_-, through yhat0 = (f_- + s y0)/(1 + s), s = x0'A_-^{-1}x0 (Sherman-Morrison).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.linear.design import GaussianDesign, RecordNorms
from leakscope.linear.random_designs import DesignDraws, draw_designs


class Moments(NamedTuple):
    """Second moments for J records and K designs: ``label`` is (J, 1), the others (J, K)."""

    label: FloatArray
    prediction: FloatArray
    covariance: FloatArray

    def given_label(self) -> tuple[FloatArray, FloatArray]:
        """Slope and variance of the prediction given y0: N(slope y0, variance)."""
        slope = self.covariance / self.label
        return slope, np.maximum(self.prediction - slope * self.covariance, 0.0)


def exact_moments(
    design: GaussianDesign, norms: RecordNorms, key: Key, draws: int
) -> tuple[Moments, Moments]:
    """Moments of member and non-member over ``draws`` random designs, exact at finite n.

    The unused features enter through X_pbar'w, w = X_p A^{-1}x0, which is ||w|| times a standard
    normal vector g: h = ||g||^2 ~ chi2(D - p), and g_1, its coordinate along x_{0,pbar}, makes it
    correlated with the record's own label.  Nothing of order 1/D is left out.
    """
    nonmember = _untrained(design, norms, design.n, key.child(0), draws)
    label = label_variance(design, norms)
    if design.interpolates:
        everywhere = np.broadcast_to(label, nonmember.prediction.shape)
        return Moments(label, everywhere, everywhere), nonmember
    drawn = draw_designs(design.n - 1, design.p, design.penalty, key.child(1, 0), draws)
    others = _moments(design, norms, drawn, key.child(1, 1))
    s = norms.used[:, None] * drawn.resolvent
    return trained(others, s), nonmember


def trained(others: Moments, s: FloatArray) -> Moments:
    """What (y0, f_-) becomes once the record is trained on: yhat0 = (f_- + s y0)/(1 + s)."""
    label, v, c = others
    share = 1.0 + s
    return Moments(
        label,
        (v + 2.0 * s * c + s * s * label) / share**2,
        (c + s * label) / share,
    )


def label_variance(design: GaussianDesign, norms: RecordNorms) -> FloatArray:
    """sigma_1^2 of Eq. (2): sigma^2 + ||x0||^2/D, as a column."""
    total = design.sigma**2 + (norms.used + norms.unused) / design.dim
    return np.asarray(total[:, None])


def _untrained(
    design: GaussianDesign, norms: RecordNorms, rows: int, key: Key, draws: int
) -> Moments:
    drawn = draw_designs(rows, design.p, design.penalty, key.child(0), draws)
    return _moments(design, norms, drawn, key.child(1))


def _moments(design: GaussianDesign, norms: RecordNorms, drawn: DesignDraws, key: Key) -> Moments:
    generator = key.generator()
    draws = drawn.gain.size
    rest = design.dim - design.p
    along = generator.standard_normal(draws) if rest else np.zeros(draws)
    across = generator.chisquare(rest - 1, draws) if rest > 1 else np.zeros(draws)
    used, unused = norms.used[:, None], norms.unused[:, None]
    reach = used * drawn.gain
    noise = design.sigma**2 + (along**2 + across) / design.dim
    prediction = used * drawn.signal / design.dim + reach * noise
    shared = np.sqrt(unused * reach) * along
    covariance = (used * drawn.kept + shared) / design.dim
    return Moments(label_variance(design, norms), prediction, covariance)
