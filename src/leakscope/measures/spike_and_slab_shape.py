"""The shape of a pair of spike-and-slab laws: two truncated parabolas and an atom.

On x > 0 both laws are truncated normals, and so they are on x < 0: the log likelihood ratio is a
parabola (see `leakscope.measures.parabola`) on each half line and one number at the atom.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from leakscope._numerics.normal_tails import log_interval
from leakscope.laws import SpikeAndSlab
from leakscope.measures import parabola

FloatArray = npt.NDArray[np.float64]


class Branch(NamedTuple):
    """Both branches of each pair, stacked on the last axis: shape (B, 2).

    In mirrored nonmember units: the shift ``d`` >= 0, ``log_s`` = log(sigma1/sigma0), and the
    half line (``low``, ``high``) on which the branch lives.
    """

    d: FloatArray
    log_s: FloatArray
    low: FloatArray
    high: FloatArray


class Atom(NamedTuple):
    """Log masses of the atom under both laws and their log ratio, shape (B,)."""

    log_p1: FloatArray
    log_p0: FloatArray
    ratio: FloatArray


def branches(one: SpikeAndSlab, zero: SpikeAndSlab) -> Branch:
    """The two parabolas of member and nonmember laws, on x > 0 first."""
    shift, step = one.location - zero.location, one.threshold - zero.threshold
    d = np.stack([shift - step, shift + step], axis=-1) / zero.sigma[:, None]
    d = parabola.shift(d)
    edge = np.stack([zero.threshold - zero.location, -zero.threshold - zero.location], axis=-1)
    edge = edge / zero.sigma[:, None]
    upper = np.array([True, False]) ^ (d < 0.0)  # mirrored where d < 0
    edge = np.where(d < 0.0, -edge, edge)
    log_s = parabola.log_scale(one.sigma, zero.sigma)
    return Branch(
        np.abs(d),
        np.repeat(log_s[:, None], 2, axis=-1),
        np.where(upper, edge, -np.inf),
        np.where(upper, np.inf, edge),
    )


def atom(one: SpikeAndSlab, zero: SpikeAndSlab) -> Atom:
    """The atom of member and nonmember laws; the ratio is accurate also when they agree."""
    log_p1, log_p0 = one.log_atom, zero.log_atom
    difference = np.zeros(log_p1.shape)
    for sign in (1.0, -1.0):
        end0 = (sign * zero.threshold - zero.location) / zero.sigma
        move = sign * (one.threshold - zero.threshold) - (one.location - zero.location)
        move = (move - end0 * (one.sigma - zero.sigma)) / one.sigma
        mass = np.exp(log_interval(end0 + 0.5 * move, 0.5 * np.abs(move)))
        difference = difference + sign * np.sign(move) * mass
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        relative = difference * np.exp(-log_p0)
        close = np.abs(relative) < 0.1
        exact = np.log1p(np.where(close, relative, 0.0))
        ratio = np.where(close, exact, log_p1 - log_p0)
    neither = np.isneginf(log_p1) & np.isneginf(log_p0)
    return Atom(log_p1, log_p0, np.where(neither, 0.0, ratio))


def levels(branch: Branch, threshold: FloatArray) -> parabola.LevelSet:
    """Where each parabola passes thresholds of shape (B, m); (B, m, 2) each."""
    return parabola.level_set(branch.d[:, None, :], branch.log_s[:, None, :], threshold[..., None])


def intervals(
    branch: Branch, level: parabola.LevelSet, above: bool
) -> list[tuple[FloatArray, FloatArray]]:
    """The one or two intervals of each branch where l > t (or l <= t), (B, m, 2) each."""
    low, high = branch.low[:, None, :], branch.high[:, None, :]
    outside = (branch.log_s[:, None, :] >= 0.0) == above
    first, second = np.minimum(level.near, level.far), np.maximum(level.near, level.far)
    left = (low, np.minimum(high, np.where(outside, first, -np.inf)))
    right = (np.maximum(low, np.where(outside, second, np.inf)), high)
    inner = (
        np.maximum(low, np.where(outside, np.inf, first)),
        np.minimum(high, np.where(outside, -np.inf, second)),
    )
    return [left, right, inner]


def shifted_jeffreys(
    up: FloatArray, down: FloatArray, sigma: FloatArray, threshold: FloatArray
) -> FloatArray:
    """Jeffreys divergence of soft(N(m, sigma^2), threshold) at m = up and m = down.

    On the branches the log ratio is linear in the field, and its two means differ by the shift
    of the truncated first moments; the atom adds its own difference of masses and of logs.
    """
    shift, middle = up - down, 0.5 * (up + down)

    def side(m: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        a, b = (threshold - m) / sigma, (threshold + m) / sigma
        active = ndtr(-a) + ndtr(-b)
        gap = (np.exp(-0.5 * a * a) - np.exp(-0.5 * b * b)) / np.sqrt(2.0 * np.pi)
        # E[field - middle; active], and the log mass of the atom
        return (
            (m - middle) * active + sigma * gap,
            np.asarray(1.0 - active),
            log_interval(m / sigma, threshold / sigma),
        )

    first_up, atom_up, log_up = side(up)
    first_down, atom_down, log_down = side(down)
    branches = shift / sigma**2 * (first_up - first_down)
    with np.errstate(invalid="ignore"):
        atoms = (atom_up - atom_down) * (log_up - log_down)
    return np.asarray(branches + np.where(np.isfinite(atoms), atoms, 0.0))
