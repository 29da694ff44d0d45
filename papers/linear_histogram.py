"""The paper's own adversary: two histograms of predictions, compared bin by bin."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from leakscope import InputError, measures
from leakscope.linear import Convention


def histogram_advantage(
    member: ArrayLike, nonmember: ArrayLike, *, convention: Convention = "text"
) -> float:
    """Advantage of the test that says "member" in the bins where members are more frequent.

    Biased, and which way depends on the bins: see `leakscope.measures.binned_advantage`.

    Parameters
    ----------
    member, nonmember
        Predictions, one per training run.
    convention
        ``"text"``: 150 bins from the least to the greatest prediction.  ``"published"``: 149 bins
        between the 0.01 and the 99.99 percentile of both together.

    Examples
    --------
    >>> import numpy as np
    >>> from papers.linear_histogram import histogram_advantage
    >>> draw = np.random.default_rng(0).standard_normal((2, 10000))
    >>> round(histogram_advantage(*draw), 2)  # of two equal laws
    0.05
    """
    one, zero = (np.asarray(side, dtype=np.float64).ravel() for side in (member, nonmember))
    if min(one.size, zero.size) < 2:
        raise InputError("A histogram needs two predictions or more of each kind.")
    both = np.concatenate([one, zero])
    if convention == "text":
        edges = np.linspace(both.min(), both.max(), 151)
    else:
        low, high = np.percentile(both, [0.01, 99.99])
        edges = np.linspace(low, high, 150)
    return measures.binned_advantage(one, zero, edges)
