"""What is observed, what is asked, and what the laws say of themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from small_data import checked_laws, regression, several_classes, two_classes

from leakscope import fitted, measures
from leakscope.errors import InputError
from leakscope.fitted.problem import NoLawsError
from leakscope.fitted.refits import answers_of
from leakscope.single_fit import score_moments, shares, solve_cavity
from leakscope.trust import LEAST_EFFECTIVE


def test_the_observed_nest() -> None:
    """All probabilities tell at least as much as the log-odds, and these more than the label."""
    X, y = several_classes()
    model = LogisticRegression().fit(X, y)
    told = {
        name: measures.advantage(fitted.laws_of(model, X, y, observes=name).law_pair())
        for name in ("probabilities", "log_odds", "label")
    }
    assert told["probabilities"].mean() > told["log_odds"].mean() > told["label"].mean()
    assert np.all(told["label"] < told["probabilities"] + 0.02)


def test_label_only_by_hand() -> None:
    X, y = two_classes()
    model = LogisticRegression().fit(X, y)
    laws = fitted.laws_of(model, X, y, observes="label")
    inside = stats.norm.sf(0.0, laws.member_mean, laws.member_sd)
    outside = stats.norm.sf(0.0, laws.nonmember_mean, laws.nonmember_sd)
    np.testing.assert_allclose(
        measures.advantage(laws.law_pair()), np.abs(inside - outside), rtol=1e-12, atol=1e-15
    )


def test_residual_and_prediction_tell_the_same() -> None:
    X, y = regression()
    model = Ridge().fit(X, y)
    pairs = [fitted.laws_of(model, X, y, observes=o).law_pair() for o in ("residual", "prediction")]
    np.testing.assert_allclose(
        measures.advantage(pairs[0]), measures.advantage(pairs[1]), rtol=1e-7
    )
    assert pairs[0].provenance.observes == "residual"
    assert pairs[0].provenance.question == "pool"
    assert pairs[0].provenance.attacker_knows_label


def test_noise_on_answers_hides() -> None:
    X, y = regression()
    laws = fitted.laws_of(Ridge().fit(X, y), X, y)
    plain, noised = (measures.advantage(laws.law_pair(answer_noise=sd)).mean() for sd in (0.0, 1.0))
    assert noised < 0.8 * plain
    with pytest.raises(InputError, match="zero or above"):
        laws.law_pair(answer_noise=-1.0)


def test_a_law_that_refits_contradict_is_not_confirmed() -> None:
    """Classes that are separable, with hardly a penalty: scores are far from normal."""
    X, y = two_classes(120, 30)
    model = LogisticRegression(C=1e4, solver="newton-cholesky", max_iter=1000, tol=1e-8).fit(X, y)
    laws = checked_laws(model, X, y)
    assert laws.confirmed.mean() < 0.5
    assert laws.warnings


def test_rare_categories_are_lumpy() -> None:
    generator = np.random.default_rng(1)
    X = np.column_stack([generator.normal(size=(200, 2)), np.repeat(np.eye(2), [2, 198], axis=0)])
    y = generator.normal(size=200)
    laws = checked_laws(Ridge(alpha=0.1).fit(X, y), X, y)
    assert laws.shares.largest[:2].min() > 0.5
    assert not laws.confirmed[:2].any()
    assert laws.confirmed[10:].mean() > 0.8


def rare(records: int, categories: int, each: int, seed: int = 0) -> tuple[Any, Any]:
    """Dummy columns of few records each, which come first, and three columns of noise."""
    generator = np.random.default_rng(seed)
    few = np.zeros((records, categories))
    few[np.arange(categories * each), np.repeat(np.arange(categories), each)] = 1.0
    X = np.hstack([few, generator.normal(size=(records, 3))])
    return X, generator.normal(size=records)


def test_a_few_that_carry_most_of_the_variance_are_as_bad_as_one() -> None:
    """Categories of four with labels 1, 1, -1, -1: a fifth of the TPR at 0.1% FPR was said."""
    X, y = rare(200, 10, 4)
    y[:40] = np.tile([1.0, 1.0, -1.0, -1.0], 10)
    laws = checked_laws(Ridge(1.0).fit(X, y), X, y)
    assert np.median(laws.shares.largest[:40]) < 0.4
    assert laws.confirmed[:40].mean() < 0.1
    assert laws.confirmed[40:].mean() > 0.85


def test_shares_are_those_of_the_formula() -> None:
    X, y = rare(60, 5, 3)
    problem = fitted.from_sklearn(Ridge(1.0).fit(X, y), X, y).problems[0]
    found = solve_cavity(problem, 0.5)
    state, slack = found.states[0], found.slack[0][:, 0, 0]
    t = state.source(0.5, fresh=False)[:, 0, 0]
    design = np.column_stack([X, np.ones(60)])
    G = design @ found.response.inverse @ design.T
    parts = G**2 * t / slack**2
    np.fill_diagonal(parts, 0.0)
    share = parts / parts.sum(axis=1, keepdims=True)
    counted = score_moments(problem).shares
    np.testing.assert_allclose(counted.largest, share.max(axis=1), rtol=1e-3)
    np.testing.assert_allclose(counted.squares, (share**2).sum(axis=1), rtol=1e-3)
    heavy = np.where(share > 0.05, share, 0.0).sum(axis=1)
    np.testing.assert_allclose(counted.heavy, heavy, atol=1e-3)


@pytest.mark.parametrize("classes", [1, 3])
def test_bounds_settle_those_that_are_not_looked_at(
    classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rare categories are found among many, and the rest have many effective others."""
    X, y = rare(600, 8, 2)
    model: Any = Ridge(1.0)
    if classes > 1:
        y = np.random.default_rng(3).integers(0, classes, 600)
        model = LogisticRegression(C=100.0, solver="newton-cholesky")
    described = fitted.from_sklearn(model.fit(X, y), X, y)
    whole = fitted.laws_of(described).shares
    outputs = 1 if classes == 1 else classes - 1
    monkeypatch.setattr(shares, "MOST_ENTRIES", 600.0 * 120 * outputs)
    monkeypatch.setattr(shares, "ROWS_PER_COEFFICIENT", 0)
    bounded = fitted.laws_of(described).shares
    for name in ("largest", "squares", "heavy"):
        assert np.all(getattr(bounded, name) >= 0.999 * getattr(whole, name) - 1e-6), name
    assert np.all(bounded.effective[:16] < LEAST_EFFECTIVE)
    assert np.mean(bounded.effective >= LEAST_EFFECTIVE) > 0.9


def test_spreads_that_follow_the_size_of_the_training_set_are_not_confirmed() -> None:
    generator = np.random.default_rng(0)
    near, y = generator.normal(size=(100, 46)), generator.normal(size=100)
    with pytest.raises(NoLawsError, match="more than half"):
        checked_laws(LinearRegression().fit(near, y), near, y)
    few = near[:, :20]
    assert checked_laws(LinearRegression().fit(few, y), few, y).confirmed.mean() > 0.7


def test_rounding_is_not_taken_for_leakage() -> None:
    X = np.random.default_rng(0).normal(size=(150, 5))
    exact = X @ np.arange(1.0, 6.0)
    laws = checked_laws(LinearRegression().fit(X, exact), X, exact)
    assert not laws.confirmed.any()
    noisy = exact + 1e-7 * np.random.default_rng(1).normal(size=150)
    assert checked_laws(LinearRegression().fit(X, noisy), X, noisy).confirmed.mean() > 0.8


def test_a_subclass_that_answers_otherwise_than_its_coefficients_is_not_confirmed() -> None:
    class Doubled(Ridge):  # type: ignore[misc]
        def predict(self, X: Any) -> Any:
            return 2.0 * super().predict(X)

    X, y = regression()
    laws = checked_laws(Doubled().fit(X, y), X, y)
    assert laws.check is not None
    assert not laws.check.law_holds
    assert not laws.confirmed.any()


def test_a_described_problem_needs_no_estimator() -> None:
    X, y = regression()
    problem = fitted.ConvexProblem(
        y=y, loss="square", X=np.column_stack([X, np.ones(len(y))]), penalty=np.r_[np.ones(12), 0.0]
    )
    own = fitted.laws_of(problem)
    through = fitted.laws_of(Ridge(alpha=1.0).fit(X, y), X, y)
    np.testing.assert_allclose(own.shift, through.shift, rtol=1e-4)
    with pytest.raises(InputError, match="leave out X and y"):
        fitted.laws_of(problem, X, y)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"weights": np.ones(3)}, "3 sample weights for 120"),
        ({"penalty": np.full(12, -1.0)}, "penalties must be zero or above"),
        ({"X": None}, "a design X or by a kernel"),
        ({"loss": "logistic"}, "must be 0 or 1"),
        ({"loss": "poisson"}, "zero or above, but row"),
    ],
)
def test_bad_problems(change: dict[str, object], match: str) -> None:
    X, y = regression()
    given = {"y": y, "loss": "square", "X": X, "penalty": np.ones(12), **change}
    with pytest.raises(InputError, match=match):
        fitted.ConvexProblem(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("classes", [2, 3])
def test_laws_over_a_fresh_population_of_full_size(classes):
    # 200 logistic regressions on fresh records of the same law.
    rng = np.random.default_rng(12)
    centres = rng.normal(size=(classes, 4))

    def fresh(count):
        y = rng.integers(0, classes, count)
        return centres[y] + rng.normal(size=(count, 4)), y

    X, y = fresh(250)
    make = LogisticRegression(C=0.5, tol=1e-8, max_iter=1000)
    laws = checked_laws(clone(make).fit(X, y), X, y, question="population")
    assert laws.fraction == 1.0
    assert laws.converged
    assert laws.confirmed.mean() > 0.8
    scores = []
    for _ in range(200):
        Z, labels = fresh(250)
        scores.append(answers_of(clone(make).fit(Z, labels), X, y))
    ratio = laws.nonmember_sd / np.std(scores, axis=0, ddof=1)
    # one fit of 250 records is itself a draw of its population
    assert abs(np.median(ratio) - 1.0) < 0.12


def test_a_population_of_full_size_settles_for_counts():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 4))
    y = rng.poisson(np.exp(0.5 * X[:, 0]))
    model = PoissonRegressor(alpha=0.1, tol=1e-8).fit(X, y)
    found = fitted.laws_of(model, X, y, question="population")
    assert found.converged
    assert found.rounds < 10
