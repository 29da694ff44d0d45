"""Simulation and retraining that check the laws, in runs that survive being killed."""

from leakscope.verifying.agreement import LEAST_RECORDS, Agreement, Interval, agreement
from leakscope.verifying.checks import Check, counted, threshold_for
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
from leakscope.verifying.group_draws import check_groups
from leakscope.verifying.own_training import FunctionTrainer, load_trainer
from leakscope.verifying.posterior_draws import (
    RecordLaws,
    check_records,
    kl_from_draws,
    posterior_draws,
)
from leakscope.verifying.record_choice import choose_records, rows_to_check
from leakscope.verifying.retrained_checks import Retraining
from leakscope.verifying.stored_numbers import require_group_numbers, require_stored_numbers
from leakscope.verifying.verify import verify

__all__ = [
    "LEAST_RECORDS",
    "Agreement",
    "Check",
    "ConditionalExperiment",
    "ConvolutionalNetwork",
    "DenseNetwork",
    "FunctionTrainer",
    "Interval",
    "NetworkTrainer",
    "RecordLaws",
    "Retraining",
    "RetrainingPlan",
    "SampledExperiment",
    "SimulationPlan",
    "SubsetPlan",
    "agreement",
    "check_groups",
    "check_records",
    "choose_records",
    "counted",
    "data_model_experiment",
    "fitted_experiment",
    "gaussian_design_experiment",
    "influence_functions",
    "kl_from_draws",
    "load_trainer",
    "parameters_at",
    "posterior_draws",
    "prediction_difference",
    "require_group_numbers",
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
