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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.eigenvectors import symmetric_eigen
from leakscope._numerics.memory import require_memory
from leakscope.fitted.refits import Labels
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
    moments; what is on the corner is as far off as the solver leaves it.
    """

    place: FloatArray
    side: FloatArray
    member: NormalMixture
    nonmember: NormalMixture

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
            return cls(place, side, *_unpaired(out, into, near, width))
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


def corner_yield(
    kernel: FloatArray, rows: npt.NDArray[np.intp], free: Mask, *, intercept: bool
) -> FloatArray:
    """(N,) s of every record: how far a unit of its own weight moves its own answer.

    ``kernel`` is N x N, ``rows`` are the records of the training set and ``free`` says which of
    them are on the margin.
    """
    held = rows[free]
    size = len(held) + int(intercept)
    own = np.diagonal(kernel).copy()
    if size == int(intercept):
        return own
    M = np.zeros((size, size))
    M[: len(held), : len(held)] = kernel[np.ix_(held, held)]
    beside = kernel[:, held]
    if intercept:
        M[-1, :-1] = M[:-1, -1] = 1.0
        beside = np.column_stack([beside, np.ones(len(kernel))])
    values, vectors = symmetric_eigen(M)
    good = np.abs(values) > NO_DIRECTION * float(np.max(np.abs(values)))
    inverse = (vectors[:, good] / values[good]) @ vectors[:, good].T
    found = own - np.einsum("np,pq,nq->n", beside, inverse, beside, optimize=True)
    # A free record's own s is what the other free ones leave of it.
    alone = np.diagonal(inverse)[: len(held)]
    found[held] = np.where(alone > 0.0, 1.0 / np.maximum(alone, 1e-300), own[held])
    return np.asarray(np.clip(found, 0.0, own))


def _kernel(inner: Any, X: FloatArray) -> FloatArray:
    from sklearn.metrics.pairwise import pairwise_kernels

    require_memory(3 * 8 * len(X) ** 2, f"The kernel matrix of {len(X)} records", "use fewer")
    if callable(inner.kernel):
        return np.asarray(inner.kernel(X, X), dtype=np.float64)
    settings = {"gamma": inner._gamma, "degree": inner.degree, "coef0": inner.coef0}
    return np.asarray(pairwise_kernels(X, metric=inner.kernel, filter_params=True, **settings))


def yields(inner: Any, X: FloatArray, inside: Mask, bound: FloatArray) -> tuple[FloatArray, ...]:
    """Weights beta of all records (zero where out), and s of all, of a fitted SVC or SVR."""
    rows = np.flatnonzero(inside)
    beta = np.zeros(len(X))
    beta[rows[np.asarray(inner.support_)]] = np.ravel(inner.dual_coef_)
    size = np.abs(beta[rows])
    free = (size > AT_BOUND * bound[rows]) & (size < (1.0 - AT_BOUND) * bound[rows])
    return beta, corner_yield(_kernel(inner, X), rows, free, intercept=True)


def svc(inner: Any, X: FloatArray, y: Labels, inside: Mask) -> FloatArray:
    """SVC of two classes: the own label's margin y f."""
    codes = np.searchsorted(inner.classes_, y)
    bound = float(inner.C) * np.asarray(inner.class_weight_)[codes]
    beta, s = yields(inner, X, inside, bound)
    sign = np.where(codes == 1, 1.0, -1.0)
    own = sign * np.asarray(inner.decision_function(X), dtype=np.float64)
    return np.where(inside, own - sign * beta * s, pushed(own, bound * s))


def pushed(own: FloatArray, most: FloatArray) -> FloatArray:
    """A margin below 1 is moved towards it by as much as the record can."""
    return np.asarray(np.where(own < 1.0, np.minimum(own + most, 1.0), own))


def svr(inner: Any, X: FloatArray, y: Labels, inside: Mask) -> FloatArray:
    """SVR: the prediction."""
    target, C = np.asarray(y, dtype=np.float64), float(inner.C)
    beta, s = yields(inner, X, inside, np.full(len(X), C))
    own = np.asarray(inner.predict(X), dtype=np.float64)
    off, epsilon = own - target, float(inner.epsilon)
    moved = np.sign(off) * np.maximum(np.abs(off) - C * s, epsilon)
    joined = target + np.where(np.abs(off) > epsilon, moved, off)
    return np.where(inside, own - beta * s, joined)


def refusal(inner: Any) -> str | None:
    """Several classes are many machines, and a kernel matrix is no features."""
    name = type(inner).__name__
    if len(getattr(inner, "classes_", ())) > 2:
        return f"{name} of several classes is a vote of machines for two"
    if isinstance(inner.kernel, str) and inner.kernel == "precomputed":
        return f"{name} with a kernel matrix of its own has no features; give the kernel's name"
    if isinstance(getattr(inner, "class_weight", None), str):
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
