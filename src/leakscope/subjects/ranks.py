"""How far two rankings of the same units agree."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from leakscope._numerics.arrays import FloatArray
from leakscope.lood.noise import ranks_of

TOP = 10


def top_kept(values: FloatArray, other: FloatArray, count: int) -> int:
    """How many of the ``count`` most exposed by one are so by the other too."""
    return int(np.count_nonzero((ranks_of(values) <= count) & (ranks_of(other) <= count)))


def rank_correlation(values: FloatArray, other: FloatArray) -> float:
    """Spearman's rank correlation; nan where one of the two does not vary."""
    first, second = rankdata(values), rankdata(other)
    if np.ptp(first) == 0.0 or np.ptp(second) == 0.0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def hundredth(count: int) -> int:
    """How many the top hundredth are."""
    return -(-count // 100)
