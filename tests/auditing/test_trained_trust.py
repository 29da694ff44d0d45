"""Which numbers of a training are confirmed, and what is said of the others."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from small_training import Q, X, Y, train

import leakscope
from leakscope import InputError, measures
from leakscope.auditing.gate import gate_failures, judged
from leakscope.results.reader import read_run
from tests.audits import trained_audit


def hard(features: np.ndarray, targets: np.ndarray, seed: int) -> Any:
    return LogisticRegression(C=seed % 7 + 1.0).fit(features, targets).predict


@pytest.mark.parametrize(
    ("training", "target"),
    [
        (KNeighborsClassifier(5), Y),
        (DecisionTreeClassifier(), Y),
        (DecisionTreeClassifier(max_depth=3), Y),
        (DecisionTreeRegressor(), Q),
        (hard, Y),
    ],
)
@pytest.mark.parametrize("models", [4, 16])
def test_answers_of_few_values_are_counted(training: Any, target: Any, models: int) -> None:
    found = trained_audit(X, target, training, models=models)
    assert not found.confirmed.all()
    assert found.known.all()
    assert found.details.repeating == len(X)
    assert found.doubt in " ".join(found.answer())
    high = found.table.of("advantage_high")
    assert judged(found, {"advantage": float(high.max())}) == ([], [])
    assert gate_failures(found, {"advantage": float(high.max()) - 0.01})
    # Of a law that is not known no divergence is.
    assert judged(found, {"kl": 1e9})[1]


def test_a_smooth_training_is_trusted_where_its_interval_is_narrow() -> None:
    found = trained_audit(X, Y, train, models=24)
    assert 0.2 < found.confirmed.mean() < 1.0
    assert found.known.all()
    low, value, high = (found.table.of(f"advantage{end}") for end in ("_low", "", "_high"))
    assert np.maximum(high - value, value - low)[found.confirmed].max() <= 0.1
    yes, no = int(np.argmax(found.confirmed)), int(np.argmin(found.confirmed))
    assert "within 0.1" in found.trust.why(yes)
    assert found.trust.why(no).startswith("its interval holds; failed: ")


def test_three_neighbours_of_a_quantity_tell_by_their_values() -> None:
    """Means of three targets: hardly two are equal, and one with the record never is one without.

    An attacker who has seen the values reads who was trained on; a normal law says little.
    """
    found = trained_audit(X, Q + np.arange(len(Q)) * 1e-6, KNeighborsRegressor(3), models=8)
    assert not found.confirmed.any()
    assert (found.table.of("advantage_high") == 1.0).all()


def test_two_models_are_not_trusted_for_their_own_reason() -> None:
    found = trained_audit(X, Y, train, models=2)
    assert not found.confirmed.any()
    assert not found.known.any()
    assert gate_failures(found, {"advantage": 0.999})
    assert "one model on each side" in found.doubt
    assert "--models 4" in found.doubt


def test_the_first_named_is_surely_exposed_and_the_number_is_expected() -> None:
    found = trained_audit(X[:60], Y[:60], train)
    first = int(np.argmax(found.table.of("advantage_low")))
    assert f"record {found.record_ids[first]}," in found.answer()[1]
    chance = found.laws.chance_above(0.1, found.advantage)
    draws = found.laws.draws(np.arange(60))
    assert found.exposed == round(chance.sum())
    # One record's draws, measured alone.
    row = int(found.order[20])
    pairs = draws.take(np.array([row])).reshape(draws.batch_shape[1])
    assert chance[row] == pytest.approx(np.mean(measures.advantage(pairs) >= 0.1))
    assert f"{chance.sum():.0f} of 60 records" in found.answer()[2]


def test_it_says_how_the_models_answer_about_the_most_exposed() -> None:
    classes = leakscope.audit(X, Y, train=train, explain=3)
    assert [entry.rank for entry in classes.explanations] == [1, 2, 3]
    assert "give its label a chance of" in classes.explanations[0].sentence
    amounts = leakscope.audit(X, Q, train=DecisionTreeRegressor(min_samples_leaf=9), explain=1)
    assert "miss its target by" in amounts.explanations[0].sentence


def test_a_notebooks_table_has_the_intervals() -> None:
    found = leakscope.audit(X, Y, train=train)
    low, high = (found.table.of(f"advantage_{end}")[found.order[0]] for end in ("low", "high"))
    assert f"({low:.2f} to {high:.2f})" in found.to_markdown()


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"observes": "label"}, "observes"),
        ({"fraction": 0.8}, "fraction"),
        ({"question": "population"}, "question"),
    ],
)
def test_what_a_training_does_not_answer_is_refused(given: dict[str, Any], name: str) -> None:
    with pytest.raises(InputError, match=f"{name} belongs to a fitted model"):
        leakscope.audit(X, Y, train=train, **given)


def classes_of(features: np.ndarray, targets: np.ndarray, seed: int) -> Any:
    known = np.unique(targets)
    centres = np.stack([features[targets == value].mean(axis=0) for value in known])
    centres += 0.01 * np.random.default_rng(seed).normal(size=centres.shape)

    def answer(asked: np.ndarray) -> np.ndarray:
        table = np.full((len(asked), 24), -30.0)
        table[:, known] = -((asked[:, None] - centres) ** 2).sum(axis=2)
        return table

    return answer


def test_many_whole_numbers_are_classes_only_where_that_is_said() -> None:
    many = np.arange(120) % 24
    with pytest.raises(InputError, match="24 different whole numbers"):
        leakscope.audit(X, many, train=classes_of)
    found = leakscope.audit(X, many, train=classes_of, task="classification")
    assert found.settings["task"] == "classification"
    assert found.observes == "log_odds"
    with pytest.raises(InputError, match="task must be"):
        leakscope.audit(X, many, train=classes_of, task="classes")
    with pytest.raises(InputError, match="does not suit"):
        leakscope.audit(X, Y, train=DecisionTreeClassifier(), task="regression")


def test_the_callers_arrays_stay_as_they_are() -> None:
    def wrecked(features: Any, targets: Any, seed: int) -> Any:
        found = train(features, targets, seed)
        features[:], targets[:] = 0.0, 0

        def ask(asked: Any) -> Any:
            answers = found.predict_proba(asked)
            asked[:] = 0.0
            return answers

        return ask

    features, targets = X.copy(), Y.copy()
    whole = leakscope.audit(X, Y, train=train).advantage
    found = leakscope.audit(features, targets, train=wrecked)
    assert np.array_equal(features, X)
    assert np.array_equal(targets, Y)
    assert np.allclose(found.advantage, whole)


def test_a_data_frame_is_trained_on_by_its_columns(tmp_path: Path) -> None:
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        region=np.where(X[:, 1] > 0, "north", "south"), ill=np.where(Y == 1, "yes", "no")
    )
    first = make_column_transformer((OneHotEncoder(), ["region"]), remainder="passthrough")
    pipeline = make_pipeline(first, LogisticRegression())
    found = leakscope.audit_frame(frame, target="ill", train=pipeline)
    given = leakscope.audit(frame.drop(columns="ill"), frame["ill"], train=pipeline)
    assert np.allclose(found.advantage, given.advantage)
    # One door: a model that is not fitted yet is fitted on all records.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = leakscope.audit_frame(frame, target="ill", model=pipeline)
    assert fit.basis == "computed"


def test_what_is_counted_in_place_of_a_law_is_the_same_when_the_run_is_opened_again(tmp_path):
    """From 64 models on a side: the others' level was had again from other records, and verify
    said that the file was changed."""
    size = 240
    y = np.arange(size) % 2
    X = np.column_stack([np.arange(size), np.zeros(size)]).astype(float)
    jumping = np.arange(size) < 60

    def train(X, y, seed):
        inside = np.isin(np.arange(size), X[:, 0])
        rng = np.random.default_rng(seed)
        jumps = 4.0 * inside * (rng.random(size) < 0.4)
        scores = np.where(jumping, jumps, 2.0 * inside) + rng.normal(size=size)
        signed = np.where(np.arange(size) % 2 == 1, scores, -scores)
        return lambda asked: 1.0 / (1.0 + np.exp(-signed[asked[:, 0].astype(int)]))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        audit = leakscope.audit(X, y, train=train, models=136)
    again = read_run(audit.write(tmp_path / "run")).document
    assert 0 < again.unconfirmed < size
    laws = again.about.stored_laws(again).measures()
    for name in ("kl", "auc"):
        np.testing.assert_allclose(again.table.of(name), laws[name], rtol=1e-6, atol=1e-9)
