"""Draws, shadow models and retraining that check the laws, in runs that survive being killed."""

from leakscope.verifying.checks import Agreement, Check, Interval, agreement, choose_records
from leakscope.verifying.influence import (
    influence_functions,
    tangent_products,
    trac_in,
)
from leakscope.verifying.network_training import (
    DenseNetwork,
    NetworkTrainer,
    parameters_at,
)
from leakscope.verifying.retrained_checks import FunctionTrainer, Retraining
from leakscope.verifying.retraining import (
    RetrainingPlan,
    prediction_difference,
    retrain,
)
from leakscope.verifying.verify import verify

__all__ = [
    "Agreement",
    "Check",
    "DenseNetwork",
    "FunctionTrainer",
    "Interval",
    "NetworkTrainer",
    "Retraining",
    "RetrainingPlan",
    "agreement",
    "choose_records",
    "influence_functions",
    "parameters_at",
    "prediction_difference",
    "retrain",
    "tangent_products",
    "trac_in",
    "verify",
]
