"""``leakscope.audit(X, y, train=...)``: a few models of the user's own training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from small_training import RNG, Q, X, Y

import leakscope
from leakscope import InputError, measures
from leakscope.halves.draw import half
from leakscope.measuring.measure import measure_logits
from leakscope.results.reader import result_of
from tests.audits import trained_audit


@pytest.mark.parametrize("labels", [None, Y, RNG.integers(0, 7, 120)])
def test_each_record_is_in_exactly_half_of_the_models(labels: np.ndarray | None) -> None:
    inside = np.stack([half(labels, 120, number, seed=5) for number in range(8)])
    assert (inside.sum(axis=0) == 4).all()
    assert not (inside[0::2] & inside[1::2]).any()
    assert len({row.tobytes() for row in inside}) == 8
    if labels is not None:
        for value in np.unique(labels):
            counts = inside[:, labels == value].sum(axis=1)
            assert np.ptp(counts) <= 1


def test_an_odd_number_of_records_is_halved_by_chance() -> None:
    sizes = {int(half(None, 21, 0, seed=seed).sum()) for seed in range(20)}
    assert sizes == {10, 11}


@pytest.mark.parametrize(
    ("estimator", "target"),
    [
        (RandomForestClassifier(10), Y),
        (HistGradientBoostingClassifier(max_iter=5), Y),
        (GradientBoostingClassifier(n_estimators=5), Y),
        (make_pipeline(StandardScaler(), LogisticRegression()), Y),
        (GaussianNB(), np.where(Y == 1, "yes", "no")),
        (DecisionTreeClassifier(), RNG.integers(0, 3, 120)),
        (RandomForestRegressor(10), Q),
        (DecisionTreeRegressor(min_samples_leaf=5), Q),
    ],
)
def test_any_estimator(estimator: Any, target: np.ndarray) -> None:
    result = leakscope.audit(X, target, train=estimator, models=4)
    frame = result.to_frame()
    assert len(frame) == 120
    assert frame["advantage"].between(0.0, 1.0).all()
    assert (frame["advantage_low"] <= frame["advantage_high"]).all()
    assert (frame["tpr_at_fpr_0_001"] <= frame["tpr_at_fpr_0_01"] + 1e-12).all()
    provenance = result.law_pair().provenance
    assert provenance.question == "pool"
    assert provenance.method == "empirical"
    assert type(getattr(estimator, "steps", [(0, estimator)])[-1][1]).__name__ in result.model.name
    assert result.details.models == 4


def test_the_same_seed_gives_the_same_numbers_and_another_does_not() -> None:
    forest = RandomForestClassifier(5)
    one, two = (trained_audit(X, Y, forest, seed=1) for _ in range(2))
    assert np.array_equal(one.advantage, two.advantage)
    assert not np.array_equal(one.advantage, trained_audit(X, Y, forest, seed=2).advantage)


def test_a_forest_against_many_models() -> None:
    """Ranks and mean advantage of eight models against 200 models of the same kind."""
    forest = RandomForestRegressor(15, min_samples_leaf=2)
    few = trained_audit(X, Q, forest, models=8)
    many = trained_audit(X, Q, forest, models=200, seed=9)
    assert spearmanr(few.advantage, many.advantage).statistic > 0.7
    assert few.advantage.mean() == pytest.approx(many.advantage.mean(), rel=0.2)
    # The laws are about the residual as it is, and training on a record draws it to zero.
    table = many.table
    without = table.of("mean_without")
    towards = np.sign(-without) * (table.of("mean_with") - without)
    far = np.abs(without) > 2.0 * table.of("sd_without")
    assert far.any()
    assert (towards[far] > 0.0).all()
    assert measures.advantage(many.law_pair()).mean() == pytest.approx(
        many.advantage.mean(), rel=0.1
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"models": 3}, "multiple of 2"),
        ({"models": 0}, "greater than or equal to 2"),
        ({"train": 3}, "or a function train\\(X, y, seed\\)"),
        ({"y": np.zeros(120, int)}, "the same for every record"),
        ({"y": np.arange(120) == 3}, "has one record only"),
        ({"y": Y[:-1]}, "X has 120 records and y has 119"),
        ({"X": X[:10], "y": Y[:10]}, "at least 20 records"),
        ({"model": LogisticRegression()}, "give one model"),
        ({"kernel": "rbf"}, "kernel belongs to"),
    ],
)
def test_bad_input(given: dict[str, Any], sentence: str) -> None:
    arguments: dict[str, Any] = {"X": X, "y": Y, "train": RandomForestClassifier(3), **given}
    with pytest.raises(InputError, match=sentence):
        leakscope.audit(arguments.pop("X"), arguments.pop("y"), **arguments)


def test_workers_give_the_same_numbers(tmp_path: Path) -> None:
    forest = RandomForestClassifier(5)
    here = trained_audit(X, Y, forest, models=2)
    there = trained_audit(X, Y, forest, models=2, workers=1)
    assert np.array_equal(here.advantage, there.advantage)


def test_the_run_is_written_and_read_again(tmp_path: Path) -> None:
    result = leakscope.audit(X, Y, train=RandomForestClassifier(5))
    place = result.write(tmp_path / "run")
    document = result_of(place)
    assert document.kind == "audit_model"
    assert document.details.models == 4
    assert document.records[0].advantage_low is not None
    heading = (place / "records.csv").read_text().splitlines()[0]
    assert "tpr_at_fpr_0_001_high" in heading
    with np.load(place / "arrays.npz") as arrays:
        given = tmp_path / "models.npz"
        np.savez(given, log_odds=arrays["log_odds"], trained_on=arrays["trained_on"])
    again = measure_logits(given)
    assert [r.advantage for r in again.records] == pytest.approx(result.advantage.tolist())
