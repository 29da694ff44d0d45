"""Influence functions: what a trained network's answers lose to first order without a record.

With L(theta) = (1/n) sum_j l_j(theta), l_j half the squared residual of record j, and curvature
H = L''(theta) + damping I, the parameters move by H^{-1} l_i'(theta)/n when record i is taken out
(Koh and Liang 2017, Eq. 1), and the answer at a query q with record i less that without it is

    shift = -(1/n) J(q) H^{-1} l_i'(theta).

``curvature="gauss-newton"`` replaces L'' by (1/n) sum_j J_j^T J_j, which is never indefinite.  The
inverse then needs no iteration: with Theta = J J^T of the n records,
J(q) H^{-1} J_i^T/n = [Theta_qX (Theta_XX + n damping I)^{-1}]_i, one factorisation for all records
and queries.  That smoother A also has the exact leave-one-out shift of the linearised network,
(I - A_ii)^{-1} in place of I before the residual, which no first-order formula sees: a network that
fits its records has A_ii near 1.

``curvature="hessian"`` solves with the true Hessian by conjugate gradients, one solve per query and
output, for all records at once.

References
----------
P. W. Koh, P. Liang, "Understanding black-box predictions via influence functions", ICML 2017.
R. D. Cook, "Detection of influential observation in linear regression", Technometrics 1977.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope._numerics.x64 import double_precision
from leakscope.errors import InputError
from leakscope.verifying.prediction_difference import on_themselves
from leakscope.verifying.tangents import (
    answers,
    as_double,
    checked_records,
    tangent_products,
)

Curvature = Literal["gauss-newton", "hessian"]

# A solve whose residual is larger than this, relative to its right-hand side, is not one.
LARGEST_RESIDUAL = 1e-4


@dataclass(frozen=True)
class InfluenceEstimate:
    """Predicted shifts of a network's answers, with the record less without it.

    Attributes
    ----------
    shift
        (n, q, outputs) by the influence function, averaged over models.
    leave_one_out
        (n, q, outputs) of the linearised network, exact in it; None with the true Hessian.
    damping, curvature
        As asked.
    models
        How many models were averaged.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.verifying import InfluenceEstimate
    >>> shift = np.arange(4.0).reshape(2, 2, 1)
    >>> InfluenceEstimate(shift, None, 0.1, "gauss-newton", models=1).self_shift()[:, 0].tolist()
    [0.0, 3.0]
    """

    shift: FloatArray
    leave_one_out: FloatArray | None
    damping: float
    curvature: Curvature
    models: int

    def self_shift(self) -> FloatArray:
        """(n, outputs) each record's influence on its own answer, where the queries are records."""
        return on_themselves(self.shift)


def influence_functions(
    network: Any,
    parameters: Sequence[Any],
    X: ArrayLike,
    y: ArrayLike,
    queries: ArrayLike | None = None,
    *,
    damping: float,
    curvature: Curvature = "gauss-newton",
    iterations: int = 1000,
) -> InfluenceEstimate:
    """What each record changes in the answers at the queries, by influence functions.

    Parameters
    ----------
    network
        A :class:`DenseNetwork` or :class:`ConvolutionalNetwork`.
    parameters
        Of one trained model or more, a list as :func:`parameters_at` gives for a checkpoint; the
        shifts are averaged over them.
    X, y
        The n records that all models were trained on, and their targets.
    queries
        (q, d); the records themselves where left out.
    damping
        Added to the curvature; the weight decay of training, where there was one.
    curvature
        ``"gauss-newton"`` or ``"hessian"``.
    iterations
        At most this many of conjugate gradients, with the Hessian.

    Raises
    ------
    InputError
        Where the damped Hessian has a direction of negative curvature, or conjugate gradients do
        not converge: raise the damping.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope._numerics.keys import Key
    >>> from leakscope.verifying import DenseNetwork, NetworkTrainer, parameters_at
    >>> from leakscope.verifying import influence_functions
    >>> X, y = np.eye(4), np.array([[1.0], [1.0], [1.0], [-1.0]])
    >>> trainer = NetworkTrainer(DenseNetwork((16,)), epochs=60, batch_size=None)
    >>> (models,) = parameters_at(trainer, X, y, np.ones((3, 4), dtype=bool), Key(0))
    >>> found = influence_functions(trainer.network, models, X, y, damping=0.1)
    >>> found.shift.shape, bool(found.self_shift()[3, 0] < 0 < found.self_shift()[0, 0])
    ((4, 4, 1), True)
    """
    rows, targets, asked = checked_records(X, y, queries)
    if not (np.isfinite(damping) and damping > 0.0):
        raise InputError(f"damping must be positive and finite, but it is {damping}.")
    if curvature not in ("gauss-newton", "hessian"):
        raise InputError(f"curvature must be gauss-newton or hessian, but it is {curvature!r}.")
    if not len(parameters):
        raise InputError("influence functions need the parameters of at least one model.")
    size = targets.shape[1]
    require_memory(
        8 * size**2 * len(rows) * (3 * len(rows) + 2 * len(asked)),
        f"the influence of {len(rows)} records on {len(asked)} queries",
        "ask for fewer of them",
    )
    shifts, exact = [], []
    for model in parameters:
        if curvature == "gauss-newton":
            first, whole = _gauss_newton(network, model, rows, targets, asked, damping)
            shifts.append(first)
            exact.append(whole)
        else:
            shifts.append(_hessian(network, model, rows, targets, asked, damping, iterations))
    return InfluenceEstimate(
        shift=np.mean(shifts, axis=0),
        leave_one_out=np.mean(exact, axis=0) if exact else None,
        damping=float(damping),
        curvature=curvature,
        models=len(shifts),
    )


def _gauss_newton(
    network: Any,
    parameters: Any,
    rows: FloatArray,
    targets: FloatArray,
    asked: FloatArray,
    damping: float,
) -> tuple[FloatArray, FloatArray]:
    n, size = targets.shape
    everything = rows if asked is rows else np.vstack([rows, asked])
    products = tangent_products(network, parameters, rows, everything)
    matrix = products[:, :, :n].reshape(n * size, n * size)
    cross = products[:, :, -len(asked) :].reshape(n * size, len(asked) * size)
    factor = cholesky.factorise(matrix + n * damping * np.eye(n * size), overwrite=True)
    smoother = cholesky.solve(factor, cross).reshape(n, size, len(asked), size)
    residual = targets - answers(network, parameters, rows)
    # The block A_ii of the records' own smoother, for I - A_ii.
    own = cholesky.solve(factor, matrix).reshape(n, size, n, size)
    blocks = np.eye(size) - np.einsum("iaib->iab", own)
    freed = np.linalg.solve(np.swapaxes(blocks, 1, 2), residual[:, :, None])[:, :, 0]
    first, whole = (np.einsum("iaqb,ia->iqb", smoother, r) for r in (residual, freed))
    return first, whole


def _hessian(
    network: Any,
    parameters: Any,
    rows: FloatArray,
    targets: FloatArray,
    asked: FloatArray,
    damping: float,
    iterations: int,
) -> FloatArray:
    with double_precision():
        weights = as_double(parameters)
        found = [
            _compiled(network, iterations)(weights, rows, targets, query, damping)
            for query in asked
        ]
        shifts, residuals, curvatures = (
            np.stack([np.asarray(part) for part in parts]) for parts in zip(*found, strict=True)
        )
    if not (curvatures > 0.0).all():
        raise InputError(
            f"the Hessian with damping {damping:g} has a direction of negative curvature: raise "
            "the damping, or use gauss-newton."
        )
    if not (residuals < LARGEST_RESIDUAL).all():
        raise InputError(
            f"conjugate gradients left a residual of {np.max(residuals):.1g} after {iterations} "
            f"iterations with damping {damping:g}: raise one of them."
        )
    return np.asarray(np.moveaxis(shifts, (0, 1, 2), (1, 2, 0)))


@lru_cache(maxsize=16)
def _compiled(network: Any, iterations: int) -> Any:
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree
    from jax.scipy.sparse import linalg as iterative

    # JAX's own conjugate gradients, which carry no types.
    solve: Any = iterative.cg

    def solved(parameters: Any, rows: Any, targets: Any, query: Any, damping: Any) -> Any:
        flat, unravel = ravel_pytree(parameters)

        def loss(vector: Any) -> Any:
            residual = network.apply(unravel(vector), rows) - targets
            return 0.5 * jnp.sum(residual**2) / len(rows)

        def product(vector: Any) -> Any:
            return jax.jvp(jax.grad(loss), (flat,), (vector,))[1] + damping * vector

        def one(wanted: Any) -> Any:
            solution, _ = solve(product, wanted, tol=0.01 * LARGEST_RESIDUAL, maxiter=iterations)
            back = product(solution)
            missed = jnp.linalg.norm(back - wanted) / jnp.linalg.norm(wanted)
            # J_i v for every record, then l_i' v = residual_i . J_i v.
            now, moved = jax.jvp(lambda v: network.apply(unravel(v), rows), (flat,), (solution,))
            return -jnp.sum((now - targets) * moved, axis=1) / len(rows), missed, solution @ back

        wanted = jax.jacrev(lambda v: network.apply(unravel(v), query[None])[0])(flat)
        return jax.vmap(one)(wanted)

    return jax.jit(solved)
