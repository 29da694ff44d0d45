"""The scorers, and searches that trade accuracy against leakage."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leakscope import kernels
from leakscope.errors import InputError
from leakscope.estimators import (
    AuditedClassifier,
    AuditedRegressor,
    best_within,
    leakage_scorer,
    score_and_leakage,
)


def diabetes(n: int = 150):
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X)[:n], (y[:n] - y[:n].mean()) / y[:n].std()


@pytest.mark.parametrize(
    ("reduce", "expected"),
    [
        ("max", np.max),
        ("median", np.median),
        ("mean", np.mean),
        (0.9, lambda v: np.quantile(v, 0.9)),
        (1, np.max),
    ],
)
@pytest.mark.parametrize(
    ("measure", "attribute"), [("advantage", "leakage_"), ("auc", "auc_"), ("kl", "kl_")]
)
def test_scorer_is_minus_the_reduced_measure(reduce, expected, measure, attribute) -> None:
    X, y = diabetes()
    model = AuditedRegressor().fit(X, y)
    found = leakage_scorer(measure, reduce)(model, X, y)
    assert found == pytest.approx(-expected(getattr(model, attribute)))


def test_scorers_find_the_model_in_pipelines_and_searches() -> None:
    X, y = diabetes()
    model = AuditedRegressor(noise_variance=0.5)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    search = GridSearchCV(pipeline, {"auditedregressor__noise_variance": [0.5]}, cv=2).fit(X, y)
    direct = leakage_scorer()(pipeline[-1])
    assert leakage_scorer()(pipeline, X, y) == direct == leakage_scorer()(search, X, y)
    with pytest.raises(InputError, match="a Ridge stores no leakage_"):
        leakage_scorer()(make_pipeline(Ridge()).fit(X, y), X, y)


def test_what_cannot_be_told_is_nan_and_never_within_a_limit() -> None:
    X, y = diabetes()
    model = AuditedRegressor().fit(X, y)
    model.confirmed_ = np.zeros(len(X), dtype=bool)
    assert np.isnan(leakage_scorer()(model))
    results = {"mean_test_score": [0.9, 0.5], "split0_test_leakage": [np.nan, -0.1]}
    assert best_within(0.3)(results) == 1


def test_search_trades_accuracy_against_leakage() -> None:
    X, y = diabetes()
    grid = {"noise_variance": [0.05, 0.5, 5.0], "kernel": [kernels.rbf(2.0), kernels.rbf(6.0)]}
    searches = {
        limit: GridSearchCV(
            AuditedRegressor(),
            grid,
            scoring=score_and_leakage(),
            refit=best_within(limit),
            cv=3,
        ).fit(X, y)
        for limit in (1.0, 0.5, 0.25)
    }
    scores = []
    for limit, search in searches.items():
        chosen = search.best_index_
        folds = [-search.cv_results_[f"split{i}_test_leakage"][chosen] for i in range(3)]
        assert max(folds) <= limit
        assert search.best_estimator_.leakage_.max() <= limit
        scores.append(search.cv_results_["mean_test_score"][chosen])
        # Nothing that keeps the limit scores better: gone through one by one.
        for place, params in enumerate(search.cv_results_["params"]):
            worst = max(-search.cv_results_[f"split{i}_test_leakage"][place] for i in range(3))
            if worst <= limit:
                assert search.cv_results_["mean_test_score"][place] <= scores[-1], params
    assert scores == sorted(scores, reverse=True)
    with pytest.raises(
        InputError, match=r"no candidate keeps its leakage within 0.001 \(the least"
    ):
        best_within(0.001)(searches[1.0].cv_results_)


def test_classifier_in_cross_validation() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:200], y[:200]
    pipeline = make_pipeline(StandardScaler(), AuditedClassifier(noise_variance=0.1))
    found = cross_validate(pipeline, X, y, scoring=score_and_leakage(reduce=0.95), cv=3)
    assert found["test_score"].min() > 0.8
    assert ((found["test_leakage"] < 0.0) & (found["test_leakage"] > -1.0)).all()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: leakage_scorer("epsilon"), "measure must be one of advantage, auc, kl"),
        (lambda: leakage_scorer(reduce="least"), "reduce must be max, median, mean or a quantile"),
        (lambda: leakage_scorer(reduce=1.5), "reduce must be"),
        (lambda: best_within(0.3)({"mean_test_score": [1.0]}), "scoring=score_and_leakage"),
    ],
)
def test_wrong_scorers_are_one_sentence(call, sentence) -> None:
    with pytest.raises(InputError, match=sentence):
        call()
