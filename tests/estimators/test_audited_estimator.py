"""``AuditedEstimator``: the audit of a fitted model as a scikit-learn meta-estimator."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leakscope.estimators import AuditedEstimator, best_within, score_and_leakage
from tests.audits import estimator_audit

X, Y = load_diabetes(return_X_y=True)
XB, YB = load_breast_cancer(return_X_y=True)


def test_it_is_the_estimator_with_its_own_audit():
    model = AuditedEstimator(Ridge(alpha=0.3)).fit(X, Y)
    own = Ridge(alpha=0.3).fit(X, Y)
    audit = estimator_audit(own, X, Y)
    np.testing.assert_array_equal(model.leakage_, audit.advantage)
    np.testing.assert_array_equal(model.tpr_at_fpr_[0.001], audit.tpr_at_fpr[0.001])
    np.testing.assert_array_equal(model.predict(X), own.predict(X))
    assert model.score(X, Y) == own.score(X, Y)
    assert is_regressor(model)
    assert model.n_features_in_ == 10
    assert not hasattr(model, "predict_proba")
    assert clone(model).get_params()["estimator__alpha"] == 0.3
    assert model.to_frame()["record_id"].tolist() == list(model.ranking_)


def test_classes_frames_and_weights():
    frame = pd.DataFrame(XB[:, :5], columns=list("abcde"), index=[f"p{i}" for i in range(len(YB))])
    inner = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, tol=1e-8))
    model = AuditedEstimator(inner).fit(frame, np.where(YB == 1, "well", "sick"))
    assert is_classifier(model)
    assert model.classes_.tolist() == ["sick", "well"]
    assert model.predict_proba(frame).shape == (len(YB), 2)
    assert model.decision_function(frame).shape == (len(YB),)
    assert model.record_ids_[3] == "p3"
    assert model.feature_names_in_.tolist() == list("abcde")
    weights = np.linspace(0.5, 1.5, len(Y))
    weighted = AuditedEstimator(Ridge(alpha=0.3)).fit(X, Y, sample_weight=weights)
    own = estimator_audit(
        Ridge(alpha=0.3).fit(X, Y, sample_weight=weights), X, Y, sample_weight=weights
    )
    np.testing.assert_array_equal(weighted.leakage_, own.advantage)


def test_a_search_trades_score_against_leakage():
    search = GridSearchCV(
        AuditedEstimator(Ridge()),
        {"estimator__alpha": [0.01, 0.1, 1.0, 10.0]},
        scoring=score_and_leakage(),
        refit=best_within(0.45),
        cv=3,
    ).fit(X, Y)
    leakage = -search.cv_results_["mean_test_leakage"]
    allowed = leakage <= 0.45
    assert allowed.any()
    assert not allowed.all()
    best = np.argmax(np.where(allowed, search.cv_results_["mean_test_score"], -np.inf))
    assert search.best_index_ == best


def test_a_few_models_of_what_no_formula_follows():
    model = AuditedEstimator(RandomForestClassifier(3)).fit(XB, YB)
    assert model.leakage_.shape == YB.shape
    assert model.result_.details.models == 4
    assert model.predict(XB).shape == YB.shape
