"""An audit of a fitted model against shadow models: right laws agree, wrong ones differ."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

import leakscope
from leakscope.auditing import Examined, audit_named_model, examined_again
from leakscope.data import read_example
from leakscope.errors import InputError
from leakscope.results import read_run
from leakscope.settings import ModelSettings


@pytest.fixture(scope="module")
def audited():
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    return leakscope.audit(X, y, model=Ridge(alpha=1.0).fit(X, y))


def test_right_laws_agree(audited):
    found = leakscope.verify(audited, models=300, records=8)
    assert (found.verified_kind, found.differs, len(found.checks)) == ("audit_model", 0, 16)
    assert found.agreement is not None
    assert abs(found.agreement["sd_ratio"] - 1.0) < 0.04
    assert found.agreement["rank_correlation"] > found.agreement["ceiling"] - 0.05
    assert found.agreement["tpr_predicted"] == pytest.approx(
        found.agreement["tpr_observed"], rel=0.1
    )


def test_laws_of_another_penalty_differ(audited):
    given = audited.examined
    other = Ridge(alpha=1000.0).fit(given.X, given.y)
    wrong = replace(audited, examined=Examined(other, given.X, given.y))
    assert leakscope.verify(wrong, models=300, records=8).differs > 3


def test_weights_and_classes_are_those_of_the_fit():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X[:, :6])
    weights = 1.0 + (y == 0)
    model = LogisticRegression(C=0.1, tol=1e-8).fit(X, y, sample_weight=weights)
    result = leakscope.audit(X, y, model=model, sample_weight=weights)
    assert leakscope.verify(result, models=200, records=6).differs == 0


def test_a_named_model_is_fitted_again_from_its_run(tmp_path):
    named = audit_named_model(read_example("wine"), ModelSettings(model="logistic"))
    run = read_run(named.write(tmp_path / "run"))
    again, ids = examined_again(run.document)
    assert ids == named.record_ids
    # The penalty is the one that was chosen, and is not chosen again.
    assert again.estimator.C == named.examined.estimator.C
    assert (again.estimator.coef_ == named.examined.estimator.coef_).all()
    with pytest.raises(InputError, match="not the data"):
        examined_again(run.document, read_example("iris"))


def test_an_estimator_in_memory_is_not_in_its_run(audited, tmp_path):
    run = audited.write(tmp_path / "run")
    with pytest.raises(InputError, match="was in memory, and no file holds it"):
        leakscope.verify(run)
