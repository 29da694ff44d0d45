"""The high-dimensional private LASSO (the paper **lasso**): accuracy and privacy before fitting.

A `LassoSetting` has a fixed point (`state_evolution`) unless it lies beyond its `stability_edge`;
`trajectory` is the way there.  From it come the errors (`prediction_errors`), the laws of an
estimate (`law_over_data`), the overlap of two noises on the same data
(`noise_overlap`), three on-average divergences that are never to be confused (`onavg_kl`), and the
laws of the whole estimate that the measures compare (`joint_law_pair`).  `simulate_lasso` does all
of it on drawn data.
`ObjectivePerturbedLasso` and `OutputPerturbedLasso` are what a data scientist fits; below them are
`solve_lasso`, which certifies its answer, and `message_passing`.  `fit_data_model` reads the
setting off the user's own data.
"""

from typing import TYPE_CHECKING, Any

from leakscope.lasso.amp import message_passing
from leakscope.lasso.data_fit import fit_data_model
from leakscope.lasso.divergence import noise_overlap, onavg_kl
from leakscope.lasso.estimate_laws import joint_law_pair, law_over_data, log_density
from leakscope.lasso.setting import LassoSetting
from leakscope.lasso.simulated import simulate_lasso
from leakscope.lasso.solver import solve_lasso, solve_lasso_many
from leakscope.lasso.stability import stability_edge, stability_programme
from leakscope.lasso.state_evolution import (
    FixedPoint,
    prediction_errors,
    state_evolution,
    trajectory,
)

if TYPE_CHECKING:
    from leakscope.lasso.estimators import ObjectivePerturbedLasso, OutputPerturbedLasso

__all__ = [
    "FixedPoint",
    "LassoSetting",
    "ObjectivePerturbedLasso",
    "OutputPerturbedLasso",
    "fit_data_model",
    "joint_law_pair",
    "law_over_data",
    "log_density",
    "message_passing",
    "noise_overlap",
    "onavg_kl",
    "prediction_errors",
    "simulate_lasso",
    "solve_lasso",
    "solve_lasso_many",
    "stability_edge",
    "stability_programme",
    "state_evolution",
    "trajectory",
]


def __getattr__(name: str) -> Any:
    # scikit-learn is heavy, and theory does without it.
    if name in ("ObjectivePerturbedLasso", "OutputPerturbedLasso"):
        from leakscope.lasso import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'leakscope.lasso' has no attribute {name!r}")
