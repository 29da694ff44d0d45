"""Two laws on few values: the likelihood ratio has few values, and every measure is a sum.

The best tests of all sizes accept the values in the order of their likelihood ratios, so that the
ROC is the polygon through the sums of the first j masses, randomised in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope.laws.distributions import Bernoulli, Discrete
from leakscope.measures.ratio import Ratio, Tails, kl_terms, moment_integrand, moment_weight


@dataclass(frozen=True, eq=False)
class DiscreteRatio(Ratio):
    """The masses of the values, the likelier a member's first: (B, m) each.

    Logs stand beside them, which a mass too small for a number has as well.  ``llr`` is the log
    likelihood ratio of the values, 0 for a value that nobody shows.
    """

    member: FloatArray
    nonmember: FloatArray
    log_member: FloatArray
    log_nonmember: FloatArray
    llr: FloatArray

    @classmethod
    def of(cls, member: Discrete, nonmember: Discrete) -> DiscreteRatio:
        """Take two flat batches; equal values of the two laws are one value."""
        values = np.concatenate([member.values, nonmember.values], axis=-1)
        none = np.zeros_like(member.values), np.zeros_like(nonmember.values)
        inside = np.concatenate([member.probabilities, none[1]], axis=-1)
        outside = np.concatenate([none[0], nonmember.probabilities], axis=-1)
        order = np.argsort(values, axis=-1, kind="stable")
        values, inside, outside = (
            np.take_along_axis(each, order, axis=-1) for each in (values, inside, outside)
        )
        place = np.zeros(values.shape, dtype=np.intp)
        place[:, 1:] = np.cumsum(np.diff(values, axis=-1) > 0.0, axis=-1)
        found = np.zeros((2, *values.shape))
        rows = np.arange(len(values))[:, None]
        for side, masses in zip(found, (inside, outside), strict=True):
            np.add.at(side, (rows, place), masses)
        return cls.of_masses(found[0], found[1])

    @classmethod
    def of_bernoulli(cls, member: Bernoulli, nonmember: Bernoulli) -> DiscreteRatio:
        """Take two flat batches."""
        masses = (np.stack([p, 1.0 - p], -1) for p in (member.probability, nonmember.probability))
        return cls.of_masses(*masses)

    @classmethod
    def of_masses(cls, member: FloatArray, nonmember: FloatArray) -> DiscreteRatio:
        """Take the masses of the same values, in any order."""
        return cls._ordered(member, nonmember, _log(member), _log(nonmember))

    @classmethod
    def of_log_masses(cls, member: FloatArray, nonmember: FloatArray) -> DiscreteRatio:
        """Take the logs of the masses, where these may be too small for a number."""
        return cls._ordered(np.exp(member), np.exp(nonmember), member, nonmember)

    @classmethod
    def _ordered(cls, *masses: FloatArray) -> DiscreteRatio:
        """Take the fields up to the ratio, in any order of the values."""
        llr = _llr(*masses)
        order = np.argsort(-llr, axis=-1, kind="stable")
        return cls(*(np.take_along_axis(each, order, axis=-1) for each in (*masses, llr)))

    @property
    def size(self) -> int:
        """B, the number of pairs."""
        return len(self.member)

    def reversed(self) -> Self:
        """Exchange the roles."""
        fields = self.nonmember, self.member, self.log_nonmember, self.log_member, -self.llr
        return type(self)(*(each[:, ::-1] for each in fields))

    def tails(self, threshold: FloatArray) -> Tails:
        """Size and power of the likelihood-ratio test at each threshold."""
        above = self.llr[:, None, :] > threshold[..., None]
        parts = [
            (np.where(side, mass[:, None, :], 0.0)).sum(axis=-1)
            for mass, side in (
                (self.member, above),
                (self.nonmember, above),
                (self.member, ~above),
                (self.nonmember, ~above),
            )
        ]
        return Tails(*(_log(part) for part in parts))

    def log_excess(self, epsilon: FloatArray) -> FloatArray:
        """Log of the hockey stick P1(l > epsilon) - exp(epsilon) P0(l > epsilon)."""
        # p1 - exp(epsilon) p0 as a share of p1: exp(epsilon) may be too large for a number
        share = -np.expm1(np.minimum(epsilon[..., None] - self.llr[:, None, :], 0.0))
        return _log((self.member[:, None, :] * share).sum(axis=-1))

    def advantage(self) -> FloatArray:
        """Total variation distance, shape (B,)."""
        return np.asarray(np.maximum(self.member - self.nonmember, 0.0).sum(axis=-1))

    def log_overlap(self) -> FloatArray:
        """Log of one minus the total variation distance, shape (B,)."""
        return _log(np.minimum(self.member, self.nonmember).sum(axis=-1))

    def auc(self) -> FloatArray:
        """P(l(X1) > l(X0)), ties counting one half, shape (B,)."""
        before = np.cumsum(self.member, axis=-1) - 0.5 * self.member
        return np.asarray((self.nonmember * before).sum(axis=-1))

    def renyi(self, order: float) -> FloatArray:
        """Rényi divergence D_order(P1 || P0), KL at order 1 and sup l at infinity, shape (B,)."""
        up, down, llr = self.log_member, self.log_nonmember, self.llr
        if np.isinf(order):
            return np.asarray(np.where(np.isneginf(up), -np.inf, llr).max(axis=1))
        if order == 1.0:
            terms = kl_terms(self.member, self.nonmember, llr)
            return np.asarray(np.where(self.member > 0.0, terms, self.nonmember).sum(axis=1))
        with np.errstate(invalid="ignore"):
            exponent = order * up + (1.0 - order) * down
        log_moment = special.logsumexp(np.where(np.isneginf(up), -np.inf, exponent), axis=1)
        near = np.abs(log_moment) < 1e-3
        if near.any():
            terms = moment_integrand(order, up[near], down[near], llr[near])
            log_moment[near] = np.log1p(moment_weight(order) * terms.sum(axis=1))
        return np.asarray(log_moment / (order - 1.0))

    def tpr_at(self, log_fpr: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log TPR and log FNR of the best test of each size, randomised where it must be."""
        fpr = np.exp(np.broadcast_to(log_fpr, (self.size, log_fpr.shape[-1])))[..., None]
        before = (np.cumsum(self.nonmember, axis=-1) - self.nonmember)[:, None, :]
        mass = np.broadcast_to(self.nonmember[:, None, :], (*fpr.shape[:2], before.shape[-1]))
        # How much of each value is accepted; what no nonmember shows costs nothing, and what has
        # too small a mass for a number all but nothing.
        never = np.isneginf(self.log_nonmember)[:, None, :]
        free = (mass == 0.0) & (before <= fpr) & (never | (fpr > 0.0))
        with np.errstate(over="ignore"):
            part = np.divide(fpr - before, mass, out=np.where(free, 1.0, 0.0), where=mass > 0.0)
        part = np.clip(part, 0.0, 1.0)
        tpr, fnr = ((self.member[:, None, :] * share).sum(-1) for share in (part, 1.0 - part))
        return _log(np.minimum(tpr, 1.0)), _log(np.maximum(fnr, 0.0))

    def epsilon_at(self, log_delta: FloatArray) -> FloatArray:
        """The least epsilon >= 0 whose hockey stick is at most delta.

        The hockey stick is the largest TPR - exp(epsilon) FPR over the polygon's corners, so that
        each corner has its own epsilon, and the largest of these holds for all.
        """
        tpr = np.cumsum(self.member, axis=-1)[:, None, :]
        log_fpr = np.logaddexp.accumulate(self.log_nonmember, axis=-1)[:, None, :]
        gap = tpr - np.exp(log_delta)[..., None]
        with np.errstate(invalid="ignore"):
            found = _log(np.maximum(gap, 0.0)) - log_fpr
        return np.asarray(np.where(gap > 0.0, np.maximum(found, 0.0), 0.0).max(axis=-1))

    def log_certain(self) -> FloatArray:
        """log P1(l = inf): what a member shows that a nonmember never does, shape (B,)."""
        return _log(np.where(np.isneginf(self.log_nonmember), self.member, 0.0).sum(axis=1))


def _llr(member: FloatArray, nonmember: FloatArray, up: FloatArray, down: FloatArray) -> FloatArray:
    """The log ratio of masses with the logs ``up`` and ``down``; nearly equal ones say it best."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        found = up - down
        close = (np.abs(found) < 0.5) & (nonmember > np.finfo(np.float64).tiny)
        found = np.where(close, np.log1p((member - nonmember) / nonmember), found)
    return np.asarray(np.where(np.isnan(found), 0.0, found))


def _log(x: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(x))
