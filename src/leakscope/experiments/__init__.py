"""Simulation and retraining that check the laws, in runs that survive being killed."""

from leakscope.experiments.agreement import Agreement, agreement
from leakscope.experiments.attacks import likelihood_ratio, loss_threshold, relative
from leakscope.experiments.cells import Cell, Found, Progress, run_cells
from leakscope.experiments.cluster import cluster_client
from leakscope.experiments.network_training import NetworkTrainer, TrainedAnswers, Trainer
from leakscope.experiments.networks import ConvolutionalNetwork, DenseNetwork
from leakscope.experiments.own_training import FunctionTrainer, load_trainer
from leakscope.experiments.record_choice import choose_records
from leakscope.experiments.retraining import (
    Retrained,
    RetrainedRecord,
    RetrainingPlan,
    retrain,
)

__all__ = [
    "Agreement",
    "Cell",
    "ConvolutionalNetwork",
    "DenseNetwork",
    "Found",
    "FunctionTrainer",
    "NetworkTrainer",
    "Progress",
    "Retrained",
    "RetrainedRecord",
    "RetrainingPlan",
    "TrainedAnswers",
    "Trainer",
    "agreement",
    "choose_records",
    "cluster_client",
    "likelihood_ratio",
    "load_trainer",
    "loss_threshold",
    "relative",
    "retrain",
    "run_cells",
]
