"""Smooth convex losses l(z; y): value, force F = l', curvature h = l'', and proximal map.

The proximal map of yield k takes m to the z with z + k F(z) = m: where the prediction lands when a
record joins a model that predicted m without it and that yields k per unit of force.

Several classes are seen through C - 1 contrasts of their logits, B'z with orthonormal columns of B
that sum to zero: a constant added to all logits changes nothing, so that nothing else is lost and
no matrix is singular.  All arrays have the outputs last.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError

Codes = npt.NDArray[np.intp]
Derivative = Callable[[FloatArray, FloatArray], FloatArray]

# Beyond it an exponential has no square.
LARGEST_EXPONENT = 300.0


@dataclass(frozen=True)
class Loss:
    """A loss of one output, for arrays of predictions z and labels y.

    Attributes
    ----------
    value, force, curvature
        l, l' and l'' of (z, y).
    prox
        The z with z + k l'(z) = m, of (m, k, y) with k of zero or above.
    quadratic
        Whether the curvature is the same everywhere.
    log_link
        Whether a prediction is the exponential of z.
    longest_step
        The most that a Newton step may move a prediction.
    power
        Of a Tweedie loss.
    """

    name: str
    value: Derivative
    force: Derivative
    curvature: Derivative
    prox: Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
    quadratic: bool = False
    log_link: bool = False
    longest_step: float = np.inf
    power: float | None = None


def _square_curvature(z: FloatArray, y: FloatArray) -> FloatArray:
    return np.ones(np.broadcast_shapes(np.shape(z), np.shape(y)))


def _logistic_force(z: FloatArray, y: FloatArray) -> FloatArray:
    # expit(z) - 1 loses the digits of a confident prediction; -expit(-z) keeps them
    sign = 1.0 - 2.0 * np.asarray(y)
    return np.asarray(sign * special.expit(sign * z))


def _logistic_curvature(z: FloatArray, y: FloatArray) -> FloatArray:
    share = special.expit(-np.abs(z))
    return np.asarray(share * (1.0 - share) + 0.0 * np.asarray(y))


def _logistic_prox(m: FloatArray, k: FloatArray, y: FloatArray) -> FloatArray:
    """Newton steps that cannot overshoot.

    With a = m + k y the equation is z + k expit(z) = a.  It is mirrored so that the root is not
    negative; there the left side is concave, and from a start to the left of the root every Newton
    step stays to the left of it.
    """
    a = np.asarray(m + k * np.asarray(y), dtype=np.float64)
    mirrored = a < 0.5 * np.asarray(k)
    a = np.where(mirrored, k - a, a)
    z = np.maximum(a - k * special.expit(a), 0.0)
    for _ in range(200):
        share = special.expit(-z)
        step = (a - z - k * (1.0 - share)) / (1.0 + k * share * (1.0 - share))
        z = z + step
        if np.all(np.abs(step) <= 1e-12 * (1.0 + np.abs(z))):
            break
    return np.asarray(np.where(mirrored, -z, z))


def _exponential_prox(m: FloatArray, k: FloatArray, rate: float) -> FloatArray:
    """The z with z + k e^(rate z) = m, by Wright's omega function."""
    positive = np.where(k > 0.0, rate * k, 1.0)
    omega = np.asarray(special.wrightomega(rate * m + np.log(positive)))
    large = omega > 1.0
    z = np.where(
        large, (np.log(np.where(large, omega, 1.0)) - np.log(positive)) / rate, m - omega / rate
    )
    return np.asarray(np.where(k > 0.0, z, m))


def _poisson_prox(m: FloatArray, k: FloatArray, y: FloatArray) -> FloatArray:
    k = np.asarray(k, dtype=np.float64)
    return _exponential_prox(np.asarray(m + k * y, dtype=np.float64), k, 1.0)


def _tweedie_parts(power: float, z: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """e^((2-p)z) and y e^((1-p)z); far from every root they stay finite."""
    rise = np.exp(np.minimum((2.0 - power) * np.asarray(z), LARGEST_EXPONENT))
    fall = np.exp(np.minimum((1.0 - power) * np.asarray(z), LARGEST_EXPONENT))
    return rise, np.asarray(y * fall)


def _tweedie_value(power: float, z: FloatArray, y: FloatArray) -> FloatArray:
    rise, fall = _tweedie_parts(power, z, y)
    first = z if power == 2.0 else rise / (2.0 - power)
    return np.asarray(first + fall / (power - 1.0))


def _tweedie_force(power: float, z: FloatArray, y: FloatArray) -> FloatArray:
    rise, fall = _tweedie_parts(power, z, y)
    return np.asarray(rise - fall)


def _tweedie_curvature(power: float, z: FloatArray, y: FloatArray) -> FloatArray:
    rise, fall = _tweedie_parts(power, z, y)
    return np.asarray((2.0 - power) * rise + (power - 1.0) * fall)


def _tweedie_prox(power: float, m: FloatArray, k: FloatArray, y: FloatArray) -> FloatArray:
    """Newton steps between two bounds.

    Without the part of F that falls the root lies below, without the part that rises above; either
    alone is Wright's omega function, and at p = 2 the first part is the constant 1.
    """
    m, k, y = np.broadcast_arrays(np.asarray(m, dtype=np.float64), k, y)
    if power == 2.0:
        return -_exponential_prox(k - m, k * y, 1.0)
    low = _exponential_prox(m, k, 2.0 - power)
    high = -_exponential_prox(-m, k * y, power - 1.0)
    z = 0.5 * (low + high)
    for number in range(200):
        gap = z + k * _tweedie_force(power, z, y) - m
        low, high = np.where(gap < 0.0, z, low), np.where(gap < 0.0, high, z)
        step = z - gap / (1.0 + k * _tweedie_curvature(power, z, y))
        # Up an exponential Newton's steps are one long each; halving is quicker there.
        halve = (np.abs(step - z) > 0.5) & (number % 3 == 2)
        new = np.where((step > low) & (step < high) & ~halve, step, 0.5 * (low + high))
        done = np.all(np.abs(new - z) <= 1e-13 * (1.0 + np.abs(z)))
        z = new
        if done:
            break
    return np.asarray(z)


def tweedie(power: float) -> str:
    """The name of a Tweedie loss of this power."""
    return f"tweedie({float(power)!r})"


def _tweedie_loss(power: float) -> Loss:
    """Half the deviance of a Tweedie law with mean mu = e^z, of power 1 < p <= 2.

    l = mu^(2-p)/(2-p) - y mu^(1-p)/(1-p), and z + y e^(-z) at p = 2, the gamma law: both parts of
    F = e^((2-p)z) - y e^((1-p)z) rise, so that the loss is convex.  Beyond p = 2 it is not.
    """
    if not 1.0 < power <= 2.0:
        raise InputError(f"a Tweedie loss is convex for a power above 1, up to 2, not {power}.")
    return Loss(
        tweedie(power),
        partial(_tweedie_value, power),
        partial(_tweedie_force, power),
        partial(_tweedie_curvature, power),
        partial(_tweedie_prox, power),
        log_link=True,
        longest_step=1.0,
        power=power,
    )


class _Losses(dict[str, Loss]):
    """By name; a Tweedie loss of a new power is made when it is asked for."""

    def __missing__(self, name: str) -> Loss:
        power = re.fullmatch(r"tweedie\((.+)\)", name)
        if power is None:
            raise InputError(f"there is no loss {name!r}; there are {', '.join(self)}.")
        return self.setdefault(name, _tweedie_loss(float(power[1])))


LOSSES: dict[str, Loss] = _Losses(
    square=Loss(
        "square",
        lambda z, y: np.asarray(0.5 * (np.asarray(z) - y) ** 2),
        lambda z, y: np.asarray(np.asarray(z) - y),
        _square_curvature,
        lambda m, k, y: np.asarray((np.asarray(m) + np.asarray(k) * y) / (1.0 + np.asarray(k))),
        quadratic=True,
    ),
    logistic=Loss(
        "logistic",
        lambda z, y: np.asarray(np.logaddexp(0.0, z) - np.asarray(y) * z),
        _logistic_force,
        _logistic_curvature,
        _logistic_prox,
        longest_step=4.0,
    ),
    poisson=Loss(
        "poisson",
        lambda z, y: np.asarray(np.exp(z) - np.asarray(y) * z),
        lambda z, y: np.asarray(np.exp(z) - y),
        lambda z, y: np.asarray(np.exp(z) + 0.0 * np.asarray(y)),
        _poisson_prox,
        log_link=True,
        longest_step=1.0,
    ),
)

# Of several classes: the most that a Newton step may move a logit.
SOFTMAX_STEP = 4.0


def softmax(z: FloatArray) -> FloatArray:
    """Probabilities along the last axis."""
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    e /= np.einsum("...c->...", e)[..., None]
    return np.asarray(e)


@lru_cache(maxsize=16)
def contrasts(classes: int) -> FloatArray:
    """(C, C - 1) orthonormal columns that sum to zero."""
    frame = np.column_stack([np.ones(classes), np.eye(classes)[:, 1:]])
    return np.asarray(np.linalg.qr(frame)[0][:, 1:])


def one_hot(codes: Codes, classes: int, kind: npt.DTypeLike = np.float64) -> FloatArray:
    """e_y for every record, N x C."""
    target = np.zeros((len(codes), classes), dtype=kind)
    target[np.arange(len(codes)), codes] = 1.0
    return target


def label_log_odds(z: FloatArray, y: npt.NDArray[Any]) -> FloatArray:
    """log p_y - log(1 - p_y) of the logits z (..., N, C) and the classes y (N,)."""
    rows = np.arange(z.shape[-2])
    codes = y.astype(int)
    others = np.array(z, dtype=np.float64)
    others[..., rows, codes] = -np.inf
    return np.asarray(z[..., rows, codes] - special.logsumexp(others, axis=-1))


def class_weights(p: FloatArray, k: FloatArray, weight: FloatArray) -> FloatArray:
    """The a with E[F'] = diag(a) - a a'/sum(a) at a proximal point with probabilities p.

    Exact for a diagonal yield k: (I + h k)^{-1} h with h = w (diag p - p p').
    """
    return np.asarray(weight * p / (1.0 + k * weight * p))


def diagonal_yield(kappa: FloatArray, p: FloatArray) -> FloatArray:
    """The diagonal k whose sums k_a + k_b are nearest the variances kappa gives to z_a - z_b.

    What matters never depends on a constant added to all logits, so that kappa may be replaced by
    any matrix that differs from it by 1u' + u1'.  Weighted by the two classes' probabilities; exact
    for up to three classes.
    """
    diagonal = np.einsum("icc->ic", kappa)
    classes = np.arange(p.shape[1])
    between = diagonal[:, :, None] + diagonal[:, None, :] - 2.0 * kappa
    likely = p + 1e-3
    weights = likely[:, :, None] * likely[:, None, :]
    weights[:, classes, classes] = 0.0
    right = (weights * between).sum(axis=2)
    weights[:, classes, classes] = weights.sum(axis=2) * (1.0 + 1e-9)
    return np.asarray(np.maximum(np.linalg.solve(weights, right[:, :, None])[:, :, 0], 0.0))


def softmax_prox(m: FloatArray, k: FloatArray, target: FloatArray, start: FloatArray) -> FloatArray:
    """The logits z with z + k (p - target) = m, along the last axis; k a diagonal yield times w.

    Newton steps of at most 3: the matrix is diagonal plus rank one, so that a step costs O(C).
    """
    z = start
    goal = m + k * target
    # the steps shrink quadratically: the next one would be below the square of this
    enough = 1e-4 if z.dtype == np.float64 else 2e-3
    for _ in range(100):
        p = softmax(z)
        kp = k * p
        step = joined_move(p, kp, z + kp - goal)
        longest = np.sqrt(_inner(step, step))
        z = z - step * np.minimum(1.0, 3.0 / np.maximum(longest, 1e-30))[..., None]
        if float(longest.max()) < enough:
            break
    return z


def _inner(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("...c,...c->...", x, y))


def joined_move(p: FloatArray, kp: FloatArray, x: FloatArray) -> FloatArray:
    """(I + k h)^{-1} x with h = diag p - p p', along the last axis: how a small move of m lands.

    What is left of 1 - p'q is the sum of p / (1 + kp), since p sums to one: taken so, it has its
    digits where a yield is large and a probability near one.
    """
    denominator = 1.0 + kp
    u = x / denominator
    q = kp / denominator
    return np.asarray(u + q * (_inner(p, u) / _inner(p, 1.0 / denominator))[..., None])
