"""From the laws of an audit to the numbers it ranks and reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope import lood, measures
from leakscope._numerics.arrays import FloatArray
from leakscope.laws import LawPair

Laws = lood.LeaveOneOut | lood.LeaveGroupsOut

# Pairs measured at once, of one output; a pair of C outputs takes about 350 C^2 bytes while it is
# measured, so that there are fewer of them.
PAIRS_AT_ONCE = 20_000
BYTES_AT_ONCE, BYTES_A_PAIR = 64_000_000, 350


@dataclass(frozen=True)
class Measured:
    """What every record, or group, gives away: (n,) each, in the order of the laws."""

    kl: FloatArray
    kl_reverse: FloatArray
    advantage: FloatArray
    auc: FloatArray


def measured(laws: Laws) -> Measured:
    """KL in both directions, advantage and AUC of every record or group."""
    columns = tuple(np.empty(len(laws.leverage)) for _ in range(4))
    for rows, pair in _pairs(laws):
        found = (
            measures.kl(pair),
            measures.kl(pair, "member_to_nonmember"),
            measures.advantage(pair),
            measures.auc(pair),
        )
        for column, value in zip(columns, found, strict=True):
            column[rows] = _exact(value)
    return Measured(*columns)


def advantages(laws: Laws) -> FloatArray:
    """The best test's TPR - FPR alone, of every record or group."""
    column = np.empty(len(laws.leverage))
    for rows, pair in _pairs(laws):
        column[rows] = _exact(measures.advantage(pair))
    return column


def prediction_error(laws: Laws) -> float:
    """How far the labels lie from what the other records (or groups) predict, root mean square.

    In units of the target as used, over records and outputs.  A record's residual is
    y_i - mean without = shift_i/h_i.  In a group's own coordinates 1/m_i = s2 (1 + x_i) and the
    residual is t_i/sqrt(m_i) (:mod:`leakscope.lood.all_groups`).
    """
    if isinstance(laws, lood.LeaveGroupsOut):
        squares = laws.noise_variance * (1.0 + laws.excess)[:, None] * laws.score**2
    else:
        shift = laws.mean_shift.reshape(len(laws.leverage), -1)
        squares = (shift / laws.leverage[:, None]) ** 2
    return float(np.sqrt(np.mean(squares)))


def ranks_of(kl: FloatArray) -> NDArray[np.intp]:
    """1 for the largest; equal numbers keep their order, as in the audit's own ranking."""
    ranks = np.empty(len(kl), dtype=np.intp)
    ranks[np.argsort(-kl, kind="stable")] = np.arange(1, len(kl) + 1)
    return ranks


def _pairs(laws: Laws) -> Iterator[tuple[slice | NDArray[np.intp], LawPair]]:
    if isinstance(laws, lood.LeaveGroupsOut):
        yield from laws.law_pairs()
        return
    outputs = 1 if laws.mean_shift.ndim == 1 else laws.mean_shift.shape[1]
    step = min(PAIRS_AT_ONCE, max(1, BYTES_AT_ONCE // (BYTES_A_PAIR * outputs**2)))
    for start in range(0, len(laws.leverage), step):
        rows = slice(start, start + step)
        yield rows, laws.law_pair(rows)


def _exact(found: FloatArray | measures.Estimate) -> FloatArray:
    """A measure of the audit's own laws: they are exact, so it is never an estimate."""
    if isinstance(found, measures.Estimate):
        raise TypeError("an audit's laws are exact, but a measure of them came out as an estimate")
    return found
