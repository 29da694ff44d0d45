"""Measures of two densities that are known on nodes of a line only.

For mixtures over drawn designs: their measures are convex in the laws, so that those of drawn
densities are too large on average, and a test learnt on other draws and judged on these is too
small on average (for KL, the Donsker-Varadhan bound with the learnt ratio).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError

Densities = tuple[FloatArray, FloatArray]
TabulatedMeasure = Literal["advantage", "auc", "kl", "kl_reverse"]
_TINY = 1e-300


def tabulated(
    measure: TabulatedMeasure,
    weights: FloatArray,
    densities: Densities,
    learnt: Densities | None = None,
) -> float:
    """A measure of two densities on nodes, by the best test or by one that was learnt elsewhere.

    Parameters
    ----------
    measure
        ``"advantage"``, ``"auc"``, ``"kl"`` (nonmember from member) or ``"kl_reverse"``.
    weights
        (N,) the nodes' quadrature weights.
    densities
        Member's and nonmember's, (N,) each.
    learnt
        Two other densities whose ratio is the test, to be judged by ``densities``.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.measures import tabulated
    >>> x = np.linspace(-10.0, 10.0, 2001)
    >>> one, zero = (np.exp(-0.5 * (x - m) ** 2) / np.sqrt(2.0 * np.pi) for m in (1.0, 0.0))
    >>> [round(tabulated(name, np.gradient(x), (one, zero)), 4) for name in ("advantage", "kl")]
    [0.3829, 0.5]
    """
    if measure not in get_args(TabulatedMeasure):
        raise InputError(
            f"tabulated: measure must be one of {', '.join(get_args(TabulatedMeasure))}, "
            f"not {measure!r}."
        )
    return _MEASURES[measure](weights, *densities, learnt)


def _advantage(
    w: FloatArray, member: FloatArray, nonmember: FloatArray, learnt: Densities | None = None
) -> float:
    one, zero = learnt or (member, nonmember)
    return float(0.5 * np.sum(w * np.sign(one - zero) * (member - nonmember)))


def _auc(
    w: FloatArray, member: FloatArray, nonmember: FloatArray, learnt: Densities | None = None
) -> float:
    order = np.argsort(_log_ratio(learnt or (member, nonmember)), kind="stable")
    one, zero = (w * member)[order], (w * nonmember)[order]
    below = np.cumsum(zero) - 0.5 * zero
    return float(np.sum(one * below) / (one.sum() * zero.sum()))


def _kl(
    w: FloatArray, member: FloatArray, nonmember: FloatArray, learnt: Densities | None = None
) -> float:
    """KL(nonmember || member); with a learnt ratio T, E_0[T] - log E_1[exp T]."""
    if learnt is None:
        return float(np.sum(w * nonmember * -_log_ratio((member, nonmember))))
    score = -_log_ratio(learnt)
    mass = np.sum(w * member * np.exp(np.minimum(score, 600.0)))
    return float(np.sum(w * nonmember * score) - np.log(mass))


def _kl_reverse(
    w: FloatArray, member: FloatArray, nonmember: FloatArray, learnt: Densities | None = None
) -> float:
    turned = None if learnt is None else (learnt[1], learnt[0])
    return _kl(w, nonmember, member, turned)


def _log_ratio(pair: Densities) -> FloatArray:
    return np.asarray(np.log(np.maximum(pair[0], _TINY)) - np.log(np.maximum(pair[1], _TINY)))


_MEASURES: dict[str, Callable[..., float]] = {
    "advantage": _advantage,
    "auc": _auc,
    "kl": _kl,
    "kl_reverse": _kl_reverse,
}
