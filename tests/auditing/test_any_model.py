"""One door: ``model=`` takes anything that can be trained, and the best method there is answers."""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OutputCodeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import leakscope
from leakscope import data, fitted
from leakscope.cli import main
from leakscope.errors import InputError
from leakscope.fitted.from_sklearn import no_laws
from leakscope.fitted.problem import NotOptimalError
from leakscope.recipes.recipe import recipe_of
from tests.audits import l1_logistic

X10, Y10 = load_diabetes(return_X_y=True)
XW, YW = load_wine(return_X_y=True)
XB, YB = load_breast_cancer(return_X_y=True)
XB = StandardScaler().fit_transform(XB)[::3]
YB = YB[::3]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


def quietly(X, y, **asked):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return leakscope.audit(X, y, **asked)


def test_what_is_not_fitted_is_fitted_and_has_the_laws_of_that_fit():
    own = quietly(X10, Y10, model=Ridge(alpha=0.1).fit(X10, Y10))
    for model in (Ridge(alpha=0.1), make_pipeline(Ridge(alpha=0.1))):
        found = quietly(X10, Y10, model=model)
        assert found.subject == "fit"
        assert "fitted on all records" in found.sentences[0]
        assert found.sentences[0].endswith("laws of one fit.")
        np.testing.assert_allclose(found.advantage, own.advantage, rtol=1e-9)
    # A class is made with its usual parameters, and a name is a model.
    assert quietly(X10, Y10, model=Ridge).model.name == "Ridge(alpha=1)"
    assert quietly(X10, Y10, model="linear").model.type == "LinearRegression"


def test_a_described_problem_has_the_same_report_and_can_be_verified():
    model = LogisticRegression(C=0.1, tol=1e-9).fit(XB, YB)
    problem = fitted.from_sklearn(model, XB, YB).problems[0]
    own, found = quietly(XB, YB, model=model), quietly(XB, YB, model=problem)
    np.testing.assert_allclose(found.advantage, own.advantage, rtol=1e-9)
    assert "as described by you" in found.sentences[0]
    rows = np.flatnonzero(np.random.default_rng(0).random(len(YB)) < 0.5)
    again = LogisticRegression(C=0.1, tol=1e-10).fit(XB[rows], YB[rows]).decision_function(XB)
    np.testing.assert_allclose(
        found.examined.whole.scores(rows), np.where(YB == 1, again, -again), atol=1e-5
    )
    with pytest.raises(InputError, match="of 190 records, and 100 were given"):
        leakscope.audit(XB[:100], YB[:100], model=problem)


@pytest.mark.parametrize(
    "model",
    [
        Ridge(positive=True),
        SGDClassifier(loss="log_loss"),
        l1_logistic(1.0, solver="saga"),
        SVC(),
        CalibratedClassifierCV(LogisticRegression()),
        GridSearchCV(RandomForestClassifier(), {"max_depth": [2]}),
    ],
)
def test_why_one_fit_is_not_enough_is_a_sentence_known_before_any_fit(model):
    assert no_laws(model).endswith(".")


@pytest.mark.parametrize(
    "model",
    [
        Ridge(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}),
        CalibratedClassifierCV(LogisticRegression(), ensemble=False),
    ],
)
def test_where_one_fit_is_enough_is_known_before_any_fit(model):
    assert no_laws(model) is None


def test_what_has_no_laws_of_one_fit_is_trained_again():
    forest = RandomForestClassifier(5, max_depth=3, random_state=0)
    asked = quietly(XW, YW, train=forest, models=2)
    found = quietly(XW, YW, model=forest, models=2)
    assert (found.subject, asked.subject) == ("training", "training")
    np.testing.assert_array_equal(found.advantage, asked.advantage)
    fitted_one = quietly(XW, YW, model=forest.fit(XW, YW), models=2)
    assert "2 models of halves, trained in 1 s" in fitted_one.sentences[0]
    assert "its recipe and not the model as you fitted it" in fitted_one.sentences[0]
    assert "its recipe" not in found.sentences[0]


def test_a_fit_that_has_not_converged_is_a_recipe_and_one_on_other_data_is_refused():
    early = LogisticRegression(max_iter=2)
    found = quietly(XB, YB, model=early, models=2)
    assert found.subject == "training"
    assert "solver stopped early" in found.warnings[0]
    with pytest.raises(InputError, match="are not the optimum on these records"):
        leakscope.audit(XB, YB, model=LogisticRegression().fit(XB[:90], YB[:90]))
    # Also where its gradient is as small as its loose tol asks.
    X, y = load_breast_cancer(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[:200], y[:200]
    loose = LogisticRegression(tol=0.01, C=0.1).fit(X[:150], y[:150])
    with pytest.raises(InputError, match="are not the optimum on these records"):
        leakscope.audit(X, y, model=loose, models=4)


@pytest.mark.filterwarnings("ignore")
def test_a_solver_that_stops_short_here_is_no_fit_of_other_data() -> None:
    """Its gradient is as small as its tol asks: it was refused as fitted on other data."""
    pixels, digit = load_digits(return_X_y=True)
    few = np.flatnonzero(digit < 4)[:120]
    X, y = pixels[few], digit[few]
    for model in (LogisticRegressionCV(), LogisticRegressionCV().fit(X, y)):
        found = leakscope.audit(X, y, model=model, models=4)
        assert "4 models of halves" in found.sentences[0]
        assert "solver stopped early" in found.warnings[0]
        assert not any("FutureWarning" in text for text in found.warnings)


def test_what_audit_fits_itself_is_of_no_other_data(monkeypatch):
    """Whatever its solver does, these were its records: models of halves answer."""

    def elsewhere(*given, **named):
        raise NotOptimalError("it was fitted on other data")

    monkeypatch.setattr(fitted, "from_sklearn", elsewhere)
    found = quietly(XB, YB, model=LogisticRegression(), models=2)
    assert "stopped short of the optimum" in found.warnings[0]
    with pytest.raises(InputError, match="fitted on other data"):
        leakscope.audit(XB, YB, model=LogisticRegression().fit(XB, YB))


def test_a_function_is_a_training():
    def train(X, y, seed):
        return GaussianNB().fit(X, y)

    found = quietly(XW, YW, model=train, models=2)
    assert "train, 2 models of halves" in found.sentences[0]
    with pytest.raises(InputError, match="give one model"):
        leakscope.audit(XW, YW, model=train, train=train)


class Centroids(BaseEstimator):
    """Predicts labels, and does not say which there are."""

    def fit(self, X, y):
        self.labels = np.unique(y)
        self.centres = [X[y == label].mean(axis=0) for label in self.labels]
        return self

    def predict(self, X):
        away = [((X - centre) ** 2).sum(axis=1) for centre in self.centres]
        return self.labels[np.argmin(away, axis=0)]


@pytest.mark.parametrize("names", [(0, 1), ("benign", "malignant")])
def test_an_estimator_need_not_keep_its_classes(names):
    found = quietly(XB, np.array(names)[YB], model=Centroids(), models=4)
    assert found.details.labels


def test_log_odds_of_one_s_own_models_are_not_taken_for_probabilities():
    """A classifier that knows little gives every record's label some 0.6."""
    middle = np.median(XB[:, 0])

    def train(X, y, seed):
        centre = X[:, 1].mean()

        def answer(asked):
            known = np.where(asked[:, 0] > middle, 0.62, 0.38)
            return known + 0.02 * np.tanh(asked[:, 1] - centre)

        return answer

    found = quietly(XB, (XB[:, 0] > middle).astype(int), model=train, models=4)
    assert found.units == len(YB)


def test_parameters_without_a_name_of_their_own_are_the_same_in_the_next_process():
    """Their text holds where they lie, and verify and advise took them for others."""
    told = []
    for _ in range(2):
        columns = make_column_transformer((StandardScaler(), make_column_selector()))
        model = make_pipeline(columns, FunctionTransformer(np.log1p), DecisionTreeClassifier())
        told.append(recipe_of(model, XB, YB, "classification").describe()["digest"])
    assert told[0] == told[1]


def test_options_of_a_training_are_not_needed_for_one_fit():
    with pytest.warns(UserWarning, match="models is not used: the laws of this model are known"):
        leakscope.audit(X10, Y10, model=Ridge(), models=8)


@pytest.mark.parametrize("model", [LinearSVC(), Perceptron(), RidgeClassifier()])
@pytest.mark.parametrize("classes", [2, 3])
def test_decision_values_are_scores(model, classes):
    kept = np.isin(YW, np.arange(classes))
    X, y = StandardScaler().fit_transform(XW[kept]), YW[kept]
    recipe, rows = recipe_of(model, X, y, "classification"), np.arange(len(y)) % 2 == 0
    scores, fit = recipe.scores(rows, 0), recipe.fit(rows, 0)
    values = fit.decision_function(X)
    values = np.column_stack([np.zeros(len(y)), values]) if classes == 2 else values
    # The other classes' values together, one record at a time.
    others = [np.log(np.exp(np.delete(row, k)).sum()) for row, k in zip(values, y, strict=True)]
    np.testing.assert_allclose(scores, values[np.arange(len(y)), y] - others, atol=1e-9)
    told = recipe.answers(rows, 0, X[:5])
    np.testing.assert_allclose(told.sum(axis=1), 1.0)


def test_labels_alone_are_examined_and_not_trusted():
    model = OutputCodeClassifier(LogisticRegression(), random_state=0)
    found = quietly(XW[:, :3], YW, model=model)
    assert found.unconfirmed == found.units
    assert found.details.labels


class FitOnly:
    """Not scikit-learn's."""

    def fit(self, X, y):
        return self


def test_what_cannot_be_trained_says_what_to_give():
    with pytest.raises(InputError, match=r"get_params.*train\(X, y, seed\)"):
        leakscope.audit(X10, Y10, model=FitOnly())


def table():
    rng = np.random.default_rng(5)
    found = pd.DataFrame(
        {"age": rng.normal(40.0, 12.0, 120), "region": rng.choice(["north", "south"], 120)}
    )
    found["sick"] = np.where(rng.logistic(size=120) < 0.05 * (found["age"] - 40.0), "yes", "no")
    found.to_csv("people.csv", index=False)
    return found


def test_the_command_line_takes_any_estimator_by_its_name(capsys):
    table()
    with open("own_models.py", "w", encoding="utf-8") as stream:
        stream.write(
            "from sklearn.compose import make_column_transformer\n"
            "from sklearn.linear_model import LogisticRegression\n"
            "from sklearn.pipeline import make_pipeline\n"
            "from sklearn.preprocessing import OneHotEncoder\n"
            "from sklearn.tree import DecisionTreeClassifier\n"
            "codes = make_column_transformer((OneHotEncoder(), ['region']),\n"
            "                                remainder='passthrough')\n"
            "logistic = make_pipeline(codes, LogisticRegression())\n"
            "tree = make_pipeline(codes, DecisionTreeClassifier(max_depth=2))\n"
        )
    asked = ["audit", "people.csv", "--target", "sick", "--model"]
    assert main([*asked, "own_models:logistic", "--run-dir", "one"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "fitted on all records; people, 120 records; laws of one fit" in out
    assert main([*asked, "own_models:tree", "--models", "2", "--run-dir", "few"]) == 0
    assert "2 models of halves, trained in 1 s" in " ".join(capsys.readouterr().out.split())
    # Both are opened again from their names.
    for run in ("one", "few"):
        assert main(["verify", run, "--models", "20", "--records", "1"]) in (0, 3, 4)
        capsys.readouterr()
    assert main([*asked, "own_models:nothing"]) == 2
    assert "own_models has no function nothing" in capsys.readouterr().err
    assert main([*asked, "ridge", "--models", "4"]) == 2
    assert "belongs to models of halves" in capsys.readouterr().err


def test_trees_in_a_file_are_a_recipe_and_the_file_is_not_said_to_be_examined(capsys):
    forest = RandomForestClassifier(3, max_depth=2, random_state=0).fit(XW, YW)
    skops.io.dump(forest, "forest.skops")
    asked = ["audit", "--example", "wine", "--model", "forest.skops", "--models", "2"]
    assert main([*asked, "--run-dir", "run"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "RandomForestClassifier(max_depth=2, n_estimators=3, random_state=0)" in out
    assert "its recipe and not forest.skops itself" in out
    with open("run/result.json", encoding="utf-8") as stream:
        told = json.load(stream)["model"]
    assert (told["file"], told["file_sha256"]) == ("forest.skops", None)
    assert main(["decide", "run", "--threshold-advantage", "0.9", "--json", "decision.json"]) in (
        0,
        3,
        4,
    )
    with open("decision.json", encoding="utf-8") as stream:
        assert "which was not examined" in stream.read()
    assert main(["verify", "run", "--models", "20", "--records", "1"]) in (0, 3, 4)
    skops.io.dump(forest.set_params(max_depth=3), "forest.skops")
    assert main(["verify", "run", "--models", "20"]) == 2
    assert "no longer what was audited" in capsys.readouterr().err


def test_a_dataset_and_a_frame_take_any_model():
    frame = table()
    codes = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    asked = {"target": "sick", "ignore": ["age"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        unfitted = leakscope.audit_frame(frame, model=codes, **asked)
        own = leakscope.audit_frame(
            frame, model=codes.fit(frame[["region"]], frame["sick"]), **asked
        )
    np.testing.assert_allclose(unfitted.advantage, own.advantage, rtol=1e-6)
    found = quietly(data.read_example("wine"), None, model=DecisionTreeClassifier(), models=2)
    assert found.subject == "training"


def test_a_model_that_takes_no_text_says_what_to_do():
    frame = pd.DataFrame({"age": np.arange(40.0), "sex": ["f", "m"] * 20})
    with pytest.raises(InputError, match="put an encoder before it, in a pipeline"):
        leakscope.audit(frame, np.arange(40) % 3 == 0, model=LogisticRegression())
