"""The audit's scikit-learn face: estimators that store their leakage, and scorers."""

from leakscope.estimators.audited_estimator import AuditedEstimator
from leakscope.estimators.gaussian_process import AuditedClassifier, AuditedRegressor
from leakscope.estimators.leakage_scores import (
    BestWithin,
    ScoreMinusLeakage,
    best_within,
    leakage_scorer,
    score_and_leakage,
    score_minus_leakage,
)

__all__ = [
    "AuditedClassifier",
    "AuditedEstimator",
    "AuditedRegressor",
    "BestWithin",
    "ScoreMinusLeakage",
    "best_within",
    "leakage_scorer",
    "score_and_leakage",
    "score_minus_leakage",
]
