"""Where a record's influence is greatest: Theorem 4.1's conditions, Prop. 5.1 and Algorithm 1.

Symbols: S the record in question with label y_S, D the others, M_D = K_DD + s2 I,
kappa = K_SD M_D^{-1} K_DS, alpha = k(S, S) - kappa + s2, r = y_S - K_SD M_D^{-1} y_D its residual.
The mean at a query Q shifts by

    Delta(Q) = (k(Q, S) - K_QD M_D^{-1} K_DS) r/alpha

when S joins, M(Q) = Delta(Q)^2/2 is the mean distance (Def. C.1), and

    grad M(S) = (k(S, S) - kappa) r^2/alpha^2 (k'(S, S) - K'_SD M_D^{-1} K_DS),

with ' the derivative in Q at Q = S, and the Hessian is r^2/alpha^2 (v v'' + v' v'^T) with
v(Q) = k(Q, S) - K_QD M_D^{-1} K_DS (Lemma F.4).  Under Theorem 4.1's conditions k(S, S) = 1 and
k'(S, S) = 0, and the gradient is Prop. 5.1, Eq. (23).  (The proof in App. F.1 calls M the squared
distance without the half of Def. C.1; Eq. (23) is right with the half.)  KL, by contrast, is always
greatest at the record itself.

**Theorem 4.1** makes the record itself a stationary query where (i) k(x, x) = 1 for all records
(any other constant does as well: it rescales the kernel and the noise) and (ii) the derivative of
k(x, x') in x vanishes at x = x'.  Neither is needed for the numbers of an audit: f(x_i) is
sufficient, so the record itself is the most revealing query under any kernel (docs/lood.md), and
hence stationary wherever the LOOD is differentiable there.  What hangs on them is the form of
Prop. 5.1.

(ii) is looked at with the kernel as a black box: along a few directions, among them the record's
own (along which an unnormalised kernel grows), the fall k(x, x) - k(x + h e, x) is measured at
h and h/2.  Where the slope vanishes it falls by 4, where there is a slope or a kink by 2.  Where
all records lie on one sphere, (ii) is asked along it as well, as in Prop. D.4: x + h e is put back
onto the sphere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.kernels.formulas import RBF
from leakscope.kernels.kernel import Kernel, checked_kernel
from leakscope.lood.dense import factorise
from leakscope.lood.inputs import checked_targets, real_numbers, require_positive

# Untyped on purpose: the stubs of this function change from one release to the next.
_minimize: Any = optimize.minimize

Regime = Literal["far", "close", "between"]

# S is far where the others leave it this share of its prior variance, and close where its label
# is predicted to within this share of the predictive deviation.
FAR_ABOVE = 0.999
CLOSE_BELOW = 0.05

# The step of a central difference, in units of the point's own size.
STEP = 1e-5

# Beyond so many features a Hessian takes more memory than anybody looks at.
MOST_ROWS = 2048


@dataclass(frozen=True)
class SelfInfluence:
    """A record's influence on its own prediction, and whether some other query feels more.

    Attributes
    ----------
    mean_distance
        M(S), at the record itself.
    gradient
        (d,) of M(Q) at Q = S, Prop. 5.1.
    hessian, concave
        (d, d) of M(Q) at Q = S, and whether it is negative definite: then a stationary query
        nearby is a maximum (Lemma F.4).  For the RBF kernel of up to 2,048 features, else None.
    best_query, best_mean_distance
        The query found by climbing from S inside the box, and M there.
    at_edge
        Whether the climb ended at the edge of the box.  Under a kernel that grows with the query
        (linear, NNGP without normalisation) M has no maximum: it grows with the square of the
        query's size (App. C.3), and the best query is the box's, not the record's.
    novelty
        The share of the prior variance that the other records leave at S, between 0 and 1.
    residual
        |r| in predictive standard deviations sqrt(alpha).
    regime
        ``"far"``: the others say nothing about S, the gradient vanishes and S is its own most
        influenced query (Lemma F.4); ``"close"``: its label is predicted, and nothing moves much;
        ``"between"``: the gradient is not small, some other query is influenced more.
    """

    mean_distance: float
    gradient: FloatArray
    hessian: FloatArray | None
    concave: bool | None
    best_query: FloatArray
    best_mean_distance: float
    at_edge: bool
    novelty: float
    residual: float
    regime: Regime


@dataclass(frozen=True)
class NonOptimalPoint:
    """What Algorithm 1 finds: a differing point that is not its own most influenced query."""

    point: FloatArray  # S*
    label: float
    influence: SelfInfluence  # its self-influence, with the better query


@dataclass(frozen=True)
class _Trained:
    """A process trained on D, ready to be asked about any S and Q."""

    rows: FloatArray
    outputs: FloatArray
    kernel: Kernel
    noise_variance: float
    factor: cholesky.Factor
    weights: FloatArray

    def joined(self, point: FloatArray, label: FloatArray) -> tuple[FloatArray, float, FloatArray]:
        """M_D^{-1} K_DS, kappa and r."""
        cross = self.kernel(self.rows, point[None, :])[:, 0]
        solved = cholesky.solve(self.factor, cross)
        return solved, float(cross @ solved), label - cross @ self.weights

    def mean_distance(self, point: FloatArray, label: FloatArray, query: FloatArray) -> float:
        """M(Q), by definition."""
        solved, kappa, residual = self.joined(point, label)
        alpha = float(self.kernel.diagonal(point[None, :])[0]) - kappa + self.noise_variance
        asked = np.vstack([self.rows, point])
        here = self.kernel(query[None, :], asked)[0]
        reach = here[-1] - here[:-1] @ solved
        return 0.5 * float(np.sum((reach * residual / alpha) ** 2))

    def gradient(self, point: FloatArray, label: FloatArray, query: FloatArray) -> FloatArray:
        """Of M at any query; at ``query == point`` this is Prop. 5.1."""
        solved, kappa, residual = self.joined(point, label)
        alpha = float(self.kernel.diagonal(point[None, :])[0]) - kappa + self.noise_variance
        asked = np.vstack([self.rows, point])
        coefficients = np.append(-solved, 1.0)
        reach = float(self.kernel(query[None, :], asked)[0] @ coefficients)
        slope = kernel_gradient(self.kernel, query, asked).T @ coefficients
        return np.asarray(reach * slope * float(np.sum(residual**2)) / alpha**2)

    def hessian(self, point: FloatArray, label: FloatArray) -> FloatArray | None:
        """Of M at ``query == point`` (Lemma F.4); None where it cannot be had."""
        solved, kappa, residual = self.joined(point, label)
        alpha = float(self.kernel.diagonal(point[None, :])[0]) - kappa + self.noise_variance
        asked = np.vstack([self.rows, point])
        coefficients = np.append(-solved, 1.0)
        bend = kernel_hessian(self.kernel, point, asked, coefficients)
        if bend is None:
            return None
        reach = float(self.kernel(point[None, :], asked)[0] @ coefficients)
        slope = kernel_gradient(self.kernel, point, asked).T @ coefficients
        size = float(np.sum(residual**2)) / alpha**2
        return np.asarray(size * (reach * bend + np.outer(slope, slope)))


def self_influence(
    X: ArrayLike,
    y: ArrayLike,
    point: ArrayLike,
    label: ArrayLike,
    kernel: Kernel,
    noise_variance: float,
    *,
    bounds: list[tuple[float, float]] | None = None,
) -> SelfInfluence:
    """What a further record would change at itself, and where it would change more.

    Parameters
    ----------
    X, y
        The other records, and their targets, (n,) or (n, C).
    point, label
        The record in question, (d,), and its target.
    kernel, noise_variance
        As for :func:`leakscope.lood.distinguish`.
    bounds
        The box of queries to climb in, one (low, high) a feature; where left out, the range of all
        records, the one in question included, and as much again on both sides.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X = np.linspace(-1, 1, 6)[:, None]
    >>> for place in (9.0, 2.5, 0.1):
    ...     found = lood.self_influence(
    ...         X, np.sin(X[:, 0]), [place], np.sin(place), kernels.rbf(1.0), noise_variance=0.01)
    ...     print(found.regime, round(found.best_mean_distance / found.mean_distance, 2))
    far 1.0
    between 1.1
    close 1.0
    """
    trained = _train(X, y, kernel, noise_variance)
    spot, target = _point(trained, point, label)
    _, kappa, residual = trained.joined(spot, target)
    prior = float(trained.kernel.diagonal(spot[None, :])[0])
    here = trained.mean_distance(spot, target, spot)
    box = _around(trained.rows, spot) if bounds is None else _box(trained, bounds)
    if not ((box[:, 0] <= spot) & (spot <= box[:, 1])).all():
        raise InputError("bounds must hold the point itself, from which the climb starts.")
    best = _climb(trained, spot, target, box)
    near = 1e-9 * (box[:, 1] - box[:, 0])
    novelty = (prior - kappa) / prior
    alpha = prior - kappa + noise_variance
    size = float(np.sqrt(np.sum(residual**2) / alpha))
    regime: Regime = "between"
    if novelty > FAR_ABOVE:
        regime = "far"
    elif size < CLOSE_BELOW:
        regime = "close"
    hessian = trained.hessian(spot, target)
    return SelfInfluence(
        mean_distance=here,
        gradient=trained.gradient(spot, target, spot),
        hessian=hessian,
        concave=None if hessian is None else bool(np.linalg.eigvalsh(hessian)[-1] < 0.0),
        best_query=best,
        best_mean_distance=trained.mean_distance(spot, target, best),
        at_edge=bool(((best <= box[:, 0] + near) | (best >= box[:, 1] - near)).any()),
        novelty=novelty,
        residual=size,
        regime=regime,
    )


def find_non_optimal_point(
    X: ArrayLike,
    y: ArrayLike,
    label_of: Callable[[FloatArray], float],
    kernel: Kernel,
    noise_variance: float,
    *,
    bounds: list[tuple[float, float]],
    starts: int = 24,
    random_state: int = 0,
) -> NonOptimalPoint:
    """Algorithm 1 of App. F: the point at which the gradient of Prop. 5.1 is longest.

    Parameters
    ----------
    X, y
        The training records D, and their targets.
    label_of
        The label that a point would have; in the paper's example the sine.
    kernel, noise_variance
        As for :func:`leakscope.lood.distinguish`.
    bounds
        The box to search, one (low, high) a feature.
    starts, random_state
        How many random starts, and their seed.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X = np.linspace(-1, 1, 6)[:, None]
    >>> found = lood.find_non_optimal_point(
    ...     X, np.sin(X[:, 0]), lambda s: float(np.sin(s[0])), kernels.rbf(1.0),
    ...     noise_variance=0.01, bounds=[(-5, 5)])
    >>> found.influence.best_mean_distance > 1.01 * found.influence.mean_distance
    True
    """
    trained = _train(X, y, kernel, noise_variance)
    box = _box(trained, bounds)

    def length(point: FloatArray) -> float:
        slope = trained.gradient(point, np.atleast_1d(label_of(point)), point)
        return -float(np.linalg.norm(slope))

    rng = np.random.default_rng(random_state)
    first = rng.uniform(box[:, 0], box[:, 1], size=(starts, len(box)))
    runs = [_minimize(length, x, bounds=bounds, method="L-BFGS-B") for x in first]
    point = np.asarray(min(runs, key=lambda run: float(run.fun)).x, dtype=np.float64)
    label = float(label_of(point))
    return NonOptimalPoint(
        point=point,
        label=label,
        influence=self_influence(X, y, point, label, kernel, noise_variance),
    )


def kernel_gradient(kernel: Kernel, query: FloatArray, rows: FloatArray) -> FloatArray:
    """Derivatives of k(query, x) in the query, for each row x: (n, d).

    In closed form for the RBF kernel, by central differences for any other.
    """
    if isinstance(kernel, RBF) and kernel.length_scale is not None:
        values = kernel(query[None, :], rows)[0]
        return np.asarray((rows - query) * (values / kernel.length_scale**2)[:, None])
    step = STEP * max(1.0, float(np.max(np.abs(query))))
    shifts = step * np.eye(len(query))
    ahead, behind = kernel(query + shifts, rows), kernel(query - shifts, rows)
    return np.asarray((ahead - behind).T / (2.0 * step))


def kernel_hessian(
    kernel: Kernel, query: FloatArray, rows: FloatArray, weights: FloatArray
) -> FloatArray | None:
    """Second derivatives in the query of sum_i weights_i k(query, x_i): (d, d).

    In closed form for the RBF kernel; None for any other, and beyond `MOST_ROWS`.
    """
    if len(query) > MOST_ROWS or not isinstance(kernel, RBF) or kernel.length_scale is None:
        return None
    scale = kernel.length_scale**2
    each = weights * kernel(query[None, :], rows)[0] / scale
    apart = rows - query
    return np.asarray((apart.T * each) @ apart / scale - each.sum() * np.eye(len(query)))


def _box(trained: _Trained, bounds: list[tuple[float, float]]) -> FloatArray:
    box = np.asarray(bounds, dtype=np.float64)
    if box.shape != (trained.rows.shape[1], 2) or not (box[:, 0] < box[:, 1]).all():
        raise InputError(
            f"bounds must be {trained.rows.shape[1]} pairs (low, high), one a feature."
        )
    return box


def _around(rows: FloatArray, point: FloatArray) -> FloatArray:
    """The range of all records, (d, 2), and as much again on both sides; 1 where it is none."""
    every = np.vstack([rows, point])
    low, high = every.min(axis=0), every.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    return np.column_stack([low - width, high + width])


def _climb(trained: _Trained, point: FloatArray, label: FloatArray, box: FloatArray) -> FloatArray:
    """The query in the box with the largest mean distance that is reached from the point."""
    scale = max(trained.mean_distance(point, label, point), np.finfo(np.float64).tiny)
    found = _minimize(
        lambda q: -trained.mean_distance(point, label, q) / scale,
        point,
        jac=lambda q: -trained.gradient(point, label, q) / scale,
        bounds=box,
        method="L-BFGS-B",
    )
    return np.asarray(found.x, dtype=np.float64)


def _train(X: ArrayLike, y: ArrayLike, kernel: Kernel, noise_variance: float) -> _Trained:
    rows = real_numbers(X, "X")
    if rows.ndim != 2:
        raise InputError(f"X must be records by features, but its shape is {rows.shape}.")
    targets = checked_targets(y, len(rows), "X")
    require_positive(noise_variance, "noise_variance")
    resolved = checked_kernel(kernel, rows)
    outputs = targets.reshape(len(rows), -1)
    factor = factorise(resolved(rows), noise_variance, overwrite=True)
    weights = cholesky.solve(factor, outputs)
    return _Trained(rows, outputs, resolved, noise_variance, factor, weights)


def _point(trained: _Trained, point: ArrayLike, label: ArrayLike) -> tuple[FloatArray, FloatArray]:
    spot = real_numbers(point, "the point")
    target = np.atleast_1d(real_numbers(label, "the label"))
    if spot.shape != trained.rows.shape[1:]:
        raise InputError(
            f"the point must have {trained.rows.shape[1]} features, but its shape is {spot.shape}."
        )
    if target.shape != trained.outputs.shape[1:]:
        raise InputError(
            f"the label must have {trained.outputs.shape[1]} outputs, but its shape is "
            f"{target.shape}."
        )
    return spot, target


RECORDS = 8
DIRECTIONS = 4
STEPS = 24

# Falls of these shares of k(x, x) are small enough for the leading power and large enough for
# rounding.
SMALL, RESOLVED = 1e-3, 1e-9

# log2 of the ratio of falls: 2 where the slope vanishes, 1 where it does not.
LEAST_POWER = 1.5

NORMALISED_WITHIN = 1e-9


@dataclass(frozen=True)
class StationarityConditions:
    """Theorem 4.1's two conditions, as found.

    Attributes
    ----------
    normalised, least, largest
        Whether k(x, x) is the same for all records, and its least and largest value.
    stationary, least_power
        Whether the slope at coincidence vanishes wherever it was looked at; the least power of
        the step by which the kernel falls there, 2 for a smooth stationary kernel and 1 for one
        with a slope or a kink.
    on_sphere, power_on_sphere
        Where all records have one length: whether the slope vanishes along that sphere
        (Prop. D.4), and the least power there.  None where they have not.
    records
        How many records were looked at for the slope.
    """

    normalised: bool
    least: float
    largest: float
    stationary: bool
    least_power: float
    on_sphere: bool | None
    power_on_sphere: float | None
    records: int


def stationarity_conditions(kernel: Kernel, X: ArrayLike) -> StationarityConditions:
    """Check Theorem 4.1's conditions numerically, for any kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> found = lood.stationarity_conditions(kernels.rbf(1.0), X)
    >>> found.normalised, found.stationary
    (True, True)
    """
    rows = real_numbers(X, "X")
    prior = kernel.diagonal(rows)
    least, largest = float(np.min(prior)), float(np.max(prior))
    rng = np.random.default_rng(0)
    some = rows[np.sort(rng.permutation(len(rows))[:RECORDS])]
    lengths = np.linalg.norm(rows, axis=1)
    sphere = lengths.min() > 0.0 and np.ptp(lengths) <= NORMALISED_WITHIN * lengths.max()
    power = min(_least_power(kernel, x, rng) for x in some)
    along = None
    if sphere and rows.shape[1] > 1:
        along = min(_least_power(kernel, x, rng, on_sphere=True) for x in some)
    return StationarityConditions(
        normalised=largest - least <= NORMALISED_WITHIN * largest,
        least=least,
        largest=largest,
        stationary=power > LEAST_POWER,
        least_power=power,
        on_sphere=None if along is None else along > LEAST_POWER,
        power_on_sphere=along,
        records=len(some),
    )


def _least_power(
    kernel: Kernel, x: FloatArray, rng: np.random.Generator, *, on_sphere: bool = False
) -> float:
    """The least power of h by which k(x, x) - k(x + h e, x) falls, over some directions e.

    ``on_sphere``: over tangents e, with x + h e put back onto the sphere of x.
    """
    directions = rng.normal(size=(DIRECTIONS, len(x)))
    if on_sphere:
        directions -= np.outer(directions @ x, x) / (x @ x)
    elif x.any():
        directions = np.vstack([directions, x, -x])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    size = max(float(np.linalg.norm(x)), 1.0)
    # Not a whole number of lengths, which would lead through the origin.
    steps = 0.7 * size * 2.0 ** -np.arange(STEPS)
    moved = x + (directions[:, None, :] * steps[None, :, None]).reshape(-1, len(x))
    if on_sphere:
        moved *= np.linalg.norm(x) / np.linalg.norm(moved, axis=1, keepdims=True)
    values = kernel(moved, x[None, :])[:, 0].reshape(len(directions), STEPS)
    own = float(kernel.diagonal(x[None, :])[0])
    falls = np.abs(own - values) / own
    powers = []
    for fall in falls:
        seen = np.flatnonzero((fall[:-1] < SMALL) & (fall[1:] > RESOLVED))
        if seen.size:
            powers.append(float(np.log2(fall[seen[-1]] / fall[seen[-1] + 1])))
        else:
            # Either flat in this direction, which is as stationary as can be, or a jump.
            powers.append(2.0 if fall[-1] < SMALL else 0.0)
    return min(powers)
