"""Draws from a Gaussian process with and without a unit, to check an audit's laws.

A draw is made the way an ensemble is trained (Matheron's rule, "sample, then optimise"): draw a
function f0 from the prior at the records, draw label noise e, and correct the function by what a
least-squares fit of the residuals y - f0(X) - e says.  Its law is the posterior.  Nothing is shared
with the audit: each unit left out has a linear solve of its own, and the laws are met as samples.
"""

from __future__ import annotations

import numpy as np

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.eigenvectors import symmetric_eigen
from leakscope._numerics.keys import Key, as_key
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.lood.process import ProcessOnRecords
from leakscope.subjects.laws import Rows
from leakscope.subjects.subject import Answers

LEAST_DRAWS = 100


def process_answers(process: ProcessOnRecords, units: Rows, draws: int, seed: int) -> Answers:
    """Answers of functions that were drawn from the process, trained with and without units."""
    members = [np.flatnonzero(process.labels == unit) for unit in units]
    largest = max(len(rows) for rows in members)
    if draws < max(LEAST_DRAWS, 10 * largest):
        raise InputError(
            f"units of up to {largest} records need at least {max(LEAST_DRAWS, 10 * largest)} "
            f"draws, not {draws}."
        )
    root, key = prior_root(process.matrix), as_key(seed)
    sides: tuple[list[FloatArray], list[FloatArray]] = ([], [])
    for place, rows in enumerate(members):
        everyone = np.arange(process.records)
        for side, train in enumerate((everyone, np.setdiff1d(everyone, rows))):
            drawn = posterior_draws(process, root, train, rows, draws, key.child(place, side))
            sides[side].append(drawn if process.groups is not None else drawn[:, :, 0].T)
    how = (
        f"{draws} functions drawn from the same Gaussian process, trained with and without each of "
        f"{len(units)} {process.unit}s; your model was not examined"
    )
    return Answers(*sides, how, {"draws": draws, f"{process.unit}s": len(units)})


def posterior_draws(
    process: ProcessOnRecords, root: FloatArray, train: Rows, rows: Rows, draws: int, key: Key
) -> FloatArray:
    """(outputs, draws, g) draws of the latent function at g rows, trained on some records.

    ``root`` is that of the prior (`prior_root`).
    """
    matrix, outputs = process.matrix, process.outputs.shape[1]
    require_memory(
        8 * 3 * len(matrix) * draws * outputs,
        f"{draws} draws over {len(matrix)} records",
        "ask for fewer draws",
    )
    generator = key.generator()
    function = root @ generator.standard_normal((len(matrix), draws * outputs))
    noise = generator.standard_normal((len(train), draws * outputs))
    noise *= np.sqrt(process.noise_variance)
    residual = np.repeat(process.outputs[train], draws, axis=1) - function[train] - noise
    M = matrix[np.ix_(train, train)] + process.noise_variance * np.eye(len(train))
    answers = function[rows] + np.linalg.solve(M, matrix[np.ix_(train, rows)]).T @ residual
    return np.asarray(answers.reshape(len(rows), outputs, draws).transpose(1, 2, 0))


def kl_from_draws(
    process: ProcessOnRecords, row: int, *, draws: int = 20_000, random_state: int = 0
) -> tuple[float, float]:
    """KL(without || with) of a record at its own point from draws, and its standard error.

    The two laws are normal with one variance for all outputs, so that means and variances of the
    draws are enough (`leakscope.measures.normal_kl_of_draws`).
    """
    answers = process_answers(process, np.array([row]), draws, random_state)
    inside, outside = (sides[0].T[:, :, None] for sides in (answers.inside, answers.outside))
    return measures.normal_kl_of_draws(outside, inside)


def prior_root(matrix: FloatArray) -> FloatArray:
    """R with R R' = matrix, also where records repeat and it is singular."""
    values, vectors = symmetric_eigen(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
