"""Support vector machines: what one record changes, with the free support vectors held.

A support vector machine answers f = sum_j beta_j K_j + b with beta_j = y_j a_j, 0 <= a_j <= C (or
|beta_j| <= C of a regression).  Records beyond the margin have a = 0 and change nothing, in or out,
exactly.  Those within it have a = C.  The free ones lie on the margin and stay there while another
record comes or goes: they answer any change of one beta so that their own f, and the sum of all
beta, stay what they are.  What is left of a record's kernel after that is
s = K_ii - k_i' M^{-1} k_i, with M = [[K_FF, 1], [1', 0]], and

- a record that is taken out leaves f - beta s;
- a record that is put in is moved towards its margin, by at most C s: no further than the margin.

So its score with it is the one without it pushed through the corner of the loss, and lies on the
margin in a share of the training sets (`Corner`): whoever sees a score on the margin knows.

With few features and a linear kernel the free ones pin all of f, and others take their place while
a record comes or goes: no answer is turned then, and each law comes from the fits with, or without,
the record alone.

Several classes are one machine for each two of them.  A record is in the machines of its own class;
what is seen is its margin against the nearest other class, the least of theirs, and the corner is
the same: a margin of 1.

The nu forms (Schoelkopf et al. 2000) hold, in place of the margin, the sum of the weights, nu times
the records of the machine: one more row of M, with the signs t of the free ones, answers with the
margin rho (of a tube -epsilon).  With a unit vector e there, u = (k, 1, t), s = K_ii - u' M^{-1} u,
h = u' M^{-1} e and q = e' M^{-1} e, a weight da of the record and dn of the sum move the distance
g = t f - rho by s da + t h dn, and rho by t h da - q dn.  A record that comes (dn = nu) gets the
weight that puts g at 0, within its bounds.  NuSVC divides by rho, so that its corner is 1 too; that
of NuSVR moves from fit to fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.eigenvectors import symmetric_eigen
from leakscope.fitted.machines import (
    dual_weights,
    kernel_beside,
    margins_of_classes,
    own_kernel,
)
from leakscope.fitted.refits import Labels, Rows, class_names
from leakscope.laws.distributions import NormalMixture
from leakscope.laws.pair import LawPair, Provenance

Mask = npt.NDArray[np.bool_]

# Of the largest weight: nearer to none or all it is that.
AT_BOUND = 1e-7
# Directions of the free ones with less than this share of the largest are none.
NO_DIRECTION = 1e-10
# Scores within so many of the solver's tolerances of a corner lie on it.
NEAR_CORNER = 2.0


@dataclass(frozen=True, eq=False)
class Corner:
    """Scores of fits on parts of the records, by where they lie beside the corner of a loss.

    With v = ``side`` (score - ``place``), a score without the record is beyond the corner (v > 0)
    and stays, or short of it and is moved up to it or towards it.  So both laws of v are mixtures
    of four pieces: beyond it, moved onto it, on it either way (as those of a record with a copy
    are), and short of it either way.  How often each occurs is counted, and each is normal by its
    moments; what is on the corner is as far off as the solver leaves it, at most ``near``.
    """

    place: FloatArray
    side: FloatArray
    member: NormalMixture
    nonmember: NormalMixture
    near: float = 0.0

    @classmethod
    def of(
        cls,
        place: FloatArray,
        side: FloatArray,
        answers: tuple[Mask, FloatArray, FloatArray],
        tolerance: float,
    ) -> Corner:
        """From ``answers``: who was in each part (K, N), and the scores without and with records.

        Where no answer was turned, the scores with a record are those of the parts with it, and the
        scores without it those of the others.  ``tolerance`` is the solver's.
        """
        inside, without, within = answers
        out, into = side * (without - place), side * (within - place)
        near = NEAR_CORNER * tolerance
        own = into[inside & (np.abs(into) <= near)]
        width = max(float(np.sqrt(np.mean(own**2))) if own.size else 0.0, 1e-3 * tolerance)
        if not np.isfinite(into - out).any():
            return cls(place, side, *_unpaired(out, into, near, width), near)
        beyond, on = into > near, np.abs(into) <= near
        already = on & (np.abs(out) <= near)
        # Some lie there by chance, as many as in strips of this width beside it.
        beside = np.sum((np.abs(out) > near) & (np.abs(out) <= 10.0 * near), axis=0) / 9.0
        already &= already.sum(axis=0) > beside + 3.0 * np.sqrt(beside) + 3.0
        pieces = beyond, on & ~already, already, into < -near
        chance = np.stack([piece.mean(axis=0) for piece in pieces], axis=1)
        middle, spread = _moments(pieces, out, width)
        after, narrow = _moments(pieces, into, width)
        after[:, 0], narrow[:, 0] = middle[:, 0], spread[:, 0]
        after[:, 1:3], narrow[:, 1:3] = 0.0, width
        middle[:, 2], spread[:, 2] = 0.0, width
        return cls(
            place,
            side,
            NormalMixture(chance, after, narrow),
            NormalMixture(chance, middle, spread),
            near,
        )

    @property
    def chance(self) -> FloatArray:
        """(N,) how often a score with the record lies on the corner."""
        return np.asarray(self.member.weights[:, 1:3].sum(axis=1))

    def pair(self, noise: float, told: Provenance) -> LawPair:
        """Both laws of v, with normal noise of this standard deviation on every answer."""
        laws = [
            NormalMixture(law.raw_weights, law.means, np.hypot(law.sigmas, noise))
            for law in (self.member, self.nonmember)
        ]
        return LawPair(laws[0], laws[1], told)


def _unpaired(
    out: FloatArray, into: FloatArray, near: float, width: float
) -> tuple[NormalMixture, NormalMixture]:
    """The same where a fit answers one way only; what is beyond the corner is as often so in both.

    Who is on it either way is not told apart.
    """
    either = np.where(np.isfinite(into), into, out)
    beyond = (either > near).mean(axis=0)
    laws = []
    for v in (into, out):
        on, short = np.abs(v) <= near, v < -near
        # Of those that are not beyond it.
        share = on.sum(axis=0) / np.maximum((on | short).sum(axis=0), 1)
        if v is out:
            by_chance = np.sum((np.abs(v) > near) & (np.abs(v) <= 10.0 * near), axis=0) / 9.0
            share = np.where(on.sum(axis=0) > by_chance + 3.0 * np.sqrt(by_chance) + 3.0, share, 0)
        rest = 1.0 - beyond
        chance = np.stack([beyond, rest * share, 0.0 * rest, rest * (1.0 - share)], axis=1)
        middle, spread = _moments((on, on, on, short), v, width)
        shared = _moments((either > near,), either, width)
        middle[:, 0], spread[:, 0] = shared[0][:, 0], shared[1][:, 0]
        middle[:, 1:3], spread[:, 1:3] = 0.0, width
        laws.append(NormalMixture(chance, middle, spread))
    return laws[0], laws[1]


def _moments(
    pieces: tuple[Mask, ...], v: FloatArray, width: float
) -> tuple[FloatArray, FloatArray]:
    """(N, pieces) mean and deviation of v in each piece; of few scores, towards half of all's."""
    whole = 0.25 * np.nanvar(v, axis=0)
    means, sds = [], []
    for piece in pieces:
        here = piece & np.isfinite(v)
        count = here.sum(axis=0)
        mean = np.where(here, v, 0.0).sum(axis=0) / np.maximum(count, 1)
        square = np.where(here, (v - mean) ** 2, 0.0).sum(axis=0)
        means.append(mean)
        sds.append(np.sqrt((square + 2.0 * whole) / (count + 1.0) + width**2))
    return np.stack(means, axis=1), np.stack(sds, axis=1)


@dataclass(frozen=True, eq=False)
class _Held:
    """The free ones held: M^{-1}, and u of every record (N, rows of M)."""

    own: FloatArray
    held: Rows
    inverse: FloatArray
    beside: FloatArray

    @classmethod
    def of(cls, own: FloatArray, kernel: FloatArray, held: Rows, borders: FloatArray) -> _Held:
        """Of every record's kernel with itself, and with the free ones (N, held).

        ``borders`` (N, c) are what sums over them keep.
        """
        beside = np.column_stack([kernel, borders])
        size, free = beside.shape[1], len(held)
        if not free:
            return cls(own, held, np.zeros((size, size)), beside)
        M = np.zeros((size, size))
        M[:free] = beside[held]
        M[free:, :free] = borders[held].T
        values, vectors = symmetric_eigen(M)
        good = np.abs(values) > NO_DIRECTION * float(np.max(np.abs(values)))
        inverse = (vectors[:, good] / values[good]) @ vectors[:, good].T
        return cls(own, held, inverse, beside)

    @property
    def yields(self) -> FloatArray:
        """(N,) s: of a free record, what the other free ones leave of it."""
        found = self.own - np.einsum(
            "np,pq,nq->n", self.beside, self.inverse, self.beside, optimize=True
        )
        alone = np.diagonal(self.inverse)[: len(self.held)]
        own = self.own[self.held]
        found[self.held] = np.where(alone > 0.0, 1.0 / np.maximum(alone, 1e-300), own)
        return np.asarray(np.clip(found, 0.0, self.own))

    @property
    def last(self) -> tuple[FloatArray, float]:
        """(N,) h of every record, and q: of the last border; of a free one (M^{-1} e)_i."""
        column = self.inverse[:, -1]
        found = self.beside @ column
        found[self.held] = column[: len(self.held)]
        return np.asarray(found), float(column[-1])


@dataclass(frozen=True, eq=False)
class _Kernels:
    """The kernel of every record with itself (N,), and with some others (N, some), in order."""

    own: FloatArray
    some: Rows
    beside: FloatArray

    @classmethod
    def of(cls, inner: Any, X: FloatArray, some: Rows) -> _Kernels:
        return cls(own_kernel(inner, X), some, kernel_beside(inner, X, some))

    def held(self, rows: Rows, free: Rows, borders: FloatArray) -> _Held:
        """The free ones held, of one machine's records; both count those records."""
        place = np.searchsorted(self.some, rows[free])
        return _Held.of(self.own[rows], self.beside[np.ix_(rows, place)], free, borders)


def _weights(inner: Any, inside: Mask) -> FloatArray:
    """(N, machines' rows) |beta| of every record as the estimator has them, zero where out."""
    dual = dual_weights(inner)
    found = np.zeros((len(inside), len(dual)))
    found[np.flatnonzero(inside)[np.asarray(inner.support_)]] = np.abs(dual).T
    return found


def _free(size: FloatArray, bound: FloatArray, inside: Mask) -> Rows:
    """Who of the training set has a weight between none and all."""
    between = (size > AT_BOUND * bound) & (size < (1.0 - AT_BOUND) * bound)
    return np.flatnonzero(inside & between)


def svc(inner: Any, X: FloatArray, y: Labels, inside: Mask) -> FloatArray:
    """SVC and NuSVC: the own class's margin t f against the nearest other."""
    codes, margins = np.searchsorted(inner.classes_, y), margins_of_classes(inner, X)
    machines = list(_machines(inner, codes, margins, inside))
    some = np.unique(np.concatenate([one.rows[one.free] for one in machines]))
    kernels = _Kernels.of(inner, X, some)
    found = np.full(len(y), np.inf)
    for one in machines:
        part = inside[one.rows]
        if "NuSVC" in class_names(inner):
            g, rho = _nu_turned(
                kernels.held(one.rows, one.free, np.column_stack([np.ones(len(part)), one.sign])),
                one.size * one.rho, one.rho * (one.own - 1.0), one.sign, one.rho, part,
                bound=1.0, share=float(inner.nu),
            )  # fmt: skip
            turned = 1.0 + g / np.where(rho > 0.0, rho, np.nan)
        else:
            s = kernels.held(one.rows, one.free, np.ones((len(one.rows), 1))).yields
            turned = np.where(part, one.own - one.size * s, pushed(one.own, one.bound * s))
        found[one.rows] = np.minimum(found[one.rows], turned)
    return found


@dataclass(frozen=True, eq=False)
class _Machine:
    """One machine for two classes: its records, and of each weight, bound, sign and margin.

    ``free`` counts those records; ``rho`` is the margin before a nu form divides by it.
    """

    rows: Rows
    free: Rows
    size: FloatArray
    bound: FloatArray
    sign: FloatArray
    own: FloatArray
    rho: float


def _machines(inner: Any, codes: Rows, margins: FloatArray, inside: Mask) -> Iterator[_Machine]:
    weights, nu = _weights(inner, inside), "NuSVC" in class_names(inner)
    for first, second in combinations(range(len(inner.classes_)), 2):
        rows = np.flatnonzero((codes == first) | (codes == second))
        is_first = codes[rows] == first
        # libsvm keeps the weights against class j in row j, or before it where the own is before.
        size = weights[rows, np.where(is_first, second - 1, first)]
        own = margins[rows, codes[rows], np.where(is_first, second, first)]
        rho = 1.0
        if nu:
            rho = float(inner.nu) * np.count_nonzero(inside[rows]) / max(float(size.sum()), 1e-300)
            bound = np.full(len(rows), 1.0 / rho)
        else:
            bound = float(inner.C) * np.asarray(inner.class_weight_)[codes[rows]]
        sign = np.where(is_first, 1.0, -1.0)
        yield _Machine(rows, _free(size, bound, inside[rows]), size, bound, sign, own, rho)


def _nu_turned(
    found: _Held,
    size: FloatArray,
    g: FloatArray,
    sign: FloatArray,
    rho: float,
    inside: Mask,
    *,
    bound: float,
    share: float,
) -> tuple[FloatArray, FloatArray]:
    """g and rho of every record where it comes or goes: of a nu form, all records of one machine.

    ``found`` holds the free ones.  ``size`` (N,) are the weights, ``sign`` t, ``bound`` the most
    that one may have, and ``share`` what one record more adds to the sum of the weights.
    """
    s, (h, q), held = found.yields, found.last, found.held
    added = np.where(inside, -share, share)
    # Put in: at no weight, and then at the weight that leads to the margin.
    start = g + sign * h * added
    joined = np.where(start < 0.0, np.minimum(-start / np.maximum(s, 1e-300), bound), 0.0)
    weight = np.where(inside, -size, joined)
    moved, margin = start + s * weight, rho - q * added + sign * h * weight
    # A free one leaves: the others stay, and its own distance is whatever takes its weight away.
    freed = s[held] * (-sign[held] * size[held] - added[held] * h[held])
    moved[held] = sign[held] * freed
    margin[held] = rho - q * added[held] - freed * h[held]
    # On the margin, exactly.
    moved[~inside & (joined > 0.0) & (joined < bound)] = 0.0
    return moved, margin


def pushed(own: FloatArray, most: FloatArray) -> FloatArray:
    """A margin below 1 is moved towards it by as much as the record can."""
    return np.asarray(np.where(own < 1.0, np.minimum(own + most, 1.0), own))


def svr(inner: Any, X: FloatArray, y: Labels, inside: Mask) -> FloatArray:
    """SVR: the prediction."""
    target, C = np.asarray(y, dtype=np.float64), float(inner.C)
    size, own = _weights(inner, inside)[:, 0], np.asarray(inner.predict(X), dtype=np.float64)
    held = _free(size, np.full(len(X), C), inside)
    everybody = np.arange(len(X))
    s = _Kernels.of(inner, X, held).held(everybody, held, np.ones((len(X), 1))).yields
    off, epsilon = own - target, float(inner.epsilon)
    moved = np.sign(off) * np.maximum(np.abs(off) - C * s, epsilon)
    joined = target + np.where(np.abs(off) > epsilon, moved, off)
    # What is beyond the tube is pulled to it.
    return np.where(inside, own + np.sign(off) * size * s, joined)


def nu_svr(inner: Any, X: FloatArray, y: Labels, inside: Mask) -> FloatArray:
    """NuSVR: the prediction; the tube's width is learned."""
    target, C = np.asarray(y, dtype=np.float64), float(inner.C)
    size, own = _weights(inner, inside)[:, 0], np.asarray(inner.predict(X), dtype=np.float64)
    off = own - target
    # The free ones lie on the tube; without any, it is as wide as what is within reaches.
    some = _free(size, np.full(len(X), C), inside)
    on = np.abs(off[some]) if some.size else np.abs(off[inside & (size == 0.0)])
    epsilon = float(np.median(on)) if some.size else float(np.max(on, initial=0.0))
    sign = np.where(off > 0.0, -1.0, 1.0)
    g = epsilon - np.abs(off)
    borders = np.column_stack([np.ones(len(X)), sign])
    held = _Kernels.of(inner, X, some).held(np.arange(len(X)), some, borders)
    moved, rho = _nu_turned(
        held, size, g, sign, -epsilon, inside, bound=C, share=C * float(inner.nu)
    )
    return np.asarray(target + sign * (moved + rho))


def refusal(inner: Any) -> str | None:
    """A kernel matrix is no features, and balanced weights follow the records."""
    name = type(inner).__name__
    if isinstance(inner.kernel, str) and inner.kernel == "precomputed":
        return f"{name} with a kernel matrix of its own has no features; give the kernel's name"
    if isinstance(getattr(inner, "class_weight", None), str) and "NuSVC" not in class_names(inner):
        return f"{name} has balanced weights, which follow the records; give them as numbers"
    return None


def unknown(inner: Any, X: FloatArray, y: Labels, inside: Mask) -> FloatArray:
    """Of linear machines: the free records pin all of f, and others take their place."""
    return np.full(len(y), np.nan)


def curved(inner: Any) -> bool:
    """Whether its free records leave more of f to move than a plane has."""
    return not (isinstance(inner.kernel, str) and inner.kernel == "linear")


def linear_refusal(inner: Any) -> str | None:
    """Several classes are each against the rest, and most are beyond every margin."""
    if len(getattr(inner, "classes_", ())) > 2:
        return f"{type(inner).__name__} with a hinge and several classes; take squared_hinge"
    if isinstance(getattr(inner, "class_weight", None), str):
        return f"{type(inner).__name__} has balanced weights; give them as numbers"
    return None


def at_margin(inner: Any, y: Labels, without: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The own margin's corner is 1, and what is below is moved up."""
    return np.ones(len(without)), np.ones(len(without))


def at_tube(inner: Any, y: Labels, without: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The nearer end of the tube around the target."""
    target = np.asarray(y, dtype=np.float64)
    side = np.where(without < target, 1.0, -1.0)
    return target - side * float(inner.epsilon), side


def at_target(inner: Any, y: Labels, without: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A tube of no width: a quantile regression goes through some of its records."""
    target = np.asarray(y, dtype=np.float64)
    return target, np.where(without < target, 1.0, -1.0)
