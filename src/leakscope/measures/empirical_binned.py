"""The advantage of an attacker who counts scores in bins."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from leakscope.errors import InputError


def binned_advantage(member: ArrayLike, nonmember: ArrayLike, edges: ArrayLike) -> float:
    """Advantage of the test that says "member" in the bins where members are more frequent.

    It is biased: upwards by about sqrt(bins/draws) where the laws are close, because noise in a
    bin counts as evidence, and downwards where the bins are too wide for a narrow law.  For a
    score use `advantage` of a pair of empirical laws, whose bias is corrected.

    Parameters
    ----------
    member, nonmember
        Scores or predictions; those outside the bins are left out.
    edges
        The bins' edges, rising.

    Examples
    --------
    >>> from leakscope.measures import binned_advantage
    >>> binned_advantage([0, 0, 1, 1], [0, 1, 1, 1], edges=[-0.5, 0.5, 1.5])
    0.25
    """
    shares = []
    for side in (member, nonmember):
        count = np.histogram(np.asarray(side, dtype=np.float64).ravel(), np.asarray(edges))[0]
        if not count.sum():
            raise InputError("binned_advantage: no score of one of the two sides is in any bin.")
        shares.append(count / count.sum())
    return float(np.maximum(shares[0] - shares[1], 0.0).sum())
