"""What may be approved: kinds of model, what is released, which attacker, whose records.

Each of these could once be signed, and was not so.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import leakscope
from conftest import audit_run, write_table
from leakscope.auditing import gate_failures
from leakscope.cli import main
from leakscope.errors import InputError
from leakscope.reporting.decision_page import decision_html
from leakscope.results import Audit, read_result
from leakscope.results.audit import ExaminedModel

RNG = np.random.default_rng(3)
X = RNG.normal(size=(90, 3))
NUMBERS = X[:, 0] + RNG.normal(size=90)
CLASSES = (NUMBERS > 0.0).astype(int)


@pytest.fixture(scope="module")
def logistic() -> Audit:
    return leakscope.audit(X, CLASSES, model=LogisticRegression(C=0.1).fit(X, CLASSES))


@pytest.fixture(scope="module")
def kernel() -> Audit:
    model = KernelRidge(alpha=30.0, kernel="rbf", gamma=0.05).fit(X, NUMBERS)
    return leakscope.audit(X, NUMBERS, model=model)


APPROVED, CONDITIONS, NEITHER = "approved", "approved with conditions", None
TABLE = [
    # kind, what is released, what may be marked at the most, and the sentence why not more
    ("logistic", "black-box", APPROVED, ""),
    ("logistic", "weights", CONDITIONS, "holds the weights can do more"),
    ("kernel", "black-box", APPROVED, ""),
    ("kernel", "weights", NEITHER, "contains training records unchanged"),
]


@pytest.mark.parametrize(("kind", "access", "most", "why"), TABLE)
def test_what_may_be_approved(
    kind: str, access: str, most: str | None, why: str, request: pytest.FixtureRequest
) -> None:
    audit = request.getfixturevalue(kind)
    told: dict[str, Any] = {"threshold_advantage": 0.99, "access": access, "conditions": "none"}
    page = decision_html(leakscope.decide(audit, **told))
    for word in (APPROVED, CONDITIONS):
        allowed = most == APPROVED or (most == CONDITIONS and word == CONDITIONS)
        assert (f"☐ {word}<" in page) is allowed
        if allowed:
            assert leakscope.decide(audit, decision=word, **told).sign_off.decision == word
            continue
        with pytest.raises(InputError, match=why):
            leakscope.decide(audit, decision=word, **told)


@pytest.mark.parametrize(
    ("model", "holds"),
    [
        (SVC(), True),
        (KNeighborsClassifier(), True),
        (LinearSVC(), False),
        (GradientBoostingClassifier(), False),
        (Ridge(), False),
    ],
)
def test_which_models_hold_their_records(model: Any, holds: bool) -> None:
    told = ExaminedModel(type=type(model).__name__, name=str(model), origin="", parameters={})
    assert told.holds_records is holds
    inside = ExaminedModel(type="Pipeline", name=f"Pipeline({model})", origin="", parameters={})
    assert inside.holds_records is holds


def test_reconstruction_applies_to_a_model_that_holds_its_records(kernel: Audit) -> None:
    rows = leakscope.decide(kernel, threshold_advantage=0.99).coverage
    row = next(row for row in rows if row.attack == "reconstruction of records from weights")
    assert row.state == "not run"
    assert "contains training records unchanged" in row.found


# The file of the model.


def test_a_table_is_no_model(filed: Path) -> None:
    with pytest.raises(InputError, match="is a table and not a model"):
        leakscope.decide(filed / "run", model=filed / "table.csv", threshold_advantage=0.9)


def test_a_file_of_another_model_is_refused(logistic: Audit, tmp_path: Path) -> None:
    def saved(model: Any, name: str) -> Path:
        skops.io.dump(model.fit(X, CLASSES), tmp_path / name)
        return tmp_path / name

    own = saved(LogisticRegression(C=0.1), "own.skops")
    found = leakscope.decide(logistic, model=own, threshold_advantage=0.9).stated("model.file")
    # The audit was of an estimator in memory: that the file is the same one is declared.
    assert found.basis == "declared"
    assert "not examined" in found.label
    for model, why in (
        (Ridge(), "type='Ridge'"),
        (LogisticRegression(C=1.0), r"has C=1.0, and .* was audited with C=0.1"),
    ):
        with pytest.raises(InputError, match=why):
            leakscope.decide(logistic, model=saved(model, "a.skops"), threshold_advantage=0.9)


def test_a_training_says_that_its_file_was_not_examined(tmp_path: Path) -> None:
    trees = GradientBoostingClassifier(n_estimators=5)
    audit = leakscope.audit(X, CLASSES, train=trees, models=4)
    (tmp_path / "trees.bin").write_bytes(b"trees")
    found = leakscope.decide(audit, model=tmp_path / "trees.bin", threshold_advantage=0.9)
    assert any("not the file that is released" in sentence for sentence in found.summary)
    assert found.stated("model.file").basis == "declared"


# People.


def test_copies_are_not_signed_for_unless_they_are_different_people(tmp_path: Path) -> None:
    table = write_table(tmp_path / "table.csv")
    lines = table.read_text().splitlines()
    who, _, rest = lines[1].partition(",")
    table.write_text("\n".join([*lines, f"{who}-again,{rest}"]) + "\n")
    run = audit_run(table, tmp_path / "run")
    told: dict[str, Any] = {"threshold_advantage": 0.99}
    found = leakscope.decide(run, **told)
    assert "2 of 81 records are copies of another record's" in found.obstacles[0]
    with pytest.raises(InputError, match="are copies of another record's"):
        leakscope.decide(run, decision="approved", **told)
    stated = "twins, seen by their doctor"
    found = leakscope.decide(run, decision="approved", each_row=stated, **told)
    assert found.stated("each_row").text == stated


def visits(path: Path) -> Path:
    """300 people with 1 to 6 visits, whose values are nearly the same each time."""
    key = np.random.default_rng(12)
    who = np.repeat(np.arange(300), key.integers(1, 7, 300))
    usual = key.normal(size=(300, 8))
    sick = usual[:, 0] + key.normal(size=300) > 0.0
    table = pd.DataFrame(
        usual[who] + 0.05 * key.normal(size=(len(who), 8)), columns=[f"lab{i}" for i in range(8)]
    )
    table["patient"], table["nr"] = [f"P{unit:03d}" for unit in who], 7 * who + 100
    table["sick"] = np.where(sick[who], "yes", "no")
    table.to_csv(path, index=False)
    return path


VISITS = ["--target", "sick", "--model", "logistic", "--set", "C=0.1", "--top", "0"]


def test_visits_are_not_signed_for_row_by_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By row the model keeps a limit that it breaks by patient."""
    table, told = str(visits(tmp_path / "visits.csv")), {"threshold_tpr": 0.005}
    for left in ("patient", "nr"):
        run = str(tmp_path / left)
        assert main(["audit", table, *VISITS, "--ignore", left, "--run-dir", run]) == 2
        said = capsys.readouterr().err
        assert "--group" in said
        assert "--ignore" in said
        assert not Path(run).exists()
    run = str(tmp_path / "rows")
    both = ["--ignore", "patient", "--ignore", "nr"]
    assert main(["audit", table, *VISITS, *both, "--run-dir", run]) == 0
    rows = read_result(Path(run) / "result.json")
    assert isinstance(rows, Audit)
    assert rows.dataset.person_columns == ("nr", "patient")
    assert rows.to_frame()["tpr_at_fpr_0_001"].max() < 0.005
    signed = ["decide", run, "--threshold-tpr", "0.005", "--decision", "approved"]
    assert main([*signed, "--output", str(tmp_path / "signed")]) == 2
    assert "--each-row" in capsys.readouterr().err
    assert not (tmp_path / "signed").exists()
    with pytest.raises(InputError, match="--each-row"):
        leakscope.decide(run, decision=CONDITIONS, conditions="none", **told)
    stated = "the column is of clinics"
    found = leakscope.decide(run, decision=APPROVED, each_row=stated, **told)
    assert found.stated("each_row").text == stated
    people = str(tmp_path / "people")
    grouped = ["--group", "patient", "--ignore", "nr"]
    assert main(["audit", table, *VISITS, *grouped, "--run-dir", people]) == 0
    by_person = leakscope.decide(people, **told)
    assert by_person.records == 300
    assert not by_person.obstacles
    assert by_person.thresholds[0].met is False
    with pytest.raises(InputError):
        leakscope.decide(people, decision=APPROVED, each_row=stated, **told)


def test_groups_of_one_row_are_rows(tmp_path: Path) -> None:
    table = pd.read_csv(visits(tmp_path / "visits.csv"))
    table["visit"] = np.arange(len(table))
    told: dict[str, Any] = {"target": "sick", "group_column": "visit", "model": "logistic"}
    with pytest.raises(InputError, match="group"):
        leakscope.audit_frame(table, ignore=["nr"], **told)
    rows = leakscope.audit_frame(table, ignore=["nr", "patient"], **told)
    assert rows.dataset.person_columns == ("nr", "patient")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_frame_for_a_fitted_model_keeps_its_person_on_record() -> None:
    frame = pd.DataFrame(X, columns=list("abc")).assign(patient_id=np.arange(90) // 3)
    model = LogisticRegression(C=0.01).fit(frame, CLASSES)
    alone = leakscope.audit(frame, CLASSES, model=model)
    assert alone.dataset.person_columns == ("patient_id",)
    assert leakscope.decide(alone, threshold_advantage=0.99).obstacles
    people = leakscope.audit(frame, CLASSES, model=model, groups=frame["patient_id"].tolist())
    assert people.dataset.person_columns == ()


def test_people_with_copies_of_their_own_are_signed_for() -> None:
    rows = np.append(np.arange(90), [0, 0])
    model = LogisticRegression(C=0.01).fit(X[rows], CLASSES[rows])
    with pytest.warns(UserWarning, match="3 of 92 records are exact copies"):
        alone = leakscope.audit(X[rows], CLASSES[rows], model=model)
    assert alone.dataset.copies == 3
    assert leakscope.decide(alone, threshold_advantage=0.99).obstacles
    people = leakscope.audit(X[rows], CLASSES[rows], model=model, groups=rows.tolist())
    assert people.dataset.copies == 0
    found = leakscope.decide(people, decision="approved", threshold_advantage=0.99)
    assert not found.obstacles
    # Three rows of one patient give more away than any of them.
    assert people.advantage[people.record_ids.index(0)] > 1.5 * alone.advantage[0]


# Attackers.


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_three_attackers_stand_on_the_form_and_one_is_judged(logistic: Audit) -> None:
    found = leakscope.decide(logistic, threshold_advantage=0.4, attacker="pool")
    assert [row.attacker for row in found.against] == ["outsider", "pool", "insider"]
    advantage = [row.largest_advantage or 0.0 for row in found.against]
    assert advantage == sorted(advantage)
    assert [row.judged for row in found.against] == [False, True, False]
    assert found.against[1].largest_advantage == logistic.advantage.max()
    assert found.against[2].within is False
    assert any("Against an insider, who knows all" in sentence for sentence in found.summary)
    assert "Against other attackers" in decision_html(found)
    with pytest.raises(InputError, match="audit with --attacker insider"):
        leakscope.decide(logistic, threshold_advantage=0.4, attacker="insider")
    model = LogisticRegression(C=0.1).fit(X, CLASSES)
    insider = leakscope.audit(X, CLASSES, model=model, fraction=0.95)
    again = leakscope.decide(insider, threshold_advantage=0.4, attacker="insider")
    assert again.thresholds[0].largest == found.against[2].largest_advantage


# Who is above.


def test_everybody_above_is_listed_by_the_measure_that_is_judged(
    tmp_path: Path, filed: Path
) -> None:
    limit = 0.003
    words = ["decide", str(filed / "run"), "--threshold-tpr", str(limit)]
    assert main([*words, "--output", str(tmp_path / "form")]) == 3
    audit = Audit.open(filed / "run")
    tpr = audit.table.of("tpr_at_fpr_0_001")
    with (tmp_path / "form" / "above.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    names = np.array(audit.record_ids, dtype=object)
    assert {row["record_id"] for row in rows} == set(names[tpr > limit])
    assert [float(row["tpr_at_fpr_0_001"]) for row in rows] == sorted(tpr[tpr > limit])[::-1]
    first = leakscope.decide(filed / "run", threshold_tpr=limit).exposed
    assert [entry.record_id for entry in first] == names[np.argsort(-tpr)[:10]].tolist()
    # Nobody is named where the record is redacted.
    assert main([*words, "--redact", "--output", str(tmp_path / "redacted")]) == 3
    assert not (tmp_path / "redacted" / "above.csv").exists()


def test_what_compare_found_worse_is_on_the_form(tmp_path: Path) -> None:
    table = write_table(tmp_path / "table.csv")
    strong = audit_run(table, tmp_path / "strong", "--set", "C=0.01")
    weak = audit_run(table, tmp_path / "weak", "--set", "C=10")
    compared = leakscope.compare(strong, weak)
    assert compared.worse
    rows = leakscope.decide(weak, compared, threshold_advantage=0.99).mitigations
    row = next(row for row in rows if "worse: " in row.effect)
    assert all(sentence in row.effect for sentence in compared.worse)


# What the form proposes can be done.


@pytest.mark.parametrize("scaled", [False, True])
def test_the_attack_that_the_form_proposes_is_taken(tmp_path: Path, scaled: bool) -> None:
    table = write_table(tmp_path / "table.csv")
    frame = pd.read_csv(table)
    features, labels = frame[["a", "b", "c"]], frame["y"]
    model: Any = LogisticRegression(C=0.1)
    if scaled:
        model = make_pipeline(StandardScaler(), model)
    skops.io.dump(model.fit(features, labels), tmp_path / "own.skops")
    common = ["--target", "y", "--id", "who"]
    run, found = tmp_path / "run", tmp_path / "attack.json"
    audit = ["audit", str(table), *common, "--model", str(tmp_path / "own.skops")]
    assert main([*audit, "--run-dir", str(run)]) == 0
    row = next(
        row
        for row in leakscope.decide(run, threshold_advantage=0.9).coverage
        if "likelihood ratio" in row.attack
    )
    words = row.found.partition(";")[0].split()[1:]
    told = {"MODEL": str(tmp_path / "own.skops"), "FILE": str(table), "COLUMN": "y"}
    words = [told.get(word, word) for word in words]
    assert main([*words, "--id", "who", "--json", str(found)]) == 0
    # A redacted report does not say where the file lies.
    assert main(["report", str(run), "--redact", "--output", str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text()
    assert "own.skops" in page
    assert str(tmp_path) not in page
    record = leakscope.decide(run, found, threshold_advantage=0.9)
    assert next(row for row in record.coverage if "likelihood ratio" in row.attack).ran


def test_what_is_proposed_of_a_model_in_memory_needs_no_file(logistic: Audit) -> None:
    record = leakscope.decide(logistic, threshold_advantage=0.99)
    possible = [row.found for row in record.coverage if row.state == "not run"]
    assert any("leakscope.verify(audit" in words for words in possible)
    assert not any("verify RUN" in words for words in possible)
    assert "verify RUN" not in decision_html(record)


# One vocabulary of thresholds, and a status for each answer.


@pytest.mark.parametrize(
    ("options", "audited", "decided"),
    [
        (["--threshold-advantage", "0.99"], 0, 0),
        (["--threshold-advantage", "0.01"], 3, 3),
        (["--threshold-tpr", "0.9"], 0, 0),
        (["--threshold-tpr", "0.0011"], 3, 3),
    ],
)
def test_audit_and_decide_judge_by_the_same_thresholds(
    tmp_path: Path, filed: Path, options: list[str], audited: int, decided: int
) -> None:
    words = ["audit", str(filed / "table.csv"), "--target", "y", "--id", "who"]
    words += ["--model", "logistic", "--set", "C=0.1", "--run-dir", str(tmp_path / "run"), *options]
    assert main(words) == audited
    judge = ["decide", str(filed / "run"), *options, "--output", str(tmp_path / "form")]
    assert main(judge) == decided


def test_decide_cannot_tell_where_intervals_reach_or_nobody_may_approve(tmp_path: Path) -> None:
    trees = GradientBoostingClassifier(n_estimators=5)
    audit = leakscope.audit(X, CLASSES, train=trees, models=4)
    audit.write(tmp_path / "trees")
    ends = [audit.table.of(f"advantage_{end}").max() for end in ("low", "high")]
    limit = f"{sum(ends) / 2:.4f}"
    words = ["decide", str(tmp_path / "trees"), "--threshold-advantage", limit]
    assert main([*words, "--output", str(tmp_path / "form")]) == 4
    assert main(["audit", "--example", "iris", "--run-dir", str(tmp_path / "stand-in")]) == 0
    words = ["decide", str(tmp_path / "stand-in"), "--threshold-advantage", "0.999"]
    assert main([*words, "--output", str(tmp_path / "other")]) == 4


def test_gates_name_the_furthest_above_by_the_measure_that_is_judged(logistic: Audit) -> None:
    tpr = logistic.tpr_at_fpr[0.001]
    limit = float(np.sort(tpr)[-4])
    sentence = gate_failures(logistic, {"tpr": limit})[0]
    first = ", ".join(str(row) for row in np.argsort(-tpr)[:3])
    assert sentence == f"3 of 90 records are above the limit, TPR at 0.1% FPR {limit:g}: {first}."


# The table of the page, which is what the code does.


def _examined() -> dict[str, Audit]:
    doubled = np.vstack([X, X[:1]]), np.append(CLASSES, CLASSES[0])
    logistic_model = LogisticRegression(C=0.1)
    training = leakscope.audit(X, CLASSES, train=LogisticRegression(C=0.01), models=64)
    kernel_model = KernelRidge(alpha=30.0, kernel="rbf", gamma=0.05).fit(X, NUMBERS)
    return {
        "a fitted model": leakscope.audit(X, CLASSES, model=logistic_model.fit(X, CLASSES)),
        "a fitted model, two rows alike": leakscope.audit(
            *doubled, model=logistic_model.fit(*doubled)
        ),
        "a fitted model that holds its records": leakscope.audit(X, NUMBERS, model=kernel_model),
        "a training, 64 models": training,
        "a stand-in": leakscope.audit(X, NUMBERS),
    }


def _most(audit: Audit, access: str, attacker: str | None) -> tuple[str, str]:
    """What may be marked at the most, and why not more."""
    told: dict[str, Any] = {"threshold_advantage": 0.99, "access": access, "conditions": "none"}
    why = ""
    for word in (APPROVED, CONDITIONS):
        try:
            leakscope.decide(audit, decision=word, attacker=attacker, **told)
        except InputError as error:
            sentence = str(error).removeprefix(f"this cannot be marked {word}: ")
            why = sentence.partition(";")[0].partition(": if")[0].rstrip(".")
        else:
            return word, why
    return "nothing", why


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_page_says_what_may_be_approved() -> None:
    rows = [
        "| examined | released | for whom | at the most | why not more |",
        "|---|---|---|---|---|",
    ]
    for kind, audit in _examined().items():
        for access in ("black-box", "weights"):
            for who in ("pool", "insider"):
                most, why = _most(audit, access, who)
                rows.append(f"| {kind} | {access} | {who} | {most} | {why or '–'} |")
    page = (Path(__file__).parents[2] / "docs" / "decide.md").read_text(encoding="utf-8")
    table = "\n".join(rows)
    assert table in page, table
