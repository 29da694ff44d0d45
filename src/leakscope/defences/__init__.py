"""Inverse problems: what to change so that a model gives away no more than a target.

For linear models: `plan_linear` says what a design would give away, `largest_p` and `least_noise`
find the settings that meet a target, `trade_off_curve` shows what each knob costs.  For the private
LASSO: `plan_lasso`, `lasso_trade_off`, `optimal_noise`, `least_error`, `least_kl`, `best_lasso`.
"""

from leakscope.defences.data_model_advantage import data_model_advantage
from leakscope.defences.lasso_answer import LassoAnswer, plan_lasso
from leakscope.defences.lasso_curves import LassoTradeOff, lasso_trade_off
from leakscope.defences.lasso_targets import (
    LassoChoice,
    best_lasso,
    least_error,
    least_kl,
    optimal_noise,
)
from leakscope.defences.lasso_worst_case import WorstCase, worst_case_epsilon
from leakscope.defences.linear_answer import LinearAnswer, linear_advantage, plan_linear
from leakscope.defences.linear_curves import TradeOff, equivalence_gap, trade_off_curve
from leakscope.defences.linear_targets import TargetFound, largest_p, least_noise
from leakscope.defences.scored_tests import ScoredAdvantage, scored_advantage

__all__ = [
    "LassoAnswer",
    "LassoChoice",
    "LassoTradeOff",
    "LinearAnswer",
    "ScoredAdvantage",
    "TargetFound",
    "TradeOff",
    "WorstCase",
    "best_lasso",
    "data_model_advantage",
    "equivalence_gap",
    "largest_p",
    "lasso_trade_off",
    "least_error",
    "least_kl",
    "least_noise",
    "linear_advantage",
    "optimal_noise",
    "plan_lasso",
    "plan_linear",
    "scored_advantage",
    "trade_off_curve",
    "worst_case_epsilon",
]
