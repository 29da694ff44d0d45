"""Which added training point changes most what is leaked about a record (lood, App. F.2).

Symbols: D the n - 1 other records, mu and v the mean and variance of f(x_i) given D, r = y_i - mu
the record's residual; z the added point with the label u, mu_z and w its predicted mean and
variance given D with the noise, w = var f(z) + s2, and c = cov(f(x_i), f(z)) given D.  With the
point in the training set

    v' = v - c^2/w        r' = r - (c/w)(u - mu_z),

and what record i leaks at its own point is the KL of :mod:`leakscope.lood.separation` with
x' = v'/s2 and t'^2 = r'^2/(s2 + v'), summed over outputs.  So one factorisation of D serves every
point.  A point never adds to the variance (x' <= x); what it can add is surprise: a wrong label
beside the record makes r' larger.  In u the KL is a parabola that opens upwards: the most revealing
label is an end of its range, and the least revealing one, u = mu_z + r w/c, makes the residual
vanish.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope._numerics.x64 import double_precision, require_jax
from leakscope.errors import InputError
from leakscope.kernels.kernel import Kernel
from leakscope.lood.dense import factorise
from leakscope.lood.inputs import checked_group, checked_problem, checked_targets, real_numbers
from leakscope.lood.query_search import checked_box
from leakscope.measures.normal_divergence import kl_parts
from leakscope.settings.attack import QUERY_DEFAULTS

Aim = Literal["raise", "lower"]

# So many different labels at most are tried one by one; of more, the ends of their range.
LABELS_TRIED = 20

# Untyped on purpose: the stubs change from one release to the next.
_minimize: Any = optimize.minimize


@dataclass(frozen=True)
class PoisonedRecord:
    """What record i leaks at its own point, with each of P points added to the training set.

    Attributes
    ----------
    kl, excess, residual
        (P,) KL(without || with) of the record, (P,) x' and (P, C) r'.
    kl_before
        Without any point.
    """

    kl: FloatArray
    excess: FloatArray
    residual: FloatArray
    kl_before: float


@dataclass(frozen=True)
class PoisoningPoint:
    """The point that was found.

    Attributes
    ----------
    record
        The row of the record.
    point, label
        (d,) features and (C,) label.
    kl, kl_before
        What the record leaks with the point and without it.
    values
        (S,) the best KL of each start, over labels.
    """

    record: int
    point: FloatArray
    label: FloatArray
    kl: float
    kl_before: float
    values: FloatArray


@dataclass(frozen=True)
class _Others:
    """One fit to all records but one: M^{-1} y and M^{-1} k_i, and the record's own two numbers."""

    rows: FloatArray
    own: FloatArray
    factor: cholesky.Factor
    a: FloatArray
    b: FloatArray
    variance: float
    residual: FloatArray
    noise: float

    def kl(self, excess: FloatArray, residual: FloatArray) -> FloatArray:
        squares = np.sum(residual**2, axis=-1) / (self.noise * (1.0 + excess))
        return np.asarray(sum(kl_parts(excess, squares, residual.shape[-1]), np.zeros(())))


def leakage_with_point(
    X: ArrayLike,
    y: ArrayLike,
    *,
    record: int,
    points: ArrayLike,
    labels: ArrayLike,
    kernel: Kernel,
    noise_variance: float,
) -> PoisonedRecord:
    """What a record leaks with each of several points added to the training set, one at a time.

    Parameters
    ----------
    X, y
        Records by features, and targets, (n,) or (n, C); used as they are.
    record
        The row of the record.
    points, labels
        (P, d) features, and labels, (P,) or (P, C).
    kernel
        From :mod:`leakscope.kernels`; what it leaves open is chosen from X.
    noise_variance
        s2, in squared units of the target.

    Examples
    --------
    A wrong label beside a record gives it away; the right one hides it.

    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X, y = np.array([[0.0], [0.5], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> found = lood.leakage_with_point(X, y, record=0, points=[[0.1], [0.1]], labels=[-1.0, 1.0],
    ...                                 kernel=kernels.rbf(1.0), noise_variance=0.1)
    >>> bool(found.kl[0] > found.kl_before > found.kl[1])
    True
    """
    others, resolved = _others(X, y, record, kernel, noise_variance)
    asked = real_numbers(points, "points")
    if asked.ndim != 2 or asked.shape[1:] != others.rows.shape[1:] or not len(asked):
        raise InputError(
            f"points must be rows of {others.rows.shape[1]} features, at least one, but their "
            f"shape is {asked.shape}."
        )
    given = checked_targets(labels, len(asked), "the list of points").reshape(len(asked), -1)
    if given.shape[1] != others.a.shape[1]:
        raise InputError(
            f"labels have {given.shape[1]} outputs, but the records' have {others.a.shape[1]}."
        )
    return _added(others, resolved, asked, given)


def poisoning_point(
    X: ArrayLike,
    y: ArrayLike,
    *,
    record: int,
    kernel: Kernel,
    noise_variance: float,
    aim: Aim = "raise",
    labels: ArrayLike | None = None,
    box: tuple[ArrayLike, ArrayLike] | None = None,
    starts: int = QUERY_DEFAULTS.starts,
    steps: int = QUERY_DEFAULTS.steps,
    random_state: int | np.random.Generator | Key | None = None,
) -> PoisoningPoint:
    """Look for the training point whose adding raises, or lowers, most what a record leaks.

    L-BFGS-B from each start and label, uphill in the KL of the record at its own point.  The first
    start is the record itself, half of the others are the records that tell most about it, and the
    rest are uniform in the box.  The answer is the best that was found, and no certain maximum.

    Parameters
    ----------
    X, y, record, kernel, noise_variance
        As for :func:`leakage_with_point`.
    aim
        Whether the record is to leak more or less.
    labels
        Labels that the point may have, (L,) or (L, C); where left out, those of the records if
        there are few different ones, and else, for one output, the range of the records' labels.
    box
        Least and largest value of the point's features; the records' own range where left out.
    starts, steps
        How many starts, and steps from each.
    random_state
        Of the starts in the box.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X, y = np.array([[0.0], [0.5], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> found = lood.poisoning_point(X, y, record=0, kernel=kernels.rbf(1.0), noise_variance=0.1)
    >>> bool(found.kl > 2.0 * found.kl_before), found.label.tolist()
    (True, [-1.0])
    """
    if aim not in ("raise", "lower"):
        raise InputError(f"aim must be raise or lower, but it is {aim!r}.")
    if starts < 1 or steps < 1:
        raise InputError(f"starts and steps must be 1 or more, but they are {starts} and {steps}.")
    others, resolved = _others(X, y, record, kernel, noise_variance)
    tried, between = _labels(labels, y, others, aim)
    low, high = checked_box(box, np.vstack([others.rows, others.own]))
    begins = _starts(others, resolved, low, high, starts, as_key(random_state))
    require_jax("The search for a poisoning point")
    places, given = _climbed(others, resolved, begins, tried, between, aim, (low, high), steps)
    found = _added(others, resolved, places, given)
    sign = 1.0 if aim == "raise" else -1.0
    best = int(np.argmax(sign * found.kl))
    by_start = sign * np.max(sign * found.kl.reshape(len(begins), -1), axis=1)
    return PoisoningPoint(
        record=int(record),
        point=places[best],
        label=given[best],
        kl=float(found.kl[best]),
        kl_before=found.kl_before,
        values=by_start,
    )


def _others(
    X: ArrayLike, y: ArrayLike, record: int, kernel: Kernel, noise_variance: float
) -> tuple[_Others, Kernel]:
    rows = real_numbers(X, "X")
    if rows.ndim != 2 or len(rows) < 2:
        raise InputError(
            f"X must be rows of features, at least two, but its shape is {rows.shape}."
        )
    resolved = kernel.resolved(rows)
    matrix, targets = checked_problem(resolved(rows), y, noise_variance)
    row = int(checked_group([record], len(rows))[0])
    outputs = targets.reshape(len(rows), -1)
    kept = np.delete(np.arange(len(rows)), row)
    factor = factorise(matrix[np.ix_(kept, kept)], noise_variance)
    cross = matrix[kept, row]
    solved = cholesky.solve(factor, np.column_stack([outputs[kept], cross]))
    a, b = solved[:, :-1], solved[:, -1]
    found = _Others(
        rows=rows[kept],
        own=rows[[row]],
        factor=factor,
        a=a,
        b=b,
        variance=float(matrix[row, row] - cross @ b),
        residual=outputs[row] - cross @ a,
        noise=float(noise_variance),
    )
    return found, resolved


def _added(
    others: _Others, kernel: Kernel, points: FloatArray, labels: FloatArray
) -> PoisonedRecord:
    cross = kernel(others.rows, points)
    with_noise = kernel.diagonal(points) + others.noise
    with_noise = with_noise - np.einsum("ij,ij->j", cross, cholesky.solve(others.factor, cross))
    c = kernel(others.own, points)[0] - others.b @ cross
    excess = (others.variance - c**2 / with_noise) / others.noise
    residual = others.residual - (c / with_noise)[:, None] * (labels - cross.T @ others.a)
    before = others.kl(np.array(others.variance / others.noise), others.residual)
    return PoisonedRecord(others.kl(excess, residual), excess, residual, float(before))


def _labels(
    labels: ArrayLike | None, y: ArrayLike, others: _Others, aim: Aim
) -> tuple[FloatArray, tuple[float, float] | None]:
    """(L, C) labels to try, or the ends between which the best one is known in closed form."""
    outputs = others.a.shape[1]
    if labels is not None:
        given = real_numbers(labels, "labels")
        given = given.reshape(len(given), -1) if given.ndim else given.reshape(1, 1)
        if given.shape[1] != outputs or not np.isfinite(given).all():
            raise InputError(f"labels must be finite, with {outputs} outputs each.")
        return given, None
    every = real_numbers(y, "y").reshape(-1, outputs)
    different = np.unique(every, axis=0)
    if len(different) <= LABELS_TRIED:
        return different, None
    if outputs > 1:
        raise InputError(
            f"the records have {len(different)} different labels of {outputs} outputs; name those "
            "that the point may have with labels."
        )
    ends = float(every.min()), float(every.max())
    return np.array(ends)[:, None], ends if aim == "lower" else None


def _starts(
    others: _Others, kernel: Kernel, low: FloatArray, high: FloatArray, starts: int, key: Key
) -> FloatArray:
    cross = kernel(others.rows)
    told = np.abs(kernel(others.own, others.rows)[0] - others.b @ cross)
    near = others.rows[np.argsort(-told, kind="stable")[: starts // 2]]
    drawn = key.generator().uniform(low, high, size=(max(starts - 1 - len(near), 0), len(low)))
    return np.clip(np.vstack([others.own, near, drawn])[:starts], low, high)


def _climbed(
    others: _Others,
    kernel: Kernel,
    begins: FloatArray,
    tried: FloatArray,
    between: tuple[float, float] | None,
    aim: Aim,
    box: tuple[FloatArray, FloatArray],
    steps: int,
) -> tuple[FloatArray, FloatArray]:
    """Where every start with every label ends, starts outermost; and the labels there."""
    import jax
    import jax.numpy as jnp

    from leakscope.lood.query_climb import as_jax

    low, high = box
    width = high - low
    sign = 1.0 if aim == "raise" else -1.0
    with double_precision():
        k = as_jax(kernel)
        lower = jnp.asarray(np.tril(others.factor.packed))
        rows, own = jnp.asarray(others.rows), jnp.asarray(others.own)
        a, b, r = jnp.asarray(others.a), jnp.asarray(others.b), jnp.asarray(others.residual)

        def seen(point: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
            cross = k(rows, point[None])[:, 0]
            half = jax.scipy.linalg.solve_triangular(lower, cross, lower=True)
            spread = k(point[None], point[None])[0, 0] - half @ half + others.noise
            return k(own, point[None])[0, 0] - b @ cross, spread, cross @ a

        def best_label(point: jax.Array) -> jax.Array:
            assert between is not None
            c, spread, mean = seen(point)
            apart = jnp.abs(c) > 1e-12
            wanted = mean + jnp.where(apart, r * spread / jnp.where(apart, c, 1.0), 0.0)
            return jnp.clip(wanted, *between)

        def falling(unit: jax.Array, label: jax.Array) -> jax.Array:
            point = jnp.asarray(low + unit * width)
            c, spread, mean = seen(point)
            u = label if between is None else best_label(point)
            x = (others.variance - c**2 / spread) / others.noise
            residual = r - c / spread * (u - mean)
            score = jnp.sum(residual**2) / (others.noise * (1.0 + x))
            return -sign * (0.5 * len(r) * (x - jnp.log1p(x)) + 0.5 * x * score)

        slope = jax.jit(jax.value_and_grad(falling))
        places, given = [], []
        for begin in begins:
            unit = np.divide(begin - low, width, out=np.zeros_like(low), where=width > 0.0)
            for label in tried if between is None else tried[:1]:
                found = _minimize(
                    lambda at, label=label: tuple(map(np.asarray, slope(at, label))),
                    unit,
                    jac=True,
                    method="L-BFGS-B",
                    bounds=optimize.Bounds(0.0, 1.0),
                    options={"maxiter": steps, "ftol": 1e-14, "gtol": 1e-9},
                )
                place = low + found.x * width
                places.append(place)
                given.append(
                    label if between is None else np.asarray(best_label(jnp.asarray(place)))
                )
    return np.array(places), np.array(given)
