"""The distinct neurons of a trained network, and what their differences give away.

Near a KKT point many neurons are copies of a few.  With masses m_i = lambda_i y_i, z_i = (x_i, 1)
and slopes s_ij of the ReLU, stationarity (Eqs. (8) and (9) of **relu**, in d dimensions) is

    (w_j, b_j) / v_j = sum over i of m_i s_ij z_i,

a vector of length one by Eq. (7).  It depends on the neuron only through its slopes, so that
neurons active on the same records coincide; and where the slopes of two neurons differ on one
record only, their difference is a multiple of that record's z_i, whose ratio is x_i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.relu.network import TwoLayerNetwork

# Neurons with less than this share of the network's mass are left out: they hold nothing.
NO_MASS = 1e-5
# A difference whose last entry is below this, of vectors of length one, has no ratio to speak of.
NO_RATIO = 1e-3


@dataclass(frozen=True, eq=False)
class DistinctNeurons:
    """K groups of neurons, as one neuron each.

    Attributes
    ----------
    vectors
        (K, d+1): sign(v) (w, b) / |(w, b)|, bias last, averaged over the group by mass.
    sign
        (K,): of the output weight.
    mass
        (K,): sum of |v_j| |(w_j, b_j)| over the group; half of the network's squared norm in all,
        at a KKT point.
    tolerance
        How far the vectors in a group may lie from its heaviest.
    """

    vectors: FloatArray
    sign: FloatArray
    mass: FloatArray
    tolerance: float

    def __len__(self) -> int:
        return len(self.sign)

    @property
    def share(self) -> FloatArray:
        """The groups' shares of the mass, (K,)."""
        return np.asarray(self.mass / self.mass.sum())

    def pre_activations(self, points: FloatArray) -> FloatArray:
        """sign_k u_k . (x_i, 1), positive where the neuron is active; (K, m)."""
        z = np.column_stack([points, np.ones(len(points))])
        return np.asarray(self.sign[:, None] * (self.vectors @ z.T))


def distinct_neurons(
    network: TwoLayerNetwork, *, tolerance: float = 1e-2, most: int = 64
) -> DistinctNeurons:
    """Group neurons whose vectors lie within ``tolerance``, doubled until there are ``most``."""
    if not 0.0 < tolerance < 1.0:
        raise InputError(f"tolerance must be between 0 and 1, but it is {tolerance}.")
    w = np.column_stack([network.w, network.b])
    sizes = np.linalg.norm(w, axis=1)
    mass = np.abs(network.v) * sizes
    if not mass.sum() > 0.0:
        raise InputError("The network is zero everywhere: no neuron has any weight.")
    live = np.flatnonzero(mass > NO_MASS * mass.sum())
    live = live[np.argsort(-mass[live], kind="stable")]
    sign = np.sign(network.v[live])
    vectors = sign[:, None] * w[live] / sizes[live, None]
    while True:
        found = _grouped(vectors, sign, mass[live], tolerance)
        if len(found) <= most or tolerance >= 1.0:
            return found
        tolerance *= 2.0


def _grouped(
    vectors: FloatArray, sign: FloatArray, mass: FloatArray, tolerance: float
) -> DistinctNeurons:
    left = np.ones(len(mass), dtype=bool)
    groups = []
    for j in range(len(mass)):
        if left[j]:
            near = np.linalg.norm(vectors - vectors[j], axis=1) <= tolerance
            group = left & near & (sign == sign[j])
            left &= ~group
            groups.append(group)
    totals = np.array([mass[group].sum() for group in groups])
    means = np.stack([mass[group] @ vectors[group] for group in groups])
    means /= np.linalg.norm(means, axis=1)[:, None]
    firsts = np.array([sign[np.argmax(group)] for group in groups])
    return DistinctNeurons(means, firsts, totals, tolerance)


@dataclass(frozen=True, eq=False)
class Differences:
    """Candidates from pairs of neurons: points (c, d), masses (c,) and how many pairs say so."""

    points: FloatArray
    masses: FloatArray
    pairs: NDArray[np.int64]


def difference_candidates(
    network: TwoLayerNetwork, neurons: DistinctNeurons, *, radius: float
) -> Differences:
    """Points that explain the difference of two neurons, or one neuron, on their own.

    Kept are those at which one of the two is active and the other is not, as the difference says,
    with a label that the network agrees with.  Points within ``radius`` with one label are one.
    A slope between 0 and 1 makes the mass too small, but leaves the point where it is.
    """
    vectors = np.vstack([neurons.vectors, np.zeros(neurons.vectors.shape[1])])
    a, b = np.tril_indices(len(vectors), -1)
    gaps = vectors[a] - vectors[b]
    # The zero vector stands for a neuron active on nothing, and is the last: it is always `a`.
    keep = (np.abs(gaps[:, -1]) > NO_RATIO) & (
        np.linalg.norm(gaps, axis=1) > 4.0 * neurons.tolerance
    )
    a, b, gaps = a[keep], b[keep], gaps[keep]
    points = gaps[:, :-1] / gaps[:, -1:]
    active = np.vstack([neurons.pre_activations(points) > 0.0, np.zeros(len(points), bool)])
    at = np.arange(len(points))
    first, second = active[a, at], active[b, at]
    masses = np.where(first, gaps[:, -1], -gaps[:, -1])
    keep = (first != second) & (masses * network(points) > 0.0)
    return _merged(points[keep], masses[keep], radius)


def _merged(points: FloatArray, masses: FloatArray, radius: float) -> Differences:
    near = np.linalg.norm(points[:, None] - points[None], axis=2) <= radius
    near &= np.sign(masses)[:, None] == np.sign(masses)
    counts = near.sum(axis=1)
    left = np.ones(len(points), dtype=bool)
    chosen: list[tuple[FloatArray, FloatArray, int]] = []
    for i in np.argsort(-counts, kind="stable"):
        if left[i]:
            group = near[i] & left
            left &= ~group
            # the largest mass belongs to whole slopes
            chosen.append((points[group].mean(axis=0), masses[group], int(group.sum())))
    return Differences(
        np.array([one[0] for one in chosen]).reshape(-1, points.shape[1]),
        np.array([one[1][np.argmax(np.abs(one[1]))] for one in chosen]),
        np.array([one[2] for one in chosen], dtype=np.int64),
    )
