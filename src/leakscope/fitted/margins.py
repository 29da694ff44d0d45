"""Support vector machines: what one record changes, with the free support vectors held.

A support vector machine answers f = sum_j beta_j K_j + b with beta_j = y_j a_j, 0 <= a_j <= C (or
|beta_j| <= C of a regression).  Records beyond the margin have a = 0 and change nothing, in or out,
exactly.  Those within it have a = C.  The free ones lie on the margin and stay there while another
record comes or goes: they answer any change of one beta so that their own f, and the sum of all
beta, stay what they are.  What is left of a record's kernel after that is
s = K_ii - k_i' M^{-1} k_i, with M = [[K_FF, 1], [1', 0]], and

- a record that is taken out leaves f - beta s;
- a record that is put in is moved towards its margin, by at most C s: no further than the margin.

So its score with it is the one without it pushed through the corner of the loss, and lies exactly
on the margin in a share of the training sets (`Corner`): whoever sees a score on the margin knows.

With few features and a linear kernel the free ones pin all of f, and others take their place while
a record comes or goes.  So what is not certain is fitted again where that is affordable
(`leakscope.fitted.paired`), and the formulas are for sizes where it is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.eigenvectors import symmetric_eigen
from leakscope._numerics.memory import require_memory
from leakscope.fitted.refits import Labels, score_records
from leakscope.laws.distributions import NormalMixture, SpikeAndSlab
from leakscope.laws.pair import LawPair, Provenance

Mask = npt.NDArray[np.bool_]

# Of the largest weight: nearer to none or all it is that.
AT_BOUND = 1e-7
# Directions of the free ones with less than this share of the largest are none.
NO_DIRECTION = 1e-10
# Halvings that find how far a record can move its score.
HALVINGS = 60
# Standard deviations beyond the mean that a record can reach at most: what is further off is none.
ALL_REACH = 4.0
# Scores within this of the margin, in parts of it, may be moved by a solver's tolerance.
NEAR_MARGIN = 1e-2


@dataclass(frozen=True, eq=False)
class Corner:
    """Scores with a record are those without it, pushed through the corner of a loss.

    With v = ``side`` (score - ``place``): where v >= 0 nothing changes, where it is below it is
    moved up by ``reach``, but not beyond 0.  For a normal score without the record, the one with it
    is the law of soft(Z, reach / 2) with Z = v + reach / 2: an atom and two branches.
    """

    place: FloatArray
    side: FloatArray
    reach: FloatArray

    @classmethod
    def of(
        cls,
        place: FloatArray,
        side: FloatArray,
        mean: FloatArray,
        sd: FloatArray,
        shift: FloatArray,
    ) -> Corner:
        """With the reach that gives a normal score this mean shift."""
        a, wanted = side * (place - mean) / sd, side * shift / sd
        low, high = np.zeros(len(a)), np.maximum(a, 0.0) + ALL_REACH
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            more = _expected(a) - _expected(a - middle) < wanted
            low, high = np.where(more, middle, low), np.where(more, high, middle)
        return cls(place, side, sd * 0.5 * (low + high))

    def shift(self, mean: FloatArray, sd: FloatArray) -> FloatArray:
        """How far scores move in the mean."""
        a = self.side * (self.place - mean) / sd
        return np.asarray(self.side * sd * (_expected(a) - _expected(a - self.reach / sd)))

    def chance(self, mean: FloatArray, sd: FloatArray) -> FloatArray:
        """How often a score with the record lies on the corner."""
        a = self.side * (self.place - mean) / sd
        return np.asarray(special.ndtr(a) - special.ndtr(a - self.reach / sd))

    def pair(self, mean: FloatArray, sd: FloatArray, noise: float, told: Provenance) -> LawPair:
        """Both laws of v, where the score without the record has this mean and deviation."""
        centre, reach = self.side * (mean - self.place), self.reach
        if noise == 0.0:
            return LawPair(
                SpikeAndSlab(centre + 0.5 * reach, sd, 0.5 * reach),
                SpikeAndSlab(centre, sd, 0.0 * reach),
                told,
            )
        # Beyond the corner, within reach of it, and further off: each piece by its moments.
        edges = [np.full(len(sd), np.inf), -centre / sd, (-reach - centre) / sd]
        edges.append(np.full(len(sd), -np.inf))
        pieces = [_piece(low, high) for high, low in pairwise(edges)]
        chance, middle, spread = (np.stack(part, axis=1) for part in zip(*pieces, strict=True))
        means, sds = centre[:, None] + sd[:, None] * middle, sd[:, None] * spread
        after, narrow = means.copy(), sds.copy()
        after[:, 1], narrow[:, 1] = 0.0, 0.0
        after[:, 2] += reach
        return LawPair(
            NormalMixture(chance, after, np.hypot(narrow, noise)),
            NormalMixture(chance, means, np.hypot(sds, noise)),
            told,
        )


def _expected(a: FloatArray) -> FloatArray:
    """E max(a - e, 0) of a standard normal e."""
    density = np.exp(-0.5 * a * a) / np.sqrt(2.0 * np.pi)
    return np.asarray(a * special.ndtr(a) + density)


def _piece(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Chance, mean and deviation of a standard normal between two edges."""
    mass = np.maximum(special.ndtr(high) - special.ndtr(low), 1e-300)
    ends = [np.where(np.isfinite(e), np.exp(-0.5 * e * e) / np.sqrt(2.0 * np.pi), 0.0)
            for e in (low, high)]  # fmt: skip
    mean = np.clip((ends[0] - ends[1]) / mass, np.maximum(low, -40.0), np.minimum(high, 40.0))
    moved = [np.where(np.isfinite(e), e, 0.0) * d for e, d in zip((low, high), ends, strict=True)]
    variance = 1.0 + (moved[0] - moved[1]) / mass - mean**2
    return mass, mean, np.sqrt(np.clip(variance, 0.0, 1.0))


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


def beyond_margin(inner: Any, X: FloatArray, y: Labels, inside: Mask) -> Mask:
    """Whom coming or going changes nothing: the own margin is above 1, with room to spare."""
    codes = np.searchsorted(inner.classes_, y)
    score = np.asarray(inner.decision_function(X), dtype=np.float64)
    return np.asarray(np.where(codes == 1, score, -score) > 1.0 + NEAR_MARGIN)


def within_tube(inner: Any, X: FloatArray, y: Labels, inside: Mask) -> Mask:
    """Whom coming or going changes nothing: the residual is below epsilon, with room to spare."""
    off = np.abs(np.asarray(inner.predict(X)) - np.asarray(y, dtype=np.float64))
    return np.asarray(off < (1.0 - NEAR_MARGIN) * float(inner.epsilon))


def stays(inner: Any, X: FloatArray, y: Labels, inside: Mask) -> FloatArray:
    """Of linear machines: scores as they are, which holds where coming or going changes nothing."""
    return score_records(inner, X, y)


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
