"""LOOD as a function of the queries, in JAX, for many sets of queries at once, and climbing it.

Symbols as in :mod:`leakscope.lood.distinguish`: M = K_D'D' + s2 I = L L^T over all records,
a = M^{-1} y, G the left-out group, V = M^{-1} E_G, [M^{-1}]_GG^{-1} = R R^T.  With

    U = K_QD' V R        Sigma' = K_QQ - (L^{-1} K_D'Q)^T (L^{-1} K_D'Q)        t = R^T a_G

the two posteriors at Q are Sigma = Sigma' + U U^T and mu = mu' - U t, so that with
W = U^T Sigma'^{-1} U

    KL(without || with) = (C/2) [tr W - log det(I + W)] + (1/2) sum_c t_c^T W t_c      (Def. C.3)
    mean distance       = (1/2) sum_c ||U t_c||^2                                      (Def. C.1).

L^{-1} and V R are computed once; a step of the search then costs O(n d + n^2) for each query,
where refitting would cost O(n^3).

For **one record and one query** W is the number U^2/Sigma', KL increases with it, and

    W/(1 + W) = U^2/Sigma = rho^2 v/(v + s2),

with rho the correlation, given the other records, of f(Q) with f(x_i), and v the variance of
f(x_i): maximising LOOD is maximising rho^2, which is 1 at the record.  Queries with rho < 0 climb
towards rho = -1 instead, which no query reaches: the colour-flipped pictures of the paper's
Fig. 2(b).  Climbing rho itself (its increasing function arcsinh(U/sqrt(Sigma'))) has the same
maximum and no such detour.

Under **data-dependent normalisation** (App. D.4) the mean and the deviation of the training set
belong to the model, so that leaving out a record moves every other one.  Two fits are then kept,
each with its own statistics, and Def. C.3 is used as it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.kernels.formulas import RBF, Linear, Matern
from leakscope.kernels.kernel import Kernel
from leakscope.lood.dense import factorise
from leakscope.lood.inputs import checked_problem
from leakscope.settings.attack import SearchObjective

# Rows x and rows z in, the matrix of k(x, z) out.
JaxKernel = Callable[[jax.Array, jax.Array], jax.Array]


@runtime_checkable
class Differentiable(Protocol):
    """A kernel that comes with JAX code of its own."""

    def jax(self, x: jax.Array, z: jax.Array) -> jax.Array:
        """k(x, z) for rows x and z."""
        ...


def as_jax(kernel: Kernel) -> JaxKernel:
    """The kernel as a function of two arrays of rows, differentiable in both."""
    match kernel:
        case Differentiable():
            return kernel.jax
        case RBF():
            return partial(_rbf, _number(kernel.length_scale), kernel.variance)
        case Matern(nu=0.5 | 1.5 | 2.5):
            scale = _number(kernel.length_scale)
            return partial(_matern, kernel.nu, scale, kernel.variance)
        case Linear():
            return partial(_linear, kernel)
        case _:
            raise InputError(
                f"the kernel {kernel.describe()['name']} cannot be differentiated: use rbf, "
                "linear, matern with nu 0.5, 1.5 or 2.5, a network, or a kernel with a method "
                "jax(x, z)."
            )


def _number(length_scale: float | None) -> float:
    if length_scale is None:
        raise InputError("the kernel's length_scale is not set; call resolved(X) first.")
    return length_scale


def _squared_distances(x: jax.Array, z: jax.Array) -> jax.Array:
    # Centring keeps ||x||^2 + ||z||^2 - 2 x.z from cancelling; the centre changes no distance, so
    # that it needs no derivative.
    centre = jax.lax.stop_gradient(z.mean(axis=0))
    x, z = x - centre, z - centre
    return (x * x).sum(1)[:, None] + (z * z).sum(1)[None, :] - 2.0 * (x @ z.T)


def _rbf(length_scale: float, variance: float, x: jax.Array, z: jax.Array) -> jax.Array:
    return variance * jnp.exp(-0.5 / length_scale**2 * _squared_distances(x, z))


def _matern(
    nu: float, length_scale: float, variance: float, x: jax.Array, z: jax.Array
) -> jax.Array:
    squared = 2.0 * nu / length_scale**2 * _squared_distances(x, z)
    # The root has no slope at zero; the inner where() keeps its infinity out of the derivative.
    apart = squared > 1e-24
    t = jnp.where(apart, jnp.sqrt(jnp.where(apart, squared, 1.0)), 0.0)
    shape = {0.5: jnp.ones_like(t), 1.5: 1.0 + t, 2.5: 1.0 + t * (1.0 + t / 3.0)}[nu]
    return variance * shape * jnp.exp(-t)


def _linear(kernel: Linear, x: jax.Array, z: jax.Array) -> jax.Array:
    scale = kernel.weight_variance / (x.shape[1] if kernel.divide_by_features else 1)
    return scale * (x @ z.T) + kernel.bias_variance


Objective = SearchObjective
Climb = Literal["kl", "mean_distance", "correlation"]

# Noise on every answer, as a share of its prior variance: it keeps Sigma' positive definite when
# two queries meet, and can only lower the KL.  The values that are reported have none of it.
JITTER = 1e-10

TINY = float(np.finfo(np.float64).tiny)


class Fixed(NamedTuple):
    """What stays the same while the queries move; preprocessing does not depend on the record.

    ``columns`` V R is (n, g) and ``score`` (g, C) where all sets of queries look for one group,
    (S, n, g) and (S, g, C) where each looks for its own.
    """

    rows: jax.Array | FloatArray
    inverse_factor: jax.Array | FloatArray
    columns: jax.Array | FloatArray
    score: jax.Array | FloatArray


class Fit(NamedTuple):
    """One Gaussian process on records normalised by their own mean and deviation."""

    mean: jax.Array | FloatArray
    deviation: jax.Array | FloatArray
    rows: jax.Array | FloatArray
    inverse_factor: jax.Array | FloatArray
    a: jax.Array | FloatArray


class Normalised(NamedTuple):
    """The processes with and without the group, under data-dependent normalisation."""

    with_group: Fit
    without_group: Fit


Problem = Fixed | Normalised


def fixed_problem(
    rows: FloatArray,
    targets: FloatArray,
    group: NDArray[np.intp],
    kernel: Kernel,
    noise_variance: float,
) -> Fixed:
    """Factorise once; keep what a step needs."""
    inverse_factor, a = _fitted(rows, targets, kernel, noise_variance)
    V = inverse_factor.T @ inverse_factor[:, group]
    eigenvalues, eigenvectors = np.linalg.eigh(0.5 * (V[group] + V[group].T))
    R = eigenvectors / np.sqrt(eigenvalues)
    return Fixed(rows, inverse_factor, V @ R, R.T @ a[group])


def fixed_problems(
    rows: FloatArray,
    targets: FloatArray,
    records: NDArray[np.intp],
    kernel: Kernel,
    noise_variance: float,
) -> Fixed:
    """One record for each set of queries, from the same factorisation."""
    inverse_factor, a = _fitted(rows, targets, kernel, noise_variance)
    V = inverse_factor.T @ inverse_factor[:, records]
    root = np.sqrt(V[records, np.arange(len(records))])
    columns, score = (V / root).T, a[records] / root[:, None]
    return Fixed(rows, inverse_factor, columns[:, :, None], score[:, None, :])


def normalised_problem(
    rows: FloatArray,
    targets: FloatArray,
    group: NDArray[np.intp],
    kernel: Kernel,
    noise_variance: float,
    channels: int,
) -> Normalised:
    """Two fits, each on records normalised channel by channel over its own training set."""
    others = np.delete(np.arange(len(rows)), group)
    fits = []
    for kept in (np.arange(len(rows)), others):
        mean, deviation = channel_statistics(rows[kept], channels)
        scaled = (rows[kept] - mean) / deviation
        fits.append(
            Fit(mean, deviation, scaled, *_fitted(scaled, targets[kept], kernel, noise_variance))
        )
    return Normalised(*fits)


def channel_statistics(rows: FloatArray, channels: int) -> tuple[FloatArray, FloatArray]:
    """Mean and deviation of each channel, one number a feature; feature j is of channel j mod c."""
    if channels < 1 or rows.shape[1] % channels:
        raise InputError(
            f"normalise_channels must divide the {rows.shape[1]} features, but it is {channels}."
        )
    pixels = rows.reshape(-1, channels)
    repeats = rows.shape[1] // channels
    deviation = pixels.std(axis=0)
    deviation[deviation == 0.0] = 1.0
    return np.tile(pixels.mean(axis=0), repeats), np.tile(deviation, repeats)


def _fitted(
    rows: FloatArray, targets: FloatArray, kernel: Kernel, noise_variance: float
) -> tuple[FloatArray, FloatArray]:
    """L^{-1} and (n, C) a = M^{-1} y."""
    matrix, checked = checked_problem(kernel(rows), targets, noise_variance)
    factor = factorise(matrix, noise_variance)
    inverse = np.tril(cholesky.inverse_factor(factor, overwrite=True).packed)
    return inverse, inverse.T @ (inverse @ checked.reshape(len(checked), -1))


@partial(jax.jit, static_argnums=(0, 1))
def lood(kernel: Kernel, objective: Objective, problem: Problem, queries: jax.Array) -> jax.Array:
    """(S,) LOOD of S sets of queries, (S, q, d)."""
    k = as_jax(kernel)
    if isinstance(problem, Fixed):
        return _fixed_lood(k, objective, problem, queries)
    return _normalised_lood(k, objective, problem, queries)


@partial(jax.jit, static_argnums=(0, 1))
def slope(
    kernel: Kernel, climb: Climb, problem: Problem, queries: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """What is followed uphill (S,), LOOD (S,), and the slope of the former (S, q, d)."""

    def followed(moved: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        if climb == "correlation":
            assert isinstance(problem, Fixed)
            height, value = _correlation(as_jax(kernel), problem, moved)
        else:
            value = lood(kernel, climb, problem, moved)
            # Far from the record LOOD is smaller by orders of magnitude; its logarithm is not flat.
            height = jnp.log(value + TINY)
        return height.sum(), (height, value)

    (_, (height, value)), uphill = jax.value_and_grad(followed, has_aux=True)(queries)
    return height, value, jnp.nan_to_num(uphill, nan=0.0, posinf=0.0, neginf=0.0)


def _at(
    k: JaxKernel, rows: jax.Array, inverse_factor: jax.Array, queries: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """K_QD' (S, q, n) and the posterior covariance (S, q, q), with the jitter."""
    sets, count, features = queries.shape
    cross = k(queries.reshape(-1, features), rows)
    half = (cross @ inverse_factor.T).reshape(sets, count, -1)
    prior = jax.vmap(lambda asked: k(asked, asked))(queries)
    covariance = prior - jnp.einsum("sin,sjn->sij", half, half)
    own = jnp.diagonal(prior, axis1=1, axis2=2)
    floor = JITTER * own[:, :, None] * jnp.eye(count)
    return cross.reshape(sets, count, -1), covariance + jax.lax.stop_gradient(floor)


def _fixed_lood(
    k: JaxKernel, objective: Objective, problem: Fixed, queries: jax.Array
) -> jax.Array:
    rows, inverse_factor, columns, score = (jnp.asarray(part) for part in problem)
    cross, covariance = _at(k, rows, inverse_factor, queries)
    U = cross @ columns
    if objective == "mean_distance":
        return 0.5 * ((U @ score) ** 2).sum(axis=(1, 2))
    lower = jnp.linalg.cholesky(covariance)
    half = jax.scipy.linalg.solve_triangular(lower, U, lower=True)
    W = jnp.einsum("sji,sjk->sik", half, half)
    free = jnp.trace(W, axis1=1, axis2=2) - _log_determinant(jnp.eye(W.shape[1]) + W)
    label = (score * (W @ score)).sum(axis=(1, 2))
    return 0.5 * (score.shape[-1] * free + label)


def _correlation(k: JaxKernel, problem: Fixed, queries: jax.Array) -> tuple[jax.Array, jax.Array]:
    """An increasing function of rho, and KL LOOD, for one record and one query."""
    rows, inverse_factor, columns, score = (jnp.asarray(part) for part in problem)
    cross, covariance = _at(k, rows, inverse_factor, queries)
    root = (cross @ columns)[:, 0, 0] / jnp.sqrt(covariance[:, 0, 0])
    W = root**2
    return jnp.arcsinh(root), 0.5 * (
        score.shape[-1] * (W - jnp.log1p(W)) + (score**2).sum(axis=(-2, -1)) * W
    )


def _normalised_lood(
    k: JaxKernel, objective: Objective, problem: Normalised, queries: jax.Array
) -> jax.Array:
    means, covariances = [], []
    for fit in problem:
        asked = (queries - jnp.asarray(fit.mean)) / jnp.asarray(fit.deviation)
        cross, covariance = _at(k, jnp.asarray(fit.rows), jnp.asarray(fit.inverse_factor), asked)
        means.append(cross @ jnp.asarray(fit.a))
        covariances.append(covariance)
    shift = means[0] - means[1]
    if objective == "mean_distance":
        return 0.5 * (shift**2).sum(axis=(1, 2))
    lower, other = (jnp.linalg.cholesky(covariance) for covariance in covariances)
    ratio = jax.scipy.linalg.solve_triangular(lower, other, lower=True)
    moved = jax.scipy.linalg.solve_triangular(lower, shift, lower=True)
    logs = _log_diagonal(lower) - _log_diagonal(other)
    free = (ratio**2).sum(axis=(1, 2)) - queries.shape[1] + 2.0 * logs
    return 0.5 * (shift.shape[2] * free + (moved**2).sum(axis=(1, 2)))


def _log_determinant(matrix: jax.Array) -> jax.Array:
    return 2.0 * _log_diagonal(jnp.linalg.cholesky(matrix))


def _log_diagonal(lower: jax.Array) -> jax.Array:
    return jnp.log(jnp.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)


# Adam's decay rates and floor (Kingma & Ba 2015).
FIRST, SECOND, FLOOR = 0.9, 0.999, 1e-12

# The last step as a share of the first; in between the steps shrink along a cosine.
LAST_STEP = 1e-3


class _State(NamedTuple):
    place: jax.Array
    first: jax.Array
    second: jax.Array
    best: jax.Array
    height: jax.Array


def adam(
    kernel: Kernel,
    climb: Climb,
    problem: Problem,
    starts: FloatArray,
    box: tuple[FloatArray, FloatArray],
    *,
    steps: int,
    step_size: float,
) -> tuple[FloatArray, FloatArray]:
    """Projected Adam from all starts at once: the best places, (S, q, d), and LOOD, (steps + 1, S).

    ``step_size`` is a share of the box's width in each feature.  Called with JAX in 64 bits.
    """
    low, high = box
    places, trace = _adam(kernel, climb, steps, problem, jnp.asarray(starts), low, high, step_size)
    return np.asarray(places), np.asarray(trace)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _adam(
    kernel: Kernel,
    climb: Climb,
    steps: int,
    problem: Problem,
    starts: jax.Array,
    low: jax.Array,
    high: jax.Array,
    step_size: float,
) -> tuple[jax.Array, jax.Array]:
    width = high - low

    def step(state: _State, number: jax.Array) -> tuple[_State, jax.Array]:
        height, value, uphill = slope(kernel, climb, problem, state.place)
        better = height > state.height
        # In units of the box, so that one step size serves features of every scale.
        uphill = uphill * width
        first = FIRST * state.first + (1.0 - FIRST) * uphill
        second = SECOND * state.second + (1.0 - SECOND) * uphill**2
        count = number + 1.0
        direction = (first / (1.0 - FIRST**count)) / (
            jnp.sqrt(second / (1.0 - SECOND**count)) + FLOOR
        )
        shrink = LAST_STEP + (1.0 - LAST_STEP) * 0.5 * (1.0 + jnp.cos(jnp.pi * number / steps))
        moved = _State(
            place=jnp.clip(state.place + step_size * shrink * width * direction, low, high),
            first=first,
            second=second,
            best=jnp.where(better[:, None, None], state.place, state.best),
            height=jnp.where(better, height, state.height),
        )
        return moved, value

    nothing = jnp.zeros_like(starts)
    begin = _State(
        jnp.clip(starts, low, high), nothing, nothing, starts, jnp.full(len(starts), -jnp.inf)
    )
    # The last of steps + 1 looks moves nothing that is used.
    state, trace = jax.lax.scan(step, begin, jnp.arange(steps + 1, dtype=starts.dtype))
    return state.best, trace
