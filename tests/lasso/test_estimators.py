"""The estimators: scikit-learn's contract, the noise they add and never show."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.linear_model import Lasso
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from leakscope.errors import InputError
from leakscope.lasso.estimators import ObjectivePerturbedLasso, OutputPerturbedLasso
from leakscope.lasso.solver import kkt_violation, solve_lasso

BOTH = [ObjectivePerturbedLasso, OutputPerturbedLasso]


def data(n: int = 80, p: int = 40, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    beta = np.where(np.arange(p) < 5, 2.0, 0.0)
    return X, X @ beta + 0.5 * rng.standard_normal(n)


@pytest.mark.parametrize("kind", BOTH)
def test_scikit_learn_accepts_it(kind: type) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        check_estimator(kind(lam=0.1, sigma_eta=1e-3))


@pytest.mark.parametrize("kind", BOTH)
def test_without_noise_it_is_scikit_learn_at_alpha_lam_over_n(kind: type) -> None:
    X, y = data()
    for intercept in (False, True):
        ours = kind(lam=8.0, sigma_eta=0.0, fit_intercept=intercept).fit(X, y + 3.0)
        theirs = Lasso(alpha=8.0 / 80, fit_intercept=intercept, tol=1e-12).fit(X, y + 3.0)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
        assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-6)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-5)


def test_objective_noise_is_the_linear_term() -> None:
    X, y = data()
    model = ObjectivePerturbedLasso(5.0, 2.0, keep_noise=True, random_state=3).fit(X, y)
    assert kkt_violation(X, y, 5.0, model.coef_, model.noise_) < 1e-8
    assert model.noise_.std() == pytest.approx(2.0, rel=0.4)
    assert np.count_nonzero(model.coef_) < 40


def test_output_noise_is_added_to_the_plain_lasso() -> None:
    X, y = data()
    model = OutputPerturbedLasso(5.0, 0.3, keep_noise=True, random_state=3).fit(X, y)
    np.testing.assert_allclose(model.coef_ - model.noise_, solve_lasso(X, y, 5.0).coef, atol=1e-12)


@pytest.mark.parametrize("kind", BOTH)
def test_the_noise_is_nowhere_on_a_fitted_estimator(kind: type) -> None:
    X, y = data()
    shown = kind(5.0, 0.3, keep_noise=True, random_state=3).fit(X, y)
    hidden = kind(5.0, 0.3, random_state=3).fit(X, y)
    np.testing.assert_array_equal(shown.coef_, hidden.coef_)
    assert not hasattr(hidden, "noise_")
    assert shown.noise_.tobytes() in pickle.dumps(shown)
    assert shown.noise_.tobytes() not in pickle.dumps(hidden)
    arrays = [v for v in vars(hidden).values() if isinstance(v, np.ndarray)]
    assert len(arrays) == 1  # coef_
    shown.set_params(keep_noise=False).fit(X, y)
    assert not hasattr(shown, "noise_")


@pytest.mark.parametrize("kind", BOTH)
def test_without_a_seed_every_fit_draws_afresh(kind: type) -> None:
    X, y = data()
    one, two = kind(5.0, 0.3).fit(X, y), kind(5.0, 0.3).fit(X, y)
    assert not np.array_equal(one.coef_, two.coef_)
    first, again = (kind(5.0, 0.3, random_state=9).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, again.coef_)


@pytest.mark.parametrize("kind", BOTH)
def test_clone_grid_search_and_pipelines(kind: type) -> None:
    X, y = data()
    model = kind(sigma_eta=0.1, random_state=0)
    assert clone(model).get_params() == model.get_params()
    found = GridSearchCV(model, {"lam": [1.0, 10.0, 1000.0]}, cv=4).fit(X, y)
    assert found.best_params_["lam"] < 1000.0
    assert make_pipeline(StandardScaler(), clone(model)).fit(X, y).score(X, y) > 0.8
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_beyond_the_edge_fit_says_what_to_change() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 80)), rng.standard_normal(40)
    with pytest.raises(InputError, match="raise lam"):
        ObjectivePerturbedLasso(0.1, 5.0, random_state=0).fit(X, y)
    ObjectivePerturbedLasso(0.1, 5.0, l2=1.0, random_state=0).fit(X, y)


@pytest.mark.parametrize("change", [{"sigma_eta": -1.0}, {"lam": 0.0}])
def test_bad_settings_are_named(change: dict) -> None:
    with pytest.raises(InputError, match=next(iter(change))):
        OutputPerturbedLasso(**change).fit(*data())
