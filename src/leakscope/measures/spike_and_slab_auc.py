"""Area under the ROC of two spike-and-slab laws, by quadrature between the ratio's kinks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from leakscope._numerics.normal_tails import LOG_SQRT_2PI
from leakscope._numerics.quadrature import smooth_panels
from leakscope.measures import parabola
from leakscope.measures.spike_and_slab_shape import Atom, Branch, intervals, levels

FloatArray = npt.NDArray[np.float64]


def auc_of(branch: Branch, atom: Atom) -> FloatArray:
    """P(l(X1) > l(X0)), ties counting one half, shape (B,).

    One minus the integral of p1(x) P0(l > l(x)); panels end where l(x) passes a value at
    which P0(l > .) has a kink: the parabolas' vertices and edges, and the atom.
    """
    d, log_s, low, high = branch
    log_p1, log_p0, ratio = atom
    level = np.where(np.isfinite(ratio), ratio, 0.0)
    s = np.exp(log_s)
    edge = np.where(np.isfinite(low), low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        vertex = np.where(log_s == 0.0, edge, -d / np.expm1(2.0 * log_s))
    kinks = np.concatenate(
        [
            parabola.height(d, log_s, vertex),
            parabola.height(d, log_s, edge),
            level[:, None],
        ],
        axis=-1,
    )
    roots = parabola.level_set(d[..., None], log_s[..., None], kinks[:, None, :])
    far = np.where(np.isfinite(roots.far), roots.far, edge[..., None])
    spread = np.array([0.0, 1.0, 2.0, 3.25, 5.0, 7.0, 9.0])
    z_edge = parabola.member_units(d, log_s, edge)[..., None]
    inward = np.where(np.isposinf(high), 1.0, -1.0) * s
    inward = inward[..., None] * spread / (1.0 + np.abs(z_edge))
    both = np.concatenate([-spread, spread])
    knots = np.concatenate(
        [
            d[..., None] + s[..., None] * both,
            both + 0.0 * d[..., None],
            2.0 * vertex[..., None] - both,
            np.nan_to_num(roots.near, nan=0.0, posinf=0.0, neginf=0.0),
            far,
            edge[..., None] + inward,
            vertex[..., None],
        ],
        axis=-1,
    )
    breaks = np.sort(np.clip(knots, low[..., None], high[..., None]), axis=-1)
    w, weights = smooth_panels(breaks, 16)
    z = parabola.member_units(d[..., None], log_s[..., None], w)
    mass = weights * np.exp(-0.5 * z * z - LOG_SQRT_2PI - log_s[..., None])
    here = parabola.height(d[..., None], log_s[..., None], w)
    batch = here.shape[0]
    missed = (mass.reshape(batch, -1) * _fpr(branch, atom, here.reshape(batch, -1))).sum(axis=-1)
    tied = _fpr(branch, atom, level[:, None])[:, 0] + 0.5 * np.exp(log_p0)
    tied = np.where(np.isposinf(ratio), 0.0, tied)
    return np.asarray(1.0 - missed - np.exp(log_p1) * tied)


def _fpr(branch: Branch, atom: Atom, threshold: FloatArray) -> FloatArray:
    """P0(l > threshold) to absolute precision: quicker than in logs."""
    total = np.where(atom.ratio[:, None] > threshold, np.exp(atom.log_p0)[:, None], 0.0)
    for low, high in intervals(branch, levels(branch, threshold), above=True):
        total = total + np.maximum(ndtr(high) - ndtr(low), 0.0).sum(axis=-1)
    return np.asarray(total)
