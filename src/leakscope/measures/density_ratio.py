"""Any law on the real line: the likelihood ratio from its density and distribution function alone.

The line is cut into cells, finer where either law has its mass, and each cell is one observation.
What an attacker sees is then a little coarser than the number itself, so that no measure comes out
too large; the cells are so narrow that it is too small by some 1e-6 of itself where the laws lie
near each other, and by 1e-4 where they lie far apart (a divergence by more where the log ratio
reaches thousands).  A density with a jump costs more digits, and probabilities below 1e-13 are not
resolved.  Masses are kept as logs: where one law has all but nothing, the other's divergence is
what ``log_density`` says there, and infinite only where that says -inf.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws.distributions import ScalarLaw
from leakscope.measures.discrete_ratio import DiscreteRatio

# The mean of both laws' log-odds takes these values, with so many cells between two of them.
LOG_ODDS = np.linspace(-30.0, 30.0, 121)
CELLS = 40

# Gauss and Legendre's rule with three points: on a cell the density is all but a parabola.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(3)

# How far the mass of all cells may be from one before density and distribution function disagree.
DISAGREEMENT = 1e-3

# Doublings in search of a range, and halvings in search of a quantile.
DOUBLINGS, HALVINGS = 1000, 80


def ratio_of_densities(member: ScalarLaw, nonmember: ScalarLaw) -> DiscreteRatio:
    """Take two flat batches: each cell is one value."""
    laws = [law.reshape(*law.batch_shape, 1) for law in (member, nonmember)]
    edges = _edges(*laws)
    return DiscreteRatio.of_log_masses(*(_log_masses(law, edges) for law in laws))


def _edges(member: ScalarLaw, nonmember: ScalarLaw) -> FloatArray:
    """(B, K + 1) ends of the cells: where mean log-odds are as wanted, and evenly between.

    Log-odds are cut off at the outermost wanted, so that each law has quantiles of its own however
    far the other is.
    """

    def mean_log_odds(x: FloatArray) -> FloatArray:
        each = (special.logit(_checked(law.cdf(x), x)) for law in (member, nonmember))
        return np.asarray(0.5 * sum(np.clip(odds, wanted[0], wanted[-1]) for odds in each))

    wanted = LOG_ODDS
    batch = member.batch_shape[0]
    low, high = np.full((batch, 1), -1.0), np.full((batch, 1), 1.0)
    for _ in range(DOUBLINGS):
        early, late = mean_log_odds(low) > wanted[0], mean_log_odds(high) < wanted[-1]
        if not (early.any() or late.any()):
            break
        low[early] *= 2.0
        high[late] *= 2.0
    left, right = (np.repeat(end, len(wanted), axis=1) for end in (low, high))
    for _ in range(HALVINGS):
        middle = 0.5 * (left + right)
        above = mean_log_odds(middle) >= wanted
        left, right = np.where(above, left, middle), np.where(above, middle, right)
    steps = np.linspace(0.0, 1.0, CELLS, endpoint=False)
    inner = right[:, :-1, None] + np.diff(right, axis=1)[..., None] * steps
    return np.concatenate([inner.reshape(batch, -1), right[:, -1:]], axis=1)


def _log_masses(law: ScalarLaw, edges: FloatArray) -> FloatArray:
    """(B, K) the log mass of each cell, from the density inside it."""
    half = 0.5 * np.diff(edges, axis=1)
    middle = 0.5 * (edges[:, 1:] + edges[:, :-1])
    with np.errstate(divide="ignore"):
        width = np.log(half)
    found = np.full(half.shape, -np.inf)
    for node, log_weight in zip(NODES, np.log(WEIGHTS).tolist(), strict=True):
        x = middle + node * half
        found = np.logaddexp(found, log_weight + width + _checked(law.log_density(x), x))
    total = np.exp(found).sum(axis=1)
    wrong = ~(np.abs(total - 1.0) <= DISAGREEMENT)
    if wrong.any():
        raise InputError(
            f"{type(law).__name__}: log_density and cdf do not belong together, or the law has a "
            "part hundreds of times narrower than the rest; between the quantiles of the cdf the "
            f"density has a mass of {total[np.argmax(wrong)]:.4g}, not 1."
        )
    # No more than all of it, so that no measure is beyond its end.
    return np.asarray(found - np.log(total)[:, None])


def _checked(found: npt.ArrayLike, x: FloatArray) -> FloatArray:
    values = np.asarray(found, dtype=np.float64)
    if values.shape != x.shape:
        raise InputError(
            f"a law's cdf and log_density must answer an array of shape {x.shape} with one of the "
            f"same shape, but it is {values.shape}: write them with NumPy's functions."
        )
    return values
