"""Second moments of (label, prediction) at a record, trained on or not, by three routes.

Given the design (y0, yhat0) is zero-mean Gaussian, so three numbers say everything: Var y0 (the
same for both), Var yhat0 and Cov(y0, yhat0).  The member's come from those of the model trained on
the other n - 1 records, f_-, through yhat0 = (f_- + s y0)/(1 + s), s = x0'A_-^{-1}x0
(Sherman-Morrison).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.linear.design import GaussianDesign, RecordNorms
from leakscope.settings.plan import LinearMethod

# Weights that large come from a matrix that is singular but for rounding.
_SINGULAR = 1e7


class Moments(NamedTuple):
    """Second moments for J records and K designs: ``label`` is (J, 1), the others (J, K)."""

    label: FloatArray
    prediction: FloatArray
    covariance: FloatArray

    def given_label(self) -> tuple[FloatArray, FloatArray]:
        """Slope and variance of the prediction given y0: N(slope y0, variance)."""
        slope = self.covariance / self.label
        return slope, np.maximum(self.prediction - slope * self.covariance, 0.0)


def moments(
    design: GaussianDesign, norms: RecordNorms, method: LinearMethod, draws: int, key: Key
) -> tuple[Moments, Moments]:
    """Second moments of (y0, yhat0), with the record and without it, by the route ``method``."""
    if method == "asymptotic":
        return _asymptotic_moments(design, norms)
    if method == "exact":
        return _exact_moments(design, norms, key, draws)
    return _simulated_moments(design, norms, key, draws)


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


# The exact route, at finite n: what a random design does to a record, drawn without the design.


def _exact_moments(
    design: GaussianDesign, norms: RecordNorms, key: Key, draws: int
) -> tuple[Moments, Moments]:
    drawn = draw_designs(design.n, design.p, design.penalty, key.child(0, 0), draws)
    nonmember = _drawn_moments(design, norms, drawn, key.child(0, 1))
    label = label_variance(design, norms)
    if design.interpolates:
        everywhere = np.broadcast_to(label, nonmember.prediction.shape)
        return Moments(label, everywhere, everywhere), nonmember
    drawn = draw_designs(design.n - 1, design.p, design.penalty, key.child(1, 0), draws)
    others = _drawn_moments(design, norms, drawn, key.child(1, 1))
    s = norms.used[:, None] * drawn.resolvent
    return trained(others, s), nonmember


class DesignDraws(NamedTuple):
    """Independent draws of the four numbers that the laws need of a Gaussian matrix X.

    For a record along the unit vector e, with A = X'X + z I and a2 = e'A^{-2}e:

        resolvent  a1 = e'A^{-1}e                           leverage^-1 - 1 is 1/(||x0||^2 a1)
        kept       e'(I - z A^{-1})e = 1 - z a1             how much of the signal survives
        signal     ||(I - z A^{-1})e||^2 = 1 - 2z a1 + z^2 a2
        gain       ||X A^{-1}e||^2 = a1 - z a2               how much label noise comes through

    At z = 0 and more columns than rows these are the projection and the pseudo-inverse of the
    minimum-norm interpolator (Lemma C.1 of **linear**, which says that there is no closed form and
    samples whole matrices); ``resolvent`` is infinite there.
    """

    resolvent: FloatArray
    kept: FloatArray
    signal: FloatArray
    gain: FloatArray


def draw_designs(rows: int, p: int, penalty: float, key: Key, draws: int) -> DesignDraws:
    """Draw ``draws`` designs of ``rows`` records, ``p`` features and ``penalty`` z = n lambda."""
    generator = key.generator()
    if penalty > 0.0:
        return _ridge(rows, p, penalty, generator, draws)
    if p > rows:
        return _minimum_norm(rows, p, generator, draws)
    # 1 / (e'(X'X)^{-1}e) is chi-square(rows - p + 1) for p <= rows
    gain = 1.0 / generator.chisquare(rows - p + 1, draws)
    return DesignDraws(gain, np.ones(draws), np.ones(draws), gain)


def _minimum_norm(rows: int, p: int, generator: np.random.Generator, draws: int) -> DesignDraws:
    """Four chi-squares: c ~ chi2(n), a ~ chi2(p-n), z ~ chi2(n-1), b ~ chi2(p-n+1).

    q1 = c/a and q2 = (c/a^2)(1 + z/b); ||P e||^2 = q1/(1+q1), ||X^{+T} e||^2 = q2/(1+q1)^2.
    """
    c = generator.chisquare(rows, draws)
    a = generator.chisquare(p - rows, draws)
    b = generator.chisquare(p - rows + 1, draws)
    z = generator.chisquare(rows - 1, draws) if rows > 1 else np.zeros(draws)
    kept = c / (a + c)
    gain = c * (1.0 + z / b) / (a + c) ** 2
    return DesignDraws(np.full(draws, np.inf), kept, kept, gain)


def _ridge(
    rows: int, p: int, penalty: float, generator: np.random.Generator, draws: int
) -> DesignDraws:
    """Golub-Kahan: X is a bidiagonal matrix of chi variables, and a1 its Stieltjes fraction,

        a1 = 1/(z + s_1/(1 + t_1/(z + s_2/(1 + t_2/(z + ...))))),

    s_k ~ chi2(rows - k + 1), t_k ~ chi2(p - k), down to k = min(rows, p).  With u what stands below
    a numerator, d = u - z, and a2 = -d a1/dz,

        kept = 1 - z a1 = d/u,  gain = a1 - z a2 = g/u^2,  signal = (d^2 + z^2 d')/u^2,

    g = u - z u'.  From a level u, u', g to the one above it, with w = u + t,

        d = s u/w,    d' = s t u'/w^2,    g = s (u^2 + t g)/w^2,

    where all terms are positive, so that nothing cancels for any z > 0.  O(rows) a draw.
    """
    depth = min(rows, p)
    shape_s = 0.5 * (rows - np.arange(depth))
    shape_t = 0.5 * (p - 1 - np.arange(depth))
    z = penalty
    resolvent, kept, signal, gain = (np.empty(draws) for _ in range(4))
    block = max(1, 2_000_000 // depth)
    for start in range(0, draws, block):
        size = min(block, draws - start)
        s = 2.0 * generator.standard_gamma(shape_s[:, None], (depth, size))
        positive = np.maximum(shape_t, 0.5)[:, None]
        t = 2.0 * generator.standard_gamma(positive, (depth, size))
        t[shape_t <= 0.0] = 0.0
        # what stands below t_depth: z itself, or nothing at all once t is zero
        u, slope, g = np.full(size, z), np.ones(size), np.zeros(size)
        for k in range(depth - 1, -1, -1):
            w = u + t[k]
            d = s[k] * (u / w)
            change = s[k] * (t[k] / w) * (slope / w)
            g = s[k] * ((u / w) ** 2 + (t[k] / w) * (g / w))
            u, slope = z + d, 1.0 + change
        part = slice(start, start + size)
        resolvent[part] = 1.0 / u
        kept[part] = d / u
        signal[part] = (d / u) ** 2 + (z / u) ** 2 * change
        gain[part] = g / u**2
    return DesignDraws(resolvent, kept, signal, gain)


def _drawn_moments(
    design: GaussianDesign, norms: RecordNorms, drawn: DesignDraws, key: Key
) -> Moments:
    """Moments at a record outside the drawn designs.

    The unused features enter through X_pbar'w, w = X_p A^{-1}x0, which is ||w|| times a standard
    normal vector g: h = ||g||^2 ~ chi2(D - p), and g_1, its coordinate along x_{0,pbar}, makes it
    correlated with the record's own label.  Nothing of order 1/D is left out.
    """
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


# The limit, as n, p and D grow together: Thm 3.2 and the corrected Thm 4.1 of **linear**.


def stieltjes(ratio: float, ridge: float) -> tuple[float, float]:
    """g(-lambda) and g'(-lambda) of the Marchenko-Pastur law with parameter gamma.

    g solves gamma lambda g^2 + (1 - gamma + lambda) g - 1 = 0; the root is written so that it
    keeps its digits for small lambda on both sides of gamma = 1.
    """
    if not ridge > 0.0:
        raise InputError(f"g(-lambda) needs a ridge above zero, but it is {ridge!r}.")
    b = 1.0 - ratio + ridge
    root = np.sqrt(b * b + 4.0 * ratio * ridge)
    g = 2.0 / (b + root) if b > 0.0 else (root - b) / (2.0 * ratio * ridge)
    # implicit derivative of the quadratic, d/d(-lambda)
    slope = (ratio * g * g + g) / (2.0 * ratio * ridge * g + b)
    return float(g), float(slope)


def _asymptotic_moments(design: GaussianDesign, norms: RecordNorms) -> tuple[Moments, Moments]:
    """Eq. (2) and Thm 4.1, corrected.

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


# Whole matrices, one linear solve a trial: what checks the other two.


def _simulated_moments(
    design: GaussianDesign, norms: RecordNorms, key: Key, trials: int
) -> tuple[Moments, Moments]:
    """Draw n x D matrices, replace a row by the record for the member, solve, and collect.

    Nothing is shared with the exact route.  Given the matrix X, beta and the noise are Gaussian, so
    a trial gives the moments of (y0, yhat0) and not only one draw of them.
    """
    found = np.empty((4, norms.used.size, trials))
    for trial in range(trials):
        generator = key.child(trial).generator()
        rows = generator.standard_normal((design.n, design.dim))
        for j, (used, unused) in enumerate(zip(norms.used, norms.unused, strict=True)):
            record = drawn_record(design, float(used), float(unused), generator)
            found[2:, j, trial] = _solved_moments(design, rows, record, trained_on=False)
            replaced = rows.copy()
            replaced[0] = record
            found[:2, j, trial] = _solved_moments(design, replaced, record, trained_on=True)
    label = label_variance(design, norms)
    return Moments(label, found[0], found[1]), Moments(label, found[2], found[3])


def drawn_record(
    design: GaussianDesign, used: float, unused: float, generator: np.random.Generator
) -> FloatArray:
    """A record of these squared norms, in any direction."""
    record = generator.standard_normal(design.dim)
    head, tail = record[: design.p], record[design.p :]
    head *= np.sqrt(used / (head @ head))
    if tail.size:
        tail *= np.sqrt(unused / (tail @ tail))
    return record


def _solved_moments(
    design: GaussianDesign, rows: FloatArray, record: FloatArray, *, trained_on: bool
) -> FloatArray:
    """Var yhat0 and Cov(y0, yhat0); a record that was trained on is the first row."""
    p = design.p
    weights = prediction_weights(rows[:, :p], record[:p, None], design.penalty)
    found = gaussian_moments(rows, record[:, None], weights, 1.0 / design.dim, design.sigma**2)
    if trained_on:
        found[1] += design.sigma**2 * weights[0]
    return found[:, 0]


def prediction_weights(features: FloatArray, query: FloatArray, penalty: float = 0.0) -> FloatArray:
    """(n, K): w with yhat0 = w'y, the pseudo-inverse or its ridge transposed, times x0 (p, K)."""
    n, p = features.shape
    wide = p >= n
    gram = features @ features.T if wide else features.T @ features
    gram[np.diag_indices_from(gram)] += penalty
    try:
        solved = np.linalg.solve(gram, features @ query if wide else query)
        weights = np.asarray(solved if wide else features @ solved)
        if np.abs(weights).max(initial=0.0) < _SINGULAR:
            return weights
    except np.linalg.LinAlgError:
        # a unit that no record activates leaves a column of zeros
        pass
    return np.asarray(np.linalg.lstsq(features.T, query, rcond=None)[0])


def gaussian_moments(
    rows: FloatArray, records: FloatArray, weights: FloatArray, variance: float, noise: float
) -> FloatArray:
    """(2, K): variance of w'y and its covariance with y0, for y = Z beta + noise given Z.

    ``rows`` is Z, (n, d); ``records`` are the K records' own (d, K); ``weights`` are (n, K); the
    coefficients have ``variance`` each.  Label noise of the record itself is the caller's.
    """
    through = rows.T @ weights
    spread = variance * (through**2).sum(axis=0) + noise * (weights**2).sum(axis=0)
    return np.stack([spread, variance * (through * records).sum(axis=0)])
