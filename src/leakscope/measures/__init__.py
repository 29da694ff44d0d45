"""Measures of how far apart the two laws of a pair are.

Each takes a `leakscope.laws.LawPair`, for one record or for fifty thousand, and returns an array
of the batch's shape; for empirical laws it returns an `Estimate` with an interval.  Measures know
nothing of the model that made the pair.
"""

from __future__ import annotations

from leakscope.measures.advantage import advantage, overlap
from leakscope.measures.composition import Composition, compose
from leakscope.measures.curves import RocCurve, auc, roc, tpr_at_fpr, trade_off
from leakscope.measures.divergence import kl, renyi
from leakscope.measures.epsilon import delta_at_epsilon, epsilon_at_delta
from leakscope.measures.estimate import Estimate
from leakscope.measures.population import PopulationMeasures, population_measures
from leakscope.measures.summary import Summary, summary

__all__ = [
    "Composition",
    "Estimate",
    "PopulationMeasures",
    "RocCurve",
    "Summary",
    "advantage",
    "auc",
    "compose",
    "delta_at_epsilon",
    "epsilon_at_delta",
    "kl",
    "overlap",
    "population_measures",
    "renyi",
    "roc",
    "summary",
    "tpr_at_fpr",
    "trade_off",
]
