"""Histograms of an estimated coefficient beside its law, which has an atom at zero.

Bins are centred at zero, so that the atom lies inside one; heights are masses, not densities.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from leakscope.laws import SpikeAndSlab
from papers.arrays import FloatArray
from papers.lasso_runs import interval_columns

AXES = ("beta", "mass")


def bin_edges(law: SpikeAndSlab, width: float) -> FloatArray:
    """Edges of bins of ``width``, one centred at zero, over all but the far tails of the law."""
    ends = law.location + np.array([-3.2, 3.2]) * law.sigma
    low, high = ends - np.clip(ends, -law.threshold, law.threshold)
    first = np.floor(min(low, -width) / width - 0.5)
    last = np.ceil(max(high, width) / width - 0.5)
    return np.asarray(width * (np.arange(first, last + 1) + 0.5))


def law_masses(law: SpikeAndSlab, edges: FloatArray) -> FloatArray:
    """The law's mass in each bin."""
    return np.diff(np.array([float(law.cdf(edge)) for edge in edges]))


def histogram_frame(
    law: SpikeAndSlab, edges: FloatArray, masses: FloatArray, low: FloatArray, high: FloatArray
) -> pd.DataFrame:
    """The law's masses and the simulated ones with their intervals, as rows of a panel."""
    middle = 0.5 * (edges[1:] + edges[:-1])
    theory = pd.DataFrame(
        {"beta": middle, "mass": law_masses(law, edges), "source": "theory", "low": np.nan,
         "high": np.nan}
    )  # fmt: skip
    drawn = pd.DataFrame(
        {"beta": middle, "mass": masses, "source": "simulation", "low": low, "high": high}
    )
    return pd.concat([theory, drawn], ignore_index=True)


def counted(values: FloatArray, edges: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Shares of independent values in each bin with exact binomial 95% intervals."""
    count = np.histogram(values, edges)[0]
    size = values.size
    low = np.where(count > 0, stats.beta.ppf(0.025, count, size - count + 1), 0.0)
    high = np.where(count < size, stats.beta.ppf(0.975, count + 1, size - count), 1.0)
    return count / size, low, high


def averaged(
    groups: list[FloatArray], edges: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Shares in each bin, averaged over groups of values that are not independent inside."""
    shares = np.array([np.histogram(values, edges)[0] / values.size for values in groups])
    found = interval_columns(shares)
    return found["mean"], np.maximum(found["low"], 0.0), found["high"]


def kolmogorov_p(law: SpikeAndSlab, values: FloatArray) -> float:
    """p-value of the largest distance between the two distribution functions.

    Both sides of the atom are looked at.  With an atom the test refuses less often than it says.
    """
    ordered = np.sort(values)
    size = ordered.size
    upto = np.array([float(law.cdf(value)) for value in ordered])
    before = np.where(ordered == 0.0, upto - float(law.atom), upto)
    shares_upto = np.searchsorted(ordered, ordered, side="right") / size
    shares_before = np.searchsorted(ordered, ordered, side="left") / size
    distance = max(np.abs(shares_upto - upto).max(), np.abs(shares_before - before).max())
    return float(stats.kstwo.sf(distance, size))
