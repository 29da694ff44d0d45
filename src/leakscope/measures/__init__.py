"""Measures of how far apart the two laws of a pair are.

Each takes a `leakscope.laws.LawPair`, for one record or for fifty thousand, and returns an array
of the batch's shape; for empirical laws it returns an `Estimate` with an interval.  Measures know
nothing of the model that made the pair.
"""

from __future__ import annotations

from leakscope.measures.accusation import (
    lift,
    one_threshold,
    positive_predictive_value,
    tolerable_tpr,
)
from leakscope.measures.drawn import ScoredAdvantage, scored_advantage
from leakscope.measures.normal_divergence import kl_parts, normal_kl_of_draws
from leakscope.measures.pair_measures import (
    advantage,
    auc,
    delta_at_epsilon,
    epsilon_at_delta,
    jeffreys,
    kl,
    overlap,
    renyi,
    roc,
    summary,
    tpr_at_fpr,
    trade_off,
)
from leakscope.measures.population import population_measures
from leakscope.measures.samples import Estimate, advantage_of_log_ratios, binned_advantage

# isort: split


__all__ = [
    "Estimate",
    "ScoredAdvantage",
    "advantage",
    "advantage_of_log_ratios",
    "auc",
    "binned_advantage",
    "delta_at_epsilon",
    "epsilon_at_delta",
    "jeffreys",
    "kl",
    "kl_parts",
    "lift",
    "normal_kl_of_draws",
    "one_threshold",
    "overlap",
    "population_measures",
    "positive_predictive_value",
    "renyi",
    "roc",
    "scored_advantage",
    "summary",
    "tolerable_tpr",
    "tpr_at_fpr",
    "trade_off",
]
