"""Weighted points with both masses, sorted by the loss L = log p1/p0: every measure is a sum.

The best tests of all sizes accept the points in the order of their losses, so that the ROC is the
polygon through the sums of the first masses, randomised in between.  Laws on few values are such
points; a density is cut into them (`leakscope.measures.densities`), and a population of records is
the points of all its members together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from scipy.special import logsumexp

from leakscope._numerics.arrays import FloatArray
from leakscope.laws.distributions import Discrete
from leakscope.measures.ratio import Ratio

# Below this |log moment| its distance from one is summed instead, so that digits stay.
_CLOSE = 1e-2


@dataclass(frozen=True, eq=False)
class Atoms(Ratio):
    """The points of B pairs, by falling loss: logs of both masses and the loss, (B, N) each."""

    log_member: FloatArray
    log_nonmember: FloatArray
    loss: FloatArray

    @classmethod
    def of(cls, log_member: FloatArray, log_nonmember: FloatArray) -> Atoms:
        """Take log masses in any order, (B, N) each; they are made to sum to one."""
        up, down = (
            side - np.log(np.exp(side).sum(axis=-1, keepdims=True))
            for side in (log_member, log_nonmember)
        )
        with np.errstate(invalid="ignore"):
            loss = up - down
        # what nobody shows
        loss[np.isnan(loss)] = 0.0
        order = np.argsort(-loss, axis=-1)
        return Atoms(*(np.take_along_axis(each, order, axis=-1) for each in (up, down, loss)))

    @classmethod
    def of_values(cls, member: Discrete, nonmember: Discrete) -> Atoms:
        """Take two flat batches of laws on few values; equal values of both are one point."""
        values = np.concatenate([member.values, nonmember.values], axis=-1)
        order = np.argsort(values, axis=-1, kind="stable")
        values = np.take_along_axis(values, order, axis=-1)
        place = np.zeros(values.shape, dtype=np.intp)
        place[:, 1:] = np.cumsum(np.diff(values, axis=-1) > 0.0, axis=-1)
        point = np.empty_like(place)
        np.put_along_axis(point, order, place, axis=-1)
        masses = np.zeros((2, *values.shape))
        rows, split = np.arange(len(values))[:, None], member.values.shape[-1]
        np.add.at(masses[0], (rows, point[:, :split]), member.probabilities)
        np.add.at(masses[1], (rows, point[:, split:]), nonmember.probabilities)
        with np.errstate(divide="ignore"):
            return cls.of(*np.log(masses))

    @property
    def size(self) -> int:
        """B, the number of pairs."""
        return len(self.loss)

    def reversed(self) -> Self:
        """Exchange the roles."""
        up, down, loss = (a[:, ::-1] for a in (self.log_nonmember, self.log_member, -self.loss))
        return replace(self, log_member=up, log_nonmember=down, loss=loss)

    def highest(self) -> FloatArray:
        """The largest loss that a member shows, shape (B,)."""
        return np.asarray(np.where(np.isneginf(self.log_member), -np.inf, self.loss).max(axis=-1))

    @cached_property
    def member(self) -> FloatArray:
        """The member law's masses."""
        return np.asarray(np.exp(self.log_member))

    @cached_property
    def nonmember(self) -> FloatArray:
        """The nonmember law's masses."""
        return np.asarray(np.exp(self.log_nonmember))

    @cached_property
    def gain(self) -> FloatArray:
        """The first less the second, with digits of its own where the laws nearly agree."""
        near = np.abs(self.loss) < 1.0
        close = self.nonmember * np.expm1(np.where(near, self.loss, 0.0))
        return np.where(near, close, self.member - self.nonmember)

    def advantage(self) -> FloatArray:
        """Total variation distance, shape (B,)."""
        return np.asarray(np.minimum(np.maximum(self.gain, 0.0).sum(axis=-1), 1.0))

    def overlap(self) -> FloatArray:
        """One minus the total variation distance, shape (B,)."""
        advantage = self.advantage()
        common = np.minimum(self.member, self.nonmember).sum(axis=-1)
        return np.asarray(np.where(advantage < 0.5, 1.0 - advantage, common))

    def auc(self) -> FloatArray:
        """P(L(X1) > L(X0)), ties counting one half, shape (B,)."""
        before = np.cumsum(self.gain, axis=-1) - 0.5 * self.gain
        return np.asarray(np.clip(0.5 + (self.nonmember * before).sum(axis=-1), 0.5, 1.0))

    def renyi(self, order: float) -> FloatArray:
        """Rényi divergence D_order(P1 || P0), KL at order 1 and sup L at infinity, shape (B,)."""
        if np.isinf(order):
            return self.highest()
        up, down, r = self.log_member, self.log_nonmember, order - 1.0
        if r == 0.0:
            return np.asarray((_product(self.member, self.loss) - self.gain).sum(axis=-1))
        with np.errstate(invalid="ignore"):
            exponent = np.where(np.isneginf(up), -np.inf, order * up - r * down)
        log_moment = np.asarray(logsumexp(exponent, axis=-1))
        near = np.abs(log_moment) < _CLOSE
        if near.any():
            # E0[exp(order L)] - 1 without what has no mean: E0[exp(L)] - 1
            weight, power = (self.member, r) if order >= 0.5 else (self.nonmember, order)
            with np.errstate(over="ignore"):
                terms = _product(weight[near], np.expm1(power * self.loss[near]))
            log_moment[near] = np.log1p((terms - power * self.gain[near]).sum(axis=-1))
        return np.asarray(log_moment / r)

    def jeffreys(self) -> FloatArray:
        """KL(P1 || P0) + KL(P0 || P1), shape (B,)."""
        return np.asarray(_product(self.gain, self.loss).sum(axis=-1))

    def tpr_at(self, fpr: FloatArray) -> tuple[FloatArray, FloatArray]:
        """TPR and FNR, (B, m), of the best tests of the sizes ``fpr``, (m,)."""
        tests = self._tests(fpr)
        accepted = tests.share * np.take_along_axis(self.gain, tests.last, axis=-1)
        refused = (1.0 - tests.share) * np.take_along_axis(self.member, tests.last, axis=-1)
        gained = np.cumsum(self.gain, axis=-1) - self.gain
        missed = np.cumsum(self.member[:, ::-1], axis=-1)[:, ::-1] - self.member
        gained = np.take_along_axis(gained, tests.last, axis=-1) + accepted
        fnr = np.maximum(np.take_along_axis(missed, tests.last, axis=-1), 0.0) + refused
        # without any false positive: what no nonmember shows
        certain = np.where(np.isneginf(self.log_nonmember), self.member, 0.0).sum(axis=-1)[:, None]
        tpr = np.where(fpr == 0.0, certain, np.where(fnr < 0.5, 1.0 - fnr, fpr + gained))
        tpr = np.clip(tpr, fpr, 1.0)
        return tpr, np.where(fpr == 0.0, 1.0 - certain, fnr)

    def _tests(self, fpr: FloatArray) -> _Tests:
        passed = np.cumsum(self.nonmember, axis=-1)
        last = np.empty((self.size, fpr.size), dtype=np.intp)
        for column, level in enumerate(fpr):
            last[:, column] = (passed < level).sum(axis=-1)
        last = np.minimum(last, passed.shape[-1] - 1)
        mass = np.take_along_axis(self.nonmember, last, axis=-1)
        before = np.take_along_axis(passed, last, axis=-1) - mass
        share = np.divide(fpr - before, mass, out=np.zeros_like(mass), where=mass > 0.0)
        return _Tests(last, np.clip(share, 0.0, 1.0))

    def delta_at(self, epsilon: FloatArray) -> FloatArray:
        """The hockey stick P1(L > epsilon) - exp(epsilon) P0(L > epsilon), (B, m)."""
        found = np.empty((self.size, epsilon.size))
        for column, level in enumerate(epsilon):
            # as a share of p1: exp(epsilon) may be too large for a number
            share = -np.expm1(np.minimum(level - self.loss, 0.0))
            found[:, column] = (self.member * share).sum(axis=-1)
        return found

    def epsilon_at(self, delta: FloatArray) -> FloatArray:
        """The least epsilon >= 0 whose hockey stick is at most ``delta``, (m,); (B, m).

        The hockey stick is the largest TPR - exp(epsilon) FPR over the polygon's corners: each has
        an epsilon, and the largest of these holds for all.
        """
        log_fpr = np.logaddexp.accumulate(self.log_nonmember, axis=-1)
        tpr, gained = (np.cumsum(each, axis=-1) for each in (self.member, self.gain))
        found = np.zeros((self.size, delta.size))
        for column, level in enumerate(delta):
            if level == 0.0:
                found[:, column] = np.maximum(self.renyi(np.inf), 0.0)
                continue
            above = gained > level
            corner = np.log(np.where(above, tpr - level, 1.0)) - log_fpr
            # (TPR - delta) / FPR is little more than one where both rates nearly agree
            near = above & (corner < 0.5)
            corner[near] = np.log1p((gained[near] - level) * np.exp(-log_fpr[near]))
            found[:, column] = np.where(above, corner, 0.0).max(axis=-1)
        return found


def _product(mass: FloatArray, value: FloatArray) -> FloatArray:
    """Their product; nothing without a mass, whatever the value."""
    return np.multiply(mass, value, out=np.zeros_like(mass), where=mass != 0.0)


class _Tests(NamedTuple):
    """The last point that a test accepts, and the share of it, (B, m) each."""

    last: np.ndarray
    share: FloatArray
