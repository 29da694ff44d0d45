"""Audits of nearest neighbours: what is said, kept, verified and advised."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import leakscope
from leakscope import fitted, measures
from leakscope.laws import Discrete
from leakscope.results.audit import Audit

X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[:200, :6], Y[:200]


@pytest.fixture(scope="module")
def audit() -> Audit:
    return leakscope.audit(X, Y, model=KNeighborsClassifier(7), explain=3)


def test_what_is_said(audit: Audit) -> None:
    assert "laws of one fit" in audit.sentences[0]
    assert audit.about.name == "fit"
    assert audit.laws.provenance.method == "exact"
    assert audit.trusted.all()
    assert not any("penalty" in sentence for sentence in audit.sentences)
    assert len(audit.details.explanations) == 3
    assert [row.attacker for row in audit.details.attackers] == ["pool", "insider"]


def test_a_run_keeps_its_laws_and_is_verified(audit: Audit, tmp_path: Path) -> None:
    again = Audit.open(audit.write(tmp_path / "run"))
    pair = again.laws.pair()
    assert isinstance(pair.member, Discrete)
    np.testing.assert_allclose(
        np.asarray(measures.advantage(pair)), again.table.of("advantage"), atol=1e-12
    )
    noised = np.asarray(measures.advantage(again.laws.noised(0.5).pair()))
    assert np.all(noised <= again.table.of("advantage") + 1e-9)
    found = leakscope.verify(audit, models=60)
    assert found.differs == 0
    assert {check.quantity for check in found.checks} == {
        "TPR of its test", "FPR of its test", "mean advantage",
    }  # fmt: skip


def test_verification_finds_another_models_laws() -> None:
    """The laws of three neighbours are not those of thirty."""
    few = leakscope.audit(X, Y, model=KNeighborsClassifier(3))
    many = leakscope.audit(X, Y, model=KNeighborsClassifier(30))
    few.examined.whole = many.examined.whole
    assert leakscope.verify(few, models=60).differs > 0


def test_labels_and_noise() -> None:
    told = leakscope.audit(X, Y, model=KNeighborsClassifier(7), observes="label")
    assert leakscope.verify(told, models=60).differs == 0
    assert told.details.fit.training > told.details.fit.left_out


@pytest.mark.filterwarnings("ignore:The numbers of")
def test_advice_prices_answers_without_a_decision_function() -> None:
    """Of neighbours by their shares, of naive Bayes by its joint probabilities."""
    features, labels = load_iris(return_X_y=True)
    # No record is a copy of another.
    wide = features[50:] + 1e-3 * np.random.default_rng(0).standard_normal((100, 4))
    for model in (KNeighborsClassifier(), GaussianNB()):
        found = leakscope.audit(wide, labels[50:], model=model)
        advice = leakscope.advise(found, 0.15)
        assert advice.own.accuracy is not None
        assert advice.own.accuracy > 0.8


def test_noise_that_was_asked_for_hides_a_corner() -> None:
    """The laws beside a corner have the noise of the audit, as those of a pair made with it."""
    laws = fitted.laws_of(SVC().fit(X, Y), X, Y)
    np.testing.assert_allclose(
        measures.advantage(laws.noised(1.0).law_pair()),
        measures.advantage(laws.law_pair(answer_noise=1.0)),
    )
