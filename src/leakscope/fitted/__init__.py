"""The user's own model: both laws of every record, over the other records.

From one fit where the loss is convex; from a few models for networks and trees.
"""

from __future__ import annotations

from leakscope.fitted.few_models import CredibleInterval, FewModels, few_models
from leakscope.fitted.fitted_laws import Diagnostics, FittedLaws, Observed, laws_of
from leakscope.fitted.from_sklearn import from_sklearn
from leakscope.fitted.leave_one_out import LeaveOneOutValues, leave_one_out
from leakscope.fitted.losses import LogisticLoss, Loss, PoissonLoss, SquareLoss
from leakscope.fitted.model import FittedModel
from leakscope.fitted.model_effects import ModelEffects, model_effects
from leakscope.fitted.neighbours import Neighbours, neighbours_of
from leakscope.fitted.problem import ConvexProblem
from leakscope.fitted.refitting import fit_again, fresh_copy, inner_model, penalty_of
from leakscope.fitted.shadow import ShadowScores, score_records, shadow_models
from leakscope.fitted.shadow_check import ShadowCheck, check_against_shadows

__all__ = [
    "ConvexProblem",
    "CredibleInterval",
    "Diagnostics",
    "FewModels",
    "FittedLaws",
    "FittedModel",
    "LeaveOneOutValues",
    "LogisticLoss",
    "Loss",
    "ModelEffects",
    "Neighbours",
    "Observed",
    "PoissonLoss",
    "ShadowCheck",
    "ShadowScores",
    "SquareLoss",
    "check_against_shadows",
    "few_models",
    "fit_again",
    "fresh_copy",
    "from_sklearn",
    "inner_model",
    "laws_of",
    "leave_one_out",
    "model_effects",
    "neighbours_of",
    "penalty_of",
    "score_records",
    "shadow_models",
]
