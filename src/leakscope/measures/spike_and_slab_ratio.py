"""Two spike-and-slab laws: an atom and two truncated parabolas.

On x > 0 both laws are truncated normals, and so they are on x < 0: the log likelihood ratio is a
parabola (see `leakscope.measures.normal_total_variation`) on each half line and one number at the
atom.  The region l > t is then up to two intervals on each side and the atom or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.quadrature import panels
from leakscope._numerics.special_functions import (
    LOG_SQRT_2PI,
    log1mexp,
    log_between,
    log_interval,
    log_upper,
)
from leakscope.laws.distributions import SpikeAndSlab
from leakscope.measures import normal_total_variation as parabola
from leakscope.measures.ratio import (
    SearchedRatio,
    Tails,
    auc_by_levels,
    kl_integrand,
    moment_integrand,
    moment_weight,
)


class Branch(NamedTuple):
    """Both branches of each pair, stacked on the last axis: shape (B, 2).

    In mirrored nonmember units: the shift ``d`` >= 0, ``log_s`` = log(sigma1/sigma0), and the
    half line (``low``, ``high``) on which the branch lives.
    """

    d: FloatArray
    log_s: FloatArray
    low: FloatArray
    high: FloatArray


class Atom(NamedTuple):
    """Log masses of the atom under both laws and their log ratio, shape (B,)."""

    log_p1: FloatArray
    log_p0: FloatArray
    ratio: FloatArray


def _branches(one: SpikeAndSlab, zero: SpikeAndSlab) -> Branch:
    """The two parabolas of member and nonmember laws, on x > 0 first."""
    shift, step = one.location - zero.location, one.threshold - zero.threshold
    d = np.stack([shift - step, shift + step], axis=-1) / zero.sigma[:, None]
    d = parabola.shift(d)
    edge = np.stack([zero.threshold - zero.location, -zero.threshold - zero.location], axis=-1)
    edge = edge / zero.sigma[:, None]
    upper = np.array([True, False]) ^ (d < 0.0)  # mirrored where d < 0
    edge = np.where(d < 0.0, -edge, edge)
    log_s = parabola.log_scale(one.sigma, zero.sigma)
    return Branch(
        np.abs(d),
        np.repeat(log_s[:, None], 2, axis=-1),
        np.where(upper, edge, -np.inf),
        np.where(upper, np.inf, edge),
    )


def _atom(one: SpikeAndSlab, zero: SpikeAndSlab) -> Atom:
    """The atom of member and nonmember laws; the ratio is accurate also when they agree."""
    log_p1, log_p0 = one.log_atom, zero.log_atom
    difference = np.zeros(log_p1.shape)
    for sign in (1.0, -1.0):
        end0 = (sign * zero.threshold - zero.location) / zero.sigma
        move = sign * (one.threshold - zero.threshold) - (one.location - zero.location)
        move = (move - end0 * (one.sigma - zero.sigma)) / one.sigma
        mass = np.exp(log_interval(end0 + 0.5 * move, 0.5 * np.abs(move)))
        difference = difference + sign * np.sign(move) * mass
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        relative = difference * np.exp(-log_p0)
        close = np.abs(relative) < 0.1
        exact = np.log1p(np.where(close, relative, 0.0))
        ratio = np.where(close, exact, log_p1 - log_p0)
    neither = np.isneginf(log_p1) & np.isneginf(log_p0)
    return Atom(log_p1, log_p0, np.where(neither, 0.0, ratio))


def _levels(branch: Branch, threshold: FloatArray) -> parabola.LevelSet:
    """Where each parabola passes thresholds of shape (B, m); (B, m, 2) each."""
    return parabola.level_set(branch.d[:, None, :], branch.log_s[:, None, :], threshold[..., None])


def _intervals(
    branch: Branch, level: parabola.LevelSet, above: bool
) -> list[tuple[FloatArray, FloatArray]]:
    """The one or two intervals of each branch where l > t (or l <= t), (B, m, 2) each."""
    low, high = branch.low[:, None, :], branch.high[:, None, :]
    outside = (branch.log_s[:, None, :] >= 0.0) == above
    first, second = np.minimum(level.near, level.far), np.maximum(level.near, level.far)
    left = (low, np.minimum(high, np.where(outside, first, -np.inf)))
    right = (np.maximum(low, np.where(outside, second, np.inf)), high)
    inner = (
        np.maximum(low, np.where(outside, np.inf, first)),
        np.minimum(high, np.where(outside, -np.inf, second)),
    )
    return [left, right, inner]


def _shifted_jeffreys(
    up: FloatArray, down: FloatArray, sigma: FloatArray, threshold: FloatArray
) -> FloatArray:
    """Jeffreys divergence of soft(N(m, sigma^2), threshold) at m = up and m = down.

    On the branches the log ratio is linear in the field, and its two means differ by the shift
    of the truncated first moments; the atom adds its own difference of masses and of logs.
    """
    shift, middle = up - down, 0.5 * (up + down)

    def side(m: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        a, b = (threshold - m) / sigma, (threshold + m) / sigma
        active = ndtr(-a) + ndtr(-b)
        gap = (np.exp(-0.5 * a * a) - np.exp(-0.5 * b * b)) / np.sqrt(2.0 * np.pi)
        # E[field - middle; active], and the log mass of the atom
        return (
            (m - middle) * active + sigma * gap,
            np.asarray(1.0 - active),
            log_interval(m / sigma, threshold / sigma),
        )

    first_up, atom_up, log_up = side(up)
    first_down, atom_down, log_down = side(down)
    branches = shift / sigma**2 * (first_up - first_down)
    with np.errstate(invalid="ignore"):
        atoms = (atom_up - atom_down) * (log_up - log_down)
    return np.asarray(branches + np.where(np.isfinite(atoms), atoms, 0.0))


_SPREAD = np.array([0.0, 0.5, 1.0, 1.75, 2.5, 3.5, 4.5, 6.0, 8.0, 10.5])


@dataclass(frozen=True, eq=False)
class SpikeAndSlabRatio(SearchedRatio):
    """Flat batches of member and nonmember laws, shape (B,)."""

    member: SpikeAndSlab
    nonmember: SpikeAndSlab

    @property
    def size(self) -> int:
        """B, the number of pairs."""
        return int(self.member.location.size)

    def reversed(self) -> Self:
        """Exchange the roles."""
        return type(self)(self.nonmember, self.member)

    def take(self, rows: npt.NDArray[np.intp]) -> Self:
        """The pairs ``rows``."""
        part = type(self)(self.member.take(rows), self.nonmember.take(rows))
        # what is known of the whole batch is known of its parts
        part.__dict__["branch"] = Branch(*(a[rows] for a in self.branch))
        part.__dict__["atom"] = Atom(*(a[rows] for a in self.atom))
        return part

    @cached_property
    def branch(self) -> Branch:
        """The two parabolas, on x > 0 first."""
        return _branches(self.member, self.nonmember)

    @cached_property
    def atom(self) -> Atom:
        """The atom under both laws."""
        return _atom(self.member, self.nonmember)

    @property
    def equal(self) -> npt.NDArray[np.bool_]:
        """Where both laws are one law."""
        branch = self.branch
        same = np.all((branch.d == 0.0) & (branch.log_s == 0.0), axis=-1)
        return np.asarray(same & (self.atom.ratio == 0.0))

    # ---- the region l > t ----------------------------------------------------------------

    def _log_masses(self, level: parabola.LevelSet, above: bool, member: bool) -> FloatArray:
        """Log mass of the branches' part of the region, (B, m)."""
        d, log_s = self.branch.d[:, None, :], self.branch.log_s[:, None, :]
        total = np.full(level.near.shape, -np.inf)
        for low, high in _intervals(self.branch, level, above):
            if member:
                mass = parabola.log_between_member(d, log_s, low, np.maximum(low, high))
            else:
                mass = log_between(low, np.maximum(low, high))
            total = np.logaddexp(total, mass)
        return np.asarray(np.logaddexp(total[..., 0], total[..., 1]))

    def _with_atom(
        self, mass: FloatArray, threshold: FloatArray, above: bool, member: bool
    ) -> FloatArray:
        log_p1, log_p0, ratio = self.atom
        log_atom = (log_p1 if member else log_p0)[:, None]
        inside = (ratio[:, None] > threshold) == above
        return np.minimum(np.where(inside, np.logaddexp(mass, log_atom), mass), 0.0)

    def log_fpr(self, threshold: FloatArray) -> FloatArray:
        """log P0(l > threshold)."""
        mass = self._log_masses(_levels(self.branch, threshold), above=True, member=False)
        return self._with_atom(mass, threshold, above=True, member=False)

    def tails(self, threshold: FloatArray) -> Tails:
        """Size and power of the likelihood-ratio test at each threshold."""
        level = _levels(self.branch, threshold)

        def mass(above: bool, member: bool) -> FloatArray:
            return self._with_atom(self._log_masses(level, above, member), threshold, above, member)

        return Tails(mass(True, True), mass(True, False), mass(False, True), mass(False, False))

    def log_excess(self, epsilon: FloatArray) -> FloatArray:
        """Log of P1(l > epsilon) - exp(epsilon) P0(l > epsilon)."""
        level = _levels(self.branch, epsilon)
        shape = level.near.shape
        d, log_s = (np.broadcast_to(a[:, None, :], shape).ravel() for a in self.branch[:2])
        flat = np.broadcast_to(epsilon[..., None], shape).ravel()
        near, far, slope = (np.broadcast_to(a, shape).ravel() for a in level)
        # without a root l - epsilon is measured from the vertex, or is one number everywhere
        equal = (d == 0.0) & (log_s == 0.0)
        anchor = np.where(equal, 0.0, near)
        lift = np.where(slope == 0.0, parabola.height(d, log_s, anchor) - flat, 0.0)
        convex = log_s >= 0.0
        total = np.full(near.shape, -np.inf)
        for (low, high), mirror in zip(
            _intervals(self.branch, level, above=True), (True, False, False), strict=True
        ):
            first, last = (np.broadcast_to(a, shape).ravel() for a in (low, high))
            some = last > first
            if not some.any():
                continue
            # the interval that reaches down to -inf is looked at from above
            root = -np.where(convex & ~equal, far, anchor) if mirror else anchor
            start, stop = (-last, -first) if mirror else (first, last)
            arrays = (-d if mirror else d, log_s, flat, start, stop, root, slope, lift)
            part, _ = parabola.log_excess_between(*(a[some] for a in arrays))
            total[some] = np.logaddexp(total[some], part)
        both = total.reshape(shape)
        slabs = np.logaddexp(both[..., 0], both[..., 1])
        log_p1, _, ratio = (a[:, None] for a in self.atom)
        spike = log_p1 + log1mexp(-np.maximum(ratio - epsilon, 0.0))
        return np.asarray(np.logaddexp(slabs, np.where(ratio > epsilon, spike, -np.inf)))

    # ---- measures ------------------------------------------------------------------------

    def llr_scale(self) -> FloatArray:
        """A typical size of |l|."""
        d, log_s = self.branch.d, self.branch.log_s
        sizes = [np.abs(parabola.height(d, log_s, w)) for w in (d - 1.0, d + 1.0, 0.0 * d)]
        ratio = np.nan_to_num(np.abs(self.atom.ratio), posinf=0.0)
        return np.asarray(np.maximum(np.max(sizes, axis=(0, 2)), ratio))

    def log_certain(self) -> FloatArray:
        """Log mass of an atom that only the member law has."""
        log_p1, log_p0, _ = self.atom
        return np.where(np.isneginf(log_p0), log_p1, -np.inf)

    def renyi(self, order: float) -> FloatArray:
        """D_order(P1 || P0); KL at order 1, sup l at infinity."""
        if np.isinf(order):
            return self._highest()
        log_p1, log_p0, ratio = self.atom
        gone = np.isneginf(log_p0) & np.isfinite(log_p1)  # an atom that P0 does not have
        if order == 1.0:
            atom = kl_integrand(log_p1, log_p0, ratio)
            atom = np.where(np.isneginf(log_p1), np.exp(log_p0), atom)
            return np.where(gone, np.inf, self._integrate(kl_integrand, 1.0) + atom)
        log_moment = self._log_moment(order)
        near = np.abs(log_moment) < 1e-3
        if near.any():
            # M - 1 is a multiple of an integral over what is all of one sign
            part = self.take(np.flatnonzero(near))
            log_moment[near] = np.log1p(part._moment_minus_one(order))
        value = log_moment / (order - 1.0)
        return np.asarray(np.where(gone & (order > 1.0), np.inf, value))

    def _highest(self) -> FloatArray:
        """The supremum of l."""
        d, log_s, low, high = self.branch
        with np.errstate(divide="ignore", invalid="ignore"):
            vertex = np.where(log_s == 0.0, np.inf, -d / np.expm1(2.0 * log_s))
            clipped = np.clip(vertex, low, high)
            concave = parabola.height(d, log_s, np.where(np.isfinite(clipped), clipped, 0.0))
            edge = parabola.height(d, log_s, np.where(np.isfinite(low), low, high))
        upward = np.isposinf(high)
        straight = np.where(upward & (d > 0.0), np.inf, edge)
        peak = np.where(log_s > 0.0, np.inf, np.where(log_s < 0.0, concave, straight))
        return np.asarray(np.maximum(peak.max(axis=-1), self.atom.ratio))

    def _log_moment(self, order: float) -> FloatArray:
        """log E0[exp(order l)]: a normal tail on each branch, and the atom."""
        d, log_s, low, high = self.branch
        s2 = np.exp(2.0 * log_s)
        with np.errstate(divide="ignore", invalid="ignore"):
            precision = order / s2 + (1.0 - order)
            centre = order * d / (s2 * precision)
            root = np.sqrt(np.maximum(precision, 0.0))
            mass = np.where(
                np.isposinf(high),
                log_upper((low - centre) * root),
                log_upper((centre - high) * root),
            )
            exponent = -0.5 * order * (1.0 - order) * d * d / (s2 * precision)
            branch = mass + exponent - order * log_s - np.log(root)
        branch = np.where(precision > 0.0, branch, np.inf)
        log_p1, log_p0, _ = self.atom
        with np.errstate(invalid="ignore"):
            atom = order * log_p1 + (1.0 - order) * log_p0
        atom = np.where(np.isneginf(log_p1) | np.isnan(atom), -np.inf, atom)
        if order < 1.0:
            atom = np.where(np.isneginf(log_p0), -np.inf, atom)
        return np.asarray(np.logaddexp(np.logaddexp(branch[:, 0], branch[:, 1]), atom))

    def _moment_minus_one(self, order: float) -> FloatArray:
        """E0[exp(order l)] - 1, without subtracting."""
        log_p1, log_p0, ratio = self.atom
        with np.errstate(invalid="ignore"):
            atom = moment_integrand(order, log_p1, log_p0, ratio)
        atom = np.where(np.isneginf(log_p0) & np.isneginf(log_p1), 0.0, atom)
        whole = self._integrate(partial(moment_integrand, order), order) + atom
        return np.asarray(moment_weight(order) * whole)

    def _integrate(
        self,
        integrand: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
        order: float,
    ) -> FloatArray:
        """Sum over the branches of the integral of f(log p1, log p0, l).

        Panels end at a few standard deviations of p0, of p1 and of p1^order p0^(1 - order), and
        close to the branch's own edge, where only a tail of all of them may be left.
        """
        d, log_s, low, high = (a[..., None] for a in self.branch)
        s = np.exp(log_s)
        spread = np.concatenate([-_SPREAD[:0:-1], _SPREAD])
        precision = order / (s * s) + (1.0 - order)
        scale = 1.0 / np.sqrt(np.where(precision > 0.0, precision, 1.0))
        centre = order * d / (s * s) * scale * scale
        edge = np.where(np.isfinite(low), low, high)
        inward = np.where(np.isposinf(high), 1.0, -1.0) * np.minimum(s, 1.0)
        inward = inward * np.array([0.0, 0.25, 0.5, 1.0, 2.0, 4.0]) / (1.0 + np.abs(edge))
        knots = [spread + 0.0 * d, d + s * spread, edge + inward]
        if order != 1.0:
            knots.append(centre + scale * spread)
        breaks = np.sort(np.clip(np.concatenate(knots, axis=-1), low, high), axis=-1)
        w, weights = panels(breaks, 16)
        z = parabola.member_units(d, log_s, w)
        down = -0.5 * w * w - LOG_SQRT_2PI
        up = -0.5 * z * z - LOG_SQRT_2PI - log_s
        values = integrand(up, down, parabola.height(d, log_s, w))
        return np.asarray((values * weights).sum(axis=(-1, -2)))

    def jeffreys(self) -> FloatArray:
        """In closed form where scales and thresholds agree, otherwise the sum of both KLs."""
        one, zero = self.member, self.nonmember
        alike = (one.sigma == zero.sigma) & (one.threshold == zero.threshold)
        result = np.empty(self.size)
        rows = np.flatnonzero(~alike)
        if rows.size:
            result[rows] = super(SpikeAndSlabRatio, self.take(rows)).jeffreys()
        rows = np.flatnonzero(alike)
        if rows.size:
            result[rows] = _shifted_jeffreys(
                one.location[rows], zero.location[rows], one.sigma[rows], one.threshold[rows]
            )
        return result

    def auc(self) -> FloatArray:
        """P(l(X1) > l(X0)), ties counting one half."""
        return np.where(self.equal, 0.5, auc_by_levels(self.size_of_test, self.kinks()))

    def kinks(self) -> FloatArray:
        """The parabolas' vertices and edges and the atom, and a few levels where l lies."""
        d, log_s, low, high = (a[..., None] for a in self.branch)
        edge = np.where(np.isfinite(low), low, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            vertex = np.where(log_s == 0.0, edge, -d / np.expm1(2.0 * log_s))
        bulk = np.array([-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0])
        points = np.concatenate([bulk + 0.0 * d, d + np.exp(log_s) * bulk], axis=-1)
        points = np.concatenate([vertex, edge, np.clip(points, low, high)], axis=-1)
        heights = parabola.height(d, log_s, points).reshape(self.size, -1)
        atom_level = np.where(np.isfinite(self.atom.ratio), self.atom.ratio, 0.0)[:, None]
        return np.concatenate([heights, atom_level], axis=-1)

    def size_of_test(self, threshold: FloatArray) -> FloatArray:
        """P0(l > threshold) to absolute precision: quicker than in logs."""
        inside = self.atom.ratio[:, None] > threshold
        total = np.where(inside, np.exp(self.atom.log_p0)[:, None], 0.0)
        for low, high in _intervals(self.branch, _levels(self.branch, threshold), above=True):
            total = total + np.maximum(ndtr(high) - ndtr(low), 0.0).sum(axis=-1)
        return np.asarray(total)
