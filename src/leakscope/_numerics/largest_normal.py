"""The chance that one of several independent normals of equal variance is the largest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, roots_hermitenorm

from leakscope._numerics.arrays import FloatArray

# products of normal distribution functions of unit scale are smooth: 1e-9 for ten of them
_NODES = 64


def chance_of_largest(z: FloatArray, which: npt.ArrayLike) -> FloatArray:
    """P(Z_t is the largest) of independent Z_c ~ N(z_c, 1), c on the last axis of ``z``.

    ``which`` holds t for each of the leading axes, or broadcasts to them.  It is
    E prod over c != t of Phi(z_t - z_c + x) over a standard normal x, by Gauss-Hermite
    quadrature; one node at a time, so that nothing larger than ``z`` is held.
    """
    chosen = np.broadcast_to(np.asarray(which, dtype=np.intp), z.shape[:-1])[..., None]
    ahead = np.take_along_axis(z, chosen, axis=-1) - z
    nodes, weights = roots_hermitenorm(_NODES)
    chance = np.zeros(z.shape[:-1])
    for node, weight in zip(nodes.tolist(), (weights / weights.sum()).tolist(), strict=True):
        below = ndtr(ahead + node)
        # a normal is not compared with itself
        np.put_along_axis(below, chosen, 1.0, axis=-1)
        chance += weight * np.prod(below, axis=-1)
    return chance
