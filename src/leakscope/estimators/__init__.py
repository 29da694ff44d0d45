"""The audit's scikit-learn face: estimators that store their leakage, and scorers."""

from leakscope.estimators.audited import AuditedClassifier, AuditedEstimator, AuditedRegressor
from leakscope.estimators.leakage_scores import best_within, leakage_scorer, score_and_leakage

__all__ = [
    "AuditedClassifier",
    "AuditedEstimator",
    "AuditedRegressor",
    "best_within",
    "leakage_scorer",
    "score_and_leakage",
]
