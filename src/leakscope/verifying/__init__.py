"""Simulation and retraining that check the laws, in runs that survive being killed."""

from leakscope.verifying.checks import Agreement, Check, Interval, agreement, choose_records
from leakscope.verifying.experiments.influence import (
    influence_functions,
    tangent_products,
    trac_in,
)
from leakscope.verifying.experiments.membership_experiment import (
    ConditionalExperiment,
    SampledExperiment,
    data_model_experiment,
    fitted_experiment,
    gaussian_design_experiment,
)
from leakscope.verifying.experiments.memorisation import (
    SubsetPlan,
    train_subsets,
)
from leakscope.verifying.experiments.network_training import (
    ConvolutionalNetwork,
    DenseNetwork,
    NetworkTrainer,
    parameters_at,
)
from leakscope.verifying.experiments.retraining import (
    RetrainingPlan,
    prediction_difference,
    retrain,
)
from leakscope.verifying.experiments.simulation import SimulationPlan, simulate
from leakscope.verifying.retrained_checks import FunctionTrainer, Retraining
from leakscope.verifying.verify import verify

__all__ = [
    "Agreement",
    "Check",
    "ConditionalExperiment",
    "ConvolutionalNetwork",
    "DenseNetwork",
    "FunctionTrainer",
    "Interval",
    "NetworkTrainer",
    "Retraining",
    "RetrainingPlan",
    "SampledExperiment",
    "SimulationPlan",
    "SubsetPlan",
    "agreement",
    "choose_records",
    "data_model_experiment",
    "fitted_experiment",
    "gaussian_design_experiment",
    "influence_functions",
    "parameters_at",
    "prediction_difference",
    "retrain",
    "simulate",
    "tangent_products",
    "trac_in",
    "train_subsets",
    "verify",
]
