"""Bounded records, and how far replacing one can move the estimate: the worst case."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError


def clip_records(
    X: FloatArray, y: FloatArray, clip_norm: float | None, clip_label: float | None
) -> tuple[FloatArray, FloatArray]:
    """Shorten rows to ``clip_norm`` and labels to [-clip_label, clip_label]; None leaves them."""
    for name, value in (("clip_norm", clip_norm), ("clip_label", clip_label)):
        if value is not None and not (math.isfinite(value) and value > 0.0):
            raise InputError(f"{name} must be positive and finite, or None, but it is {value!r}.")
    if clip_norm is not None:
        length = np.linalg.norm(X, axis=1)
        factor = np.minimum(1.0, clip_norm / np.where(length > 0.0, length, 1.0))
        X = X * factor[:, None]
    if clip_label is not None:
        y = np.clip(y, -clip_label, clip_label)
    return X, y


class Sensitivity(NamedTuple):
    """How far, at most, the noiseless estimate moves when one record is replaced.

    ``value`` bounds the l2 norm of the change; None without a bound, and ``reason`` says why.
    """

    value: float | None
    reason: str = ""


def replacement_sensitivity(
    records: int, lam: float, l2: float, clip_norm: float | None, clip_label: float | None
) -> Sensitivity:
    """The l2 sensitivity of the LASSO with an l2 term, records and labels being clipped.

    Rows satisfy ||x|| <= R, labels |y| <= B, and F(beta) = 1/2 ||y - X beta||^2 + lam ||beta||_1 +
    l2/2 ||beta||^2.  Leave one record (x, y) out, and let D be the change of the minimiser and r
    the record's residual in the fit with it.  Optimality of both and the l2-strong convexity of F
    without the record give r x'D >= l2 ||D||^2, so ||D|| <= |r| R / l2.  A replacement is one
    record out and another in, each with its residual in a fit that contains it:

        ||beta - beta'|| <= 2 R r_max / l2.

    For r_max: 1/2 r^2 <= F(beta) <= F(0) <= n B^2 / 2 gives |r| <= sqrt(n) B.  Multiplying the
    optimality conditions by beta gives l2 ||beta||^2 + lam ||beta||_1 + ||X beta||^2 = y'X beta, so
    l2 ||beta||^2 + lam ||beta||_1 <= ||y||^2 / 4 <= n B^2 / 4, which bounds ||beta|| in two ways,
    and |r| <= B + R ||beta||.  The least of the three is used.  It depends on the data through n
    alone, which replacement does not change.
    """
    if clip_norm is None or clip_label is None:
        missing = "rows are" if clip_norm is None else "labels are"
        return Sensitivity(None, f"{missing} not clipped (set clip_norm and clip_label)")
    if l2 <= 0.0:
        return Sensitivity(
            None,
            "there is no l2 term, so the problem is not strongly convex (set l2 above zero)",
        )
    square = 0.25 * records * clip_label**2
    longest = min(math.sqrt(square / l2), (square / lam) if lam > 0.0 else math.inf)
    residual = min(math.sqrt(records) * clip_label, clip_label + clip_norm * longest)
    return Sensitivity(2.0 * clip_norm * residual / l2)
