"""Which labels disagree with the other records more than chance has some label do.

A disagreement is counted in predictive standard deviations, and those rest on the noise variance
that was assumed.  Where it is too small, as a default may be, every label lies many deviations off:
of 400 labels that are pure noise the farthest lies 30 off at a noise variance of 0.01, and 3 at 1.
So a disagreement is divided by what is usual among these records (by the median, which a few wrong
labels do not move), where that is more than the assumed noise says; and a label is named only
where the farthest of as many normal labels would lie nearer in nineteen cases of twenty.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from leakscope._numerics.arrays import FloatArray

# How often a label is named among records whose labels are all as they should be.
FALSE_ALARM = 0.05


def calibrated(disagreement: FloatArray, outputs: int) -> FloatArray:
    """Disagreements in standard deviations of how far labels lie off among these records.

    With C outputs a disagreement is a root mean square, of which the square times C is
    chi-squared with C degrees of freedom where labels are normal.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.auditing.surprising_labels import calibrated
    >>> off = np.abs(np.random.default_rng(0).normal(size=1001)) * 10.0
    >>> bool(np.max(calibrated(off, 1)) < 4.0)
    True
    """
    if not disagreement.size:
        return disagreement
    usual = float(np.median(disagreement) / np.sqrt(stats.chi2.median(outputs) / outputs))
    return np.asarray(disagreement / max(1.0, usual))


def surprising_from(records: int, outputs: int) -> float:
    """From which disagreement on a label is named.

    Examples
    --------
    >>> from leakscope.auditing.surprising_labels import surprising_from
    >>> round(surprising_from(400, 1), 2), round(surprising_from(1797, 10), 2)
    (3.84, 1.97)
    """
    return float(np.sqrt(stats.chi2.isf(FALSE_ALARM / max(records, 1), outputs) / outputs))
