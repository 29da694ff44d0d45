"""The user's own model: both laws of every record, over the other records, from one fit."""

from __future__ import annotations

from leakscope.fitted.fitted_laws import Diagnostics, FittedLaws, laws_of
from leakscope.fitted.from_sklearn import from_sklearn
from leakscope.fitted.leave_one_out import LeaveOneOutValues, leave_one_out
from leakscope.fitted.losses import LogisticLoss, Loss, PoissonLoss, SquareLoss
from leakscope.fitted.model import FittedModel
from leakscope.fitted.problem import ConvexProblem
from leakscope.fitted.shadow import ShadowScores, shadow_models
from leakscope.fitted.shadow_check import ShadowCheck, check_against_shadows

__all__ = [
    "ConvexProblem",
    "Diagnostics",
    "FittedLaws",
    "FittedModel",
    "LeaveOneOutValues",
    "LogisticLoss",
    "Loss",
    "PoissonLoss",
    "ShadowCheck",
    "ShadowScores",
    "SquareLoss",
    "check_against_shadows",
    "from_sklearn",
    "laws_of",
    "leave_one_out",
    "shadow_models",
]
