"""The data model of the paper **lasso**, estimated from the user's own (X, y), and its design.

The theory wants alpha, rho, sigma_xi and the signal's variance.  Along a path of LASSO fits each
lambda gives leave-one-out residuals z = (1 + V)(y - X beta), where V = rho_hat/(alpha - rho_hat)
(Eq. 43); their mean square estimates the error E, and the lambda of least E is kept.  There the
field m = beta + X'z/alpha is, under Setting D, beta0 plus Gaussian noise of variance E/alpha
(Theorem 4.1).  So the p numbers m_i are a mixture of N(0, E/alpha) and
N(0, E/alpha + sigma_beta^2), whose weight rho and variance sigma_beta^2 are found by maximum
likelihood.  What is left of E after the estimated squared error of beta is sigma_xi^2 (Bayati,
Erdogdu, Montanari 2013).

How far the design is from the i.i.d. Gaussian one is told by figures, each compared with what it is
for i.i.d. Gaussian features of the same size; the thresholds come from their fluctuation there and
leave some room.  What breaks the theory is dependence between columns, which the spectrum and the
coherence see.  That entries are not Gaussian matters little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate, optimize

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.lasso.amp import checked_data, soft
from leakscope.lasso.setting import MECHANISM, NOISE, LassoSetting
from leakscope.lasso.solver import LassoSolution, solve_lasso_many
from leakscope.laws.pair import Assumption
from leakscope.settings.plan import LassoMechanism, LassoNoise

# Columns and rows looked at, at most: the spectrum of a part of an i.i.d. design has its own law.
LARGEST_SIDE = 2000
# How far the spectrum's distribution may be from Marchenko-Pastur's, beside its own fluctuation.
SPECTRUM_ROOM = 0.03
# How unequal columns may be, beside their own fluctuation.
LENGTH_ROOM = 0.05
# The path stops where more of the records than this are used up: V is no longer well known there.
LARGEST_SHARE = 0.7


@dataclass(frozen=True, eq=False)
class DataFit:
    """What (X, y) looks like to the theory, in the units of Setting D (rows of length one).

    Attributes
    ----------
    alpha
        n/p.
    rho
        Estimated share of true coefficients that are not zero.
    sigma_xi
        Estimated standard deviation of the label noise, in units of y.
    signal_variance
        sigma_beta^2, the estimated variance of a true coefficient that is not zero, for the
        features X/scale.
    scale
        Root mean squared length of a row of X.  Setting D has 1; the theory's lam is lam/scale,
        its coefficients are scale times those of X, and its sigma_eta is sigma_eta/scale for
        objective and scale times sigma_eta for output perturbation.
    lam
        The lambda of least estimated error, in the units of X.
    error
        The estimated generalisation error there, from leave-one-out residuals of the theory.
    cross_validated_error, cross_validated_stderr
        The same by cross-validation, which assumes nothing of the design.
    assumptions
        Each assumption of the theory, whether it holds, and the evidence.
    """

    alpha: float
    rho: float
    sigma_xi: float
    signal_variance: float
    scale: float
    lam: float
    error: float
    cross_validated_error: float
    cross_validated_stderr: float
    assumptions: tuple[Assumption, ...]

    def setting(
        self,
        sigma_eta: float,
        *,
        lam: float | None = None,
        mechanism: LassoMechanism = MECHANISM,
        noise: LassoNoise = NOISE,
    ) -> LassoSetting:
        """A private LASSO on such data, ``sigma_eta`` and ``lam`` in the units of X.

        Without ``lam`` it is that of least estimated error.

        Examples
        --------
        >>> import numpy as np
        >>> from leakscope.lasso import fit_data_model
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((200, 100))
        >>> found = fit_data_model(X, X[:, :5].sum(axis=1) + rng.standard_normal(200))
        >>> setting = found.setting(sigma_eta=2.0)
        >>> round(float(setting.sigma_eta * found.scale), 6), float(setting.alpha)
        (2.0, 2.0)
        """
        inside = mechanism == "objective"
        return LassoSetting(
            self.alpha,
            self.rho,
            self.sigma_xi,
            (self.lam if lam is None else lam) / self.scale,
            sigma_eta / self.scale if inside else sigma_eta * self.scale,
            mechanism,
            self.signal_variance,
            noise,
        )

    @property
    def trusted(self) -> bool:
        """Whether no assumption was found to fail."""
        return all(a.holds is not False for a in self.assumptions)


def fit_data_model(
    X: ArrayLike,
    y: ArrayLike,
    *,
    folds: int = 10,
    grid: int = 25,
    random_state: int | np.random.Generator | Key | None = None,
) -> DataFit:
    """Estimate alpha, rho, sigma_xi and the signal from (X, y), and check the design.

    Parameters
    ----------
    X, y
        (n, p) features and (n,) labels, centred where the model has an intercept.  These estimates
        are not private: they are for the owner of the data.
    folds
        Folds of the cross-validation that checks the theory's error.
    grid
        Values of lambda tried.
    random_state
        For the folds and for the columns sampled in the design check.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.lasso import fit_data_model
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 1)) + 0.3 * rng.standard_normal((200, 50))
    >>> found = fit_data_model(X, X[:, 0] + rng.standard_normal(200))
    >>> found.trusted, found.assumptions[0].holds
    (False, False)
    """
    design, labels = checked_data(X, y)
    n, p = design.shape
    if n < 10 or not 2 <= folds <= n:
        raise InputError(f"There are {n} records; 10 or more are needed, and 2 to {n} folds.")
    if not np.any(labels):
        raise InputError("Every label is zero: there is nothing to fit.")
    key = as_key(random_state)
    scale = math.sqrt(float(np.einsum("ij,ij->", design, design)) / n)
    if scale == 0.0:
        raise InputError("X is all zero: there is nothing to fit.")
    alpha = n / p
    top = float(np.abs(design.T @ labels).max())
    lams = top * np.geomspace(0.95, 0.003, grid)
    best, error = _least_error(design, labels, lams, alpha)
    lam, solution = best
    residual = labels - design @ solution.coef
    v = solution.active_fraction / (alpha - min(solution.active_fraction, 0.999 * alpha))
    field = scale * solution.coef + (1.0 + v) / alpha * (design.T @ residual) / scale
    noise = error / alpha
    rho, signal = _mixture(field, noise)
    threshold = lam / scale * (1.0 + v) / alpha
    shrunk = soft(field, threshold)
    # Stein's unbiased estimate of the squared error of soft(m), m ~ N(beta0, noise)
    risk = float(np.mean((shrunk - field) ** 2)) + noise * (2.0 * solution.active_fraction - 1.0)
    sigma_xi = math.sqrt(max(error - max(risk, 0.0), 0.0))
    cv, cv_error, predicted = _cross_validate(design, labels, lam, folds, key.child(0))
    assumptions = (
        *check_design(design, random_state=key.child(1)),
        _error_assumption(predicted, cv, cv_error, n),
        Assumption(
            "the true coefficients are zero or Gaussian, independent of each other",
            None,
            f"rho = {rho:.3g} is the weight of the wide part of a mixture of two Gaussians",
        ),
        Assumption("label noise is Gaussian and independent of the features", None, "not checked"),
    )
    return DataFit(
        alpha, rho, sigma_xi, signal, scale, float(lam), error, cv, cv_error, assumptions
    )


def _least_error(
    design: FloatArray, labels: FloatArray, lams: FloatArray, alpha: float
) -> tuple[tuple[float, LassoSolution], float]:
    """The lambda of least mean squared leave-one-out residual, its fit, and that error."""
    share = LARGEST_SHARE * min(alpha, 1.0)
    found: tuple[float, LassoSolution] | None = None
    least, worse = math.inf, 0
    guess: FloatArray | None = None
    for lam in lams:
        solution = solve_lasso_many(design, labels, float(lam), start=guess)[0]
        guess = solution.coef
        if solution.active_fraction > share and found is not None:
            break
        residual = labels - design @ solution.coef
        correction = alpha / max(alpha - solution.active_fraction, 1e-3 * alpha)
        error = float(np.mean(residual**2)) * correction**2
        if error < least:
            least, found, worse = error, (float(lam), solution), 0
        else:
            worse += 1
        if worse >= 4:
            break
    assert found is not None
    return found, least


def _mixture(field: FloatArray, noise: float) -> tuple[float, float]:
    """Weight and variance of the wide part of (1-rho) N(0, noise) + rho N(0, noise + signal)."""
    square = field**2

    def loss(parameters: FloatArray) -> float:
        rho, ratio = 1.0 / (1.0 + math.exp(-parameters[0])), math.exp(parameters[1])
        wide = noise * (1.0 + ratio)
        narrow_part = math.log1p(-rho) - 0.5 * (square / noise + math.log(noise))
        wide_part = math.log(rho) - 0.5 * (square / wide + math.log(wide))
        return -float(np.mean(np.logaddexp(narrow_part, wide_part)))

    excess = max(float(np.mean(square)) / noise - 1.0, 1e-3)
    starts = [(-2.2, math.log(10.0 * excess)), (0.0, math.log(2.0 * excess)), (-4.6, 4.6)]
    bounds = [(-9.0, 6.0), (-7.0, 14.0)]
    ends = [optimize.minimize(loss, x0, method="L-BFGS-B", bounds=bounds) for x0 in starts]
    best = min(ends, key=lambda end: float(end.fun))
    rho = 1.0 / (1.0 + math.exp(-float(best.x[0])))
    return rho, noise * math.exp(float(best.x[1]))


def _cross_validate(
    design: FloatArray, labels: FloatArray, lam: float, folds: int, key: Key
) -> tuple[float, float, float]:
    """Mean squared error on held-out folds, its standard error, and what the theory says of it.

    Each fold's fit has its own leave-one-out residuals, so both speak of the same, smaller, fit;
    lambda shrinks with the records that are left.
    """
    n = design.shape[0]
    order = key.generator().permutation(n)
    square, predicted = np.empty(n), 0.0
    for held in np.array_split(order, folds):
        rest = np.setdiff1d(order, held)
        fit = solve_lasso_many(design[rest], labels[rest], lam * rest.size / n)[0]
        square[held] = (labels[held] - design[held] @ fit.coef) ** 2
        inside = np.mean((labels[rest] - design[rest] @ fit.coef) ** 2)
        share = min(fit.support.size / rest.size, 0.999)
        predicted += held.size / n * float(inside) / (1.0 - share) ** 2
    return float(square.mean()), float(square.std(ddof=1) / math.sqrt(n)), predicted


def _error_assumption(predicted: float, cv: float, cv_error: float, n: int) -> Assumption:
    """Whether the theory's leave-one-out error is what cross-validation finds."""
    apart = math.hypot(cv_error, predicted * math.sqrt(2.0 / n))
    return Assumption(
        "leave-one-out residuals of the theory give the generalisation error",
        abs(cv - predicted) <= 3.0 * apart + 0.05 * cv,
        f"for the same folds: theory {predicted:.4g}, cross-validation {cv:.4g} with standard "
        f"error {cv_error:.2g}",
    )


def check_design(
    X: ArrayLike, random_state: int | np.random.Generator | Key | None = None
) -> tuple[Assumption, ...]:
    """Compare the spectrum, coherence, lengths and means of X with those of i.i.d. features.

    Of a large design, 2000 rows and 2000 columns chosen at random are looked at.
    """
    design = np.asarray(X, dtype=np.float64)
    generator = as_key(random_state).generator()
    for axis in (0, 1):
        if design.shape[axis] > LARGEST_SIDE:
            chosen = np.sort(generator.choice(design.shape[axis], LARGEST_SIDE, replace=False))
            design = np.take(design, chosen, axis=axis)
    n, p = design.shape
    square = np.einsum("ij,ij->j", design, design) / n
    mean_square = float(square.mean()) or 1.0
    scaled = design / math.sqrt(mean_square)
    distance = marchenko_pastur_distance(np.linalg.svd(scaled, compute_uv=False) ** 2 / n, p / n)
    live = np.flatnonzero(square > 0.0)
    unit = scaled[:, live] / np.linalg.norm(scaled[:, live], axis=0)
    cosine = unit.T @ unit
    np.fill_diagonal(cosine, 0.0)
    coherence = float(np.abs(cosine).max(initial=0.0))
    # the largest of p(p - 1)/2 cosines of variance 1/n
    likely = min(1.0, math.sqrt(2.0 * math.log(2.0 * max(p * (p - 1) / 2.0, 1.0)) / n))
    spread, usual = float(square.std() / mean_square), math.sqrt(2.0 / n)
    # of the squared entries; 1/n where the columns have mean zero
    means = float(np.mean(scaled.mean(axis=0) ** 2))
    room = SPECTRUM_ROOM + 3.0 / min(n, p)
    return (
        Assumption(
            "columns are independent (singular values)",
            distance <= room,
            f"distance from the Marchenko-Pastur law {distance:.3f}, at most {room:.3f} expected",
        ),
        Assumption(
            "columns are independent (coherence)",
            coherence <= 1.5 * likely,
            f"largest cosine between two columns {coherence:.3f}, about {likely:.3f} expected",
        ),
        Assumption(
            "features have mean zero and equal variance",
            spread <= math.hypot(1.5 * usual, LENGTH_ROOM)
            and means <= 1.0 / n + 5.0 * math.sqrt(2.0 / p) / n + 0.01,
            f"columns' mean squares spread by {spread:.3f}, {usual:.3f} expected; "
            f"share of the means {means:.3f}",
        ),
    )


def marchenko_pastur_distance(values: FloatArray, ratio: float) -> float:
    """Kolmogorov distance of min(n, p) squared singular values from their limit law.

    ``values`` are the squared singular values of X/sqrt(n), entries of variance one, and ``ratio``
    is p/n.  The density on [(1 - sqrt(r))^2, (1 + sqrt(r))^2] is
    sqrt((b - x)(x - a)) / (2 pi x min(r, 1)), the atom at zero left out.
    """
    ordered = np.sort(values)
    low, high = (1.0 - math.sqrt(ratio)) ** 2, (1.0 + math.sqrt(ratio)) ** 2
    # x = centre - half cos(angle) takes away both square-root ends
    angle = np.linspace(0.0, math.pi, 4001)
    centre, half = 0.5 * (low + high), 0.5 * (high - low)
    x = centre - half * np.cos(angle)
    slope = np.empty_like(angle)
    positive = x > 0.0
    slope[positive] = (half * np.sin(angle[positive])) ** 2 / x[positive]
    # at ratio 1 the support begins at x = 0, where (half sin)^2/x = half (1 + cos)
    slope[~positive] = 2.0 * half
    law = integrate.cumulative_trapezoid(slope, angle, initial=0)
    law /= law[-1]
    expected = np.interp(ordered, x, law, left=0.0, right=1.0)
    count = ordered.size
    above = np.arange(1, count + 1) / count - expected
    below = expected - np.arange(count) / count
    return float(max(above.max(), below.max()))
