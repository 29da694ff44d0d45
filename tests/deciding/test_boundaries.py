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
from leakscope.results import Audit
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
        (Ridge(), "holds a Ridge"),
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
    people = "twins, seen by their doctor"
    found = leakscope.decide(run, decision="approved", people=people, **told)
    assert found.stated("people").text == people


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
    with pytest.raises(InputError, match=r"audit with --question pool --fraction 0\.95"):
        leakscope.decide(logistic, threshold_advantage=0.4, attacker="insider")
    model = LogisticRegression(C=0.1).fit(X, CLASSES)
    with pytest.warns(UserWarning, match="not trusted"):
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
    strong = audit_run(table, tmp_path / "strong", "--C", "0.01")
    weak = audit_run(table, tmp_path / "weak", "--C", "10")
    compared = leakscope.compare(strong, weak)
    assert compared.worse
    rows = leakscope.decide(weak, compared, threshold_advantage=0.99).mitigations
    row = next(row for row in rows if "worse in" in row.effect)
    assert f"worse in {len(compared.worse)} respects" in row.effect


# Verification.


@pytest.mark.filterwarnings("ignore:For .* of the records one other record")
def test_thresholds_are_judged_by_what_verify_measured_where_it_differs(logistic: Audit) -> None:
    """The laws of one model, and shadow models of another that gives far more away."""
    weak = LogisticRegression(C=1e3)
    other = leakscope.audit(X, CLASSES, model=weak.fit(X, CLASSES))
    wrong = logistic.model_copy().with_memory(logistic.laws, other.examined)
    found = leakscope.verify(wrong, models=100, records=4)
    assert found.differs
    assert {one.record for one in found.measured} == set(wrong.record_ids)
    largest = float(logistic.advantage.max())
    # Within the intervals of the most exposed, and above all that the laws say.
    limit = max(largest, *(one.advantage_low for one in found.measured)) + 0.01
    told: dict[str, Any] = {"threshold_advantage": limit, "conditions": "none"}
    assert leakscope.decide(logistic, **told).thresholds[0].met
    record = leakscope.decide(wrong, found, **told)
    assert record.thresholds[0].met is None
    assert (record.thresholds[0].largest or 0.0) > largest + 0.1
    assert record.exposed_basis == "measured"
    assert record.exposed_how == "measured with 100 shadow models"
    with pytest.raises(InputError, match="not known to be met"):
        leakscope.decide(wrong, found, decision="approved", **told)
    # An interval that reaches the limit leaves it open; one that does not, meets it.
    ends = [one.advantage_high for one in found.measured]
    for limit, met in ((max(ends) - 0.01, None), (max(ends) + 0.001, True)):
        again = leakscope.decide(wrong, found, threshold_advantage=limit)
        assert again.thresholds[0].met is met
    # What the same laws say of other attackers is not known to hold either.
    assert not any(row.within for row in record.against)


def test_what_is_not_trusted_is_judged_by_its_measured_interval() -> None:
    model = LogisticRegression(C=0.1).fit(X, CLASSES)
    with pytest.warns(UserWarning, match="not trusted"):
        audit = leakscope.audit(X, CLASSES, model=model, fraction=0.9)
    assert audit.untrusted
    assert leakscope.decide(audit, threshold_advantage=0.99).obstacles
    found = leakscope.verify(audit, models=200, records=4, seed=1)
    doubted = {n for n, good in zip(audit.record_ids, audit.trusted, strict=True) if not good}
    assert doubted <= {one.record for one in found.measured}
    record = leakscope.decide(audit, found, threshold_advantage=0.99)
    assert not any("not trusted" in sentence for sentence in record.obstacles)


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
        (["--threshold-ppv", "0.9", "--prior", "0.5"], 0, 0),
        (["--threshold-ppv", "0.51", "--prior", "0.5"], 3, 3),
        (["--threshold-ppv", "0.9"], 2, 2),
    ],
)
def test_audit_and_decide_judge_by_the_same_thresholds(
    tmp_path: Path, filed: Path, options: list[str], audited: int, decided: int
) -> None:
    words = ["audit", str(filed / "table.csv"), "--target", "y", "--id", "who"]
    words += ["--model", "logistic", "--C", "0.1", "--run-dir", str(tmp_path / "run"), *options]
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
