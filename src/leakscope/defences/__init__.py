"""Inverse problems: what to change so that a model gives away no more than a target.

So far for linear models: `plan_linear` says what a design would give away, `largest_p` and
`least_noise` find the settings that meet a target, `trade_off_curve` shows what each knob costs.
"""

from leakscope.defences.linear_answer import LinearAnswer, linear_advantage, plan_linear
from leakscope.defences.linear_curves import TradeOff, equivalence_gap, trade_off_curve
from leakscope.defences.linear_targets import TargetFound, largest_p, least_noise
from leakscope.defences.population import PopulationMeasures, population_measures
from leakscope.defences.scored_tests import ScoredAdvantage, scored_advantage

__all__ = [
    "LinearAnswer",
    "PopulationMeasures",
    "ScoredAdvantage",
    "TargetFound",
    "TradeOff",
    "equivalence_gap",
    "largest_p",
    "least_noise",
    "linear_advantage",
    "plan_linear",
    "population_measures",
    "scored_advantage",
    "trade_off_curve",
]
