"""Audits of people: fitted models and trainings of which whole groups leave."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeRegressor

import leakscope
from leakscope import InputError, fitted, measures
from leakscope.cli import main
from leakscope.fitted.shadow import ShadowScores
from leakscope.halves.draw import half
from leakscope.results import Audit

RNG = np.random.default_rng(5)
WHO = RNG.permutation(np.repeat(np.arange(60), RNG.integers(1, 6, size=60)))
X = RNG.normal(size=(60, 4))[WHO] + 0.5 * RNG.normal(size=(len(WHO), 4))
NUMBERS = X[:, 0] + RNG.normal(size=len(WHO))
CLASSES = (NUMBERS > 0.0).astype(int)


def test_halves_are_of_whole_groups_and_of_every_class() -> None:
    for number in range(6):
        rows = half(CLASSES, len(WHO), number, 3, WHO)
        other = half(CLASSES, len(WHO), number ^ 1, 3, WHO)
        assert np.array_equal(rows, ~other)
        assert all(len(set(rows[one == WHO])) == 1 for one in range(60))
        assert set(CLASSES[rows]) == {0, 1}
        inside = len(set(WHO[rows]))
        assert abs(inside - 30) <= 2


def test_a_training_of_people(tmp_path: Path) -> None:
    trees = GradientBoostingClassifier(n_estimators=10, subsample=0.8)
    audit = leakscope.audit(X, CLASSES, train=trees, models=8, groups=WHO, explain=2)
    assert (audit.unit, audit.units) == ("group", 60)
    assert "records in 60 groups" in audit.sentences[0]
    assert "each other group" in audit.sentences[-1]
    assert audit.details.explanations[0].sentence.startswith("Group ")
    place = {name: row for row, name in enumerate(audit.record_ids)}
    sizes = np.bincount(WHO)
    assert [audit.table.columns["size"][place[one]] for one in range(60)] == sizes.tolist()
    # A group's score is the sum of its records' with weights of size one in all.
    arrays = audit.laws.arrays
    weights = arrays["row_weights"]
    codes = arrays["groups"]
    assert np.allclose(np.bincount(codes, weights=np.abs(weights)), 1.0)
    models = audit.examined.half_models
    summed = np.stack([np.bincount(codes, weights=weights * one) for one in models.scores])
    assert np.allclose(arrays["log_odds"], summed)
    again = Audit.open(audit.write(tmp_path / "run"))
    assert np.allclose(np.sort(again.advantage), np.sort(audit.advantage))
    found = leakscope.verify(audit, models=24, records=2)
    assert "random 0.5 of the groups" in found.how


def test_a_training_of_people_with_a_quantity() -> None:
    tree = DecisionTreeRegressor(min_samples_leaf=5)
    audit = leakscope.audit(X, NUMBERS, train=tree, models=8, groups=WHO)
    # Training on a group raises its score.
    assert np.mean(audit.table.of("mean_with") > audit.table.of("mean_without")) > 0.9


def test_a_class_of_one_group_is_refused() -> None:
    classes = np.where(WHO == 3, 2, CLASSES)
    with pytest.raises(InputError, match="the class 2 has one group only"):
        leakscope.audit(X, classes, train=GradientBoostingClassifier(), groups=WHO)


def test_models_of_people_are_not_taken_for_models_of_records(tmp_path: Path) -> None:
    tree = DecisionTreeRegressor(min_samples_leaf=5)
    leakscope.audit(X, NUMBERS, train=tree, models=4, keep=str(tmp_path / "kept"))
    people = leakscope.audit(
        X, NUMBERS, train=tree, models=4, keep=str(tmp_path / "kept"), groups=WHO
    )
    assert people.details.reused == 0


def test_the_doubled_patient_is_what_refits_say() -> None:
    rows = np.append(np.arange(len(WHO)), 7)
    model = Ridge(alpha=20.0).fit(X[rows], NUMBERS[rows])
    people = leakscope.audit(X[rows], NUMBERS[rows], model=model, groups=rows.tolist())
    row = people.record_ids.index(7)
    generator = np.random.default_rng(0)
    scores, inside = [], []
    for _ in range(1000):
        on = generator.random(len(WHO)) < 0.5
        some = np.flatnonzero(on[rows])
        refit = Ridge(alpha=20.0).fit(X[rows][some], NUMBERS[rows][some])
        scores.append(refit.predict(X[7:8])[0])
        inside.append(on[7])
    moments = ShadowScores(np.array(scores)[:, None], np.array(inside)[:, None]).moments()
    said = [
        people.table.of(name)[row]
        for name in ("mean_with", "sd_with", "mean_without", "sd_without")
    ]
    for k in (0, 2):
        assert abs(said[k] - moments[k][0]) < 4.0 * moments[k + 1][0] / np.sqrt(450)
        assert abs(said[k + 1] / moments[k + 1][0] - 1.0) < 4.0 / np.sqrt(2 * 450)
    with pytest.warns(UserWarning, match="2 of 176 records are exact copies"):
        alone = leakscope.audit(X[rows], NUMBERS[rows], model=model)
    assert people.advantage[row] > 1.5 * alone.advantage[alone.record_ids.index(7)]


def test_advice_and_its_check_are_about_people() -> None:
    model = LogisticRegression(C=0.05, tol=1e-8).fit(X, CLASSES)
    with pytest.warns(UserWarning, match="of the groups a few others carry its variance"):
        audit = leakscope.audit(X, CLASSES, model=model, groups=WHO)
    target = leakscope.AuditTarget(measure="advantage", value=0.15)
    found = leakscope.advise(audit, target, random_state=0)
    assert found.unit == "group"
    assert found.best is not None
    assert found.best.check is None or found.best.check.agrees
    laws = fitted.laws_of(model, X, CLASSES, groups=WHO)
    assert np.allclose(np.sort(measures.advantage(laws.law_pair())), np.sort(audit.advantage))


@pytest.mark.filterwarnings("ignore:.*of the groups a few others")
def test_a_person_is_erased_with_all_of_their_rows() -> None:
    audit = leakscope.audit(X, NUMBERS, model=Ridge(alpha=20.0).fit(X, NUMBERS), groups=WHO)
    some = 11
    gone = some == WHO
    clean = Ridge(alpha=20.0).fit(X[~gone], NUMBERS[~gone])
    assert leakscope.erase(audit, records=[some], after=clean).found == "erased"
    half_gone = np.ones(len(WHO), dtype=bool)
    half_gone[np.flatnonzero(gone)[:1]] = False
    part = Ridge(alpha=20.0).fit(X[half_gone], NUMBERS[half_gone])
    found = leakscope.erase(audit, records=[some], after=part)
    assert found.met is not True
    assert np.count_nonzero(gone) > 1
    made = leakscope.erase(audit, records=[some])
    assert made.met
    assert made.lacking == [some]


def test_the_command_line_audits_people(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=NUMBERS, label=CLASSES, who=WHO)
    frame.to_csv("visits.csv", index=False)
    whose = ["--group", "who", "--json", "out.json"]
    ridge = ["audit", "visits.csv", "--target", "y", "--ignore", "label", "--model", "ridge"]
    tree = ["--model", "sklearn.tree:DecisionTreeClassifier", "--models", "4"]
    assert main([*ridge, "--run-dir", "ridge", *whose]) == 0
    assert json.loads(Path("out.json").read_text())["unit"] == "group"
    assert main(["verify", "ridge", "--models", "40", "--records", "2"]) in (0, 3)
    trained = ["audit", "visits.csv", "--target", "label", "--ignore", "y", *tree]
    assert main([*trained, "--run-dir", "tree", *whose]) == 0
    assert json.loads(Path("out.json").read_text())["unit"] == "group"
    assert main(["verify", "tree", "--models", "24", "--records", "2"]) in (0, 3)
    assert main(["report", "ridge"]) == 0
    capsys.readouterr()


def test_six_records_of_one_person_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Found by fuzzing: a spread of which nothing was left overflowed."""
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text("a,b,y\n1,2,3\n2,1,4\n3,5,1\n4,2,6\n5,5,5\n6,1,2\n")
    line = [
        "audit",
        "d.csv",
        "--target",
        "y",
        "--model",
        "ridge",
        "--set",
        "alpha=1",
        "--group",
        "a",
    ]
    assert main(line) == 0
    assert "no group's numbers are confirmed" in " ".join(capsys.readouterr().out.split())


def test_records_of_nobody_are_not_one_person() -> None:
    X, y = np.arange(40.0)[:, None] ** [1, 2], np.arange(40.0)
    for groups, why in (
        ("patient", "groups is the text 'patient'"),
        ([None, "a", None, *range(37)], "no name for 2 records, first record 0"),
        ([float("nan"), *range(39)], "no name for 1 records, first record 0"),
    ):
        with pytest.raises(InputError, match=why):
            leakscope.audit(X, y, model=Ridge(), groups=groups)
