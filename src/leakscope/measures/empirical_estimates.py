"""Measures of leakage from two samples of scores, each with an interval.

The front door to the empirical measures.  They take the scores that any real model or attack gives
to members and to nonmembers, as arrays of shapes (..., n_member) and (..., n_nonmember); leading
axes are a batch.  The attacker is a threshold test on the score: score high -> member.  Every
measure depends on the order of the scores only.
"""

from __future__ import annotations

from leakscope.measures.empirical_auc import auc
from leakscope.measures.empirical_divergence import (
    advantage,
    advantage_plugin,
    delta_at_epsilon,
    epsilon_at_delta,
)
from leakscope.measures.empirical_kl import kl
from leakscope.measures.empirical_threshold import roc, tpr_at_fpr, trade_off
from leakscope.measures.estimate import Estimate

__all__ = [
    "Estimate",
    "advantage",
    "advantage_plugin",
    "auc",
    "delta_at_epsilon",
    "epsilon_at_delta",
    "kl",
    "roc",
    "tpr_at_fpr",
    "trade_off",
]
