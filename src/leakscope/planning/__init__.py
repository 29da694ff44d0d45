"""Before training: what a linear model or a private LASSO would give away, and what meets
a target.
"""

from leakscope.measures import ScoredAdvantage, scored_advantage
from leakscope.planning.data_model_advantage import data_model_advantage
from leakscope.planning.lasso_answer import plan_lasso
from leakscope.planning.lasso_curves import LassoTradeOff, lasso_trade_off
from leakscope.planning.lasso_targets import best_lasso, least_error, least_kl, optimal_noise
from leakscope.planning.lasso_worst_case import WorstCase, worst_case_epsilon
from leakscope.planning.linear_answer import linear_advantage
from leakscope.planning.linear_curves import TradeOff, equivalence_gap, trade_off_curve
from leakscope.planning.linear_plan import plan_linear
from leakscope.planning.linear_targets import largest_p, least_noise
from leakscope.planning.reachable import require_reachable

__all__ = [
    "LassoTradeOff",
    "ScoredAdvantage",
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
    "require_reachable",
    "scored_advantage",
    "trade_off_curve",
    "worst_case_epsilon",
]
