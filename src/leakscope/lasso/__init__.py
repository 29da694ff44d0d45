"""The high-dimensional private LASSO (the paper **lasso**): accuracy and privacy before fitting.

A `LassoSetting` has a fixed point (`state_evolution`) unless it lies beyond its `stability_edge`.
From it come the errors (`prediction_errors`), the laws of an estimate (`law_over_data`,
`law_over_noise`), the overlap of two noises on the same data (`overlap`), and three on-average
divergences that are never to be confused (`onavg_kl`).  `simulate` does all of it on drawn data.
"""

from leakscope.lasso.derivatives import FixedPointDerivative, fixed_point_derivative
from leakscope.lasso.estimate_laws import law_over_data, law_over_noise, neighbouring_laws
from leakscope.lasso.finite_records import cw_onavg_kl_at
from leakscope.lasso.joint_density import log_density
from leakscope.lasso.joint_law import (
    LikelihoodRatios,
    average_advantage,
    average_auc,
    likelihood_ratios,
)
from leakscope.lasso.onaverage_kl import KLSlope, onavg_kl, onavg_kl_with_slope
from leakscope.lasso.overlap import Overlap, noise_average, overlap
from leakscope.lasso.prediction_errors import PredictionErrors, prediction_errors
from leakscope.lasso.setting import LassoSetting
from leakscope.lasso.simulated import SimulatedLasso, simulate
from leakscope.lasso.stability import stability_edge, stability_ratio
from leakscope.lasso.state_evolution import FixedPoint, state_evolution

__all__ = [
    "FixedPoint",
    "FixedPointDerivative",
    "KLSlope",
    "LassoSetting",
    "LikelihoodRatios",
    "Overlap",
    "PredictionErrors",
    "SimulatedLasso",
    "average_advantage",
    "average_auc",
    "cw_onavg_kl_at",
    "fixed_point_derivative",
    "law_over_data",
    "law_over_noise",
    "likelihood_ratios",
    "log_density",
    "neighbouring_laws",
    "noise_average",
    "onavg_kl",
    "onavg_kl_with_slope",
    "overlap",
    "prediction_errors",
    "simulate",
    "stability_edge",
    "stability_ratio",
    "state_evolution",
]
