"""Two multivariate normals: the law of their log likelihood ratio by tilted inversion integrals.

Canonical form: the nonmember law is N(0, I) and the member law N(mu, diag(lam)), lam = 1 + excess,
so that

    l(z) = sum_j [ -log(lam_j)/2 - (z_j - mu_j)^2/(2 lam_j) + z_j^2/2 ].

Tails and hockey sticks are inversion integrals of the moments E0[exp(s l)] over contours through
their saddle points (`leakscope.measures.tilted_integrals`); the side of the poles at s = 0 and
s = 1 on which the contour passes decides which tail comes out, and the smaller one is always
chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import elementwise

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.special_functions import log1mexp
from leakscope.laws.distributions import MultivariateNormal
from leakscope.measures.normal_divergence import renyi_of_normals
from leakscope.measures.ratio import Ratio
from leakscope.measures.tilted_integrals import HalfLine, IndexArray, TiltedRays, log_lam


def canonical_form(
    member: MultivariateNormal, nonmember: MultivariateNormal
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means ``mu``, ``excess`` = lam - 1 and ``lam`` of a flat batch of pairs, (B, d) each.

    With C0 = L0 L0^T and the eigenvectors U of L0^-1 C1 L0^-T, the coordinates U^T L0^-1 (x - m0)
    are standard normal under the nonmember law and independent with variances lam and means mu
    under the member law.

    Nearly equal covariances are subtracted before they are whitened, so that the excess keeps
    its digits; very different ones go through singular values of L0^-1 L1, which keep the digits
    of small variances beside large ones.
    """
    factor = nonmember.cholesky
    difference = _whiten(factor, member.covariance - nonmember.covariance)
    difference = _whiten(factor, np.swapaxes(difference, -1, -2))
    excess, vectors = np.linalg.eigh(0.5 * (difference + np.swapaxes(difference, -1, -2)))
    variance = 1.0 + excess
    far = np.abs(excess).max(axis=-1) > 0.5
    if far.any():
        left, singular, _ = np.linalg.svd(_whiten(factor[far], member.cholesky[far]))
        excess[far], variance[far] = (singular - 1.0) * (singular + 1.0), singular * singular
        vectors[far] = left
    shift = _whiten(factor, (member.mean - nonmember.mean)[..., None])
    mu = (np.swapaxes(vectors, -1, -2) @ shift)[..., 0]
    return mu, excess, variance


def _whiten(factor: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.solve(factor, right))


_ELEMENTS_AT_ONCE = 1 << 19
_ROWS_AT_ONCE = 1 << 13
_LOG_HALF = float(np.log(0.5))
_BETWEEN = 2.0  # least Jeffreys divergence at which a contour between the poles pays
_LOWEST = 1e6  # minus infinity, as a root finder takes it
_RESOLVED = 1e-9  # a root at which its function is larger is a jump
_NOTHING = 1e-130  # squares of smaller numbers underflow; such a coordinate tells nothing apart


class Tails(NamedTuple):
    """Log probabilities of the test "member if l > threshold", each of shape (B, m)."""

    log_tpr: FloatArray
    log_fpr: FloatArray
    log_fnr: FloatArray
    log_tnr: FloatArray


@dataclass(frozen=True, eq=False)
class MultivariateRatio(Ratio):
    """``mu`` and ``excess`` have shape (B, d): B pairs, each of d independent coordinates.

    ``excess`` is lam - 1, which holds the digits of lam near 1 but not near 0; ``lam`` itself may
    be given beside it for that case.
    """

    mu: FloatArray
    excess: FloatArray
    lam: FloatArray = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        mu = np.asarray(self.mu, dtype=np.float64)
        excess = np.asarray(self.excess, dtype=np.float64)
        lam = 1.0 + excess if self.lam is None else np.asarray(self.lam, dtype=np.float64)
        object.__setattr__(self, "mu", np.where(np.abs(mu) < _NOTHING, 0.0, mu))
        object.__setattr__(self, "excess", np.where(np.abs(excess) < _NOTHING, 0.0, excess))
        object.__setattr__(self, "lam", lam)

    @property
    def size(self) -> int:
        """B, the number of pairs."""
        return int(self.mu.shape[0])

    def take(self, rows: npt.NDArray[np.intp]) -> Self:
        """The pairs ``rows``."""
        return type(self)(self.mu[rows], self.excess[rows], self.lam[rows])

    # ---- closed forms ----------------------------------------------------------------------

    def reversed(self) -> Self:
        """Exchange the roles: in the member's units lam is 1/lam and mu is -mu/sqrt(lam)."""
        return type(self)(-self.mu / np.sqrt(self.lam), -self.excess / self.lam, 1.0 / self.lam)

    def renyi(self, order: float) -> FloatArray:
        """Rényi divergence D_order(P1 || P0) of order > 0; KL at 1, sup l at inf."""
        if np.isinf(order):
            return self.llr_bounds()[1]
        with np.errstate(divide="ignore"):
            log_lams = log_lam(self.excess, self.lam)
        return np.asarray(renyi_of_normals(order, self.mu, self.excess, log_lams).sum(axis=1))

    def llr_scale(self) -> FloatArray:
        """sqrt(E0[l^2] + E1[l^2]), shape (B,); 0 for equal laws."""
        other = self.reversed()
        total = np.zeros(self.mu.shape[0])
        for one in (self, other):
            # Under the member law l has mean KL(P1 || P0) and this variance.
            x, lam = one.excess, one.lam
            variance = (0.5 * x * x + lam * one.mu * one.mu).sum(axis=1)
            total += one.renyi(1.0) ** 2 + variance
        return np.sqrt(total)

    def llr_bounds(self) -> tuple[FloatArray, FloatArray]:
        """inf and sup of l over all observations, shape (B,) each."""
        x, mu = self.excess, self.mu
        flat = x == 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            vertex = np.where(flat, 0.0, -0.5 * log_lam(x, self.lam) - 0.5 * mu * (mu / x))
        vertex = vertex.sum(axis=1)
        tilted = (flat & (mu != 0.0)).any(axis=1)
        lowest = np.where(tilted | (x < 0.0).any(axis=1), -np.inf, vertex)
        highest = np.where(tilted | (x > 0.0).any(axis=1), np.inf, vertex)
        return lowest, highest

    @property
    def equal(self) -> npt.NDArray[np.bool_]:
        """Where both laws are one law."""
        return np.asarray(((self.mu == 0.0) & (self.excess == 0.0)).all(axis=1))

    # ---- inversion integrals ---------------------------------------------------------------

    def tails(self, threshold: FloatArray) -> Tails:
        """Size and power of the test "member if l > threshold" at thresholds of shape (B, m)."""
        threshold = np.asarray(threshold, dtype=np.float64)
        lowest, highest = (bound[:, None] for bound in self.llr_bounds())
        with np.errstate(invalid="ignore"):  # infinite thresholds
            below, above = threshold - lowest, highest - threshold
        result = Tails(*(np.full(threshold.shape, np.nan) for _ in range(4)))
        equal = np.broadcast_to(self.equal[:, None], threshold.shape)
        none = np.where(equal, threshold >= 0.0, above <= 0.0) | (threshold == np.inf)
        every = np.where(equal, threshold < 0.0, below <= 0.0) | (threshold == -np.inf)
        for log_p, empty in zip(result, (none, none, every, every), strict=True):
            log_p[none | every] = np.where(empty[none | every], -np.inf, 0.0)
        inside = ~(none | every | np.isnan(threshold))
        for cells, problem in self._problems(inside, threshold, below, above):
            line = problem.line(between=problem.jeffreys >= _BETWEEN)
            near, far = problem.rays(line).log_tails()
            far = far + np.where(line.anchor, -1.0, 1.0) * problem.threshold
            # The pole at 1 belongs to the member law; right of it lies P1(l > t).
            member, nonmember = np.where(line.anchor, near, far), np.where(line.anchor, far, near)
            member_above = line.anchor & (line.sign > 0.0)
            nonmember_above = line.anchor | (line.sign > 0.0)
            for (upper, lower), direct, up in (
                ((result.log_tpr, result.log_fnr), member, member_above),
                ((result.log_fpr, result.log_tnr), nonmember, nonmember_above),
            ):
                direct = np.minimum(direct, 0.0)
                rest = log1mexp(direct)
                upper[cells] = np.where(up, direct, rest)
                lower[cells] = np.where(up, rest, direct)
        return result

    def log_excess(self, epsilon: FloatArray) -> FloatArray:
        """Log of the hockey stick P1(l > epsilon) - exp(epsilon) P0(l > epsilon), shape (B, m)."""
        return self._hockey_stick(np.asarray(epsilon, dtype=np.float64))[0]

    def advantage(self) -> FloatArray:
        """Total variation distance, shape (B,)."""
        return np.asarray(np.exp(self.log_excess(np.zeros((self.size, 1)))[:, 0]))

    def overlap(self) -> FloatArray:
        """The integral of min(p0, p1), shape (B,)."""
        return np.asarray(np.exp(self._hockey_stick(np.zeros((self.size, 1)))[1][:, 0]))

    def delta_at(self, epsilon: FloatArray) -> FloatArray:
        """The hockey sticks P1(l > epsilon) - exp(epsilon) P0(l > epsilon), (B, m)."""
        return np.asarray(np.exp(self.log_excess(np.tile(epsilon, (self.size, 1)))))

    def tpr_at(self, fpr: FloatArray) -> tuple[FloatArray, FloatArray]:
        """TPR and FNR, (B, m), of the best tests of the sizes ``fpr``, (m,)."""
        asked = np.tile(fpr, (self.size, 1))
        searched = (asked > 0.0) & (asked < 1.0) & ~self.equal[:, None]
        rows, columns = np.nonzero(searched)
        target = np.log(fpr[columns])

        def gap(threshold: FloatArray, row: IndexArray, wanted: FloatArray) -> FloatArray:
            return self.take(row).tails(threshold[:, None]).log_fpr[:, 0] - wanted

        width = self.llr_scale()[rows]
        threshold = _root(gap, -width, width, (rows, target))
        at = self.take(rows).tails(threshold[:, None])
        # Next to a bound of l a threshold is no longer resolved, but the ROC's slope is its
        # exponential: the step along this tangent to the size asked for is exact there.
        with np.errstate(divide="ignore"):
            missing = target + log1mexp(np.minimum(at.log_fpr[:, 0] - target, 0.0)) + threshold
        log_fnr = at.log_fnr[:, 0] + log1mexp(np.minimum(missing - at.log_fnr[:, 0], 0.0))
        tpr, fnr = asked, 1.0 - asked
        # whatever the search has rounded
        most = np.minimum(fpr[columns] + self.advantage()[rows], 1.0)
        found = np.exp(np.logaddexp(at.log_tpr[:, 0], missing))
        tpr[rows, columns] = np.clip(found, fpr[columns], most)
        fnr[rows, columns] = np.exp(log_fnr)
        return tpr, fnr

    def epsilon_at(self, delta: FloatArray) -> FloatArray:
        """The least epsilon >= 0 whose hockey stick is at most ``delta``, (B, m)."""
        found = np.where(delta == 0.0, np.maximum(self.renyi(np.inf), 0.0)[:, None], 0.0)
        rows, columns = np.nonzero((self.advantage()[:, None] > delta) & (delta > 0.0))
        target = np.log(delta[columns])

        def gap(epsilon: FloatArray, row: IndexArray, wanted: FloatArray) -> FloatArray:
            return self.take(row).log_excess(epsilon[:, None])[:, 0] - wanted

        width = self.llr_scale()[rows]
        found[rows, columns] = _root(gap, 0.0 * width, width, (rows, target))
        return found

    def auc(self) -> FloatArray:
        """P(l(X1) > l(X0)), ties counting one half."""
        return np.asarray(-np.expm1(self.log_auc_complement()))

    def log_auc_complement(self) -> FloatArray:
        """Log of P(l(X0) > l(X1)) (ties count one half), shape (B,).

        l(X0) - l(X1) is the log likelihood ratio of P1 x P0 against P0 x P1, so this is the
        false-positive rate of the test between these at threshold 0.
        """
        other = self.reversed()
        product = MultivariateRatio(
            np.concatenate([self.mu, other.mu], axis=1),
            np.concatenate([self.excess, other.excess], axis=1),
            np.concatenate([self.lam, other.lam], axis=1),
        )
        log_p = product.tails(np.zeros((self.mu.shape[0], 1))).log_fpr[:, 0]
        return np.where(self.equal, _LOG_HALF, log_p)

    def _hockey_stick(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Logs of int (p1 - e^epsilon p0)^+ and of int min(p1, e^epsilon p0)."""
        log_excess = np.full(epsilon.shape, np.nan)
        log_common = np.full(epsilon.shape, np.nan)
        lowest, highest = (bound[:, None] for bound in self.llr_bounds())
        none = epsilon >= highest
        every = (epsilon <= lowest) & ~none
        log_excess[none], log_common[none] = -np.inf, 0.0
        log_excess[every], log_common[every] = log1mexp(epsilon[every]), epsilon[every]
        inside = ~(none | every | np.isnan(epsilon))
        with np.errstate(invalid="ignore"):  # infinite thresholds
            below, above = epsilon - lowest, highest - epsilon
        for cells, problem in self._problems(inside, epsilon, below, above):
            log_excess[cells], log_common[cells] = _hockey_stick(problem)
        return log_excess, log_common

    def _problems(
        self,
        wanted: npt.NDArray[np.bool_],
        threshold: FloatArray,
        below: FloatArray,
        above: FloatArray,
    ) -> Iterator[tuple[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]], _Problem]]:
        """The wanted cells of a (B, m) grid in blocks that fit in memory."""
        rows, columns = np.nonzero(wanted)
        forwards, backwards = self.renyi(1.0), self.reversed().renyi(1.0)
        size = max(1, min(_ROWS_AT_ONCE, _ELEMENTS_AT_ONCE // max(1, self.mu.shape[1])))
        for first in range(0, rows.size, size):
            i, j = rows[first : first + size], columns[first : first + size]
            yield (
                (i, j),
                _Problem(
                    np.ascontiguousarray(self.mu[i].T),
                    np.ascontiguousarray(self.excess[i].T),
                    np.ascontiguousarray(self.lam[i].T),
                    threshold[i, j],
                    below[i, j],
                    above[i, j],
                    -backwards[i],
                    forwards[i],
                ),
            )


def _root(
    falling: Callable[..., FloatArray], low: FloatArray, high: FloatArray, args: tuple[Any, ...]
) -> FloatArray:
    """Where each of many falling functions of x and ``args`` is zero, from brackets to be widened.

    Where it jumps over zero, it is the first number beyond.
    """
    if not low.size:
        return low

    def finite(x: FloatArray, *own: Any) -> FloatArray:
        return np.maximum(falling(x, *own), -_LOWEST)

    start = elementwise.bracket_root(finite, low, high, args=args)
    found: Any = elementwise.find_root(
        finite, start.bracket, args=args, tolerances={"fatol": 1e-13, "xrtol": 1e-15}
    )
    return np.asarray(np.where(np.abs(found.f_x) < _RESOLVED, found.x, found.bracket[1]))


@dataclass(frozen=True, eq=False)
class _Problem:
    """N pairs (coordinates first: (d, N)), each with one threshold inside the range of l."""

    mu: FloatArray
    excess: FloatArray
    lam: FloatArray
    threshold: FloatArray
    below: FloatArray  # threshold - inf l
    above: FloatArray  # sup l - threshold
    nonmember_mean: FloatArray  # E0[l]
    member_mean: FloatArray  # E1[l]

    @property
    def size(self) -> int:
        """N."""
        return int(self.threshold.size)

    @property
    def jeffreys(self) -> FloatArray:
        """E1[l] - E0[l]."""
        return self.member_mean - self.nonmember_mean

    def take(self, rows: npt.NDArray[np.intp]) -> _Problem:
        """The problems ``rows``."""
        return _Problem(
            self.mu[:, rows],
            self.excess[:, rows],
            self.lam[:, rows],
            self.threshold[rows],
            self.below[rows],
            self.above[rows],
            self.nonmember_mean[rows],
            self.member_mean[rows],
        )

    def rays(self, line: HalfLine) -> TiltedRays:
        """The inversion integrals over contours that cross ``line``."""
        gap = np.where(line.sign > 0.0, self.above, self.below)
        return TiltedRays.of(self.mu, self.excess, self.lam, self.threshold, gap, line)

    def line(self, between: npt.NDArray[np.bool_], middle: FloatArray | None = None) -> HalfLine:
        """Where the saddle point of M(s) exp(-s t) lies.

        A saddle point between the poles is used only where ``between`` allows; elsewhere it is
        moved out of [0, 1] to the side on which the threshold lies of ``middle``.
        """
        t = self.threshold
        if middle is None:
            middle = 0.5 * (self.member_mean + self.nonmember_mean)
        right, left = t >= self.member_mean, t <= self.nonmember_mean
        inside = ~right & ~left & between
        right = np.where(inside, False, right | (~left & (t >= middle)))
        anchor, sign = right.copy(), np.where(right, 1.0, -1.0)
        rows = np.flatnonzero(inside)
        if rows.size:
            sub = self.take(rows)
            from_one = HalfLine(np.ones(rows.size, bool), np.full(rows.size, -1.0))
            nearer_one = sub.rays(from_one).first_derivative(np.full(rows.size, 0.5)) >= 0.0
            anchor[rows] = nearer_one
            sign[rows] = np.where(nearer_one, -1.0, 1.0)
        return HalfLine(anchor, sign)


def _hockey_stick(problem: _Problem) -> tuple[FloatArray, FloatArray]:
    """Logs of int (p1 - e^eps p0)^+ and of int min(p1, e^eps p0)."""
    eps, zero = problem.threshold, np.zeros(problem.size)
    line = problem.line(between=problem.jeffreys >= _BETWEEN, middle=zero)
    value = _log_both_poles(problem, line)
    # Between the poles comes int min(p1, e^eps p0), whose complement keeps the digits of the
    # excess only where it is the smaller of the two.
    again = np.flatnonzero((line.kappa < 0.0) & (value > _LOG_HALF))
    if again.size:
        sub = problem.take(again)
        outer = sub.line(between=np.zeros(sub.size, dtype=bool), middle=np.zeros(sub.size))
        value[again] = _log_both_poles(sub, outer)
        line.anchor[again], line.sign[again] = outer.anchor, outer.sign
    between = line.kappa < 0.0
    reverse = ~between & ~line.anchor  # the value is int (e^eps p0 - p1)^+, and eps < 0
    value = np.minimum(value, np.where(line.anchor & ~between, 0.0, np.minimum(eps, 0.0)))
    rest = log1mexp(value)
    backwards = np.where(reverse, eps, -1.0)
    return (
        np.where(
            reverse,
            np.logaddexp(log1mexp(backwards), value),
            np.where(between, rest, value),
        ),
        np.where(
            reverse,
            eps + log1mexp(np.where(reverse, value - eps, -1.0)),
            np.where(between, value, rest),
        ),
    )


def _log_both_poles(problem: _Problem, line: HalfLine) -> FloatArray:
    """Log of int M(s) e^((1 - s) eps) / (s (s - 1)) over a contour that crosses ``line``."""
    value = problem.rays(line).log_both_poles()
    return np.asarray(value + np.where(line.anchor, 0.0, problem.threshold))
