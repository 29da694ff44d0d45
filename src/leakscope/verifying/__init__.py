"""Simulation and retraining that check the laws, in runs that survive being killed."""

from leakscope.verifying.agreement import LEAST_RECORDS, Agreement, Interval, agreement
from leakscope.verifying.checks import Check, counted, threshold_for
from leakscope.verifying.density_adversary import cross_fitted_scores
from leakscope.verifying.influence_functions import InfluenceEstimate, influence_functions
from leakscope.verifying.membership_experiment import (
    ConditionalExperiment,
    SampledExperiment,
    data_model_experiment,
    fitted_experiment,
    gaussian_design_experiment,
)
from leakscope.verifying.memorisation import Contrast, SubsetModels, SubsetPlan, train_subsets
from leakscope.verifying.network_training import (
    NetworkTrainer,
    TrainedAnswers,
    Trainer,
    parameters_at,
)
from leakscope.verifying.networks import ConvolutionalNetwork, DenseNetwork
from leakscope.verifying.prediction_difference import PredictionDifference, prediction_difference
from leakscope.verifying.record_choice import choose_records, rows_to_check
from leakscope.verifying.retrained_checks import FunctionTrainer, Retraining
from leakscope.verifying.retraining import Retrained, RetrainedRecord, RetrainingPlan, retrain
from leakscope.verifying.simulation import Simulated, SimulationPlan, simulate
from leakscope.verifying.stored_numbers import require_stored_numbers
from leakscope.verifying.tangents import tangent_products
from leakscope.verifying.trac_in import TracIn, trac_in
from leakscope.verifying.verify import verify

__all__ = [
    "LEAST_RECORDS",
    "Agreement",
    "Check",
    "ConditionalExperiment",
    "Contrast",
    "ConvolutionalNetwork",
    "DenseNetwork",
    "FunctionTrainer",
    "InfluenceEstimate",
    "Interval",
    "NetworkTrainer",
    "PredictionDifference",
    "Retrained",
    "RetrainedRecord",
    "Retraining",
    "RetrainingPlan",
    "SampledExperiment",
    "Simulated",
    "SimulationPlan",
    "SubsetModels",
    "SubsetPlan",
    "TracIn",
    "TrainedAnswers",
    "Trainer",
    "agreement",
    "choose_records",
    "counted",
    "cross_fitted_scores",
    "data_model_experiment",
    "fitted_experiment",
    "gaussian_design_experiment",
    "influence_functions",
    "parameters_at",
    "prediction_difference",
    "require_stored_numbers",
    "retrain",
    "rows_to_check",
    "simulate",
    "tangent_products",
    "threshold_for",
    "trac_in",
    "train_subsets",
    "verify",
]
