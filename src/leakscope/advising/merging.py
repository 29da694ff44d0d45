"""Merging exposed records with their neighbours: each reaches the model through a mean only.

An exposed record and its k - 1 nearest records in the kernel (d^2 = k(x,x) + k(z,z) - 2 k(x,z))
become one row, the mean of their features and of their targets (micro-aggregation).

**The laws of a member.**  With member j the row is (x, y), the mean of k; without it, (x', y'), the
mean of the other k - 1.  All other rows stay.  Both models are the same function given f(x) and
f(x'), so that no query, and no set of queries, tells more than these two values: their joint law is
compared, and the target is met against every question to one trained model.  With P0 and mu0 the
covariance and mean of (f(x), f(x')) given the other rows, and P0 = L L^T, let w be the standard
normal vector behind them, l1 and l2 the rows of L.  Then the law of w is

    with     N(l1 r1/(s2 + |l1|^2), I - l1 l1^T/(s2 + |l1|^2)),    r1 = y - mu0_1,

and without j the same with l2 and r2 = y' - mu0_2.  Nothing is singular, also where x = x'.
P0 and mu0 come from the inverse over all rows by taking the row's observation back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.advising.applied_defence import Defence
from leakscope.advising.audit_target import AuditTarget
from leakscope.errors import InputError
from leakscope.laws import Assumption, LawPair, MultivariateNormal, Provenance
from leakscope.lood import (
    FeatureRegression,
    FeatureSums,
    Process,
    Separation,
    separation_of_blocks,
)

Rows = NDArray[np.intp]

# Sizes of merged groups that are tried, and fewer where an audit takes long.
SIZES = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 32, 40, 50)
FEWER_SIZES = (2, 4, 8, 16, 32)
MANY_RECORDS = 1500

# Numbers in the covariances of the pairs that are measured at once.
NUMBERS_AT_ONCE = 2_000_000

# Rounds of merging what the last round exposed.
ROUNDS = 25


@dataclass(frozen=True)
class MergeTry:
    """Groups of one size: each record's row, and how exposed it leaves the worst and the median.

    ``trusted`` is whether float64 resolves the laws of every row.
    """

    size: int
    rows: Rows
    merged: int
    worst: float
    median: float
    trusted: bool


@dataclass(frozen=True)
class MergeScan:
    """Sizes tried, smallest first, and the first that meets the target; None where none did."""

    tries: tuple[MergeTry, ...]
    found: MergeTry | None


def least_merging(model: Process, target: AuditTarget) -> MergeScan:
    """The smallest size of merged groups with which every record meets the target.

    For each size: merge the exposed records with their neighbours, audit again, merge those that
    are exposed now, until no record on its own is above the target.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> from leakscope.advising import AuditTarget, least_merging
    >>> X = np.append(np.linspace(0.0, 1.0, 30), 2.0)[:, None]
    >>> model = lood.Process(X, np.cos(X[:, 0]), kernels.rbf(1.0), noise_variance=0.1)
    >>> found = least_merging(model, AuditTarget("advantage", 0.2)).found
    >>> found.size, found.merged
    (3, 3)
    """
    if model.groups is not None:
        raise InputError("merging is of records; where groups leave, drop them or add noise.")
    sizes = FEWER_SIZES if len(model.features) > MANY_RECORDS else SIZES
    first = model.separation().measured(target.measured)
    tries: list[MergeTry] = []
    for size in sizes:
        if 2 * size > len(model.features):
            break
        tries.append(_merged(model, target, size, first))
        if target.met(tries[-1].worst) and tries[-1].trusted:
            return MergeScan(tuple(tries), tries[-1])
    return MergeScan(tuple(tries), None)


def _merged(model: Process, target: AuditTarget, size: int, first: FloatArray) -> MergeTry:
    group = np.full(len(first), -1, dtype=np.intp)
    values, trusted = first, True
    for _ in range(ROUNDS):
        exposed = np.flatnonzero((values > target.value) & (group < 0))
        if not len(exposed):
            break
        _gather(model, group, exposed[np.argsort(-values[exposed], kind="stable")], size)
        values, trusted = _measured(model, _rows(group), target)
    rows = _rows(group)
    return MergeTry(
        size=size,
        rows=rows,
        merged=int(np.count_nonzero(group >= 0)),
        worst=float(np.max(values)),
        median=float(np.median(values)),
        trusted=trusted,
    )


def _gather(model: Process, group: Rows, exposed: Rows, size: int) -> None:
    """Give each exposed record, most exposed first, and its nearest free records a group."""
    prior = model.diagonal()
    following = int(group.max()) + 1
    for record in exposed:
        if group[record] >= 0:
            continue
        free = np.flatnonzero(group < 0)
        free = free[free != record]
        distance = prior - 2.0 * _row_of_kernel(model, int(record))
        if len(free) >= size - 1:
            # Sorted are only those that can be among the nearest: the order is the same.
            furthest = np.partition(distance[free], size - 2)[size - 2]
            near = free[distance[free] <= furthest]
            nearest = near[np.argsort(distance[near], kind="stable")[: size - 1]]
            group[nearest] = group[record] = following
            following += 1
        elif np.any(group >= 0):
            # Too few are left for a group of their own: they join their nearest one.
            taken = np.flatnonzero(group >= 0)
            group[record] = group[taken[np.argmin(distance[taken])]]


def _row_of_kernel(model: Process, record: int) -> FloatArray:
    """(n,) the kernel of a record with all, without a matrix where features do."""
    if model.phi is None:
        return np.asarray(model.matrix[record])
    return np.asarray(model.phi @ model.phi[record])


def _rows(group: Rows) -> Rows:
    """Each record's row, numbered from 0: those of a group share one."""
    named = np.where(group >= 0, group, group.max() + 1 + np.arange(len(group)))
    return np.unique(named, return_inverse=True)[1].astype(np.intp)


def merged_measures(model: Process, rows: Rows, target: AuditTarget) -> FloatArray:
    """The target's measure of every record, (n,), when the records of one row are merged.

    Parameters
    ----------
    model, target
        As in :func:`least_merging`.
    rows
        (n,) the row of each record, numbered from 0.

    Examples
    --------
    Two copies merged are one record, and to lose one of them changes nothing.

    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> from leakscope.advising import AuditTarget, merged_measures
    >>> X, y = np.array([[0.0], [2.0], [2.0]]), np.array([1.0, -1.0, -1.0])
    >>> model = lood.Process(X, y, kernels.rbf(1.0), noise_variance=0.1)
    >>> found = merged_measures(model, np.array([0, 1, 1]), AuditTarget("advantage", 0.2))
    >>> found.round(6).tolist()
    [0.682735, 0.0, 0.0]
    """
    return _measured(model, rows, target)[0]


def _measured(model: Process, rows: Rows, target: AuditTarget) -> tuple[FloatArray, bool]:
    """The measures, and whether float64 resolves the laws of every row."""
    sizes = np.bincount(rows)
    defence = Defence(model.noise_variance, rows=rows)
    means, mean_targets = defence.training_set(model.features, model.outputs)
    merged = replace(model, features=means, targets=mean_targets, given=model.kernel)
    laws, known = _given_all_rows(merged)
    found = np.empty(len(rows))
    alone = np.flatnonzero(sizes[rows] == 1)
    if len(alone):
        found[alone] = laws.some(rows[alone]).measured(target.measured)
    members = np.flatnonzero(sizes[rows] > 1)
    outputs, provenance = mean_targets.shape[1], _provenance(laws)
    step = max(1, NUMBERS_AT_ONCE // max((2 * outputs) ** 2, len(means)))
    for start in range(0, len(members), step):
        some = members[start : start + step]
        own = rows[some]
        others = (sizes[own] - 1)[:, None]
        points = (means[own] * (others + 1) - model.features[some]) / others
        answers = (mean_targets[own] * (others + 1) - model.outputs[some]) / others
        pair = _member_pair(known(own, points), merged.noise_variance, answers, provenance)
        found[some] = target.measured(pair)
    return found, bool(laws.trusted.all())


def _provenance(laws: Separation) -> Provenance:
    """That of the rows' own laws, where a record leaves its row and the row stays."""
    return replace(
        laws.provenance(),
        source="lood Def. C.3 at the mean of a group of records and at the mean without one",
        assumptions=(
            *laws.provenance().assumptions,
            Assumption(
                statement="which records share a row stays as it is when one of them leaves",
                holds=None,
                evidence="the groups were chosen once, on all records",
            ),
        ),
    )


@dataclass(frozen=True)
class _Known:
    """What all rows together say of f(x), a row's own, and of f(x').

    m is (b,) the row's entry of M^{-1}'s diagonal, a (b, C) its row of M^{-1} y; p12 and p22 the
    covariance of the two and the variance of f(x'), ``mean`` (b, C) that of f(x').
    """

    m: FloatArray
    a: FloatArray
    p12: FloatArray
    p22: FloatArray
    mean: FloatArray


Knowing = Callable[[Rows, FloatArray], _Known]


def _given_all_rows(merged: Process) -> tuple[Separation, Knowing]:
    """The laws of the rows, and what they say of any of them beside points, (b, d)."""
    s2, targets = merged.noise_variance, merged.outputs
    phi = merged.phi
    if phi is None:
        blocks = merged.inverse()
        inverse, a = blocks.inverse, blocks.a

        def by_inverse(own: Rows, points: FloatArray) -> _Known:
            across = merged.between(points, merged.features)
            solved = across @ inverse
            p22 = merged.diagonal(points) - np.einsum("ij,ij->i", solved, across)
            p12 = s2 * solved[np.arange(len(own)), own]
            return _Known(inverse[own, own], a[own], p12, p22, across @ a)

        return separation_of_blocks(blocks, targets, None), by_inverse
    laws = merged.separation()
    trained = FeatureRegression.of(FeatureSums.over(phi, targets), s2)

    def by_features(own: Rows, points: FloatArray) -> _Known:
        there = merged.mapped(points)
        assert there is not None
        m = (1.0 - laws.leverage[own]) / s2
        a = (targets[own] - phi[own] @ trained.beta) / s2
        p12, p22 = trained.covariance(phi[own], there), trained.covariance(there, there)
        return _Known(m, a, p12, p22, there @ trained.beta)

    return laws, by_features


def _member_pair(known: _Known, s2: float, answers: FloatArray, provenance: Provenance) -> LawPair:
    """The pairs of members of some rows; (b, C) are the rows' targets without them."""
    m, a, p12, p22 = known.m, known.a, known.p12, known.p22
    p11 = s2 - s2**2 * m
    # The row's observation taken back: s2 - p11 = s2^2 m.
    q11 = p11 + p11 * p11 / (s2**2 * m)
    q12 = p12 + p11 * p12 / (s2**2 * m)
    q22 = p22 + p12 * p12 / (s2**2 * m)
    r1 = a / m[:, None]
    r2 = answers - known.mean + (p12 / (s2 * m))[:, None] * a
    alpha = np.sqrt(q11)
    beta = q12 / alpha
    gamma = np.sqrt(np.maximum(q22 - beta**2, 0.0))
    zero = np.zeros_like(alpha)
    return LawPair(
        member=_observed(np.column_stack([alpha, zero]), r1, s2),
        nonmember=_observed(np.column_stack([beta, gamma]), r2, s2),
        provenance=provenance,
    )


def _observed(direction: FloatArray, residual: FloatArray, s2: float) -> MultivariateNormal:
    """w given that direction . w plus noise is the residual: direction (b, 2), residual (b, C)."""
    total = s2 + np.sum(direction**2, axis=1)
    outputs = residual.shape[1]
    mean = direction[:, :, None] * (residual / total[:, None])[:, None, :]
    outer = direction[:, :, None] * direction[:, None, :] / total[:, None, None]
    covariance = np.eye(2) - outer
    identity = np.eye(outputs)
    whole = covariance[:, :, None, :, None] * identity[None, None, :, None, :]
    size = 2 * outputs
    return MultivariateNormal(mean.reshape(-1, size), whole.reshape(-1, size, size))
