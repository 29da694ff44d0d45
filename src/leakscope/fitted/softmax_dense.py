"""The response of a softmax model with few coefficients: one dense Hessian, inverted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope.fitted.feature_space import quadratic_forms, spd_inverse, weighted_gram
from leakscope.fitted.softmax_loss import centred


@dataclass(frozen=True, eq=False)
class DenseSoftmax:
    """Hbar = sum_j x_j x_j' (x) c_j + Lambda (x) I; coefficient (a, class) at class d + a."""

    X: FloatArray
    inverse: FloatArray
    leverage: FloatArray

    @classmethod
    def at(cls, X: FloatArray, penalty: FloatArray, c: FloatArray, name: str) -> DenseSoftmax:
        """Build and invert the Hessian at these curvature blocks (N x C x C)."""
        classes = c.shape[1]
        hessian = _assembled(X, c)
        d = X.shape[1]
        index = np.arange(classes * d)
        hessian[index, index] += np.tile(penalty, classes)
        # A constant added to every class's free coefficient changes nothing, so it may be fixed.
        for column in np.flatnonzero(penalty == 0.0):
            places = column + d * np.arange(classes)
            hessian[np.ix_(places, places)] += float(np.mean(hessian[places, places]))
        inverse = spd_inverse(hessian, name)
        return cls(X, inverse, centred(_blocks(X, inverse, classes)))

    def step(self, gradient: FloatArray) -> FloatArray:
        """Hbar^{-1} gradient, both d x C."""
        return np.asarray((self.inverse @ gradient.T.ravel()).reshape(gradient.T.shape).T)

    def spread(self, t: FloatArray, draws: int = 0) -> FloatArray:
        """sum over j != i of G_ij t_j G_ij', C x C blocks for every record i; exact."""
        classes = t.shape[1]
        carried = self.inverse @ _assembled(self.X, t) @ self.inverse
        own = self.leverage @ t @ self.leverage
        return np.asarray(centred(_blocks(self.X, carried, classes)) - own)

    def rows(self, records: npt.NDArray[np.intp], directions: FloatArray) -> FloatArray:
        """direction' G_ij for a few records i and all j: M x N x C."""
        right = (directions[:, :, None] * self.X[records][:, None, :]).reshape(len(records), -1)
        moved = (right @ self.inverse).reshape(len(records), directions.shape[1], -1)
        return np.asarray(np.swapaxes(moved @ self.X.T, 1, 2))


def _assembled(X: FloatArray, blocks: FloatArray) -> FloatArray:
    classes, d = blocks.shape[1], X.shape[1]
    total = np.empty((classes * d, classes * d))
    for a in range(classes):
        for b in range(a + 1):
            gram = weighted_gram(X, np.ascontiguousarray(blocks[:, a, b]))
            total[a * d : (a + 1) * d, b * d : (b + 1) * d] = gram
            total[b * d : (b + 1) * d, a * d : (a + 1) * d] = gram
    return total


def _blocks(X: FloatArray, matrix: FloatArray, classes: int) -> FloatArray:
    d = X.shape[1]
    result = np.empty((len(X), classes, classes))
    for a in range(classes):
        for b in range(a + 1):
            block = matrix[a * d : (a + 1) * d, b * d : (b + 1) * d]
            result[:, a, b] = result[:, b, a] = quadratic_forms(X, np.ascontiguousarray(block))
    return result
