"""The softmax loss of several classes: proximal map, sigma points, moments of the force.

All arrays have the records first.  z is N x C, a record's force is F = w (p - e_y) and its
curvature h = w (diag p - p p').  What matters never depends on a constant added to all of a
record's logits, so a yield kappa may be replaced by any other that differs from it by 1u' + u1';
the diagonal one that fits best (`diagonal_yield`) makes every proximal map a matter of C numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key

# Records handled at once, with all their sigma points.
BLOCK = 256

Codes = npt.NDArray[np.intp]


def softmax(z: FloatArray) -> FloatArray:
    """Probabilities along the last axis."""
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    e /= np.einsum("...c->...", e)[..., None]
    return np.asarray(e)


def prox(m: FloatArray, k: FloatArray, target: FloatArray, start: FloatArray) -> FloatArray:
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
    """(I + k h)^{-1} x with h = diag p - p p', along the last axis."""
    denominator = 1.0 + kp
    u = x / denominator
    q = kp / denominator
    return np.asarray(u + q * (_inner(p, u) / (1.0 - _inner(p, q)))[..., None])


def carried_in(p: FloatArray, k: FloatArray, eps: FloatArray) -> FloatArray:
    """(I + k h)^{-1} eps: how a small move of m moves the prox; k includes the weight."""
    return _inverse_times(p, k * p, eps)


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
    for start in range(0, size, BLOCK):
        part = slice(start, min(start + BLOCK, size))
        w = weight[part, None, None].astype(kind)
        target = np.zeros((len(w), 1, classes), dtype=kind)
        target[np.arange(len(w)), 0, codes[part]] = 1.0
        kw = k[part, None, :] * w
        centre = m[part, None, :]
        at_centre = prox(centre, kw, target, centre - kw * (softmax(centre) - target) * 0.5)
        z = at_centre
        if root is not None:
            eps = points @ np.swapaxes(root[part], 1, 2)
            first = at_centre + carried_in(softmax(at_centre), kw, eps)
            z = prox(centre + eps, kw, target, first)
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
