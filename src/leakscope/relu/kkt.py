"""How far any given network is from a KKT point of the maximum-margin problem of its data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.relu.network import TwoLayerNetwork, signs
from leakscope.relu.training import DataSpan

ROUNDS = 200
# Rounds stop when the squared residual falls by less than this share of itself.
ENOUGH = 1e-5


@dataclass(frozen=True, eq=False)
class KktResidual:
    """The parts of the KKT conditions, Eqs. (2) to (5) of **relu**, at a network.

    All are relative, so that they do not change when the network is scaled.
    """

    # |theta - sum_i lambda_i y_i grad f(x_i)| / |theta|, at the multipliers below.
    stationarity: float
    # Largest of (m - y_i f(x_i)) / m, at least 0; the margin m is the least y_i f(x_i) unless it
    # was given.
    feasibility: float
    complementarity: float  # sum_i lambda_i |y_i f(x_i) - m| / (m sum_i lambda_i)
    # lambda, (n,), nonnegative, fitted; they belong to the network scaled to any margin.
    multipliers: FloatArray
    margins: FloatArray  # y_i f(x_i), (n,)
    margin: float  # m
    kinks: int  # pairs of a neuron and a point within ``kink_tolerance`` of the neuron's kink
    # Up to |w_j.x_i + b_j| = this times |(w_j, b_j)| |(x_i, 1)| the derivative of the ReLU was
    # fitted anywhere in [0, 1].
    kink_tolerance: float

    @property
    def residual(self) -> float:
        """The largest of the three parts."""
        return max(self.stationarity, self.feasibility, self.complementarity)


def kkt_residual(
    network: TwoLayerNetwork,
    x: ArrayLike,
    y: ArrayLike,
    *,
    margin: float | None = None,
    kink_tolerance: float = 1e-3,
) -> KktResidual:
    """The KKT residual of a network on a training set, with multipliers fitted to it.

    Nonnegative least squares finds the multipliers, for which stationarity and complementarity
    count alike.  Where a point lies on a neuron's kink the
    ReLU has a subdifferential, [0, 1], one number for each neuron and point; trained networks
    rest on many kinks, and without this freedom their residual is several times too large.  The
    problem is convex in lambda_i and lambda_i sigma'_ij together; it is solved by turns in the
    multipliers and in the derivatives, and every turn gives a valid upper bound.

    Parameters
    ----------
    network
        Any two-layer network of `d` inputs.
    x, y
        The training set, (n, d) and labels -1 or 1.
    margin
        m, if it is known; the least y_i f(x_i) otherwise.
    kink_tolerance
        How near to a kink counts as on it, relative.  0: only pre-activations that are exactly 0.
    """
    points = network.inputs(x)
    labels = signs(y, len(points))
    if margin is not None and not 0.0 < margin < np.inf:
        raise InputError(f"margin must be positive, but it is {margin}.")
    if not 0.0 <= kink_tolerance < 1.0:
        raise InputError(f"kink_tolerance must be from 0 to 1, but it is {kink_tolerance}.")
    q = network.margins(points, labels)
    m = float(q.min()) if margin is None else float(margin)
    span = DataSpan.of(points[None])
    inside = network.w @ span.basis[0].T
    # Nothing that the data can say explains a weight outside their span: it is all residual.
    outside = 0.0 if span.whole else float(((network.w - inside @ span.basis[0]) ** 2).sum())
    w = np.column_stack([inside, network.b])
    z = np.column_stack([span.coordinates[0], np.ones(len(points))])
    norm = float((network.w**2).sum() + (network.b**2).sum() + (network.v**2).sum())
    # At a KKT point |theta|^2 = 2 m sum lambda, so this weighs both residuals alike.
    off = 2.0 * np.abs(q - m) / np.sqrt(norm) if m > 0.0 and norm > 0.0 else np.zeros(len(q))
    squared, multipliers, kinks = _fit(w, network.v, z, labels, off, kink_tolerance)
    weight = float(multipliers.sum())
    positive = m > 0.0
    return KktResidual(
        stationarity=float(np.sqrt((squared + outside) / norm)) if norm > 0.0 else 1.0,
        feasibility=float(np.maximum(m - q, 0.0).max() / m) if positive else float("inf"),
        complementarity=(
            float((multipliers * np.abs(q - m)).sum() / (m * weight))
            if positive and weight > 0.0
            else float("inf")
        ),
        multipliers=multipliers,
        margins=q,
        margin=m,
        kinks=kinks,
        kink_tolerance=kink_tolerance,
    )


def _fit(
    w: FloatArray,
    v: FloatArray,
    z: FloatArray,
    y: FloatArray,
    off: FloatArray,
    tolerance: float,
) -> tuple[float, FloatArray, int]:
    """Squared stationarity, multipliers and number of kinks at the least total found."""
    before = w @ z.T
    sizes = np.linalg.norm(w, axis=1)[:, None] * np.linalg.norm(z, axis=1)
    kink = np.abs(before) <= tolerance * sizes
    after = np.maximum(before, 0.0)
    slopes = np.where(kink, 0.5, (before > 0.0).astype(np.float64))
    gram = z @ z.T
    best, best_squared, found = np.inf, np.inf, np.zeros(len(y))
    for _ in range(ROUNDS):
        multipliers = _multipliers(slopes, after, before, v, gram, y, off)
        pull = multipliers * y
        rest = w - v[:, None] * ((slopes * pull) @ z)
        squared = float((rest**2).sum() + ((v - after @ pull) ** 2).sum())
        total = squared + float(((off * multipliers) ** 2).sum())
        enough = total > (1.0 - ENOUGH) * best
        if total < best:
            best, best_squared, found = total, squared, multipliers
        if enough or not kink.any():
            break
        _refit_slopes(slopes, rest, kink, pull, v, z)
    return best_squared, found, int(kink.sum())


def _multipliers(
    slopes: FloatArray,
    after: FloatArray,
    before: FloatArray,
    v: FloatArray,
    gram: FloatArray,
    y: FloatArray,
    off: FloatArray,
) -> FloatArray:
    """Nonnegative least squares through the n x n Gram matrix of the gradients."""
    from scipy.optimize import nnls

    scaled = v[:, None] * slopes
    between = (after.T @ after + gram * (scaled.T @ scaled)) * np.outer(y, y)
    between[np.diag_indices_from(between)] += off**2
    towards = y * (after.T @ v + (scaled * before).sum(axis=0))
    values, vectors = np.linalg.eigh(between)
    if values[-1] <= 0.0:
        return np.zeros(len(y))
    root = np.sqrt(np.maximum(values, 1e-15 * values[-1]))
    fitted = nnls(root[:, None] * vectors.T, (vectors.T @ towards) / root, maxiter=50 * len(y))[0]
    return np.asarray(fitted, dtype=np.float64)


def _refit_slopes(
    slopes: FloatArray,
    rest: FloatArray,
    kink: NDArray[np.bool_],
    pull: FloatArray,
    v: FloatArray,
    z: FloatArray,
) -> None:
    """One sweep over the points: each kink's derivative to its best value in [0, 1], in place."""
    for i in np.flatnonzero(pull):
        rows = kink[:, i] & (v != 0.0)
        if not rows.any():
            continue
        scale = pull[i] * v[rows]
        change = (rest[rows] @ z[i]) / (scale * (z[i] @ z[i]))
        new = np.clip(slopes[rows, i] + change, 0.0, 1.0)
        rest[rows] -= ((new - slopes[rows, i]) * scale)[:, None] * z[i]
        slopes[rows, i] = new
