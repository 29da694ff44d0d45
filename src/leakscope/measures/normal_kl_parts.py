"""KL of two normals in the part that the variances make and the part that the means make.

In coordinates of their own the member law is N(sqrt(x) t, 1) and the nonmember law N(0, 1 + x):
x is the ``excess`` and t the ``score``.  Then

    KL(nonmember || member) = [x - log(1 + x)]/2 + x t^2/2
    KL(member || nonmember) = [log(1 + x) - u]/2 + u t^2/2,   u = x/(1 + x),

and a law of several outputs has one excess and a score for each output.
"""

from __future__ import annotations

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.log_space import x_minus_log1p


def kl_parts(
    excess: FloatArray, squared_score: FloatArray, outputs: int = 1
) -> tuple[FloatArray, FloatArray]:
    """KL(nonmember || member), coordinate by coordinate: the variances' part and the means'.

    Parameters
    ----------
    excess
        x, zero or above: by how much the nonmember's variance exceeds the member's.
    squared_score
        t^2, summed over outputs.
    outputs
        How many outputs share the excess.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.measures import kl_parts
    >>> variance, mean = kl_parts(np.array([3.0]), np.array([0.5]))
    >>> variance.round(4).tolist(), mean.tolist()
    ([0.8069], [0.75])
    """
    variance = 0.5 * outputs * x_minus_log1p(excess)
    return variance, np.asarray(0.5 * excess * squared_score)


def kl_reverse_parts(
    excess: FloatArray, squared_score: FloatArray, outputs: int = 1
) -> tuple[FloatArray, FloatArray]:
    """KL(member || nonmember) in the same two parts, of the same numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.measures import kl_reverse_parts
    >>> variance, mean = kl_reverse_parts(np.array([3.0]), np.array([0.5]))
    >>> variance.round(4).tolist(), mean.tolist()
    ([0.3181], [0.1875])
    """
    share = excess / (1.0 + excess)
    # log(1 + x) = -log(1 - u): the first form keeps its digits for small x, the second for large.
    small = x_minus_log1p(-np.minimum(share, 0.5))
    variance = np.where(excess < 1.0, small, np.log1p(excess) - share)
    return 0.5 * outputs * variance, np.asarray(0.5 * share * squared_score)
