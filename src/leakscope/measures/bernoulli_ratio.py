"""Two Bernoulli laws: the likelihood ratio has two values, and every measure is a closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.laws.distributions import Bernoulli
from leakscope.measures.ratio import Ratio, Tails


@dataclass(frozen=True, eq=False)
class BernoulliRatio(Ratio):
    """The masses of the two answers, the likelier a member's first: (B, 2) each."""

    member: FloatArray
    nonmember: FloatArray

    @classmethod
    def of(cls, member: Bernoulli, nonmember: Bernoulli) -> BernoulliRatio:
        """Take two flat batches."""
        p1, p0 = member.probability, nonmember.probability
        up = p1 >= p0
        first, second = (np.where(up, p, 1.0 - p) for p in (p1, p0))
        return cls(np.stack([first, 1.0 - first], -1), np.stack([second, 1.0 - second], -1))

    @property
    def size(self) -> int:
        """B, the number of pairs."""
        return len(self.member)

    @property
    def llr(self) -> FloatArray:
        """The log likelihood ratio of the two answers; 0 for an answer that nobody gives."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.log(self.member) - np.log(self.nonmember)
        return np.asarray(np.where(np.isnan(found), 0.0, found))

    def reversed(self) -> Self:
        """Exchange the roles."""
        return type(self)(self.nonmember[:, ::-1], self.member[:, ::-1])

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
        gap = self.member[:, None, :] - np.exp(epsilon[..., None]) * self.nonmember[:, None, :]
        return _log(np.maximum(gap, 0.0).sum(axis=-1))

    def advantage(self) -> FloatArray:
        """Total variation distance, shape (B,)."""
        return np.asarray(self.member[:, 0] - self.nonmember[:, 0])

    def log_overlap(self) -> FloatArray:
        """Log of one minus the total variation distance, shape (B,)."""
        return _log(self.member[:, 1] + self.nonmember[:, 0])

    def auc(self) -> FloatArray:
        """P(l(X1) > l(X0)), ties counting one half, shape (B,)."""
        return np.asarray(0.5 + 0.5 * self.advantage())

    def renyi(self, order: float) -> FloatArray:
        """Rényi divergence D_order(P1 || P0), KL at order 1 and sup l at infinity, shape (B,)."""
        llr, given = self.llr, self.member > 0.0
        if np.isinf(order):
            return np.asarray(np.where(given, llr, -np.inf).max(axis=1))
        if order == 1.0:
            return np.asarray(np.where(given, self.member * np.where(given, llr, 0.0), 0.0).sum(1))
        with np.errstate(over="ignore"):
            terms = np.where(
                given, self.member * np.exp((order - 1.0) * np.where(given, llr, 0.0)), 0.0
            )
        return np.asarray(_log(terms.sum(axis=1)) / (order - 1.0))

    def tpr_at(self, log_fpr: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log TPR and log FNR of the best test of each size, randomised where it must be."""
        fpr = np.exp(np.broadcast_to(log_fpr, (self.size, log_fpr.shape[-1])))
        top, bottom = (self.member[:, k, None] for k in (0, 1))
        low, high = (self.nonmember[:, k, None] for k in (0, 1))
        within = np.divide(fpr, low, out=np.ones_like(fpr), where=fpr < low)
        beyond = np.divide(fpr - low, high, out=np.zeros_like(fpr), where=(fpr > low) & (high > 0))
        fnr = np.where(fpr < low, 1.0 - top * within, bottom * (1.0 - np.minimum(beyond, 1.0)))
        tpr = np.where(fpr < low, top * within, top + bottom * np.minimum(beyond, 1.0))
        return _log(tpr), _log(np.maximum(fnr, 0.0))

    def epsilon_at(self, log_delta: FloatArray) -> FloatArray:
        """The least epsilon >= 0 whose hockey stick is at most delta."""
        gap = self.member[:, :1] - np.exp(log_delta)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.log(np.maximum(gap, 0.0)) - np.log(self.nonmember[:, :1])
        return np.asarray(np.where(gap > 0.0, np.maximum(found, 0.0), 0.0))

    def log_certain(self) -> FloatArray:
        """log P1(l = inf): what a member shows that a nonmember never does, shape (B,)."""
        return _log(np.where(self.nonmember == 0.0, self.member, 0.0).sum(axis=1))


def _log(x: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(x))
