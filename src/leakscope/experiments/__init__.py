"""Simulation and retraining that check the laws, in runs that survive being killed."""

from leakscope.experiments.agreement import LEAST_RECORDS, Agreement, agreement
from leakscope.experiments.attacks import likelihood_ratio, loss_threshold, relative
from leakscope.experiments.cells import Cell, Found, Progress, run_cells
from leakscope.experiments.checks import Check, counted, threshold_for
from leakscope.experiments.cluster import cluster_client
from leakscope.experiments.density_adversary import cross_fitted_scores
from leakscope.experiments.group_draws import check_groups
from leakscope.experiments.influence_functions import Influence, influence_functions
from leakscope.experiments.membership_experiment import (
    ConditionalExperiment,
    SampledExperiment,
    data_model_experiment,
    fitted_experiment,
    gaussian_design_experiment,
)
from leakscope.experiments.memorisation import (
    Contrast,
    SubsetModels,
    SubsetPlan,
    train_subsets,
)
from leakscope.experiments.network_training import (
    NetworkTrainer,
    TrainedAnswers,
    Trainer,
    parameters_at,
)
from leakscope.experiments.networks import ConvolutionalNetwork, DenseNetwork
from leakscope.experiments.out_of_core import OutOfCoreAudit, audit_out_of_core
from leakscope.experiments.own_training import FunctionTrainer, load_trainer
from leakscope.experiments.posterior_draws import (
    RecordLaws,
    check_records,
    kl_from_draws,
    posterior_draws,
)
from leakscope.experiments.prediction_difference import (
    PredictionDifference,
    prediction_difference,
)
from leakscope.experiments.record_choice import choose_records
from leakscope.experiments.retraining import (
    Retrained,
    RetrainedRecord,
    RetrainingPlan,
    retrain,
)
from leakscope.experiments.simulation import Simulated, SimulationPlan, simulate
from leakscope.experiments.trac_in import TracIn, trac_in

__all__ = [
    "LEAST_RECORDS",
    "Agreement",
    "Cell",
    "Check",
    "ConditionalExperiment",
    "Contrast",
    "ConvolutionalNetwork",
    "DenseNetwork",
    "Found",
    "FunctionTrainer",
    "Influence",
    "NetworkTrainer",
    "OutOfCoreAudit",
    "PredictionDifference",
    "Progress",
    "RecordLaws",
    "Retrained",
    "RetrainedRecord",
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
    "audit_out_of_core",
    "check_groups",
    "check_records",
    "choose_records",
    "cluster_client",
    "counted",
    "cross_fitted_scores",
    "data_model_experiment",
    "fitted_experiment",
    "gaussian_design_experiment",
    "influence_functions",
    "kl_from_draws",
    "likelihood_ratio",
    "load_trainer",
    "loss_threshold",
    "parameters_at",
    "posterior_draws",
    "prediction_difference",
    "relative",
    "retrain",
    "run_cells",
    "simulate",
    "threshold_for",
    "trac_in",
    "train_subsets",
]
