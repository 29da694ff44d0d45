"""Refitting record by record, in numbers of any precision: slow, and nothing clever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Refit:
    mean_with: Array
    variance_with: Array
    mean_without: Array
    variance_without: Array

    def kl(self) -> Array:
        """KL(without || with), summed over outputs."""
        ratio = self.variance_without / self.variance_with
        shift = (self.mean_with - self.mean_without).reshape(len(ratio), -1)
        outputs = shift.shape[1]
        return outputs * (ratio - 1 - np.log(ratio)) / 2 + (shift**2).sum(1) / (
            2 * self.variance_with
        )


def cholesky(matrix: Array) -> Array:
    """Column by column, in the matrix's own dtype (LAPACK has no long double)."""
    lower = np.zeros_like(matrix)
    for j in range(len(matrix)):
        column = matrix[j:, j] - lower[j:, :j] @ lower[j, :j]
        lower[j:, j] = column / np.sqrt(column[0])
    return lower


def solve(matrix: Array, right: Array) -> Array:
    lower = cholesky(matrix)
    x = right.copy()
    for i in range(len(x)):
        x[i] = (x[i] - lower[i, :i] @ x[:i]) / lower[i, i]
    for i in reversed(range(len(x))):
        x[i] = (x[i] - lower[i + 1 :, i] @ x[i + 1 :]) / lower[i, i]
    return x


def posterior(kernel: Array, y: Array, noise: Any, train: list[int], query: int) -> tuple[Any, Any]:
    """Mean and variance of the latent function at ``query``, trained on ``train``."""
    matrix = kernel[np.ix_(train, train)] + noise * np.eye(len(train), dtype=kernel.dtype)
    cross = kernel[train, query]
    weights = solve(matrix, np.column_stack([cross, y[train]]))
    mean = cross @ weights[:, 1:]
    return mean, kernel[query, query] - cross @ weights[:, 0]


def refit(kernel: Array, y: Array, noise: float, dtype: Any, records: list[int]) -> Refit:
    """Two fits a record, in ``dtype``."""
    kernel, targets = kernel.astype(dtype), y.reshape(len(y), -1).astype(dtype)
    level = dtype(noise)
    everyone = list(range(len(targets)))
    rows = []
    for i in records:
        others = [j for j in everyone if j != i]
        rows.append(
            (
                *posterior(kernel, targets, level, everyone, i),
                *posterior(kernel, targets, level, others, i),
            )
        )
    mean_with, variance_with, mean_without, variance_without = zip(*rows, strict=True)
    shape = (len(records), *y.shape[1:])
    return Refit(
        np.array(mean_with).reshape(shape),
        np.array(variance_with),
        np.array(mean_without).reshape(shape),
        np.array(variance_without),
    )


def refit_mpmath(kernel: Array, y: Array, noise: float, record: int, digits: int = 40) -> Any:
    """KL(without || with) of one record, single output, at ``digits`` digits."""
    with mp.workdps(digits):
        everyone = list(range(len(y)))
        numbers = []
        for train in (everyone, [j for j in everyone if j != record]):
            size = len(train)
            matrix = mp.matrix(size, size)
            for r in range(size):
                for c in range(size):
                    matrix[r, c] = mp.mpf(kernel[train[r], train[c]])
                matrix[r, r] += mp.mpf(noise)
            cross = mp.matrix([mp.mpf(kernel[j, record]) for j in train])
            target = mp.matrix([mp.mpf(y[j]) for j in train])
            mean = (cross.T * mp.lu_solve(matrix, target))[0]
            variance = mp.mpf(kernel[record, record]) - (cross.T * mp.lu_solve(matrix, cross))[0]
            numbers.append((mean, variance))
        (mean_with, variance_with), (mean_without, variance_without) = numbers
        ratio = variance_without / variance_with
        shift = mean_with - mean_without
        return +((ratio - 1 - mp.log(ratio)) / 2 + shift**2 / (2 * variance_with))


def refit_group(
    kernel: Array, y: Array, noise: float, cross: Array, prior: Array, group: list[int], dtype: Any
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Means (q, C) and covariances at queries, trained on all and on all but the group."""
    kernel, cross, prior = kernel.astype(dtype), cross.astype(dtype), prior.astype(dtype)
    targets = y.reshape(len(y), -1).astype(dtype)
    laws = []
    for train in (list(range(len(y))), [i for i in range(len(y)) if i not in group]):
        matrix = kernel[np.ix_(train, train)] + dtype(noise) * np.eye(len(train), dtype=dtype)
        asked = cross[train]
        solved = solve(matrix, np.column_stack([asked, targets[train]]))
        queries = asked.shape[1]
        laws.append((asked.T @ solved[:, queries:], prior - asked.T @ solved[:, :queries]))
    return laws[0], laws[1]


def kl_multivariate(first: tuple[Array, Array], second: tuple[Array, Array]) -> Any:
    """KL(first || second), each (means (q, C), covariance), by the textbook formula."""
    (mean0, cov0), (mean1, cov1) = first, second
    lower0, lower1 = cholesky(cov0), cholesky(cov1)
    logs = 2 * (np.log(np.diagonal(lower1)).sum() - np.log(np.diagonal(lower0)).sum())
    shift = mean0 - mean1
    solved = solve(cov1, np.column_stack([cov0, shift]))
    queries = len(cov0)
    trace = np.trace(solved[:, :queries])
    outputs = shift.shape[1]
    return (outputs * (logs - queries + trace) + (shift * solved[:, queries:]).sum()) / 2


def refit_features(phi: Array, y: Array, noise: float, dtype: Any, records: list[int]) -> Refit:
    """Ridge regression on features, twice a record, in weight space and in ``dtype``."""
    phi, targets = phi.astype(dtype), y.reshape(len(y), -1).astype(dtype)
    ridge = dtype(noise) * np.eye(phi.shape[1], dtype=dtype)
    rows = []
    for i in records:
        row: list[Any] = []
        for train in (slice(None), [j for j in range(len(y)) if j != i]):
            some = phi[train]
            right = np.column_stack([phi[i], some.T @ targets[train]])
            solved = solve(some.T @ some + ridge, right)
            row += [phi[i] @ solved[:, 1:], dtype(noise) * (phi[i] @ solved[:, 0])]
        rows.append(row)
    mean_with, variance_with, mean_without, variance_without = zip(*rows, strict=True)
    shape = (len(records), *y.shape[1:])
    return Refit(
        np.array(mean_with).reshape(shape),
        np.array(variance_with),
        np.array(mean_without).reshape(shape),
        np.array(variance_without),
    )
