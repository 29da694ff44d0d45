"""A mixture of thousands of normals of one centre, gathered into a few that are as good.

The density of N(m, exp(2t)) at a point is an analytic function of t = log sigma, so that Gauss's
rule for the mixing law of t, which is exact for polynomials of degree 2k - 1, replaces thousands
of drawn sigmas by k.  The rule comes from the Lanczos process on the diagonal matrix of the t.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from leakscope._numerics.arrays import FloatArray
from leakscope.laws import NormalMixture

NODES = 24


def gathered(law: NormalMixture, nodes: int = NODES) -> NormalMixture:
    """A flat batch with at most ``nodes`` components each; as it is where centres differ."""
    if law.components <= nodes or np.any(law.means != law.means[..., :1]):
        return law
    rows = [
        _gauss(np.log(sigmas), weights, nodes)
        for sigmas, weights in zip(law.sigmas, law.weights, strict=True)
    ]
    padded = [np.pad(weight, (0, nodes - weight.size)) for _, weight in rows]
    filled = [np.pad(t, (0, nodes - t.size), mode="edge") for t, _ in rows]
    means = np.repeat(law.means[..., :1], nodes, axis=-1)
    return NormalMixture(np.stack(padded), means, np.exp(np.stack(filled)))


def _gauss(t: FloatArray, weight: FloatArray, nodes: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Gauss's rule for the law with mass ``weight`` at ``t``."""
    middle, half = 0.5 * (t.max() + t.min()), 0.5 * np.ptp(t)
    if half <= 1e-12:
        return np.array([float(weight @ t / weight.sum())]), np.ones(1)
    x = (t - middle) / half
    basis = np.zeros((nodes, t.size))
    basis[0] = np.sqrt(weight / weight.sum())
    diagonal, beside = np.zeros(nodes), np.zeros(nodes - 1)
    count = nodes
    for k in range(nodes):
        product = x * basis[k]
        diagonal[k] = basis[k] @ product
        # twice is enough: orthogonal to machine precision
        for _ in range(2):
            product -= (basis[: k + 1] @ product) @ basis[: k + 1]
        size = float(np.linalg.norm(product))
        if k + 1 == nodes:
            break
        if size <= 1e-13:  # fewer distinct sigmas than nodes
            count = k + 1
            break
        beside[k], basis[k + 1] = size, product / size
    values, vectors = linalg.eigh_tridiagonal(diagonal[:count], beside[: count - 1])
    return middle + half * values, np.asarray(vectors[0] ** 2)
