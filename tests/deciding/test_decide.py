"""What a record says, what it refuses, and that a changed digit is seen."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression

import leakscope
from conftest import audit_run, write_table
from leakscope.cli import main
from leakscope.deciding import check_record
from leakscope.deciding.evidence import Evidence, Given, ReleasedFile, require_model_file
from leakscope.errors import InputError
from leakscope.reporting.decision_page import decision_html, decision_markdown
from leakscope.results import Audit, read_result
from leakscope.results.columns import Table
from leakscope.results.decision import DECISION_FILES

LIMIT = ("--threshold-advantage", "0.9")


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one sentence of a command that ends with status 2."""
    capsys.readouterr()
    assert main(["decide", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("leakscope: ")
    assert err.count("\n") == 1
    return err


@pytest.fixture
def place(filed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(filed / "run", tmp_path / "run")
    return tmp_path


def test_the_form_is_written_and_checks(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decide", "--template"]) == 0
    Path("release.toml").write_text(
        capsys.readouterr().out.replace("# recipient = ", 'recipient = "two hospitals"')
    )
    words = ["run", *LIMIT, "--prior", "0.05", "--declare", "release.toml", "--output", "form"]
    assert main(["decide", *words]) == 0
    out = capsys.readouterr().out
    assert "Examined: LogisticRegression(C=0.1)" in out
    assert "Met by every record." in out
    assert "Not stated: what is released, and for what" in " ".join(out.split())
    assert sorted(p.name for p in Path("form").iterdir()) == sorted(DECISION_FILES)
    assert Path("form").stat().st_mode & 0o777 == 0o700
    assert main(["decide", "--check", "form"]) == 0
    record = read_result("form/decision.json")
    assert record.stated("recipient").value == "two hospitals"  # type: ignore[attr-defined]
    assert record.record_hash in capsys.readouterr().out  # type: ignore[attr-defined]
    for name in DECISION_FILES:
        assert record.record_hash in Path("form", name).read_text()  # type: ignore[attr-defined]


def test_the_numbers_are_the_audits(place: Path) -> None:
    record = leakscope.decide("run", threshold_advantage=0.2, prior=0.05)
    audit = read_result("run/result.json")
    assert isinstance(audit, Audit)
    assert [entry.record_id for entry in record.exposed] == [
        entry.record_id for entry in audit.records[:10]
    ]
    first = record.exposed[0]
    assert first.tpr_at_fpr_0_001 == audit.records[0].tpr_at_fpr_0_001
    tpr = audit.records[0].tpr_at_fpr_0_001 or 0.0
    assert first.ppv == pytest.approx(0.05 * tpr / (0.05 * tpr + 0.95 * 0.001))
    assert first.lift == pytest.approx((first.ppv or 0.0) / 0.05)
    total = sum(entry.tpr_at_fpr_0_01 or 0.0 for entry in audit.records)
    assert record.levels[1].expected_found == pytest.approx(total)
    above = sum((entry.advantage or 0.0) > 0.2 for entry in audit.records)
    assert record.thresholds[0].above == above
    assert record.thresholds[0].met is (above == 0)
    assert record.stated("parameters").value == 4
    assert record.stated("residual_degrees_of_freedom").value == 76
    assert record.stated("parameters_per_record").value == pytest.approx(4 / 80)
    told = audit.dataset.source.digest if audit.dataset.source else ""
    assert str(record.stated("data.digest").value) in told
    assert str(record.stated("data.file_sha256").value) in told


def test_what_nobody_stated_is_never_zero(place: Path) -> None:
    record = leakscope.decide("run", threshold_tpr=0.5)
    unstated = [f for f in (*record.identity, *record.context, *record.attacker) if f.value is None]
    assert {f.key for f in unstated} == {
        "model.file",
        "model.sha256",
        "release",
        "recipient",
        "access",
        "queries",
        "attacker.who",
        "prior",
    }
    assert {f.text for f in unstated if f.basis == "declared"} == {"not stated"}
    # Nobody could have stated what a run computes.
    assert {f.text for f in unstated if f.basis == "computed"} == {
        "no file was given (--model FILE)"
    }
    for page in (decision_html(record), decision_markdown(record)):
        assert "not stated (computed)" not in re.sub(r"<[^>]*>", " ", page).replace("  ", " ")
    assert record.exposed[0].ppv is None
    assert record.levels[0].lift is None
    assert record.sign_off.model_dump() == dict.fromkeys(
        ("decision", "because", "conditions", "approver", "expires")
    )


def test_the_bases_are_kept_apart(place: Path) -> None:
    record = leakscope.decide("run", threshold_tpr=0.5, prior=0.1, release="a paper")
    bases = {f.key: f.basis for f in (*record.identity, *record.context, *record.attacker)}
    assert {k for k, basis in bases.items() if basis == "declared"} == {
        "release",
        "recipient",
        "access",
        "queries",
        "attacker.who",
        "prior",
    }
    assert record.exposed_basis == "computed"
    assert {row.source for row in record.reconciliation} == {"verify"}


def test_redacted_records_name_nobody(place: Path) -> None:
    assert main(["decide", "run", *LIMIT, "--redact", "--output", "form"]) == 0
    first = read_result("run/result.json").records[0].record_id  # type: ignore[attr-defined]
    for name in DECISION_FILES:
        assert re.search(rf"\b{first}\b", Path("form", name).read_text()) is None


def test_a_model_card_never_names_a_record(place: Path) -> None:
    assert main(["decide", "run", *LIMIT, "--output", "form"]) == 0
    assert re.search(r"\bp\d+\b", Path("form/decision.html").read_text())
    assert re.search(r"\bp\d+\b", Path("form/decision.md").read_text()) is None


def test_every_changed_digit_is_seen(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decide", "run", *LIMIT, "--prior", "0.1", "--output", "form"]) == 0
    rng = np.random.default_rng(0)
    for name in DECISION_FILES:
        file = Path("form", name)
        text = file.read_text()
        digits = [match.start() for match in re.finditer(r"\d", text)]
        for spot in rng.choice(digits, 40, replace=False):
            other = str((int(text[spot]) + 1) % 10)
            file.write_text(text[:spot] + other + text[spot + 1 :])
            with pytest.raises(InputError, match=r"was changed|carries no own hash"):
                check_record(file)
        file.write_text(text)
    file = Path("form/decision.json")
    file.write_text(file.read_text().replace('"limit": 0.9', '"limit": 0.8'))
    assert "was changed after it was written" in refused(capsys, "--check", "form/decision.json")
    assert "was changed after it was written" in refused(capsys, "--check", "form")


def test_files_of_two_records_are_not_one(place: Path) -> None:
    for name in ("one", "two"):
        assert main(["decide", "run", *LIMIT, "--output", name]) == 0
    shutil.copy("two/decision.html", "one/decision.html")
    with pytest.raises(InputError, match="does not show the record"):
        check_record("one")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "What is acceptable?"),
        (["--threshold-ppv", "0.5"], "--threshold-ppv needs --prior"),
        ([*LIMIT, "--prior", "0"], "--prior: input should be greater than 0"),
        ([*LIMIT, "--prior", "1.2"], "--prior: input should be less than 1"),
        ([*LIMIT, "--prior", "nan"], "--prior"),
        (["--threshold-tpr", "1"], "--threshold-tpr: input should be less than 1"),
        ([*LIMIT, "--declare", "gone.toml"], "gone.toml is no file of declarations"),
        ([*LIMIT, "--model", "gone.skops"], "There is no file gone.skops"),
        ([*LIMIT, "--decision", "approved with conditions"], "needs conditions"),
    ],
)
def test_bad_options_are_one_sentence_and_no_form(
    place: Path, capsys: pytest.CaptureFixture[str], options: list[str], sentence: str
) -> None:
    before = sorted(place.rglob("*"))
    assert sentence in refused(capsys, "run", *options, "--output", "form")
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("access = 'both'", "access"),
        ("queries = 0", "queries"),
        ("expires = 'soon'", "expires"),
        ("colour = 3", "colour"),
        ("colour", "no file of declarations"),
    ],
)
def test_bad_declarations_are_one_sentence(
    place: Path, capsys: pytest.CaptureFixture[str], text: str, word: str
) -> None:
    (place / "bad.toml").write_text(text)
    assert word in refused(capsys, "run", *LIMIT, "--declare", "bad.toml")


def test_runs_of_different_data_or_models_are_refused(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write_table(place / "table.csv")
    audit_run(table, place / "weaker", "--set", "C=1")
    audit_run(write_table(place / "other.csv", seed=1), place / "elsewhere")
    process = ["audit", str(place / "other.csv"), "--target", "y", "--id", "who"]
    process += ["--task", "classification", "--model", "rbf", "--run-dir", str(place / "process")]
    assert main(process) == 0
    before = sorted(place.rglob("*"))
    for runs, sentence in (
        (("run", "weaker"), "a decision is about one model"),
        (("run", "elsewhere"), "a decision is about one model"),
        (("run", "process"), "run and process are of different data"),
        (("weaker", "run/verify.json"), "verifies another run's result"),
        (("run/verify.json",), "verifies another run's result"),
        ((), "Which run?"),
        (("nowhere",), "There is no file nowhere"),
    ):
        assert sentence in refused(capsys, *runs, *LIMIT, "--output", "form")
    assert sorted(place.rglob("*")) == before


def test_a_run_changed_by_hand_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = place / "run" / "result.json"
    text = file.read_text()
    spot = text.index('"advantage": 0.') + len('"advantage": 0.')
    file.write_text(text[:spot] + str((int(text[spot]) + 1) % 10) + text[spot + 1 :])
    assert "was changed after the run was written" in refused(capsys, "run", *LIMIT)


def test_a_model_file_that_changed_is_refused(place: Path) -> None:
    document = read_result("run/result.json")
    assert isinstance(document, Audit)
    file = place / "model.skops"
    file.write_bytes(b"as audited")

    digest = hashlib.sha256(b"as audited").hexdigest()
    model = document.model.model_copy(update={"file_sha256": digest, "file": str(file)})
    audited = document.model_copy(update={"model": model})
    evidence = Evidence((Given("run", audited, "ab"),))
    as_audited = ReleasedFile("model.skops", digest, examined=True)
    assert require_model_file(evidence, file) == as_audited
    assert require_model_file(evidence, None) == as_audited
    file.write_bytes(b"trained again")
    for given in (file, None):
        with pytest.raises(InputError, match="is not the model that was audited"):
            require_model_file(evidence, given)


def test_the_hash_of_a_model_file_is_its_sha256(place: Path) -> None:
    (place / "model.bin").write_bytes(b"abc")
    record = leakscope.decide("run", model="model.bin", threshold_advantage=0.9)
    # FIPS 180-2, appendix B.1.
    assert record.stated("model.sha256").value == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def untrusted_audit() -> Audit:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    y = (X[:, 0] + rng.normal(size=50) > 0).astype(int)
    found = leakscope.audit(X, y, model=LogisticRegression(C=0.1).fit(X, y))
    confirmed, check = found.confirmed.copy(), found.table.columns["check"].copy()
    confirmed[found.order[:3]], check[found.order[:3]] = False, None
    table = Table({**found.table.columns, "confirmed": confirmed, "check": check}, found.order)
    return found.model_copy(update={"table": table})


def test_untrusted_numbers_are_said_first_and_cannot_be_approved() -> None:

    audit = untrusted_audit()
    record = leakscope.decide(audit, threshold_advantage=0.99)
    assert not record.may_be_approved
    assert "3 of 50 records are not confirmed" in record.obstacles[0]
    page = decision_html(record)
    first_page = page.split('<section id="first-page">')[1].split("Thresholds</h2>")[0]
    assert "This cannot be approved on these numbers" in first_page
    assert "☐ refused" in first_page
    assert "☐ approved" not in first_page
    assert "cannot be approved" in decision_markdown(record).split("### Decision")[0]
    for word in ("approved", "approved with conditions"):
        with pytest.raises(InputError, match=f"cannot be marked {word}: the numbers of 3 of 50"):
            leakscope.decide(audit, threshold_advantage=0.99, decision=word, conditions="none")
    assert leakscope.decide(audit, threshold_advantage=0.99, decision="refused").sign_off.decision


def test_a_threshold_that_is_not_met_needs_conditions(place: Path) -> None:
    with pytest.raises(InputError, match="a threshold is not met"):
        leakscope.decide("run", threshold_advantage=0.0, decision="approved")
    record = leakscope.decide(
        "run",
        threshold_advantage=0.0,
        decision="approved with conditions",
        conditions="answers rounded to two digits",
        because="the study is long over",
        approver="A. Person",
        expires="2027-06-30",
    )
    assert str(record.sign_off.expires) == "2027-06-30"
    assert leakscope.decide("run", threshold_advantage=0.9, decision="approved").may_be_approved


def test_the_form_offers_what_the_numbers_allow(place: Path) -> None:
    for limit, boxes in (
        (0.9, ["approved", "approved with conditions", "refused"]),
        (0.0, ["approved with conditions", "refused"]),
    ):
        page = decision_html(leakscope.decide("run", threshold_advantage=limit))
        assert re.findall(r"☐ ([a-z ]+)<", page) == boxes


def test_a_stand_in_cannot_be_approved(place: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = X[:, 0] + rng.normal(size=30)
    stand_in = leakscope.audit(X, y, noise_variance=0.1, kernel=leakscope.kernels.rbf(1.0))
    record = leakscope.decide(stand_in, threshold_advantage=0.5)
    assert "a stand-in was examined" in record.obstacles[0]
    assert record.thresholds[0].met is None
    assert record.exposed == []
    scores = leakscope.measure([1.0, 2.0, 3.0], [0.0, 0.5, 1.0])
    assert "no run says how exposed" in leakscope.decide(scores, threshold_tpr=0.1).obstacles[0]
    # A model that leakscope chose itself is one too.
    X, y = load_diabetes(return_X_y=True)
    own = leakscope.audit(X, y)
    assert "as leakscope fitted it" in leakscope.decide(own, threshold_advantage=0.99).obstacles[0]
    with pytest.raises(InputError, match="cannot be marked approved: a stand-in"):
        leakscope.decide(own, threshold_advantage=0.99, decision="approved")


def test_an_audit_of_a_sample_is_of_another_model(place: Path) -> None:
    audit_run(
        write_table(place / "table.csv"), place / "some", "--set", "C=0.1", "--read", "sample=60"
    )
    record = leakscope.decide("some", threshold_advantage=0.99)
    assert "a sample of 60 records" in record.obstacles[0]


def test_shadow_models_that_agree_bear_untrusted_records_out() -> None:
    document = untrusted_audit()
    verification = leakscope.verify(document, models=400)
    doubted = {record.record_id for record in document.records if not record.confirmed}
    left = doubted - set(verification.borne_out)
    assert set(verification.borne_out) <= doubted
    assert len(left) < 3
    record = leakscope.decide(document, verification, threshold_advantage=0.99)
    assert sum("not confirmed" in sentence for sentence in record.obstacles) == bool(left)


def test_json_to_stdout_holds_nothing_else(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decide", "run", *LIMIT, "--output", "form", "--json", "-"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content == json.loads(Path("form/decision.json").read_text())
    assert "Give --check alone" in refused(capsys, "run", "--check", "form")
    assert "already there" in refused(capsys, "run", *LIMIT, "--output", "form")
