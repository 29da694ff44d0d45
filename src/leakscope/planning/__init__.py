"""Before training: what a linear model, a private LASSO or a wide network would give away,
and what meets a target.
"""

from leakscope.planning.lasso_plan import plan_lasso, plan_lasso_of
from leakscope.planning.lasso_targets import (
    best_lasso,
    lasso_trade_off,
    least_error,
    least_kl,
    optimal_noise,
)
from leakscope.planning.linear_advantages import data_model_advantage, linear_advantage
from leakscope.planning.linear_plan import equivalence_gap, plan_linear, trade_off_curve
from leakscope.planning.network_plan import plan_network

__all__ = [
    "best_lasso",
    "data_model_advantage",
    "equivalence_gap",
    "lasso_trade_off",
    "least_error",
    "least_kl",
    "linear_advantage",
    "optimal_noise",
    "plan_lasso",
    "plan_lasso_of",
    "plan_linear",
    "plan_network",
    "trade_off_curve",
]
