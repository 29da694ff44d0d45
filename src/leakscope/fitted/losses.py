"""Smooth convex losses of one output: derivatives, proximal maps, and their moments under noise.

A record adds ``w l(z; y)`` to the objective, z = x'theta.  In the notation of docs/fitted.md F is
the derivative w l', h the curvature w l'', and prox_k(m) the z with z + k F(z) = m: where the
prediction lands when the record joins a model that predicted m without it and that yields k per
unit of force.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from leakscope._numerics.arrays import FloatArray

# Nodes that stand for a normal law where a loss is not quadratic.
NODES = 9

# Records handled at once: the temporaries of a block stay in the cache.
BLOCK = 16384


class Loss(ABC):
    """One loss of a prediction z and a label y, for arrays of both.

    Examples
    --------
    >>> from leakscope.fitted import SquareLoss
    >>> float(SquareLoss().prox(1.0, 1.0, 0.0))
    0.5
    """

    name: str
    quadratic: bool = False

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


@dataclass(frozen=True)
class SquareLoss(Loss):
    """l = (z - y)^2 / 2: ridge, kernel ridge, the mean of a Gaussian process.

    Examples
    --------
    >>> from leakscope.fitted import SquareLoss
    >>> float(SquareLoss().force(3.0, 1.0))
    2.0
    """

    name: str = "square"
    quadratic: bool = True

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


@dataclass(frozen=True)
class LogisticLoss(Loss):
    """l = log(1 + e^z) - y z with labels 0 and 1: two-class logistic regression.

    Examples
    --------
    >>> from leakscope.fitted import LogisticLoss
    >>> loss = LogisticLoss()
    >>> z = loss.prox(0.0, 4.0, 1.0)
    >>> round(float(z + 4.0 * loss.force(z, 1.0)), 12) + 0.0
    0.0
    """

    name: str = "logistic"

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


@dataclass(frozen=True)
class PoissonLoss(Loss):
    """l = e^z - y z with counts y: Poisson regression with a logarithmic link.

    Examples
    --------
    >>> from leakscope.fitted import PoissonLoss
    >>> loss = PoissonLoss()
    >>> z = loss.prox(1.0, 2.0, 3.0)
    >>> round(float(z + 2.0 * loss.force(z, 3.0)), 12)
    1.0
    """

    name: str = "poisson"

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


LOSSES: dict[str, Loss] = {
    "square": SquareLoss(),
    "logistic": LogisticLoss(),
    "poisson": PoissonLoss(),
}


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
