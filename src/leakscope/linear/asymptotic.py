"""The laws as n, p and D grow together: Thm 3.2 and the corrected Thm 4.1 of **linear**."""

from __future__ import annotations

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.linear.design import GaussianDesign, RecordNorms
from leakscope.linear.moments import Moments, label_variance, trained


def stieltjes(ratio: float, ridge: float) -> tuple[float, float]:
    """g(-lambda) and g'(-lambda) of the Marchenko-Pastur law with parameter gamma.

    g solves gamma lambda g^2 + (1 - gamma + lambda) g - 1 = 0; the root is written so that it
    keeps its digits for small lambda on both sides of gamma = 1.

    Examples
    --------
    >>> from leakscope.linear import stieltjes
    >>> g, slope = stieltjes(4.0, 1.0)
    >>> round(g, 6), round(slope, 6)
    (0.809017, 0.766312)
    """
    if not ridge > 0.0:
        raise InputError(f"g(-lambda) needs a ridge above zero, but it is {ridge!r}.")
    b = 1.0 - ratio + ridge
    root = np.sqrt(b * b + 4.0 * ratio * ridge)
    g = 2.0 / (b + root) if b > 0.0 else (root - b) / (2.0 * ratio * ridge)
    # implicit derivative of the quadratic, d/d(-lambda)
    slope = (ratio * g * g + g) / (2.0 * ratio * ridge * g + b)
    return float(g), float(slope)


def asymptotic_moments(design: GaussianDesign, norms: RecordNorms) -> tuple[Moments, Moments]:
    """Second moments of (y0, yhat0) for member and non-member: Eq. (2) and Thm 4.1, corrected.

    The covariances with y0 are ours; the paper's attacker does not see the label.
    """
    label = label_variance(design, norms)
    used = norms.used[:, None]
    n, p, dim = design.n, design.p, design.dim
    if design.ridge > 0.0:
        g, slope = stieltjes(design.ratio, design.ridge)
        lam = design.ridge
        kept, signal = 1.0 - lam * g, 1.0 - 2.0 * lam * g + lam * lam * slope
        gain = slope * design.ratio / (1.0 + design.ratio * g) ** 2 / p
        s = used * g / n
    elif p > n + 1:
        kept = signal = n / p
        gain = n / p / (p - n - 1)
        s = np.full_like(used, np.inf)
    elif p < n - 1:
        kept = signal = 1.0
        gain = 1.0 / (n - p - 1)
        s = used * gain
    else:
        raise InputError(
            f"Least squares has no asymptotic law at p = {p} and n = {n}, where the variance of a "
            "prediction is infinite; use method exact, or a ridge above zero."
        )
    others = Moments(
        label,
        used * (signal / dim + gain * design.unseen_variance),
        used * np.full_like(used, kept) / dim,
    )
    if design.interpolates:
        return Moments(label, label, label), others
    return trained(others, s), others


def ridge_variances(
    design: GaussianDesign, norms: RecordNorms, *, printed: bool = False
) -> tuple[FloatArray, FloatArray]:
    """sigma_{1,lambda}^2 and sigma_{0,lambda}^2 of Thm 4.1, term by term.

    With ``printed`` the first factor of sigma_{1,lambda}^2 is the paper's
    (lambda^2/((lambda + gamma g)(lambda + gamma r g)))^2, which is a slip of its proof; the right
    one is (1/((1 + gamma g)(1 + gamma r g)))^2, r = ||x_{0,p}||^2/p.  The printed form is here to
    reproduce the paper's figure, and nothing else in the package uses it.

    Examples
    --------
    >>> from leakscope.linear import GaussianDesign, RecordNorms, ridge_variances
    >>> design = GaussianDesign(100, 400, 3000, 1.0, ridge=5.0)
    >>> typical = RecordNorms.typical(design)
    >>> [round(float(ridge_variances(design, typical, printed=x)[0][0]), 4) for x in (True, False)]
    [0.504, 0.3863]
    """
    g, slope = stieltjes(design.ratio, design.ridge)
    lam, gamma, r = design.ridge, design.ratio, norms.used / design.p
    s = gamma * r * g
    if printed:
        factor = lam**2 / ((lam + gamma * g) * (lam + s))
    else:
        factor = 1.0 / ((1.0 + gamma * g) * (1.0 + s))
    member = (
        factor**2 * gamma * slope * r * design.unseen_variance
        + (s / (1.0 + s)) ** 2 * (design.sigma**2 + norms.unused / design.dim)
        + (1.0 - 2.0 * lam * g / (1.0 + s) + lam**2 * slope / (1.0 + s) ** 2)
        * norms.used
        / design.dim
    )
    nonmember = (
        slope * gamma / (1.0 + gamma * g) ** 2 * design.unseen_variance * r
        + (1.0 - 2.0 * lam * g + lam**2 * slope) * norms.used / design.dim
    )
    return np.asarray(member), np.asarray(nonmember)
