"""Draws from a Gaussian process with and without a record, to check an audit's laws.

A draw is made the way an ensemble is trained (Matheron's rule, "sample, then optimise"): draw a
function f0 from the prior at the records, draw label noise e, and correct the function by what a
least-squares fit of the residuals y - f0(X) - e says.  Its law is the posterior.  Nothing is shared
with the audit: each record left out has a linear solve of its own, and the laws are met as samples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.eigenvectors import symmetric_eigen
from leakscope._numerics.keys import Key, as_key
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.lood.process import ProcessOnRecords
from leakscope.subjects.laws import Rows
from leakscope.subjects.subject import Answers


def process_answers(process: ProcessOnRecords, units: Rows, draws: int, seed: int) -> Answers:
    """Answers of functions that were drawn from the process, trained with and without units."""
    # As for any two sets of rows: what is drawn from it has been the same since the first version.
    matrix = process.between(process.features, process.features)
    key, everyone = as_key(seed), list(range(process.records))
    if draws < 100:
        raise InputError(f"at least 100 draws are needed for a standard error, not {draws}.")
    inside: list[FloatArray] = []
    outside: list[FloatArray] = []
    if process.groups is None:
        for row in units.tolist():
            sides = (everyone, [other for other in everyone if other != row])
            drawn = [
                posterior_draws(
                    matrix,
                    process.targets,
                    noise_variance=process.noise_variance,
                    train=train,
                    query=row,
                    draws=draws,
                    random_state=key.child(row, side),
                )
                for side, train in enumerate(sides)
            ]
            inside.append(drawn[0])
            outside.append(drawn[1])
    else:
        targets, members = process.outputs, [np.flatnonzero(process.labels == u) for u in units]
        largest = max(len(rows) for rows in members)
        if draws < max(100, 10 * largest):
            raise InputError(
                f"a group of {largest} needs at least {max(100, 10 * largest)} draws, not {draws}."
            )
        require_memory(
            8 * (len(matrix) ** 2 + 3 * len(matrix) * draws * targets.shape[1]),
            f"{draws} draws over {len(matrix)} records",
            "ask for fewer draws",
        )
        root = prior_root(matrix)
        for place, rows in enumerate(members):
            sides = (everyone, sorted(set(everyone) - set(rows.tolist())))
            drawn = [
                group_draws(
                    matrix,
                    root,
                    targets,
                    process.noise_variance,
                    train,
                    rows.tolist(),
                    draws,
                    key.child(place, side),
                )
                for side, train in enumerate(sides)
            ]
            inside.append(drawn[0])
            outside.append(drawn[1])
    how = (
        f"{draws} functions drawn from the same Gaussian process, trained with and without each of "
        f"{len(units)} {process.unit}s; your model was not examined"
    )
    return Answers(inside, outside, how, {"draws": draws, f"{process.unit}s": len(units)})


def posterior_draws(
    kernel_matrix: ArrayLike,
    y: ArrayLike,
    *,
    noise_variance: float,
    train: Sequence[int],
    query: int,
    draws: int,
    random_state: int | np.random.Generator | Key | None = None,
) -> FloatArray:
    """Draws of the latent function at one record, (draws, outputs), trained on some records.

    Parameters
    ----------
    kernel_matrix
        (n, n) over all records.
    y
        (n,) or (n, outputs).
    noise_variance
        s2, in squared units of y.
    train
        Rows trained on.
    query
        The row asked at.
    draws
        How many.
    random_state
        Seed.

    """
    K = np.asarray(kernel_matrix, dtype=np.float64)
    targets = np.asarray(y, dtype=np.float64).reshape(len(K), -1)
    rows = [*train, query]
    require_memory(
        8 * (2 * len(rows) ** 2 + 2 * len(rows) * draws * targets.shape[1]),
        f"{draws} draws over {len(rows)} records",
        "ask for fewer draws",
    )
    generator = as_key(random_state).generator()
    root = prior_root(K[np.ix_(rows, rows)])
    outputs = targets.shape[1]
    function = root @ generator.standard_normal((len(rows), draws * outputs))
    noise = np.sqrt(noise_variance) * generator.standard_normal((len(train), draws * outputs))
    residual = np.repeat(targets[list(train)], draws, axis=1) - function[:-1] - noise
    M = K[np.ix_(list(train), list(train))] + noise_variance * np.eye(len(train))
    weights = np.linalg.solve(M, K[list(train), query])
    answers = function[-1] + weights @ residual
    return np.asarray(answers.reshape(outputs, draws).T)


def kl_from_draws(
    kernel_matrix: ArrayLike,
    y: ArrayLike,
    row: int,
    *,
    noise_variance: float,
    draws: int = 20_000,
    random_state: int | np.random.Generator | Key | None = None,
) -> tuple[float, float]:
    """KL(without || with) of a record at its own point from draws, and its standard error.

    The two laws are normal with one variance for all outputs, so that means and variances of the
    draws are enough (`leakscope.measures.normal_kl_of_draws`).

    """
    K, key = np.asarray(kernel_matrix, dtype=np.float64), as_key(random_state)
    if draws < 100:
        raise InputError(f"at least 100 draws are needed for a standard error, not {draws}.")
    everyone = list(range(len(K)))
    sides = [
        posterior_draws(
            K,
            y,
            noise_variance=noise_variance,
            train=train,
            query=row,
            draws=draws,
            random_state=key.child(row, side),
        )
        for side, train in enumerate((everyone, [i for i in everyone if i != row]))
    ]
    inside, outside = (found.T[:, :, None] for found in sides)
    return measures.normal_kl_of_draws(outside, inside)


def group_draws(
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


def prior_root(matrix: FloatArray) -> FloatArray:
    """R with R R' = matrix, also where records repeat and it is singular."""
    values, vectors = symmetric_eigen(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
