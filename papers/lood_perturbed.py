"""Queries beside a record, along a random direction (lood Fig. 4(b) and 4(c)).

Q = S + x R with R uniform in [-1, 1] for each pixel and x from -50 to 50 grey levels of 256.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope import kernels, lood
from leakscope.laws import Key
from papers.arrays import FloatArray

GREY_LEVELS = 255.0
FURTHEST = 50.0

# Records whose queries are asked in one call; one factorisation serves them.
TOGETHER = 16


@dataclass(frozen=True)
class Scans:
    """LOOD along a direction for each of several records.

    Parameters
    ----------
    x
        (s,) scales, in grey levels.
    kl
        (records, s) at S + x R.
    own
        (records,) at S itself, by another route.
    """

    x: FloatArray
    kl: FloatArray
    own: FloatArray

    @property
    def peaks(self) -> FloatArray:
        """(records,) the scale of the largest LOOD."""
        return np.asarray(self.x[np.argmax(self.kl, axis=1)])


def scales(count: int) -> FloatArray:
    """An odd number of scales from -50 to 50 grey levels; 0 is one of them."""
    return np.linspace(-FURTHEST, FURTHEST, count)


def directions(count: int, features: int, key: Key) -> FloatArray:
    """One direction for each record, in the unit ball of the largest norm."""
    return key.generator().uniform(-1.0, 1.0, size=(count, features))


def beside(records: FloatArray, x: FloatArray, R: FloatArray) -> FloatArray:
    """(records, s, d) queries S + x R, for pixels in [0, 1]."""
    return np.asarray(records[:, None, :] + x[None, :, None] / GREY_LEVELS * R[:, None, :])


def scan(
    X: FloatArray,
    y: FloatArray,
    records: NDArray[np.intp],
    kernel: kernels.Kernel,
    x: FloatArray,
    R: FloatArray,
    *,
    noise_variance: float,
) -> Scans:
    """LOOD of each record at its own perturbed queries."""
    asked = beside(X[records], x, R)
    kl = np.empty(asked.shape[:2])
    for begin in range(0, len(records), TOGETHER):
        part = slice(begin, begin + TOGETHER)
        queries = asked[part].reshape(-1, X.shape[1])
        found = lood.influence(X, y, queries, kernel, noise_variance).kl
        found = found.reshape(len(X), -1, len(x))[records[part]]
        kl[part] = found[np.arange(found.shape[1]), np.arange(found.shape[1])]
    own = lood.all_records(kernel(X), y, noise_variance=noise_variance).kl[records]
    return Scans(x, kl, own)
