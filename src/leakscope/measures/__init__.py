"""Measures of how far apart the two laws of a pair are.

Each takes a `leakscope.laws.LawPair`, for one record or for fifty thousand, and returns an array
of the batch's shape; for empirical laws it returns an `Estimate` with an interval.  Measures know
nothing of the model that made the pair.
"""

from __future__ import annotations

from leakscope.measures.accusation import (
    advantage_within_auc,
    lift,
    one_threshold,
    positive_predictive_value,
    tolerable_tpr,
)
from leakscope.measures.advantage import advantage, overlap
from leakscope.measures.composition import Composition, compose
from leakscope.measures.curves import RocCurve, auc, roc, tpr_at_fpr, trade_off
from leakscope.measures.divergence import jeffreys, kl, renyi
from leakscope.measures.empirical_binned import binned_advantage
from leakscope.measures.empirical_log_ratio import advantage_of_log_ratios
from leakscope.measures.empirical_normal_kl import normal_kl_of_draws
from leakscope.measures.epsilon import delta_at_epsilon, epsilon_at_delta
from leakscope.measures.estimate import Estimate
from leakscope.measures.normal_kl_parts import kl_parts, kl_reverse_parts
from leakscope.measures.population import (
    PopulationMeasures,
    population_measures,
    population_threshold,
)
from leakscope.measures.scored_tests import ScoredAdvantage, scored_advantage
from leakscope.measures.summary import Summary, summary
from leakscope.measures.tabulated_densities import TabulatedMeasure, tabulated

__all__ = [
    "Composition",
    "Estimate",
    "PopulationMeasures",
    "RocCurve",
    "ScoredAdvantage",
    "Summary",
    "TabulatedMeasure",
    "advantage",
    "advantage_of_log_ratios",
    "advantage_within_auc",
    "auc",
    "binned_advantage",
    "compose",
    "delta_at_epsilon",
    "epsilon_at_delta",
    "jeffreys",
    "kl",
    "kl_parts",
    "kl_reverse_parts",
    "lift",
    "normal_kl_of_draws",
    "one_threshold",
    "overlap",
    "population_measures",
    "population_threshold",
    "positive_predictive_value",
    "renyi",
    "roc",
    "scored_advantage",
    "summary",
    "tabulated",
    "tolerable_tpr",
    "tpr_at_fpr",
    "trade_off",
]
