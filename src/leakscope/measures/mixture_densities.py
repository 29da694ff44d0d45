"""Densities of two normal mixtures and their log ratio, accurate also when they nearly agree.

Both laws are expressed in common units (nonmember's first component: mean 0, sigma 1).  For laws
that nearly agree, log p1 - log p0 would lose its digits; there the difference is summed component
by component,

    p1 - p0 = sum_j  dw_j phi_0j + w_1j phi_0j (exp(q_j) - 1),

with q_j the log ratio of the j-th components alone (a parabola with exact coefficients) and dw_j
the difference of weights, which sums to zero exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from leakscope._numerics.normal_tails import LOG_SQRT_2PI
from leakscope.laws import NormalMixture
from leakscope.measures import parabola

FloatArray = npt.NDArray[np.float64]


class Components(NamedTuple):
    """Normalised log weights, means and log sigmas in common units, shape (B, J)."""

    log_weight: FloatArray
    mean: FloatArray
    log_sigma: FloatArray


@dataclass(frozen=True, eq=False)
class MixturePair:
    """Flat batches of two mixtures, padded to as many components, in common units."""

    member: Components
    nonmember: Components
    weight_change: FloatArray
    mean_change: FloatArray
    log_sigma_change: FloatArray
    matched: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, member: NormalMixture, nonmember: NormalMixture) -> MixturePair:
        """Pad both to as many components and reduce them to common units."""
        most = max(member.components, nonmember.components)
        member, nonmember = member.padded(most), nonmember.padded(most)
        raw1, mean1, sigma1 = member.raw_weights, member.means, member.sigmas
        raw0, mean0, sigma0 = nonmember.raw_weights, nonmember.means, nonmember.sigmas
        centre, unit = mean0[:, :1], sigma0[:, :1]
        sum1, sum0 = raw1.sum(-1, keepdims=True), raw0.sum(-1, keepdims=True)
        step = raw1 - raw0
        change = step / sum1 - raw0 * step.sum(-1, keepdims=True) / (sum1 * sum0)
        # the heaviest component takes what rounding left over: the changes sum to zero
        heaviest = np.argmax(raw0, axis=-1)[:, None]
        np.put_along_axis(change, heaviest, 0.0, axis=-1)
        np.put_along_axis(change, heaviest, -change.sum(-1, keepdims=True), axis=-1)
        matched = (raw1 > 0.0) & (raw0 > 0.0)
        log_sigma_change = parabola.log_scale(np.where(matched, sigma1, sigma0), sigma0)
        with np.errstate(divide="ignore"):
            log_w1, log_w0 = np.log(raw1) - np.log(sum1), np.log(raw0) - np.log(sum0)
        return cls(
            Components(log_w1, (mean1 - centre) / unit, np.log(sigma1 / unit)),
            Components(log_w0, (mean0 - centre) / unit, np.log(sigma0 / unit)),
            change,
            np.where(matched, (mean1 - mean0) / sigma0, 0.0),
            log_sigma_change,
            matched,
        )

    def reversed(self) -> MixturePair:
        """Exchange the roles; the units stay."""
        ratio = np.exp(self.nonmember.log_sigma - self.member.log_sigma)
        return MixturePair(
            self.nonmember,
            self.member,
            -self.weight_change,
            np.where(self.matched, -self.mean_change * ratio, 0.0),
            -self.log_sigma_change,
            self.matched,
        )

    def take(self, rows: npt.NDArray[np.intp]) -> MixturePair:
        """The pairs ``rows``."""
        return MixturePair(
            Components(*(a[rows] for a in self.member)),
            Components(*(a[rows] for a in self.nonmember)),
            self.weight_change[rows],
            self.mean_change[rows],
            self.log_sigma_change[rows],
            self.matched[rows],
        )

    def log_densities(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log p1 and log p0 at x, shape (B, N)."""
        return _log_sum(_log_terms(self.member, x)), _log_sum(_log_terms(self.nonmember, x))

    def llr(self, x: FloatArray) -> FloatArray:
        """log p1/p0 at x, shape (B, N)."""
        up, down = self.log_densities(x)
        ratio = up - down
        close = np.abs(ratio) < 0.05
        rows = np.nonzero(close.mean(axis=-1) > 0.0)[0]
        if rows.size:
            exact = self._llr_close(rows, x[rows], down[rows])
            ratio[rows] = np.where(close[rows] & (np.abs(exact) < 0.1), exact, ratio[rows])
        return ratio

    def _llr_close(self, rows: npt.NDArray[np.intp], x: FloatArray, down: FloatArray) -> FloatArray:
        """log1p((p1 - p0)/p0), summed component by component."""
        law = Components(*(a[rows][:, None, :] for a in self.nonmember))
        z = (x[..., None] - law.mean) * np.exp(-law.log_sigma)
        shape = -0.5 * z * z - law.log_sigma - LOG_SQRT_2PI - down[..., None]
        own = parabola.height(
            self.mean_change[rows][:, None, :], self.log_sigma_change[rows][:, None, :], z
        )
        log_w1 = self.member.log_weight[rows][:, None, :]
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            both = np.exp(shape) * self.weight_change[rows][:, None, :] + np.exp(
                log_w1 + shape
            ) * np.expm1(own)
            member = Components(*(a[rows] for a in self.member))
            up = np.exp(_log_terms(member, x) - down[..., None])
            only_one = up - np.exp(law.log_weight + shape)
            relative = np.where(self.matched[rows][:, None, :], both, only_one).sum(axis=-1)
        return np.asarray(np.log1p(np.maximum(np.nan_to_num(relative, nan=-0.5), -0.5)))

    def llr_slope(self, x: FloatArray) -> FloatArray:
        """The derivative of log p1/p0 at x, shape (B, N)."""
        slopes = []
        for law in (self.member, self.nonmember):
            terms = _log_terms(law, x)
            share = np.exp(terms - terms.max(axis=-1, keepdims=True))
            pull = (law.mean[:, None, :] - x[..., None]) * np.exp(-2.0 * law.log_sigma)[:, None, :]
            slopes.append((share * pull).sum(axis=-1) / share.sum(axis=-1))
        return np.asarray(slopes[0] - slopes[1])

    @cached_property
    def widest(self) -> tuple[FloatArray, FloatArray]:
        """The largest sigma of each law among components with weight, shape (B,)."""
        return _widest(self.member), _widest(self.nonmember)


def log_mass(law: Components, low: FloatArray, high: FloatArray) -> FloatArray:
    """Log mass of each mixture between ``low`` and ``high``, any shape (B, ...)."""
    extra = (slice(None),) + (None,) * (low.ndim - 1)
    weight, mean, log_sigma = (a[(*extra, slice(None))] for a in law)
    parts = parabola.log_between_member(mean, log_sigma, low[..., None], high[..., None])
    return _log_sum(weight + parts)


def _widest(law: Components) -> FloatArray:
    used = np.where(np.isneginf(law.log_weight), -np.inf, law.log_sigma)
    return np.asarray(np.exp(used.max(axis=-1)))


def _log_terms(law: Components, x: FloatArray) -> FloatArray:
    """Log of each component's share of the density, (B, N, J)."""
    z = (x[..., None] - law.mean[:, None, :]) * np.exp(-law.log_sigma)[:, None, :]
    return np.asarray((law.log_weight - law.log_sigma)[:, None, :] - 0.5 * z * z - LOG_SQRT_2PI)


def _log_sum(terms: FloatArray) -> FloatArray:
    """Log of the sum of exponentials over the last axis; -inf where all terms are."""
    peak = terms.max(axis=-1)
    if terms.shape[-1] == 1:
        return np.asarray(peak)
    safe = np.where(np.isneginf(peak), 0.0, peak)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(terms - safe[..., None]).sum(axis=-1)) + safe)
