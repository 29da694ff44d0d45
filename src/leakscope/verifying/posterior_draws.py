"""Draws from a Gaussian process with and without a record, to check an audit's laws.

A draw is made the way an ensemble is trained (Matheron's rule, "sample, then optimise"): draw a
function f0 from the prior at the records, draw label noise e, and correct the function by what a
least-squares fit of the residuals y - f0(X) - e says.  Its law is the posterior.  Nothing is shared
with the audit: each record left out has a linear solve of its own, and the laws are met as samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.eigenvectors import symmetric_eigen
from leakscope._numerics.keys import Key, as_key
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.lood import Separation
from leakscope.verifying.checks import Check


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

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.verifying import posterior_draws
    >>> found = posterior_draws(np.eye(2), [0.0, 2.0], noise_variance=1.0, train=[0, 1], query=1,
    ...                         draws=20000, random_state=0)
    >>> round(float(found.mean()), 1), round(float(found.var()), 1)
    (1.0, 0.5)
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


@dataclass(frozen=True)
class RecordLaws:
    """What an audit says of some records at their own points.

    Attributes
    ----------
    rows
        (k,) which records.
    mean_with, mean_without
        (k, outputs) means with the record and without it.
    variance_with, variance_without
        (k,) variances, the same for every output.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> from leakscope.verifying import RecordLaws
    >>> laws = lood.all_records(np.eye(2), np.array([0.0, 2.0]), noise_variance=1.0)
    >>> RecordLaws.of(laws, [1]).mean_with.round(6).tolist()
    [[1.0]]
    """

    rows: NDArray[np.intp]
    mean_with: FloatArray
    variance_with: FloatArray
    mean_without: FloatArray
    variance_without: FloatArray

    @classmethod
    def of(cls, laws: Separation, rows: Sequence[int]) -> RecordLaws:
        """Those of an audit's laws that belong to some rows."""
        places = np.asarray(rows, dtype=np.intp)
        return cls(
            rows=places,
            mean_with=laws.mean_with[places].reshape(len(places), -1),
            variance_with=laws.variance_with[places],
            mean_without=laws.mean_without[places].reshape(len(places), -1),
            variance_without=laws.variance_without[places],
        )


def check_records(
    kernel_matrix: ArrayLike,
    y: ArrayLike,
    laws: RecordLaws,
    *,
    noise_variance: float,
    draws: int = 4000,
    names: Sequence[object] | None = None,
    random_state: int | np.random.Generator | Key | None = None,
) -> list[Check]:
    """Mean and standard deviation of both laws of some records, against draws.

    Parameters
    ----------
    kernel_matrix, y
        As given to the audit.
    laws
        What the audit found for the records to check.
    noise_variance
        s2, as in the audit.
    draws
        How many draws of each law.
    names
        What to call the records, one for each of all rows; their rows where left out.
    random_state
        Seed.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> from leakscope.verifying import RecordLaws, check_records, counted
    >>> X, y = np.arange(5.0)[:, None], np.array([0.0, 1.0, 0.0, 1.0, 5.0])
    >>> K = kernels.rbf(1.0)(X, X)
    >>> laws = RecordLaws.of(lood.all_records(K, y, noise_variance=0.1), [0, 4])
    >>> counted(check_records(K, y, laws, noise_variance=0.1, random_state=0))
    {'agrees': 8, 'differs': 0, 'inconclusive': 0}
    """
    K = np.asarray(kernel_matrix, dtype=np.float64)
    if draws < 100:
        raise InputError(f"at least 100 draws are needed for a standard error, not {draws}.")
    everyone, key, checks = list(range(len(K))), as_key(random_state), []
    for place, row in enumerate(int(row) for row in laws.rows):
        others = [i for i in everyone if i != row]
        sides = (
            ("with it", everyone, laws.mean_with, laws.variance_with),
            ("without it", others, laws.mean_without, laws.variance_without),
        )
        for side, (label, train, mean, variance) in enumerate(sides):
            found = posterior_draws(
                K,
                y,
                noise_variance=noise_variance,
                train=train,
                query=row,
                draws=draws,
                random_state=key.child(row, side),
            )
            law = f"record {row if names is None else names[row]}, {label}"
            checks += _checked(law, found, mean[place], float(np.sqrt(variance[place])))
    return checks


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

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> from leakscope.verifying import kl_from_draws
    >>> value, stderr = kl_from_draws(np.eye(2), [0.0, 2.0], 1, noise_variance=1.0)
    >>> exact = float(lood.all_records(np.eye(2), np.array([0.0, 2.0]), noise_variance=1.0).kl[1])
    >>> bool(abs(value - exact) < 4 * stderr < 0.2)
    True
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


def _checked(law: str, found: FloatArray, mean: FloatArray, sigma: float) -> list[Check]:
    """The mean of each output, in units of the data, and the spread, pooled over outputs."""
    draws, outputs = found.shape
    checks = [
        Check(
            law,
            "mean" if outputs == 1 else f"mean of output {c}",
            predicted=float(mean[c]),
            measured=float(found[:, c].mean()),
            stderr=float(found[:, c].std(ddof=1) / np.sqrt(draws)),
            resolution=0.25 * sigma,
        )
        for c in range(outputs)
    ]
    pooled = float(np.sqrt(np.mean(found.var(axis=0, ddof=1))))
    checks.append(
        Check(
            law,
            "standard deviation",
            predicted=sigma,
            measured=pooled,
            stderr=pooled / np.sqrt(2.0 * outputs * (draws - 1)),
            resolution=0.1 * sigma,
        )
    )
    return checks


def prior_root(matrix: FloatArray) -> FloatArray:
    """R with R R' = matrix, also where records repeat and it is singular."""
    values, vectors = symmetric_eigen(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
