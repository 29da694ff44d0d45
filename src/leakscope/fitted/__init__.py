"""The user's own model: both laws of every record, over the other records.

From one fit where the loss is convex; from a few models for networks and trees.
"""

from __future__ import annotations

from leakscope.fitted.fitted_laws import FittedLaws, counted, laws_of
from leakscope.fitted.from_sklearn import from_sklearn
from leakscope.fitted.shadow import check_against_shadows, shadow_models
from leakscope.halves.estimate import FewModels, few_models
from leakscope.single_fit.leave_one_out import leave_one_out
from leakscope.single_fit.losses import Loss
from leakscope.single_fit.problem import ConvexProblem

__all__ = [
    "ConvexProblem",
    "FewModels",
    "FittedLaws",
    "Loss",
    "check_against_shadows",
    "counted",
    "few_models",
    "from_sklearn",
    "laws_of",
    "leave_one_out",
    "shadow_models",
]
