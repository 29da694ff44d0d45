"""Draws from a Gaussian process with and without a group of records, to check an audit of groups.

Made as in :mod:`leakscope.verifying.posterior_draws`: draw a function from the prior and label
noise, and correct by what a least-squares fit of the residuals says.  The two laws at the group's
points are normal, with one covariance for all outputs; sample means and covariances of the draws
give the KL, and what their being estimates adds to it on average is known exactly (means of
Wishart matrices and of their inverses) and taken off.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.verifying.checks import Check
from leakscope.verifying.posterior_draws import prior_root


def check_groups(
    kernel_matrix: ArrayLike,
    y: ArrayLike,
    groups: Sequence[Sequence[int]],
    kl: ArrayLike,
    mean_distance: ArrayLike,
    *,
    noise_variance: float,
    draws: int = 4000,
    names: Sequence[object] | None = None,
    random_state: int | np.random.Generator | Key | None = None,
) -> list[Check]:
    """KL(without || with) and mean distance of some groups at their own points, against draws.

    Parameters
    ----------
    kernel_matrix, y
        As given to the audit: (n, n), and (n,) or (n, outputs).
    groups
        Row numbers of each group to check.
    kl, mean_distance
        What the audit says of them, one number per group.
    noise_variance
        s2, as in the audit.
    draws
        How many draws of each law.
    names
        What to call the groups; their places where left out.
    random_state
        Seed.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> from leakscope.verifying import check_groups, counted
    >>> X, y = np.arange(5.0)[:, None], np.array([0.0, 1.0, 0.0, 1.0, 5.0])
    >>> K = kernels.rbf(1.0)(X, X)
    >>> laws = lood.all_groups(K, y, [0, 0, 1, 1, 1], noise_variance=0.1)
    >>> counted(check_groups(K, y, [[0, 1], [2, 3, 4]], laws.kl, laws.mean_distance,
    ...                      noise_variance=0.1, random_state=0))
    {'agrees': 4, 'differs': 0, 'inconclusive': 0}
    """
    K = np.asarray(kernel_matrix, dtype=np.float64)
    targets = np.asarray(y, dtype=np.float64).reshape(len(K), -1)
    largest = max(len(rows) for rows in groups)
    if draws < max(100, 10 * largest):
        raise InputError(
            f"a group of {largest} needs at least {max(100, 10 * largest)} draws, not {draws}."
        )
    require_memory(
        8 * (len(K) ** 2 + 3 * len(K) * draws * targets.shape[1]),
        f"{draws} draws over {len(K)} records",
        "ask for fewer draws",
    )
    root, key, checks = prior_root(K), as_key(random_state), []
    for place, rows in enumerate(groups):
        inside, outside = (
            _draws(K, root, targets, noise_variance, train, rows, draws, key.child(place, side))
            for side, train in enumerate(
                (list(range(len(K))), sorted(set(range(len(K))) - set(rows)))
            )
        )
        law = f"group {place if names is None else names[place]}"
        for quantity, predicted, (measured, stderr) in (
            ("KL", float(np.asarray(kl)[place]), measures.normal_kl_of_draws(outside, inside)),
            (
                "mean distance",
                float(np.asarray(mean_distance)[place]),
                _mean_distance(outside, inside),
            ),
        ):
            checks.append(
                Check(law, quantity, predicted, measured, stderr, resolution=0.1 * abs(predicted))
            )
    return checks


def _draws(
    K: FloatArray,
    root: FloatArray,
    targets: FloatArray,
    noise_variance: float,
    train: list[int],
    rows: Sequence[int],
    draws: int,
    key: Key,
) -> FloatArray:
    """(outputs, draws, g) draws of the latent function at the group's points."""
    generator, outputs = key.generator(), targets.shape[1]
    function = root @ generator.standard_normal((len(K), draws * outputs))
    noise = np.sqrt(noise_variance) * generator.standard_normal((len(train), draws * outputs))
    residual = np.repeat(targets[train], draws, axis=1) - function[train] - noise
    M = K[np.ix_(train, train)] + noise_variance * np.eye(len(train))
    weights = np.linalg.solve(M, K[np.ix_(train, list(rows))])
    answers = function[list(rows)] + weights.T @ residual
    return np.asarray(answers.reshape(len(rows), outputs, draws).transpose(1, 2, 0))


def _mean_distance(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """Half the squared length of the difference of means, and its standard error."""
    outputs, draws, _ = first.shape
    S = (_covariance(first) + _covariance(second)) / draws
    delta = first.mean(axis=1) - second.mean(axis=1)
    value = 0.5 * float(np.sum(delta**2)) - 0.5 * outputs * float(np.trace(S))
    variance = float(np.einsum("ci,ij,cj->", delta, S, delta))
    variance += 0.5 * outputs * float(np.sum(S**2))
    return value, float(np.sqrt(variance))


def _covariance(found: FloatArray) -> FloatArray:
    """(g, g) pooled over outputs."""
    centred = found - found.mean(axis=1, keepdims=True)
    outputs, draws, _ = found.shape
    return np.asarray(np.einsum("cdi,cdj->ij", centred, centred) / (outputs * (draws - 1)))
