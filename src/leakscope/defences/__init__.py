"""Inverse problems: what to change so that a model gives away no more than a target.

For linear models: `plan_linear` says what a design would give away, `largest_p` and `least_noise`
find the settings that meet a target, `trade_off_curve` shows what each knob costs.  For the private
LASSO: `plan_lasso`, `lasso_trade_off`, `optimal_noise`, `least_error`, `least_kl`, `best_lasso`.
For an audited dataset: `advise` ranks output noise, training noise, fewer features, dropping and
merging by what they cost to meet an `AuditTarget`.
"""

from leakscope.defences.advice import Advice, CurvePoint, Option
from leakscope.defences.advising import advise
from leakscope.defences.applied_defence import Defence
from leakscope.defences.audit_target import AuditTarget
from leakscope.defences.audited_model import AuditedModel
from leakscope.defences.data_model_advantage import data_model_advantage
from leakscope.defences.dropping import DropPath, drop_exposed
from leakscope.defences.fewer_features import largest_components, principal_directions
from leakscope.defences.kernel_noise import NoiseLevels, least_kernel_noise
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
from leakscope.defences.merging import least_merging, merged_measures
from leakscope.defences.output_noise import least_output_noise
from leakscope.defences.released_error import Folds, ReleasedError
from leakscope.defences.scored_tests import ScoredAdvantage, scored_advantage
from leakscope.defences.unit_laws import UnitLaws

__all__ = [
    "Advice",
    "AuditTarget",
    "AuditedModel",
    "CurvePoint",
    "Defence",
    "DropPath",
    "Folds",
    "LassoAnswer",
    "LassoChoice",
    "LassoTradeOff",
    "LinearAnswer",
    "NoiseLevels",
    "Option",
    "ReleasedError",
    "ScoredAdvantage",
    "TargetFound",
    "TradeOff",
    "UnitLaws",
    "WorstCase",
    "advise",
    "best_lasso",
    "data_model_advantage",
    "drop_exposed",
    "equivalence_gap",
    "largest_components",
    "largest_p",
    "lasso_trade_off",
    "least_error",
    "least_kernel_noise",
    "least_kl",
    "least_merging",
    "least_noise",
    "least_output_noise",
    "linear_advantage",
    "merged_measures",
    "optimal_noise",
    "plan_lasso",
    "plan_linear",
    "principal_directions",
    "scored_advantage",
    "trade_off_curve",
    "worst_case_epsilon",
]
