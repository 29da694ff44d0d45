"""Draws, refits and retraining that check the laws."""

from leakscope.verifying.checks import Interval, choose_records, correlation
from leakscope.verifying.influence import influence_functions, tangent_products, trac_in
from leakscope.verifying.networks import DenseNetwork, NetworkTrainer, parameters_at, retrain
from leakscope.verifying.verify import verify

__all__ = [
    "DenseNetwork",
    "Interval",
    "NetworkTrainer",
    "choose_records",
    "correlation",
    "influence_functions",
    "parameters_at",
    "retrain",
    "tangent_products",
    "trac_in",
    "verify",
]
