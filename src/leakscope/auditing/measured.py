"""From the laws of an audit to the numbers it ranks and reports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope.lood import Separation


@dataclass(frozen=True)
class Measured:
    """What every record, or group, gives away: (n,) each, in the order of the laws."""

    kl: FloatArray
    kl_reverse: FloatArray
    advantage: FloatArray
    auc: FloatArray


def measured(laws: Separation) -> Measured:
    """KL in both directions, advantage and AUC of every record or group.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope import auditing
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> result = leakscope.audit(X, y, kernel="rbf")
    >>> bool((auditing.measured(result.laws).kl == result.kl).all())
    True
    """
    columns = tuple(np.empty(laws.units) for _ in range(4))
    for units, pair in laws.law_pairs():
        found = (
            measures.kl(pair),
            measures.kl(pair, "member_to_nonmember"),
            measures.advantage(pair),
            measures.auc(pair),
        )
        for column, value in zip(columns, found, strict=True):
            column[units] = _exact(value)
    return Measured(*columns)


def advantages(laws: Separation) -> FloatArray:
    """The best test's TPR - FPR alone, of every record or group."""
    return laws.measured(lambda pair: _exact(measures.advantage(pair)))


def _exact(found: FloatArray | measures.Estimate) -> FloatArray:
    """A measure of the audit's own laws: they are exact, so it is never an estimate."""
    if isinstance(found, measures.Estimate):
        raise TypeError("an audit's laws are exact, but a measure of them came out as an estimate")
    return found
