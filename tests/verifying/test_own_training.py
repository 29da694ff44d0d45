"""A user's training function: what it gets, what its models answer, and a seed that it ignores."""

from __future__ import annotations

import numpy as np
import pytest

import leakscope
from leakscope import data, kernels
from leakscope._numerics.keys import Key
from leakscope.auditing.audit import examined
from leakscope.cli import main
from leakscope.errors import InputError
from leakscope.settings import AuditSettings
from leakscope.subjects import Asked
from leakscope.verifying import FunctionTrainer, Retraining, verify
from leakscope.verifying.checks import rows_to_check
from tests.audits import process_audit

rng = np.random.default_rng(5)
X = rng.normal(size=(24, 2))
Y = X[:, 0] + 0.3 * rng.normal(size=24)


@pytest.fixture(scope="module")
def audited():
    return leakscope.audit(X, Y, kernel=kernels.rbf(1.0), noise_variance=0.1, sensitivity=False)


def ridge(features, targets, seed):
    """No randomness at all: it ignores the seed."""
    gram = features.T @ features + np.eye(features.shape[1])
    weights = np.linalg.solve(gram, features.T @ targets)
    return lambda asked: asked @ weights


def test_models_that_ignore_the_seed_are_told_of_and_give_no_number(audited):
    """It reported an AUC of 1.0, or of 0.5 with z = -22, for every record."""
    again = Retraining(train=ridge, models=8)
    found = verify(audited, records=3, retraining=again)
    assert [check.measured for check in found.checks] == [None] * 3
    assert (found.agrees, found.differs, found.inconclusive) == (0, 0, 3)
    assert any("it ignores the seed" in sentence for sentence in found.warnings)
    assert "for 3 of 3 records" in found.warnings[0]


def test_models_that_use_the_seed_are_measured(audited):
    def noisy(features, targets, seed):
        predict = ridge(features, targets, seed)
        added = np.random.default_rng(seed).normal()
        return lambda asked: predict(asked) + added

    found = verify(audited, records=2, retraining=Retraining(train=noisy, models=8))
    assert all(check.measured is not None for check in found.checks)
    assert not any("ignores the seed" in sentence for sentence in found.warnings)


CLASSES = "x,z,y\n" + "".join(
    f"{a:.3f},{b:.3f},{('no', 'yes')[int(a + 0.3 * c > 0)]}\n"
    for a, b, c in np.random.default_rng(3).normal(size=(40, 3))
)


def test_class_numbers_reach_the_function_as_in_an_audit_of_it(tmp_path):
    (tmp_path / "people.csv").write_text(CLASSES)
    people = data.read_dataset(tmp_path / "people.csv", target="y", task="classification")
    result = process_audit(people, AuditSettings(noise_variance=0.1, sensitivity=False))
    seen = set()

    def train(features, targets, seed):
        from sklearn.ensemble import RandomForestClassifier

        seen.update(targets.tolist())
        return RandomForestClassifier(5, random_state=seed).fit(features, targets)

    again = Retraining(train=train, models=8)
    found = verify(result, data=people, records=2, retraining=again)
    assert seen == {0, 1}
    assert all(check.measured is not None for check in found.checks)
    # The same function is taken by audit, with the same numbers.
    seen.clear()
    examined(Asked(X=people.features, y=(people.target == "yes").astype(int), train=train))
    assert seen == {0, 1}


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_come_in_the_audit_s_coding(classes):
    names = np.array(["a", "b", "c"])[:classes]
    labels = names[np.arange(6) % classes]
    onehot = (labels[:, None] == names[None, :]).astype(float)
    y = (onehot[:, 1:] - 0.5) if classes == 2 else onehot - 1.0 / 3.0
    features = np.arange(6.0)[:, None]

    class Certain:
        def predict_proba(self, asked):
            return onehot[asked[:, 0].astype(int)]

    class Numbers:
        """Of two classes one number is enough: the probability of the second."""

        def predict(self, asked):
            found = onehot[asked[:, 0].astype(int)]
            return found[:, 1] if classes == 2 else found

    for model in (Certain, Numbers):
        trainer = FunctionTrainer(lambda features, targets, seed, m=model: m(), "classification")
        answers = trainer.train(features, y, np.ones((1, 6), dtype=bool), features, Key(0))
        assert answers.answers[0] == pytest.approx(y), model
        assert answers.losses == pytest.approx([0.0]), model


def test_text_is_refused_in_a_sentence():
    def says_yes(features, targets, seed):
        return lambda asked: np.array(["yes"] * len(asked))

    for task in ("regression", "classification"):
        trainer = FunctionTrainer(says_yes, task)
        with pytest.raises(InputError, match=r"says_yes answered with <U3, and not with numbers"):
            trainer.train(X, Y[:, None], np.ones((1, 24), dtype=bool), X, Key(0))


def test_a_record_can_be_named(audited, tmp_path, monkeypatch, capsys):
    found = verify(audited, record_ids=[7, "3"])
    assert {check.law.split(",")[0] for check in found.checks} == {"record 7", "record 3"}
    with pytest.raises(InputError, match="the result has no record 99; the first of 24 is 0"):
        verify(audited, record_ids=[99])
    assert rows_to_check(("a", "b"), [0.0, 1.0], 2, ["b", "b"]) == [1]
    monkeypatch.chdir(tmp_path)
    command = "audit --example iris --sample 40 --kernel rbf --no-sensitivity --run-dir run"
    assert main(command.split()) == 0
    name = str(leakscope.results.read_result("run/result.json").records[0].record_id)
    capsys.readouterr()
    assert main(["verify", "run", "--record", name, "--draws", "500"]) == 0
    assert f"record {name}" in capsys.readouterr().out
