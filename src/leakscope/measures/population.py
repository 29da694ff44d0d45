"""Measures of a population of records: one threshold on the likelihood ratio for all of them.

The attacker knows x0, and so which pair of laws applies; what he sees is (x0, yhat0).  His best
test compares the likelihood ratio at that x0 with one threshold for all: the mean of the records'
TPRs at a fixed FPR is a different, worse test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize

from leakscope.errors import InputError
from leakscope.laws import LawPair, NormalMixture
from leakscope.measures.dispatch import as_levels, is_empirical, ratio_of
from leakscope.measures.gathered_mixture import gathered
from leakscope.measures.population_ratio import PopulationRatio
from leakscope.settings import MEASURE_DEFAULTS


@dataclass(frozen=True)
class PopulationMeasures:
    """What an attacker gets from a population of records.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import population_measures
    >>> found = population_measures(LawPair(Normal([0.0], 1.4), Normal([0.0], 0.7)), fpr=(0.001,))
    >>> round(found.advantage, 6), round(found.auc, 6), round(found.tpr_at_fpr[0.001], 6)
    (0.322675, 0.704833, 0.099916)
    """

    advantage: float
    kl: float
    kl_reverse: float
    auc: float
    tpr_at_fpr: dict[float, float]


def population_measures(
    pair: LawPair,
    weights: npt.ArrayLike | None = None,
    *,
    fpr: Sequence[float] = MEASURE_DEFAULTS.fpr,
) -> PopulationMeasures:
    """All measures of (record, observation) over the batch of ``pair``.

    ``weights`` are the records' shares, equal where left out.  Every number is made of the same
    likelihood ratios as the measures of a single pair and keeps their digits.  The AUC is
    good to 1e-7.  Mixtures of one centre with more than 24 components are first gathered into 24,
    by Gauss's rule for their mixing law, which keeps nine digits of the density (six far out in
    the tails of a heavy-tailed one).

    Examples
    --------
    >>> from leakscope import linear
    >>> from leakscope.measures import population_measures
    >>> design = linear.GaussianDesign(100, 400, 3000, 1.0)
    >>> norms = linear.RecordNorms.nodes(design)
    >>> pair = linear.law_pair(design, norms, method="asymptotic")
    >>> round(population_measures(pair, norms.weight).auc, 6)
    0.669343
    """
    if is_empirical(pair):
        raise InputError("Population measures are for laws that are known, not for samples.")
    levels = as_levels(fpr, "fpr", 0.0, 1.0, "a fraction between 0 and 1")[0]
    population = population_ratio(pair, weights)
    with np.errstate(divide="ignore"):
        tpr = np.exp(population.tpr_at(np.log(levels)[None, :])[0][0])
    return PopulationMeasures(
        advantage=float(population.advantage()[0]),
        kl=float(population.reversed().renyi(1.0)[0]),
        kl_reverse=float(population.renyi(1.0)[0]),
        auc=float(population.auc()[0]),
        tpr_at_fpr=dict(zip(levels.tolist(), tpr.tolist(), strict=True)),
    )


def population_threshold(pair: LawPair, fpr: float) -> float:
    """The log likelihood ratio that a share ``fpr`` of nonmembers exceeds, over a batch.

    It is one threshold for all records, as in `population_measures`.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import population_threshold
    >>> round(population_threshold(LawPair(Normal([1.0], 1.0), Normal([0.0], 1.0)), 0.01), 4)
    1.8263
    """
    level = as_levels(fpr, "fpr", 0.0, 1.0, "a fraction between 0 and 1")[0].reshape(-1)[0]
    population = population_ratio(pair)

    def excess(threshold: float) -> float:
        return float(population.tails(np.array([[threshold]])).log_fpr[0, 0] - np.log(level))

    low, high = -1.0, 1.0
    while excess(high) > 0.0:
        low, high = high, 2.0 * high
    while excess(low) < 0.0:
        low = 2.0 * low
    return float(optimize.brentq(excess, low, high, xtol=1e-10))


def population_ratio(pair: LawPair, weights: npt.ArrayLike | None = None) -> PopulationRatio:
    """The likelihood ratio of the batch of ``pair`` as one population."""
    batch = int(np.prod(pair.batch_shape, dtype=int))
    share = np.ones(batch) if weights is None else np.ravel(np.asarray(weights, dtype=np.float64))
    if share.size != batch or batch == 0:
        raise InputError(f"Weights must be one for each pair: {batch}, not {share.size}.")
    if not (np.all(share >= 0.0) and np.isfinite(share).all() and share.sum() > 0.0):
        raise InputError("Weights must be finite, zero or above, and not all zero.")
    flat = pair.reshape(batch)
    laws = [
        gathered(law) if isinstance(law, NormalMixture) else law
        for law in (flat.member, flat.nonmember)
    ]
    kept = np.flatnonzero(share > 0.0)
    part = LawPair(laws[0], laws[1], pair.provenance).take(kept)
    return PopulationRatio(ratio_of(part), np.log(share[kept] / share.sum()))
