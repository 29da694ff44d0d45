"""What a random Gaussian design does to one record, drawn without drawing the design.

For a record along the unit vector e and the Gaussian matrix X of `rows` rows, everything that the
laws need are four numbers.  With A = X'X + z I:

    resolvent  a1 = e'A^{-1}e                           leverage^-1 - 1 is 1/(||x0||^2 a1)
    kept       e'(I - z A^{-1})e = 1 - z a1             how much of the signal survives
    signal     ||(I - z A^{-1})e||^2 = 1 - 2z a1 + z^2 a2
    gain       ||X A^{-1}e||^2 = a1 - z a2               how much label noise comes through

where a2 = e'A^{-2}e.  At z = 0 and more columns than rows these are the projection and the
pseudo-inverse of the minimum-norm interpolator (Lemma C.1 of the paper **linear**, which says that
there is no closed form and samples whole matrices).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key


class DesignDraws(NamedTuple):
    """Independent draws of the four numbers; ``resolvent`` is infinite where z = 0, p > rows."""

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
    return _least_squares(rows, p, generator, draws)


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


def _least_squares(rows: int, p: int, generator: np.random.Generator, draws: int) -> DesignDraws:
    """1 / (e'(X'X)^{-1}e) is chi-square(rows - p + 1) for p <= rows."""
    gain = 1.0 / generator.chisquare(rows - p + 1, draws)
    return DesignDraws(gain, np.ones(draws), np.ones(draws), gain)


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
