"""Smooth convex losses: derivatives, proximal maps, and moments of a record's force.

One output.  A record adds ``w l(z; y)`` to the objective, z = x'theta.  In the notation of
docs/fitted.md F is the derivative w l', h the curvature w l'', and prox_k(m) the z with
z + k F(z) = m: where the prediction lands when the record joins a model that predicted m without
it and that yields k per unit of force.

Several classes.  All arrays have the records first.  z is N x C, a record's force is
F = w (p - e_y) and its curvature h = w (diag p - p p').  What matters never depends on a constant
added to all of a record's logits, so a yield kappa may be replaced by any other that differs from
it by 1u' + u1'; the diagonal one that fits best (`diagonal_yield`) makes every proximal map a
matter of C numbers.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.errors import InputError

# Nodes that stand for a normal law where a loss is not quadratic.
NODES = 9

# Records handled at once: the temporaries of a block stay in the cache.
BLOCK = 16384
# The same with several classes, where each record has all its sigma points.
SOFTMAX_BLOCK = 256

# Beyond it an exponential has no square.
LARGEST_EXPONENT = 300.0

Codes = npt.NDArray[np.intp]


class Loss(ABC):
    """One loss of a prediction z and a label y, for arrays of both."""

    name: str
    quadratic: bool = False
    # Whether a prediction is the exponential of z.
    log_link: bool = False
    # The most that a Newton step may move a prediction.
    longest_step: float = np.inf

    @abstractmethod
    def value(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The loss l(z; y)."""

    @abstractmethod
    def force(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The first derivative F = l'."""

    @abstractmethod
    def curvature(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The second derivative h = l''."""

    @abstractmethod
    def prox(self, m: FloatArray, k: FloatArray, y: FloatArray) -> FloatArray:
        """The z with z + k l'(z) = m, for k of zero or above."""


class SquareLoss(Loss):
    """l = (z - y)^2 / 2: ridge, kernel ridge, the mean of a Gaussian process."""

    name = "square"
    quadratic = True

    def value(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The loss l(z; y)."""
        return np.asarray(0.5 * (np.asarray(z) - y) ** 2)

    def force(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The first derivative F = l'."""
        return np.asarray(np.asarray(z) - y)

    def curvature(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The second derivative h = l''."""
        return np.ones(np.broadcast_shapes(np.shape(z), np.shape(y)))

    def prox(self, m: FloatArray, k: FloatArray, y: FloatArray) -> FloatArray:
        """The z with z + k l'(z) = m, for k of zero or above."""
        return np.asarray((np.asarray(m) + np.asarray(k) * y) / (1.0 + np.asarray(k)))


class LogisticLoss(Loss):
    """l = log(1 + e^z) - y z with labels 0 and 1: two-class logistic regression."""

    name = "logistic"
    longest_step = 4.0

    def value(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The loss l(z; y)."""
        return np.asarray(np.logaddexp(0.0, z) - np.asarray(y) * z)

    def force(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The first derivative F = l'."""
        # expit(z) - 1 loses the digits of a confident prediction; -expit(-z) keeps them
        sign = 1.0 - 2.0 * np.asarray(y)
        return np.asarray(sign * special.expit(sign * z))

    def curvature(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The second derivative h = l''."""
        share = special.expit(-np.abs(z))
        return np.asarray(share * (1.0 - share) + 0.0 * np.asarray(y))

    def prox(self, m: FloatArray, k: FloatArray, y: FloatArray) -> FloatArray:
        """The z with z + k l'(z) = m, by Newton steps that cannot overshoot.

        With a = m + k y the equation is z + k expit(z) = a.  It is mirrored so that the root is
        not negative; there the left side is concave, and from a start to the left of the root
        every Newton step stays to the left of it.
        """
        k = np.asarray(k, dtype=np.float64)
        a = np.asarray(m + k * y, dtype=np.float64)
        mirrored = a < 0.5 * k
        a = np.where(mirrored, k - a, a)
        z = np.maximum(a - k * special.expit(a), 0.0)
        for _ in range(200):
            share = special.expit(-z)
            step = (a - z - k * (1.0 - share)) / (1.0 + k * share * (1.0 - share))
            z = z + step
            if np.all(np.abs(step) <= 1e-12 * (1.0 + np.abs(z))):
                break
        return np.asarray(np.where(mirrored, -z, z))


class SquaredHingeLoss(Loss):
    """l = max(1 - y z, 0)^2 with labels -1 and 1: a linear support vector classifier."""

    name = "squared_hinge"

    def value(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The loss l(z; y)."""
        return np.asarray(np.maximum(1.0 - np.asarray(y) * z, 0.0) ** 2)

    def force(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The first derivative F = l'."""
        return np.asarray(-2.0 * np.asarray(y) * np.maximum(1.0 - np.asarray(y) * z, 0.0))

    def curvature(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The second derivative h = l'', zero beyond the margin."""
        return np.asarray(2.0 * (np.asarray(y) * z < 1.0))

    def prox(self, m: FloatArray, k: FloatArray, y: FloatArray) -> FloatArray:
        """The z with z + k l'(z) = m: what lies beyond the margin stays."""
        own = np.asarray(m) * y
        inside = (own + 2.0 * np.asarray(k)) / (1.0 + 2.0 * np.asarray(k))
        return np.asarray(y * np.where(own < 1.0, inside, own))


@dataclass(frozen=True)
class SquaredInsensitiveLoss(Loss):
    """l = max(|z - y| - epsilon, 0)^2: a linear support vector regression."""

    epsilon: float
    name = "squared_insensitive"

    def value(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The loss l(z; y)."""
        return np.asarray(np.maximum(np.abs(np.asarray(z) - y) - self.epsilon, 0.0) ** 2)

    def force(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The first derivative F = l'."""
        off = np.asarray(z) - y
        return np.asarray(2.0 * np.sign(off) * np.maximum(np.abs(off) - self.epsilon, 0.0))

    def curvature(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The second derivative h = l'', zero within the tube."""
        return np.asarray(2.0 * (np.abs(np.asarray(z) - y) > self.epsilon))

    def prox(self, m: FloatArray, k: FloatArray, y: FloatArray) -> FloatArray:
        """The z with z + k l'(z) = m: what lies within the tube stays."""
        off, k = np.asarray(m) - y, np.asarray(k)
        size = (np.abs(off) + 2.0 * k * self.epsilon) / (1.0 + 2.0 * k)
        return np.asarray(np.where(np.abs(off) <= self.epsilon, m, y + np.sign(off) * size))


class PoissonLoss(Loss):
    """l = e^z - y z with counts y: Poisson regression with a logarithmic link."""

    name = "poisson"
    log_link = True
    longest_step = 1.0

    def value(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The loss l(z; y)."""
        return np.asarray(np.exp(z) - np.asarray(y) * z)

    def force(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The first derivative F = l'."""
        return np.asarray(np.exp(z) - y)

    def curvature(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The second derivative h = l''."""
        return np.asarray(np.exp(z) + 0.0 * np.asarray(y))

    def prox(self, m: FloatArray, k: FloatArray, y: FloatArray) -> FloatArray:
        """The z with z + k l'(z) = m: Wright's omega function, k e^z = omega(m + k y + log k)."""
        k = np.asarray(k, dtype=np.float64)
        a = np.asarray(m + k * y, dtype=np.float64)
        positive = np.where(k > 0.0, k, 1.0)
        omega = np.asarray(special.wrightomega(a + np.log(positive)))
        large = omega > 1.0
        z = np.where(large, np.log(np.where(large, omega, 1.0)) - np.log(positive), a - omega)
        return np.asarray(np.where(k > 0.0, z, a))


class TweedieLoss(Loss):
    """Half the deviance of a Tweedie law with mean mu = e^z, of power 1 < p <= 2.

    l = mu^(2-p)/(2-p) - y mu^(1-p)/(1-p), and z + y e^(-z) at p = 2, the gamma law: both parts of
    F = e^((2-p)z) - y e^((1-p)z) rise, so that the loss is convex.  Beyond p = 2 it is not.
    """

    log_link = True
    longest_step = 1.0

    def __init__(self, power: float) -> None:
        if not 1.0 < power <= 2.0:
            raise InputError(f"a Tweedie loss is convex for a power above 1, up to 2, not {power}.")
        self.power = power
        self.name = tweedie(power)

    def _parts(self, z: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """e^((2-p)z) and y e^((1-p)z); far from every root they stay finite."""
        rise = np.exp(np.minimum((2.0 - self.power) * np.asarray(z), LARGEST_EXPONENT))
        fall = np.exp(np.minimum((1.0 - self.power) * np.asarray(z), LARGEST_EXPONENT))
        return rise, np.asarray(y * fall)

    def value(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The loss l(z; y)."""
        rise, fall = self._parts(z, y)
        first = z if self.power == 2.0 else rise / (2.0 - self.power)
        return np.asarray(first + fall / (self.power - 1.0))

    def force(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The first derivative F = l'."""
        rise, fall = self._parts(z, y)
        return np.asarray(rise - fall)

    def curvature(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """The second derivative h = l''."""
        rise, fall = self._parts(z, y)
        return np.asarray((2.0 - self.power) * rise + (self.power - 1.0) * fall)

    def prox(self, m: FloatArray, k: FloatArray, y: FloatArray) -> FloatArray:
        """The z with z + k l'(z) = m, by Newton steps between two bounds.

        Without the part of F that falls the root lies below, without the part that rises above;
        either alone is Wright's omega function, and at p = 2 the first part is the constant 1.
        """
        p = self.power
        m, k, y = np.broadcast_arrays(np.asarray(m, dtype=np.float64), k, y)
        if p == 2.0:
            return -_grown(k - m, k * y, 1.0)
        low = _grown(m, k, 2.0 - p)
        high = -_grown(-m, k * y, p - 1.0)
        z = 0.5 * (low + high)
        for round_ in range(200):
            gap = z + k * self.force(z, y) - m
            low, high = np.where(gap < 0.0, z, low), np.where(gap < 0.0, high, z)
            step = z - gap / (1.0 + k * self.curvature(z, y))
            # Up an exponential Newton's steps are one long each; halving is quicker there.
            halve = (np.abs(step - z) > 0.5) & (round_ % 3 == 2)
            new = np.where((step > low) & (step < high) & ~halve, step, 0.5 * (low + high))
            done = np.all(np.abs(new - z) <= 1e-13 * (1.0 + np.abs(z)))
            z = new
            if done:
                break
        return np.asarray(z)


def _grown(m: FloatArray, k: FloatArray, rate: float) -> FloatArray:
    """The z with z + k e^(rate z) = m; k of zero or above."""
    positive = np.where(k > 0.0, rate * k, 1.0)
    omega = np.asarray(special.wrightomega(rate * m + np.log(positive)))
    large = omega > 1.0
    z = np.where(
        large, (np.log(np.where(large, omega, 1.0)) - np.log(positive)) / rate, m - omega / rate
    )
    return np.asarray(np.where(k > 0.0, z, m))


def tweedie(power: float) -> str:
    """The name of a Tweedie loss of this power."""
    return f"tweedie({float(power)!r})"


class _Losses(dict[str, Loss]):
    """By name; a Tweedie loss of a new power is made when it is asked for."""

    def __missing__(self, name: str) -> Loss:
        told = re.fullmatch(r"tweedie\((.+)\)", name)
        if told is None:
            raise InputError(f"there is no loss {name!r}; there are {', '.join(self)}.")
        return self.setdefault(name, TweedieLoss(float(told[1])))


LOSSES: dict[str, Loss] = _Losses(
    square=SquareLoss(), logistic=LogisticLoss(), poisson=PoissonLoss()
)


@dataclass(frozen=True, eq=False)
class Moments:
    """What a record's force does on average, when the prediction without it is N(m, v).

    Attributes
    ----------
    force, slope, square
        E[F], E[dF/dm] and E[F^2], with F the derivative of the loss at prox_kappa(m + eps).
    """

    force: FloatArray
    slope: FloatArray
    square: FloatArray


@lru_cache(maxsize=8)
def hermite(nodes: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of the standard normal law."""
    x, weight = np.polynomial.hermite_e.hermegauss(nodes)
    return x, weight / weight.sum()


def moments(
    loss: Loss,
    m: FloatArray,
    v: FloatArray,
    kappa: FloatArray,
    y: FloatArray,
    weight: FloatArray,
    *,
    nodes: int = NODES,
) -> Moments:
    """The moments of the force; ``nodes=1`` is the delta method, exact for the square loss.

    Where all spreads are small, fewer nodes give the same digits.
    """
    widest = float(np.sqrt(np.max(v, initial=0.0)))
    nodes = min(nodes, 3 if widest < 0.05 else 5 if widest < 0.8 else NODES)
    size = len(m)
    result = Moments(np.zeros(size), np.zeros(size), np.zeros(size))
    delta = nodes == 1 or loss.quadratic
    points, shares = hermite(1 if delta else nodes)
    for start in range(0, size, BLOCK):
        part = slice(start, start + BLOCK)
        labels, w, k = y[part], weight[part], kappa[part]
        spread = np.sqrt(v[part])
        for point, share in zip(points, shares, strict=True):
            z = loss.prox(m[part] + point * spread, k * w, labels)
            force = w * loss.force(z, labels)
            h = w * loss.curvature(z, labels)
            slope = h / (1.0 + k * h)
            result.force[part] += share * force
            result.slope[part] += share * slope
            result.square[part] += share * force * force
        if delta:
            result.square[part] += result.slope[part] ** 2 * v[part]
    return result


def softmax(z: FloatArray) -> FloatArray:
    """Probabilities along the last axis."""
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    e /= np.einsum("...c->...", e)[..., None]
    return np.asarray(e)


def softmax_prox(m: FloatArray, k: FloatArray, target: FloatArray, start: FloatArray) -> FloatArray:
    """The z with z + k (p - target) = m, along the last axis; k is a diagonal yield times w.

    Newton steps of at most 3: the matrix is diagonal plus rank one, so a step costs O(C).
    """
    z = start
    goal = m + k * target
    # the steps shrink quadratically: the next one would be below the square of this
    enough = 1e-4 if z.dtype == np.float64 else 2e-3
    for _ in range(100):
        p = softmax(z)
        kp = k * p
        step = _inverse_times(p, kp, z + kp - goal)
        longest = np.sqrt(_inner(step, step))
        z = z - step * np.minimum(1.0, 3.0 / np.maximum(longest, 1e-30))[..., None]
        if float(longest.max()) < enough:
            break
    return z


def _inner(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("...c,...c->...", x, y))


def _inverse_times(p: FloatArray, kp: FloatArray, x: FloatArray) -> FloatArray:
    """(I + k h)^{-1} x with h = diag p - p p', along the last axis.

    What is left of 1 - p'q is the sum of p / (1 + kp), since p sums to one: taken so, it has its
    digits where a yield is large and a probability near one.
    """
    denominator = 1.0 + kp
    u = x / denominator
    q = kp / denominator
    return np.asarray(u + q * (_inner(p, u) / _inner(p, 1.0 / denominator))[..., None])


def one_hot(codes: Codes, classes: int, kind: npt.DTypeLike = np.float64) -> FloatArray:
    """e_y for every record, N x C."""
    target = np.zeros((len(codes), classes), dtype=kind)
    target[np.arange(len(codes)), codes] = 1.0
    return target


def own_log_odds(z: FloatArray, y: npt.NDArray[Any]) -> FloatArray:
    """log p(own label) - log(1 - p), from the logits of all classes (the last axis)."""
    rows = np.arange(z.shape[-2])
    codes = y.astype(int)
    others = np.array(z, dtype=np.float64)
    others[..., rows, codes] = -np.inf
    return np.asarray(z[..., rows, codes] - special.logsumexp(others, axis=-1))


def sigma_points(classes: int, least: int, seed: int) -> FloatArray:
    """Points (S x C) with mean 0 and covariance I, in turned frames, at the radius of a normal.

    Both ends of every axis of a frame; from `least` classes on the corners of a simplex do.
    """
    generator = Key(seed, (17, classes)).generator()
    if classes >= least:
        corners = np.linalg.qr(np.column_stack([np.ones(classes + 1), np.eye(classes + 1)[:, 1:]]))
        simplex = np.sqrt(classes + 1.0) * corners[0][:, 1:]
        return np.asarray(simplex @ np.linalg.qr(generator.standard_normal((classes, classes)))[0])
    frames = -(-least // (2 * classes))
    points = []
    for _ in range(frames):
        frame = np.linalg.qr(generator.standard_normal((classes, classes)))[0]
        points += [np.sqrt(classes) * frame, -np.sqrt(classes) * frame]
    return np.concatenate(points)


@dataclass(frozen=True, eq=False)
class SoftmaxMoments:
    """E[F] (N x C), E[dF/dm] and E[F F'] (N x C x C), and what of the last is linear in eps.

    ``linear`` is E[F'] V E[F'], by regression on the sigma points, so that what is left of the
    covariance of F is positive semidefinite.
    """

    force: FloatArray
    slope: FloatArray
    square: FloatArray
    linear: FloatArray


def pushed_blocks(
    m: FloatArray,
    root: FloatArray | None,
    k: FloatArray,
    codes: Codes,
    weight: FloatArray,
    points: FloatArray,
) -> Iterator[tuple[slice, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]]:
    """The predictions m + root xi without a record and where they land with it, block by block.

    Each block's records (a slice), weights, targets and yields times the weights, then the two
    predictions, records x points x C; without ``root`` there is one point, m itself.
    """
    kind = m.dtype
    for start in range(0, len(m), SOFTMAX_BLOCK):
        part = slice(start, min(start + SOFTMAX_BLOCK, len(m)))
        w = weight[part, None, None].astype(kind)
        target = one_hot(codes[part], m.shape[1], kind)[:, None, :]
        kw = k[part, None, :] * w
        without = m[part, None, :]
        joined = softmax_prox(without, kw, target, without - kw * (softmax(without) - target) * 0.5)
        if root is not None:
            eps = points @ np.swapaxes(root[part], 1, 2)
            # (I + k h)^{-1} eps: how a small move of m moves the prox
            p = softmax(joined)
            without = without + eps
            joined = softmax_prox(without, kw, target, joined + _inverse_times(p, kw * p, eps))
        yield part, w, target, kw, without, joined


def softmax_moments(
    m: FloatArray,
    root: FloatArray | None,
    k: FloatArray,
    codes: Codes,
    weight: FloatArray,
    points: FloatArray,
) -> SoftmaxMoments:
    """The moments of the force where m + root xi is the prediction without the record.

    Without ``root`` there is no spread, and E[F F'] is FF'.
    """
    size, classes = m.shape
    kind = m.dtype
    points = points.astype(kind)
    found = SoftmaxMoments(
        np.empty((size, classes), dtype=kind),
        np.empty((size, classes, classes), dtype=kind),
        np.empty((size, classes, classes), dtype=kind),
        np.zeros((size, classes, classes), dtype=kind),
    )
    for part, w, target, kw, _, z in pushed_blocks(m, root, k, codes, weight, points):
        p = softmax(z)
        force = w * (p - target)
        share = w * p / (1.0 + kw * p)
        shares = 1.0 / p.shape[1]
        scaled = share / np.sqrt(np.maximum(share.sum(axis=-1, keepdims=True), 1e-300))
        slope = -shares * (np.swapaxes(scaled, 1, 2) @ scaled)
        slope[:, np.arange(classes), np.arange(classes)] += share.mean(axis=1)
        found.force[part] = force.mean(axis=1)
        found.slope[part] = slope
        found.square[part] = shares * (np.swapaxes(force, 1, 2) @ force)
        if root is not None:
            along = shares * (np.swapaxes(force, 1, 2) @ points)
            found.linear[part] = along @ np.swapaxes(along, 1, 2)
    return found


def diagonal_yield(kappa: FloatArray, p: FloatArray) -> FloatArray:
    """The diagonal k whose sums k_a + k_b are nearest the variances kappa gives to z_a - z_b.

    Weighted by the two classes' probabilities; exact for up to three classes.
    """
    diagonal = np.einsum("icc->ic", kappa)
    classes = p.shape[1]
    between = diagonal[:, :, None] + diagonal[:, None, :] - 2.0 * kappa
    likely = p + 1e-3
    weights = likely[:, :, None] * likely[:, None, :]
    weights[:, np.arange(classes), np.arange(classes)] = 0.0
    right = (weights * between).sum(axis=2)
    matrix = weights
    matrix[:, np.arange(classes), np.arange(classes)] = weights.sum(axis=2) * (1.0 + 1e-9)
    solved = np.linalg.solve(matrix, right[:, :, None])[:, :, 0]
    return np.asarray(np.maximum(solved, 0.0))


def centred(matrices: FloatArray) -> FloatArray:
    """P M P with P = I - 11'/C: the constant logit taken out on both sides."""
    matrices = matrices - matrices.mean(axis=-1, keepdims=True)
    return np.asarray(matrices - matrices.mean(axis=-2, keepdims=True))


def square_root(covariances: FloatArray) -> FloatArray:
    """A root R of each covariance, R R', which may be singular along the constant logit.

    It is Cholesky's where rounding leaves the covariance positive; elsewhere what lies below zero
    is taken as zero.
    """
    classes = covariances.shape[-1]
    kind = covariances.dtype
    trace = np.einsum("icc->i", covariances) / classes
    jitter = (1e-6 if kind == np.float64 else 1e-5) * trace + np.finfo(kind).tiny
    return _root(covariances + jitter[:, None, None] * np.eye(classes, dtype=kind))


def _root(covariances: FloatArray) -> FloatArray:
    try:
        return np.asarray(np.linalg.cholesky(covariances))
    except np.linalg.LinAlgError:
        if len(covariances) > 1:  # few fail: find them by halves
            middle = len(covariances) // 2
            return np.concatenate([_root(covariances[:middle]), _root(covariances[middle:])])
    values, vectors = np.linalg.eigh(covariances.astype(np.float64))
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return np.asarray(roots, dtype=covariances.dtype)
