"""A kind of model that advice has never heard of: its knob is found, with a price or without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import leakscope
from leakscope.advising import AuditTarget, advise
from leakscope.auditing.audit import audit_subject
from leakscope.errors import InputError
from leakscope.laws import Discrete, Provenance
from leakscope.results import ExaminedModel, Trust
from leakscope.results.document import DatasetEntry
from leakscope.results.kinds import KINDS, register
from leakscope.subjects import Asked, Change, PairLaws, Stages, Subject
from leakscope.subjects.pricing import Folds, HeldOutScores


class Neighbours(Subject):
    """A coin with the share of class 1 among the k nearest, of which a record is its own."""

    name = "neighbours"
    words = "a vote of neighbours"

    def __init__(self, X: np.ndarray, y: np.ndarray, k: int) -> None:
        self.X, self.y, self.k = X, y, k
        self.ids, self.settings = tuple(range(len(y))), {"k": k}
        self.dataset = DatasetEntry(
            name="points", records=len(y), features=1, outputs=1, target_name="y", steps=[]
        )

    @classmethod
    def takes(cls, asked: Asked) -> bool:
        return False

    @classmethod
    def of(cls, asked: Asked, stage: Stages) -> Neighbours:
        raise NotImplementedError

    @property
    def model(self) -> ExaminedModel:
        return ExaminedModel(
            type="Neighbours", name=f"neighbours(k={self.k})", origin="here", parameters={}
        )

    def shares(self, records: np.ndarray, trained_on: np.ndarray, skip: int) -> np.ndarray:
        far = np.abs(self.X[records][:, None] - self.X[trained_on][None])
        near = trained_on[np.argsort(far, axis=1, kind="stable")[:, skip : self.k + skip]]
        return (self.y[near].sum(axis=1) + 1.0) / (self.k + 2.0)

    def laws(self, stage: Stages) -> PairLaws:
        everybody = np.arange(len(self.y))
        return PairLaws(
            trust=Trust.checked("the neighbours were counted", np.full(len(self.y), True)),
            provenance=Provenance(question="leave_one_out", observes="label"),
            member=Discrete.of_label(self.shares(everybody, everybody, 0)),
            nonmember=Discrete.of_label(self.shares(everybody, everybody, 1)),
        )

    def changes(self, wanted: Any) -> Sequence[Change]:
        return [
            Change(
                name="more neighbours",
                setting="k",
                levels=[k for k in (1, 2, 4, 8, 16, 32) if k > self.k],
                at=lambda k: type(self)(self.X, self.y, int(k)),
                words=lambda k: f"Ask {k:.0f} neighbours instead of {self.k}",
            )
        ]


class Priced(Neighbours):
    """The same with a price: the log loss of the share among neighbours outside the fold."""

    def held_out(self, folds: Folds | None, kept: Any = None) -> HeldOutScores:
        assert folds is not None
        scores = np.empty(folds.number.shape)
        for row, number in zip(scores, folds.number, strict=True):
            for fold in range(folds.count):
                asked, others = np.flatnonzero(number == fold), np.flatnonzero(number != fold)
                share = self.shares(asked, others, 0)
                row[asked] = np.log(share / (1.0 - share))
        return HeldOutScores(scores, self.y.astype(float), "logistic", "classification", folds)

    def terms(self, wanted: Any, folds: Folds | None) -> Any:
        from leakscope.subjects.pricing import Terms

        return Terms(loss="log loss", priced="the log loss on held-out records")


@pytest.fixture
def points() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=80)
    return X, (X + rng.normal(size=80) > 0.0).astype(int)


TARGET = AuditTarget("advantage", 0.08)


def worst(subject: Neighbours) -> float:
    pair = subject.laws(Stages()).pair()
    return float(np.max(np.abs(pair.member.probabilities - pair.nonmember.probabilities)))


def test_a_knob_alone_gets_advice_without_a_price(points) -> None:
    advice = advise(Neighbours(*points, 2), TARGET)
    (option,) = advice.options
    assert option.name == "more neighbours"
    k = int(option.setting["k"])
    assert [worst(Neighbours(*points, level)) <= 0.08 for level in (k, k // 2)] == [True, False]
    assert option.meets
    assert option.worst == pytest.approx(worst(Neighbours(*points, k)))
    assert (option.error, option.cost, advice.own.error) == (None, None, None)
    assert "what that costs is not known" in option.sentence
    assert option.sentence.startswith(f"Ask {k} neighbours instead of 2: ")
    assert [point.setting["k"] for point in option.curve] == [4, 8, 16, 32]
    assert advice.model.name == "neighbours(k=2)"
    assert advice.sentence.startswith("Meets advantage <= 0.08: more neighbours. Ask ")


def test_with_a_price_the_cheapest_level_that_meets_the_target_is_taken(points) -> None:
    advice = advise(Priced(*points, 2), TARGET, random_state=0)
    (option,) = advice.options
    meeting = [point for point in option.curve if point.worst <= 0.08]
    assert option.error == min(point.error for point in meeting)
    assert option.cost == pytest.approx(option.error - advice.own.error)
    assert advice.loss == "log loss"
    assert advice.sentence.startswith("Cheapest: more neighbours. Ask ")


def test_an_audit_of_it_is_advised_on(points, monkeypatch) -> None:
    monkeypatch.setattr("leakscope.results.kinds.KINDS", dict(KINDS))
    register("neighbours", Priced)
    audit = audit_subject(Priced(*points, 2))
    advice = leakscope.advise(audit, TARGET, random_state=0)
    assert advice.own.worst == pytest.approx(audit.advantage.max())
    assert advice.settings["audit"] == {"k": 2}
    done = leakscope.advise(audit, AuditTarget("advantage", 0.99))
    assert done.own.meets
    assert not done.options


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"questions": "any"}, "leave out --questions any"),
        ({"tries": {"k": [3]}}, "not one of a training"),
    ],
)
def test_options_that_it_lacks_are_refused(points, more, words) -> None:
    with pytest.raises(InputError, match=words):
        advise(Neighbours(*points, 2), TARGET, **more)


def test_what_is_no_audit_and_no_model_is_refused() -> None:
    with pytest.raises(InputError, match="neither an audit nor a model"):
        advise(3.0, TARGET)
