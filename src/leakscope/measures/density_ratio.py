"""Any law on the real line: the likelihood ratio from its density and distribution function alone.

The line is cut into cells, finer where either law has its mass, and each cell is one observation.
What an attacker sees is then a little coarser than the number itself, so that no measure comes out
too large; the cells are so narrow that it is too small by some 1e-6 of itself where the laws lie
near each other, and by 1e-4 where they lie far apart.  A density with a jump costs more digits, and
probabilities below 1e-13 are not resolved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws.distributions import ScalarLaw
from leakscope.measures.ratio import Ratio, Tails

# Quantiles of the mean of both laws at these log-odds, and so many cells between two of them.
QUANTILES = np.linspace(-30.0, 30.0, 121)
CELLS = 40

# Gauss and Legendre's rule with three points: on a cell the density is all but a parabola.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(3)

# How far the mass of all cells may be from one before density and distribution function disagree.
DISAGREEMENT = 1e-3

# Doublings in search of a range, and halvings in search of a quantile.
DOUBLINGS, HALVINGS = 1000, 80


@dataclass(frozen=True, eq=False)
class DensityRatio(Ratio):
    """Log masses of the cells under both laws, (B, K) each, the likeliest members' first."""

    member: FloatArray
    nonmember: FloatArray

    @classmethod
    def of(cls, member: ScalarLaw, nonmember: ScalarLaw) -> DensityRatio:
        """Take two flat batches."""
        laws = [law.reshape(*law.batch_shape, 1) for law in (member, nonmember)]
        edges = _edges(*laws)
        return cls._sorted(*(_log_masses(law, edges) for law in laws))

    @classmethod
    def _sorted(cls, member: FloatArray, nonmember: FloatArray) -> Self:
        order = np.argsort(-_llr(member, nonmember), axis=1, kind="stable")
        return cls(*(np.take_along_axis(mass, order, axis=1) for mass in (member, nonmember)))

    @property
    def size(self) -> int:
        """B, the number of pairs."""
        return len(self.member)

    @property
    def llr(self) -> FloatArray:
        """(B, K) the log likelihood ratio of each cell; 0 where neither law has any mass."""
        return _llr(self.member, self.nonmember)

    def reversed(self) -> Self:
        """Exchange the roles."""
        return type(self)(self.nonmember[:, ::-1], self.member[:, ::-1])

    def tails(self, threshold: FloatArray) -> Tails:
        """Size and power of the likelihood-ratio test at each threshold."""
        above = self.llr[:, None, :] > threshold[..., None]
        return Tails(
            *(
                _log(np.where(side, np.exp(mass)[:, None, :], 0.0).sum(axis=-1))
                for mass, side in (
                    (self.member, above),
                    (self.nonmember, above),
                    (self.member, ~above),
                    (self.nonmember, ~above),
                )
            )
        )

    def log_excess(self, epsilon: FloatArray) -> FloatArray:
        """Log of the hockey stick P1(l > epsilon) - exp(epsilon) P0(l > epsilon)."""
        gain = -np.expm1(np.minimum(epsilon[..., None] - self.llr[:, None, :], 0.0))
        return _log((np.exp(self.member)[:, None, :] * gain).sum(axis=-1))

    def advantage(self) -> FloatArray:
        """Total variation distance, shape (B,)."""
        return np.asarray(np.exp(self.log_excess(np.zeros((self.size, 1)))[:, 0]))

    def log_overlap(self) -> FloatArray:
        """Log of one minus the total variation distance, shape (B,)."""
        return np.asarray(special.logsumexp(np.minimum(self.member, self.nonmember), axis=1))

    def auc(self) -> FloatArray:
        """P(l(X1) > l(X0)), ties counting one half, shape (B,)."""
        p1, p0 = np.exp(self.member), np.exp(self.nonmember)
        before = np.cumsum(p1, axis=1) - 0.5 * p1
        return np.asarray((p0 * before).sum(axis=1))

    def renyi(self, order: float) -> FloatArray:
        """Rényi divergence D_order(P1 || P0), KL at order 1 and sup l at infinity, shape (B,)."""
        llr, given = self.llr, self.member > -np.inf
        if np.isinf(order):
            return np.asarray(np.where(given, llr, -np.inf).max(axis=1))
        if order == 1.0:
            # p1 l - p1 + p0 is never negative, and sums to the divergence.
            p1 = np.where(given, np.exp(self.member), 0.0)
            terms = np.where(given, p1 * np.where(given, llr + np.expm1(-llr), 0.0), 0.0)
            return np.asarray((terms + np.where(given, 0.0, np.exp(self.nonmember))).sum(axis=1))
        power = np.where(given, self.member + (order - 1.0) * np.where(given, llr, 0.0), -np.inf)
        return np.asarray(special.logsumexp(power, axis=1) / (order - 1.0))

    def tpr_at(self, log_fpr: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log TPR and log FNR of the best test of each size, randomised within a cell."""
        fpr = np.exp(np.broadcast_to(log_fpr, (self.size, log_fpr.shape[-1])))
        found, missed = np.empty(fpr.shape), np.empty(fpr.shape)
        start = np.exp(self.log_certain())
        for row in range(self.size):
            p1, p0 = np.exp(self.member[row]), np.exp(self.nonmember[row])
            some = p0 > 0.0
            across = np.concatenate([[0.0], np.cumsum(p0[some])])
            up = np.concatenate([[start[row]], start[row] + np.cumsum(p1[some])])
            left = np.concatenate([np.cumsum(p1[some][::-1])[::-1], [0.0]])
            found[row] = np.interp(fpr[row], across, up)
            missed[row] = np.interp(fpr[row], across, left)
        return _log(np.minimum(found, 1.0)), _log(np.minimum(missed, 1.0))

    def epsilon_at(self, log_delta: FloatArray) -> FloatArray:
        """The least epsilon >= 0 whose hockey stick is at most delta."""
        delta = np.exp(np.broadcast_to(log_delta, (self.size, log_delta.shape[-1])))
        p1, p0, llr = np.exp(self.member), np.exp(self.nonmember), self.llr
        # Between the ratios of two cells the hockey stick is P1 above less exp(epsilon) P0 above.
        above1, above0 = np.cumsum(p1, axis=1), np.cumsum(p0, axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            stick = np.where(above0 > 0.0, above1 - np.exp(llr) * above0, -np.inf)
        found = np.zeros(delta.shape)
        for row in range(self.size):
            # The last cell at whose own ratio the stick is still within delta.
            place = np.searchsorted(np.maximum.accumulate(stick[row]), delta[row], side="right") - 1
            place = np.clip(place, 0, stick.shape[1] - 1)
            with np.errstate(divide="ignore", invalid="ignore"):
                level = np.log(np.maximum(above1[row, place] - delta[row], 0.0))
                found[row] = np.maximum(level - np.log(above0[row, place]), 0.0)
        certain = np.exp(self.log_certain())[:, None]
        return np.asarray(np.where(certain > delta, np.inf, np.nan_to_num(found, posinf=np.inf)))

    def log_certain(self) -> FloatArray:
        """log P1(l = inf): what a member shows that a nonmember never does, shape (B,)."""
        only = np.where(self.nonmember == -np.inf, np.exp(self.member), 0.0)
        return _log(only.sum(axis=1))


def _llr(member: FloatArray, nonmember: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        found = member - nonmember
    return np.asarray(np.where(np.isnan(found), 0.0, found))


def _edges(member: ScalarLaw, nonmember: ScalarLaw) -> FloatArray:
    """(B, K + 1) ends of the cells: quantiles of the two laws' mean, each step cut evenly."""

    def mean_cdf(x: FloatArray) -> FloatArray:
        return np.asarray(0.5 * (_checked(member.cdf(x), x) + _checked(nonmember.cdf(x), x)))

    wanted = special.expit(QUANTILES)
    batch = member.batch_shape[0]
    low, high = np.full((batch, 1), -1.0), np.full((batch, 1), 1.0)
    for _ in range(DOUBLINGS):
        early, late = mean_cdf(low) > wanted[0], mean_cdf(high) < wanted[-1]
        if not (early.any() or late.any()):
            break
        low[early] *= 2.0
        high[late] *= 2.0
    left, right = (np.repeat(end, len(wanted), axis=1) for end in (low, high))
    for _ in range(HALVINGS):
        middle = 0.5 * (left + right)
        above = mean_cdf(middle) >= wanted
        left, right = np.where(above, left, middle), np.where(above, middle, right)
    steps = np.linspace(0.0, 1.0, CELLS, endpoint=False)
    inner = right[:, :-1, None] + np.diff(right, axis=1)[..., None] * steps
    return np.concatenate([inner.reshape(batch, -1), right[:, -1:]], axis=1)


def _log_masses(law: ScalarLaw, edges: FloatArray) -> FloatArray:
    """(B, K) the log mass of each cell, from the density inside it."""
    half = 0.5 * np.diff(edges, axis=1)
    middle = 0.5 * (edges[:, 1:] + edges[:, :-1])
    mass = np.zeros(half.shape)
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        x = middle + node * half
        mass += weight * np.exp(_checked(law.log_density(x), x))
    mass *= half
    total = mass.sum(axis=1)
    wrong = ~(np.abs(total - 1.0) <= DISAGREEMENT)
    if wrong.any():
        raise InputError(
            f"{type(law).__name__}: log_density and cdf do not belong together; between the "
            f"quantiles of the cdf the density has a mass of {total[np.argmax(wrong)]:.4g}, not 1."
        )
    return _log(mass)


def _checked(found: npt.ArrayLike, x: FloatArray) -> FloatArray:
    values = np.asarray(found, dtype=np.float64)
    if values.shape != x.shape:
        raise InputError(
            f"a law's cdf and log_density must answer an array of shape {x.shape} with one of the "
            f"same shape, but it is {values.shape}: write them with NumPy's functions."
        )
    return values


def _log(x: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(x))
