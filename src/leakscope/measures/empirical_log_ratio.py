"""The advantage from draws of the log likelihood ratio itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def advantage_of_log_ratios(log_ratios: ArrayLike) -> float:
    """The mean of (1 - exp(-l))+ over log likelihood ratios l = log p1/p0 drawn from members.

    It has no bias, because the ratio is known and not learnt from the draws: the total variation
    distance is E1[(1 - p0/p1)+].

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.measures import advantage_of_log_ratios
    >>> x = np.random.default_rng(0).normal(1.0, 1.0, 200_000)
    >>> round(advantage_of_log_ratios(x - 0.5), 2)  # of N(1, 1) and N(0, 1)
    0.38
    """
    value = np.asarray(log_ratios, dtype=np.float64)
    return float(-np.expm1(-np.maximum(value, 0.0)).mean())
