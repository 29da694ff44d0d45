"""What is audited is what the user's own model answers: its trees, its methods, and each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import (
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import leakscope
from leakscope import InputError
from leakscope.recipes.saved import as_saved

RNG = np.random.default_rng(11)
X = RNG.normal(size=(90, 4))
SIGNAL = X @ np.array([1.0, -0.7, 0.4, 0.0]) + RNG.normal(size=90)
LABELS = (SIGNAL > 0.2).astype(int)
COUNTS = RNG.poisson(np.exp(0.3 * SIGNAL)).astype(float)

pytestmark = pytest.mark.filterwarnings("ignore")


# A booster that stopped early.


def stopped(kind: str, **more: Any) -> tuple[Any, int]:
    """A booster that stopped early by other records, and how many trees it kept."""
    extra = RNG.normal(size=(60, 4))
    beside = [(extra, (extra[:, 0] + RNG.normal(size=60) > 0.0).astype(int))]
    if kind == "lightgbm":
        lightgbm = pytest.importorskip("lightgbm")
        model = lightgbm.LGBMClassifier(verbose=-1, n_jobs=1, min_child_samples=5, **more)
        model.fit(X, LABELS, eval_set=beside, callbacks=[lightgbm.early_stopping(4, verbose=False)])
        return model, model.booster_.best_iteration
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(early_stopping_rounds=4, n_jobs=1, **more)
    model.fit(X, LABELS, eval_set=beside, verbose=False)
    return model, model.get_booster().best_iteration + 1


@pytest.mark.parametrize(
    ("kind", "name"),
    [("lightgbm", "n_estimators"), ("lightgbm", "num_trees"), ("xgboost", "n_estimators")],
)
def test_a_booster_is_audited_with_the_trees_that_it_kept(kind: str, name: str) -> None:
    model, kept = stopped(kind, **{name: 120})
    assert kept < 100
    audit = leakscope.audit(X, LABELS, model=model, models=8)
    plain = type(model)(**{**model.get_params(), name: kept, "early_stopping_rounds": None})
    expected = leakscope.audit(X, LABELS, model=plain, models=8)
    whole = leakscope.audit(X, LABELS, model=plain.set_params(**{name: 120}), models=8)
    assert audit.advantage == pytest.approx(expected.advantage, abs=1e-12)
    assert np.abs(audit.advantage - whole.advantage).max() > 0.05
    assert any(f"{name}={kept}" in text for text in audit.warnings)


def test_the_trees_in_a_pipeline_are_kept_and_those_in_a_search_are_refused() -> None:
    model, kept = stopped("lightgbm", n_estimators=120)
    pipeline = Pipeline([("scale", StandardScaler().fit(X)), ("trees", model)])
    assert as_saved(pipeline)[0].get_params()["trees__n_estimators"] == kept
    search = GridSearchCV(model, {"num_leaves": [3, 5]}, cv=2)
    search.fit(X, LABELS)
    # The search fitted copies, which had nothing to stop by.
    assert as_saved(search)[1] == ()
    search.best_estimator_ = model
    with pytest.raises(InputError, match="stopped early"):
        leakscope.audit(X, LABELS, model=search, models=4)


def test_early_stopping_by_a_split_of_its_own_stays() -> None:
    own = GradientBoostingClassifier(n_estimators=80, n_iter_no_change=2).fit(X, LABELS)
    assert own.n_estimators_ < 80
    assert as_saved(own)[0].get_params() == own.get_params()
    watched = GradientBoostingClassifier(n_estimators=80)
    watched.fit(X, LABELS, monitor=lambda number, *_: number == 6)
    assert as_saved(watched)[0].n_estimators == 7
    # Scikit-learn stops by itself from 10,001 records on, and not in their halves.
    many = RNG.normal(size=(10_001, 1))
    large = HistGradientBoostingRegressor(max_iter=3).fit(many, many[:, 0])
    assert as_saved(large)[0].early_stopping is True
    assert as_saved(HistGradientBoostingRegressor().fit(X, SIGNAL))[0].early_stopping == "auto"


class Renamed(RegressorMixin, BaseEstimator):
    """As CatBoost with cat_features: its constructor changes what it is given."""

    def __init__(self, columns: Any = ()) -> None:
        self.columns = list(columns)

    def fit(self, X: Any, y: Any) -> Any:
        return self

    def predict(self, X: Any) -> Any:
        return X[:, 0]


def test_what_cannot_be_copied_gets_one_sentence() -> None:
    with pytest.raises(InputError, match=r"Renamed .* give a function train\(X, y, seed\)"):
        leakscope.audit(X, SIGNAL, model=Renamed(columns=(0, 1)))


def test_an_early_stopping_that_has_no_records_is_refused_in_few_words() -> None:
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(early_stopping_rounds=4, reg_lambda=2.5, max_depth=3)
    with pytest.raises(InputError, match="early_stopping_rounds=4") as refusal:
        leakscope.audit(X, LABELS, model=model, models=4)
    assert "reg_lambda=2.5" in str(refusal.value)
    assert "None" not in str(refusal.value)


# Answers, and not coefficients.


class Seen:
    """Knows the rows that it was fitted on."""

    def fit(self, X: Any, y: Any, **more: Any) -> Any:
        super().fit(X, y, **more)  # type: ignore[misc]
        self.rows_ = {row.tobytes(): value for row, value in zip(np.asarray(X), y, strict=True)}
        return self

    def seen(self, X: Any) -> Any:
        return np.array([row.tobytes() in self.rows_ for row in np.asarray(X)])


class LookedUp(Seen, Ridge):
    def predict(self, X: Any) -> Any:
        usual = super().predict(X)
        pairs = zip(np.asarray(X), usual, strict=True)
        return np.array([self.rows_.get(row.tobytes(), value) for row, value in pairs])


class UnsureOfStrangers(Seen, LogisticRegression):
    def decision_function(self, X: Any) -> Any:
        return super().decision_function(X) * np.where(self.seen(X), 1.0, 0.3)


class Whole(PoissonRegressor):
    def predict(self, X: Any) -> Any:
        return np.rint(super().predict(X))


class Inside(Ridge):
    """Changes what ``predict`` is made of."""

    def _decision_function(self, X: Any) -> Any:
        return np.tanh(super()._decision_function(X))


class Floored(Pipeline):
    def predict(self, X: Any) -> Any:
        return np.maximum(super().predict(X), 0.0)


class Halved(GridSearchCV):
    def decision_function(self, X: Any) -> Any:
        return 0.5 * super().decision_function(X)


OTHERWISE: list[tuple[Any, Any]] = [
    (LookedUp(), SIGNAL),
    (UnsureOfStrangers(), LABELS),
    (Whole(), COUNTS),
    (Inside(), SIGNAL),
    (Floored([("parts", PCA(3)), ("last", Ridge())]), SIGNAL),
    (Halved(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3), LABELS),
]


@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize(
    ("model", "y"), OTHERWISE, ids=[type(model).__name__ for model, _ in OTHERWISE]
)
def test_answers_that_are_not_those_of_the_coefficients_go_to_halves(
    model: Any, y: Any, fitted: bool
) -> None:
    audit = leakscope.audit(X, y, model=model.fit(X, y) if fitted else model, models=4)
    assert audit.subject == "training"


def test_a_model_that_looks_its_rows_up_is_counted_as_it_answers() -> None:
    plain = leakscope.audit(X, SIGNAL, model=Ridge())
    audit = leakscope.audit(X, SIGNAL, model=LookedUp(), models=64)
    assert plain.advantage.mean() < 0.4
    assert audit.advantage.mean() > 0.9


class Chatty(Ridge):
    """Overrides, and answers alike."""

    def predict(self, X: Any) -> Any:
        return np.asarray(super().predict(X), dtype=np.float64)


def test_a_subclass_that_answers_alike_keeps_its_laws() -> None:
    plain, same = (leakscope.audit(X, SIGNAL, model=kind(0.1)) for kind in (Ridge, Chatty))
    assert same.subject == "fit"
    assert np.array_equal(plain.advantage, same.advantage)


def test_a_method_that_was_put_on_one_object_is_refused() -> None:
    model = Ridge().fit(X, SIGNAL)
    model.predict = lambda rows: np.rint(rows @ model.coef_)
    with pytest.raises(InputError, match="predict of this Ridge"):
        leakscope.audit(X, SIGNAL, model=model, models=4)


# Asked twice.


def noisy(X: Any, y: Any, seed: int) -> Any:
    """Left in training mode."""
    rng, model = np.random.default_rng(seed), Ridge().fit(X, y)
    return lambda rows: model.predict(rows) + rng.normal(0.0, 0.05, len(rows))


def by_batch(X: Any, y: Any, seed: int) -> Any:
    """Scales by the records that it is asked about."""
    model = Ridge().fit(X, y)
    return lambda rows: model.predict((rows - rows.mean(0)) / rows.std(0))


def by_order(X: Any, y: Any, seed: int) -> Any:
    """Draws the same noise each time, so that it follows the place of a record."""
    model = Ridge().fit(X, y)
    return lambda rows: model.predict(rows) + np.random.default_rng(0).normal(size=len(rows))


RANDOM_STEP = FunctionTransformer(lambda X: X + 0.2 * np.random.default_rng().normal(size=X.shape))


@pytest.mark.parametrize(
    ("how", "y"),
    [
        ({"train": noisy, "task": "regression"}, SIGNAL),
        ({"train": by_batch, "task": "regression"}, SIGNAL),
        ({"train": by_order, "task": "regression"}, SIGNAL),
        ({"model": make_pipeline(RANDOM_STEP, GaussianNB())}, LABELS),
        ({"model": make_pipeline(RANDOM_STEP, Ridge())}, SIGNAL),
    ],
)
def test_a_model_that_answers_otherwise_when_asked_again_is_not_trusted(how: Any, y: Any) -> None:
    audit = leakscope.audit(X, y, models=64, **how)
    assert audit.details.unsteady == 64
    assert not audit.confirmed.any()
    assert not audit.known.any()
    assert any("again" in text for text in audit.warnings)
    with pytest.raises(InputError, match="again"):
        leakscope.verify(audit, models=20)


def test_a_model_that_repeats_its_answers_is_trusted_as_before() -> None:
    def steady(X: Any, y: Any, seed: int) -> Any:
        return Ridge().fit(X, y).predict

    audit = leakscope.audit(X, SIGNAL, train=steady, task="regression", models=256)
    assert audit.details.unsteady is None
    assert audit.confirmed.any()
