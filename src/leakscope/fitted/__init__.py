"""The user's own model: both laws of every record, over the other records.

From one fit where the loss is convex; from a few models for networks and trees.
"""

from __future__ import annotations

from leakscope.fitted.few_models import FewModels, few_models, model_effects
from leakscope.fitted.fitted_laws import Diagnostics, FittedLaws, laws_of
from leakscope.fitted.from_sklearn import from_sklearn
from leakscope.fitted.leave_one_out import leave_one_out
from leakscope.fitted.losses import Loss
from leakscope.fitted.problem import ConvexProblem, FittedModel
from leakscope.fitted.shadow import ShadowScores, check_against_shadows, shadow_models

__all__ = [
    "ConvexProblem",
    "Diagnostics",
    "FewModels",
    "FittedLaws",
    "FittedModel",
    "Loss",
    "ShadowScores",
    "check_against_shadows",
    "few_models",
    "from_sklearn",
    "laws_of",
    "leave_one_out",
    "model_effects",
    "shadow_models",
]

# For other rooms until they import from the file.
from leakscope.fitted.cavity import neighbours_of as neighbours_of
from leakscope.fitted.fitted_laws import Observed as Observed
from leakscope.fitted.from_sklearn import fit_again as fit_again
from leakscope.fitted.from_sklearn import fresh_copy as fresh_copy
from leakscope.fitted.from_sklearn import inner_model as inner_model
from leakscope.fitted.from_sklearn import penalty_of as penalty_of
from leakscope.fitted.shadow import score_records as score_records
