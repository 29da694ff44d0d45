"""A typical record when only the features' covariance spectrum is known, not the features.

Deterministic equivalents for ridge and least squares with features N(0, Sigma) at any p/n.  With
beta ~ N(0, tau^2 I), penalty n lambda I and kappa the root of

    lambda = kappa (1 - df_1/n),   df_1 = tr Sigma(Sigma + kappa)^{-1},

    risk = (sigma^2 + tau^2 kappa^2 tr Sigma(Sigma+kappa)^{-2}) / (1 - df_2/n),
    v0 = tau^2 ||Sigma(Sigma+kappa)^{-1}x0||^2 + (risk/n) x0'Sigma(Sigma+kappa)^{-2}x0,
    c0 = tau^2 x0'Sigma(Sigma+kappa)^{-1}x0,
    s = x0'(Sigma+kappa)^{-1}x0 / (n - df_1),

and the member's moments follow from yhat0 = (f_- + s y0)/(1 + s).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.laws.pair import Assumption, LawPair
from leakscope.linear.design import OutputNoise, require_scale
from leakscope.linear.law_pair import pair_of_moments, population_provenance
from leakscope.linear.moments import Moments, trained
from leakscope.settings.plan import LinearAttacker


@dataclass(frozen=True, eq=False)
class SpectrumDesign:
    """Ridge or least squares on n records whose features have the covariance ``spectrum``.

    Parameters
    ----------
    spectrum
        (p,) eigenvalues of the features' covariance, all above zero.
    n, sigma, ridge
        As for `GaussianDesign`.
    prior_variance
        tau^2, the variance of each coefficient.
    """

    spectrum: FloatArray
    n: int
    sigma: float
    prior_variance: float
    ridge: float = 0.0

    def __post_init__(self) -> None:
        spectrum = np.array(self.spectrum, dtype=np.float64)
        if spectrum.ndim != 1 or not np.all(np.isfinite(spectrum)) or np.any(spectrum <= 0.0):
            raise InputError("The spectrum must be a row of finite eigenvalues above zero.")
        if self.n < 2:
            raise InputError(f"n must be 2 or more, but it is {self.n}.")
        for name in ("sigma", "prior_variance", "ridge"):
            require_scale(name, getattr(self, name))
        if self.ridge == 0.0 and spectrum.size == self.n:
            raise InputError("At p = n least squares has no asymptotic law; use a ridge above 0.")
        spectrum.setflags(write=False)
        object.__setattr__(self, "spectrum", spectrum)


def effective_ridge(design: SpectrumDesign) -> float:
    """kappa: the ridge that the population, rather than the sample, would feel."""
    spectrum, n = design.spectrum, design.n
    if design.ridge == 0.0 and spectrum.size < n:
        return 0.0

    def excess(log_kappa: float) -> float:
        kappa = np.exp(log_kappa)
        return float(kappa * (1.0 - (spectrum / (spectrum + kappa)).sum() / n) - design.ridge)

    # kappa lies between its value for no overlap and lambda + tr Sigma / n
    high = np.log(design.ridge + spectrum.sum() / n)
    low = high - 1.0
    while excess(low) > 0.0:
        low -= 2.0
    return float(np.exp(optimize.brentq(excess, low, high + 1e-9, xtol=1e-14, rtol=1e-14)))


def spectrum_law_pair(
    design: SpectrumDesign,
    records: ArrayLike | None = None,
    *,
    attacker: LinearAttacker = "label_hidden",
    noise: OutputNoise | None = None,
    random_state: int | np.random.Generator | Key | None = None,
) -> LawPair:
    """The laws at ``records``, (J, p) coordinates in the covariance's eigenbasis.

    Where left out, 20 records are drawn from N(0, Sigma).  For the identity this is Thm 3.2 and the
    corrected Thm 4.1 at p = D.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.linear import spectrum_law_pair
    >>> from leakscope.linear.spectrum import SpectrumDesign
    >>> from leakscope.measures import advantage
    >>> flat = SpectrumDesign(np.ones(400), n=100, sigma=1.0, prior_variance=1 / 400)
    >>> x0 = np.ones((1, 400))
    >>> advantage(spectrum_law_pair(flat, x0)).round(3)
    array([0.289])
    """
    spectrum = design.spectrum
    if records is None:
        generator = as_key(random_state).generator()
        points = np.sqrt(spectrum) * generator.standard_normal((20, spectrum.size))
    else:
        points = np.atleast_2d(np.asarray(records, dtype=np.float64))
        if points.shape[1] != spectrum.size:
            raise InputError(
                f"A record needs {spectrum.size} coordinates, but has {points.shape[1]}."
            )
    square = points**2
    kappa, n, tau2 = effective_ridge(design), design.n, design.prior_variance
    shrunk = spectrum / (spectrum + kappa)
    df_1, df_2 = shrunk.sum(), (shrunk**2).sum()
    bias = tau2 * kappa**2 * (shrunk / (spectrum + kappa)).sum()
    risk = (design.sigma**2 + bias) / (1.0 - df_2 / n)
    label = (tau2 * square.sum(axis=1) + design.sigma**2)[:, None]
    prediction = tau2 * square @ shrunk**2 + risk / n * (square @ (shrunk / (spectrum + kappa)))
    others = Moments(label, prediction[:, None], (tau2 * square @ shrunk)[:, None])
    if design.ridge == 0.0 and spectrum.size >= n:
        member = Moments(label, label, label)
    else:
        member = trained(others, (square @ (1.0 / (spectrum + kappa)) / (n - df_1))[:, None])
    provenance = population_provenance(
        attacker,
        noise,
        method="asymptotic",
        source="deterministic equivalents of ridge with a general covariance",
        assumptions=(
            Assumption("features are a linear map of independent numbers, with this covariance"),
            Assumption("coefficients are N(0, prior_variance I) and label noise is Gaussian"),
            Assumption(
                "n and p are large, and no few eigenvalues carry the rest",
                holds=bool(df_1**2 / df_2 > 10.0) and n >= 50,
                evidence=f"n = {n}, p = {spectrum.size}, df_1 = {df_1:.3g}, df_2 = {df_2:.3g}",
            ),
        ),
    )
    return pair_of_moments(member, others, attacker=attacker, noise=noise, provenance=provenance)
