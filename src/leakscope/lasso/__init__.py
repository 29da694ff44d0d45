"""The high-dimensional private LASSO (the paper **lasso**): accuracy and privacy before fitting.

A `LassoSetting` has a fixed point (`state_evolution`) unless it lies beyond its `stability_edge`.
From it come the errors (`prediction_errors`), the laws of an estimate (`law_over_data`,
`law_over_noise`), the overlap of two noises on the same data (`noise_overlap`), three on-average
divergences that are never to be confused (`onavg_kl`), and the laws of the whole estimate that the
measures compare (`joint_law_pair`).  `simulate_lasso` does all of it on drawn data.
`ObjectivePerturbedLasso` and `OutputPerturbedLasso` are what a data scientist fits; below them are
`solve_lasso`, which certifies its answer, and `message_passing`.  `fit_data_model` reads the
setting off the user's own data.
"""

from typing import TYPE_CHECKING, Any

from leakscope.lasso.amp import MessagePassing, Replacements, message_passing
from leakscope.lasso.assumptions import NOT_A_GUARANTEE, provenance_of
from leakscope.lasso.data_fit import DataFit, fit_data_model
from leakscope.lasso.derivatives import FixedPointDerivative, fixed_point_derivative
from leakscope.lasso.design_check import DesignCheck, check_design
from leakscope.lasso.estimate_laws import law_over_data, law_over_noise, neighbouring_laws
from leakscope.lasso.finite_records import cw_onavg_kl_at
from leakscope.lasso.joint_density import log_density
from leakscope.lasso.joint_law import joint_law_pair
from leakscope.lasso.noise_overlap import Overlap, noise_average, noise_overlap
from leakscope.lasso.onaverage_kl import Divergence, KLSlope, onavg_kl, onavg_kl_with_slope
from leakscope.lasso.prediction_errors import PredictionErrors, prediction_errors
from leakscope.lasso.row_clipping import Sensitivity, replacement_sensitivity
from leakscope.lasso.setting import LassoSetting, Mechanism
from leakscope.lasso.simulated import SimulatedLasso, simulate_lasso
from leakscope.lasso.solver import LassoSolution, solve_lasso, solve_lasso_many
from leakscope.lasso.stability import stability_edge, stability_ratio
from leakscope.lasso.stability_programme import StabilityEdge, stability_programme
from leakscope.lasso.state_evolution import FixedPoint, state_evolution, unstable_sentence

if TYPE_CHECKING:
    from leakscope.lasso.estimators import ObjectivePerturbedLasso, OutputPerturbedLasso

__all__ = [
    "NOT_A_GUARANTEE",
    "DataFit",
    "DesignCheck",
    "Divergence",
    "FixedPoint",
    "FixedPointDerivative",
    "KLSlope",
    "LassoSetting",
    "LassoSolution",
    "Mechanism",
    "MessagePassing",
    "ObjectivePerturbedLasso",
    "OutputPerturbedLasso",
    "Overlap",
    "PredictionErrors",
    "Replacements",
    "Sensitivity",
    "SimulatedLasso",
    "StabilityEdge",
    "check_design",
    "cw_onavg_kl_at",
    "fit_data_model",
    "fixed_point_derivative",
    "joint_law_pair",
    "law_over_data",
    "law_over_noise",
    "log_density",
    "message_passing",
    "neighbouring_laws",
    "noise_average",
    "noise_overlap",
    "onavg_kl",
    "onavg_kl_with_slope",
    "prediction_errors",
    "provenance_of",
    "replacement_sensitivity",
    "simulate_lasso",
    "solve_lasso",
    "solve_lasso_many",
    "stability_edge",
    "stability_programme",
    "stability_ratio",
    "state_evolution",
    "unstable_sentence",
]


def __getattr__(name: str) -> Any:
    # scikit-learn is heavy, and theory does without it.
    if name in ("ObjectivePerturbedLasso", "OutputPerturbedLasso"):
        from leakscope.lasso import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'leakscope.lasso' has no attribute {name!r}")
