"""Why a fitted model exposes a record."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import leakscope
from leakscope import data, fitted, measures
from leakscope.fitted.people import neighbours_of
from leakscope.settings import AuditSettings, ModelSettings
from tests.audits import model_audit

RNG = np.random.default_rng(3)
X = RNG.normal(size=(80, 3))
Y = X @ [1.0, 0.5, 0.0] + 0.5 * RNG.normal(size=80)
# One record that is far away, and one whose label is.
ODD_X, ODD_Y = X.copy(), Y.copy()
ODD_X[7], ODD_Y[7] = [4.0, -4.0, 4.0], 3.5
ODD_Y[11] += 4.0


def test_features_and_label_are_told_apart():
    model = Ridge(alpha=1.0).fit(ODD_X, ODD_Y)
    with warnings.catch_warnings():
        # The far record leads the variance of some others, which is said.
        warnings.simplefilter("ignore", UserWarning)
        result = leakscope.audit(ODD_X, ODD_Y, model=model, explain=2)
    by_id = {entry.record_id: entry for entry in result.explanations}
    assert set(by_id) == {7, 11}
    assert "mostly by its features" in by_id[7].sentence
    assert "mostly by its label" in by_id[11].sentence
    assert by_id[7].weight > 5.0
    assert by_id[11].surprise > 5.0


def test_the_neighbours_are_those_whose_membership_moves_the_score():
    """Their shares against refits: the covariance of membership and prediction over shadow fits."""
    model = Ridge(alpha=1.0).fit(X, Y)
    rows = [3, 20, 55]
    found = neighbours_of(fitted.from_sklearn(model, X, Y), rows, fraction=0.5, most=79)
    rng = np.random.default_rng(0)
    inside = rng.random((6000, 80)) < 0.5
    inside[:, rows] = False
    seen = np.stack([Ridge(alpha=1.0).fit(X[b], Y[b]).predict(X[rows]) for b in inside])
    centred = inside - 0.5
    for place, row in enumerate(rows):
        effect = 4.0 * (centred * (seen[:, place] - seen[:, place].mean())[:, None]).mean(axis=0)
        share = effect**2 / (effect**2).sum()
        predicted = np.zeros(80)
        predicted[found.others[place]] = found.shares[place]
        # The three of the other rows are never in here, and count for the prediction.
        predicted[rows] = 0.0
        top = found.others[place][0]
        assert top not in rows
        assert share[top] == pytest.approx(predicted[top] / predicted.sum(), rel=0.2)
        assert np.corrcoef(share, predicted)[0, 1] > 0.97
        assert found.shares[place].sum() == pytest.approx(1.0)
        assert row not in found.others[place][:5]


def test_the_tprs_of_a_process_are_those_of_its_laws():
    result = leakscope.audit(X, Y, kernel="rbf", noise_variance=0.1)
    pair = result.law_pair()
    for fpr in (0.01, 0.001):
        np.testing.assert_allclose(result.tpr_at_fpr[fpr], measures.tpr_at_fpr(pair, fpr))
    frame = result.to_frame()
    assert {"tpr_at_fpr_0_01", "tpr_at_fpr_0_001"} <= set(frame.columns)
    record = result.records[0]
    assert record.tpr_at_fpr_0_01 == pytest.approx(frame["tpr_at_fpr_0_01"].iloc[0])


def test_reasons_are_found_unasked_only_where_it_is_quick(monkeypatch):
    wine = data.read_example("breast_cancer")
    chosen = ModelSettings(model="logistic", C=0.1)
    assert len(model_audit(wine, chosen).explanations) == 10
    monkeypatch.setattr("leakscope.subjects.fit.subject.EXPLAINED_UP_TO", 100)
    assert model_audit(wine, chosen).explanations == ()
    asked = model_audit(wine, chosen, AuditSettings(explain=2))
    assert len(asked.explanations) == 2
    assert isinstance(asked.examined.estimator, LogisticRegression)
