"""Known others with noise, and posterior draws, against refits and simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from small_data import refit_without, regression, several_classes, two_classes

from leakscope import fitted, measures
from leakscope.errors import InputError
from leakscope.fitted.shadow import ShadowScores

NEWTON = {"solver": "newton-cholesky", "tol": 1e-13, "max_iter": 500}


@pytest.mark.parametrize(
    ("estimator", "data"),
    [
        pytest.param(Ridge(alpha=2.0), regression(60), id="ridge"),
        pytest.param(LogisticRegression(**NEWTON), two_classes(80), id="logistic"),
        pytest.param(LogisticRegression(**NEWTON), several_classes(60, 4), id="softmax"),
        pytest.param(RidgeClassifier(alpha=2.0), several_classes(60, 4), id="ridge classifier"),
    ],
)
def test_coefficients_with_noise_equal_refits(estimator: Any, data: Any) -> None:
    X, y = data
    laws = fitted.laws_of(estimator.fit(X, y), X, y, question="known_others")
    pair = laws.law_pair(coefficient_noise=0.05)
    assert pair.provenance.observes == "coefficients"
    told = measures.advantage(pair)
    for record in range(0, len(y), 7):
        again = refit_without(estimator, X, y, record)
        both = [np.r_[np.ravel(m.coef_), np.ravel(m.intercept_)] for m in (estimator, again)]
        distance = np.linalg.norm(both[0] - both[1]) / 0.05
        assert told[record] == pytest.approx(2 * stats.norm.cdf(distance / 2) - 1, abs=1e-5)


def test_a_posterior_draw_of_ridge_has_the_exact_law() -> None:
    X, y = regression(60)
    model = Ridge(alpha=2.0, fit_intercept=False).fit(X, y)
    laws = fitted.laws_of(model, X, y, question="known_others")
    pair = laws.law_pair(posterior_variance=0.7)
    for record in range(0, 60, 7):
        rest = np.arange(60) != record
        for rows, law in ((slice(None), pair.member), (rest, pair.nonmember)):
            covariance = 0.7 * np.linalg.inv(X[rows].T @ X[rows] + 2.0 * np.eye(X.shape[1]))
            mean = covariance / 0.7 @ X[rows].T @ y[rows]
            assert law.mean[record] == pytest.approx(X[record] @ mean, rel=1e-8)
            spread = np.sqrt(X[record] @ covariance @ X[record])
            assert law.sigma[record] == pytest.approx(spread, rel=1e-8)


def test_a_posterior_draw_over_the_pool() -> None:
    """Training sets are halves, and the coefficients one draw of each posterior: simulated."""
    X, y = two_classes(150, 6)
    model = LogisticRegression(fit_intercept=False, **NEWTON).fit(X, y)
    laws = fitted.laws_of(model, X, y)
    pair = laws.law_pair(posterior_variance=1.0)
    generator = np.random.default_rng(0)
    inside = generator.random((400, 150)) < 0.5
    scores = np.empty(inside.shape)
    sign = 2.0 * y - 1.0
    for chosen, row in zip(inside, scores, strict=True):
        fit = LogisticRegression(fit_intercept=False, **NEWTON).fit(X[chosen], y[chosen])
        p = fit.predict_proba(X[chosen])[:, 1]
        hessian = (X[chosen] * (p * (1 - p))[:, None]).T @ X[chosen] + np.eye(6)
        drawn = generator.multivariate_normal(fit.coef_[0], np.linalg.inv(hessian))
        row[:] = sign * (X @ drawn)
    mean_in, sd_in, mean_out, sd_out = ShadowScores(scores, inside).moments()
    # the records share six coefficients: their mean error is one of some six draws, 1 / sqrt(2 400)
    assert abs(np.median(pair.nonmember.sigma / sd_out) - 1.0) < 4 * 0.025
    assert abs(np.median(pair.member.sigma / sd_in) - 1.0) < 4 * 0.025
    error = np.sqrt(sd_in**2 / inside.sum(0) + sd_out**2 / (~inside).sum(0))
    z = ((pair.member.mean - pair.nonmember.mean) - (mean_in - mean_out)) / error
    assert np.sqrt(np.mean(z**2)) < 1.3
    plain = measures.advantage(laws.law_pair())
    assert np.all(measures.advantage(pair) < plain)


def test_what_has_no_law_is_refused() -> None:
    X, y = regression(60)
    known = fitted.laws_of(Ridge().fit(X, y), X, y, question="known_others")
    pool = fitted.laws_of(Ridge().fit(X, y), X, y)
    kernel = KernelRidge(alpha=0.5, kernel="rbf", gamma=0.02).fit(X, y)
    functions = fitted.laws_of(kernel, X, y, question="known_others")
    assert np.all(functions.law_pair(posterior_variance=0.5).member.sigma > 0.0)
    with pytest.raises(InputError, match="certainty"):
        known.law_pair()
    with pytest.raises(InputError, match="ask for known_others"):
        pool.law_pair(coefficient_noise=1.0)
    with pytest.raises(InputError, match="models with coefficients"):
        functions.law_pair(coefficient_noise=1.0)
    with pytest.raises(InputError, match="one of them"):
        known.law_pair(coefficient_noise=1.0, answer_noise=1.0)
    with pytest.raises(InputError, match="posterior_variance must be zero or above"):
        known.law_pair(posterior_variance=-1.0)
    classes, labels = several_classes(60, 4)
    several = fitted.laws_of(LogisticRegression().fit(classes, labels), classes, labels)
    with pytest.raises(InputError, match="one output"):
        several.law_pair(posterior_variance=1.0)
