"""A record has one level and one word of trust, on every face; a contradiction stops the form."""

from __future__ import annotations

import csv
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

import leakscope
from leakscope.errors import InputError
from leakscope.reporting import write_decision
from leakscope.results import Audit, write_result
from leakscope.results.columns import COLUMNS, text_with_ends
from leakscope.results.reconciliation import reconciled
from leakscope.results.verification import Verification
from leakscope.subjects.subject import shared_answers

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

NUMBERS = ("advantage", "tpr_at_fpr_0_001", "tpr_at_fpr_0_01")

# Everybody is above it, so that above.csv names everybody.
EVERYBODY: dict[str, Any] = {"threshold_tpr": 1e-12}


def boosting() -> tuple[Audit, dict[str, int]]:
    rows = np.random.default_rng(5).permutation(569)[:70]
    X, y = load_breast_cancer(return_X_y=True)
    trees = GradientBoostingClassifier(n_estimators=6, max_depth=2)
    return leakscope.audit(X[rows], y[rows], train=trees, models=24), {"models": 32}


def ridge() -> tuple[Audit, dict[str, int]]:
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:150]
    return leakscope.audit(X, y[:150], model=Ridge(alpha=2.0).fit(X, y[:150])), {"models": 60}


def fit() -> tuple[Audit, dict[str, int]]:
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = LogisticRegression(C=1.0, tol=1e-8, max_iter=5000).fit(X, y)
    return leakscope.audit(X, y, model=model), {"models": 200}


def process() -> tuple[Audit, dict[str, int]]:
    X, y = load_diabetes(return_X_y=True)
    return leakscope.audit(X[:60], y[:60], kernel="rbf"), {"draws": 200}


@pytest.fixture(scope="module", params=[boosting, fit, process])
def judged(request: pytest.FixtureRequest) -> tuple[Audit, Verification]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        audit, count = request.param()
    return audit, leakscope.verify(audit, records=4, **count)


def test_every_face_shows_the_audits_level_and_trust(
    judged: tuple[Audit, Verification], tmp_path: Path
) -> None:
    audit, verification = judged
    run = audit.write(tmp_path / "run")
    write_result(verification, run / "verify.json")
    with (run / "records.csv").open() as stream:
        table = {row["record_id"]: row for row in csv.DictReader(stream)}
    assert len(table) == audit.units

    def same(shown: dict[str, Any], digits: float = 0.0) -> None:
        expected = table[str(shown["record_id"])]
        assert str(bool(int(shown["confirmed"]))) == expected["confirmed"]
        for name in (f"{one}{end}" for one in NUMBERS for end in ("", "_low", "_high")):
            if name in shown:
                text = expected.get(name) or "nan"
                number = np.nan if shown[name] in (None, "") else float(shown[name])
                assert number == pytest.approx(float(text), rel=digits, abs=0.0, nan_ok=True)

    for document in (verification, None):
        record = leakscope.decide(*([run] if document else [audit]), **EVERYBODY)
        folder = write_decision(record, tmp_path / f"form-{document is None}")
        if audit.basis == "assumed":
            # A stand-in's level is none of the model's.
            assert not record.exposed
            assert not record.may_be_approved
            continue
        with (folder / "above.csv").open() as stream:
            above = [
                {**row, "confirmed": row["confirmed"] == "True"} for row in csv.DictReader(stream)
            ]
        stored = json.loads((folder / "decision.json").read_text())
        assert {row["record_id"] for row in above} == set(table)
        assert len(stored["above"]) == len(table)
        for row in (*above, *stored["above"], *stored["exposed"]):
            same(row)
        page = (folder / "decision.html").read_text()
        rows = {row["record_id"]: row for row in audit.table.rows()}
        for row in stored["exposed"]:
            record_row = rows[row["record_id"]]
            cells = [
                text_with_ends(COLUMNS[name], record_row).replace(">", "&gt;") for name in NUMBERS
            ]
            pattern = ".*".join(map(re.escape, [f'"id">{row["record_id"]}<', *cells]))
            assert re.search(f"{pattern}.*<td>{'yes' if record_row['confirmed'] else 'NO'}<", page)
    page = leakscope.report(run, tmp_path / "page.html").read_text()
    held = json.loads(re.search(r'id="report-data">(.*?)</script', page, re.DOTALL)[1])["records"]
    for place, name in enumerate(held["id"]):
        row = {column: values[place] for column, values in held.items()}
        same({**row, "record_id": name}, digits=1e-5)


def test_what_the_audit_does_not_know_may_be_approved_where_verify_agrees() -> None:
    audit, count = fit()
    assert not audit.known.all()
    options: dict[str, Any] = {"threshold_advantage": 0.9999, "decision": "approved"}
    with pytest.raises(InputError, match="not confirmed"):
        leakscope.decide(audit, **options)
    verification = leakscope.verify(audit, **count)
    assert not verification.contradicts
    (row,) = reconciled(audit, [verification])
    assert row.agrees == "agrees"
    assert leakscope.decide(audit, verification, **options).may_be_approved


class Answering:
    """A subject whose models answer otherwise than its laws say."""

    def __init__(self, given: Any, changed: Callable[[Any], Any]) -> None:
        self.given, self.changed = given, changed

    def __getattr__(self, name: str) -> Any:
        return getattr(self.given, name)

    def answers(self, units: Any, count: int, seed: int) -> Any:
        answers = self.given.answers(units, count, seed)
        scores = self.changed(answers)
        return shared_answers(scores, answers.trained_on, units, answers.how, count)


def remembered(answers: Any) -> Any:
    """Of each record that a model was trained on, the table of its targets."""
    return np.where(answers.trained_on, answers.scores.max() + 1.0, answers.scores)


def doubled(answers: Any) -> Any:
    """Every answer moved twice as far from that of the others."""
    return answers.scores + 2.0 * answers.scores.std() * answers.trained_on


CONTRADICTED = [
    # laws, and how the models answer instead
    (ridge, remembered),
    (ridge, doubled),
    (boosting, doubled),
]


@pytest.mark.parametrize(("laws", "changed"), CONTRADICTED)
def test_what_verify_contradicts_cannot_be_approved(
    laws: Callable[[], tuple[Audit, dict[str, int]]],
    changed: Callable[[Any], Any],
    tmp_path: Path,
) -> None:
    right, count = laws()
    wrong = right.model_copy().with_memory(right.laws, Answering(right.examined, changed))
    verification = leakscope.verify(wrong, records=5, **count)
    assert verification.contradicts
    options: dict[str, Any] = {"threshold_advantage": 0.999, "conditions": "none"}
    assert leakscope.decide(right, **options).may_be_approved or not right.known.all()
    run = right.write(tmp_path / "run")
    write_result(verification, run / "verify.json")
    for given in ([right, verification], [run]):
        record = leakscope.decide(*given, **options)
        assert not record.may_be_approved
        assert record.thresholds[0].met is None
        assert "differs" in {row.agrees for row in record.reconciliation}
        for word in ("approved", "approved with conditions"):
            with pytest.raises(InputError, match="contradicts the audit"):
                leakscope.decide(*given, decision=word, **options)


def test_a_mean_that_lies_apart_or_a_side_that_all_err_to_is_a_contradiction() -> None:
    """Every record alone agrees within its errors; verify ended with 0 and the form was open."""
    right, _ = ridge()
    slightly = 0.75 * (right.table.of("mean_with") - right.table.of("mean_without"))

    def moved(answers: Any) -> Any:
        return answers.scores + slightly * answers.trained_on

    wrong = right.model_copy().with_memory(right.laws, Answering(right.examined, moved))
    verification = leakscope.verify(wrong, records=12, models=40)
    single = [check for check in verification.checks if check.law.startswith("record ")]
    assert all(check.verdict != "differs" for check in single)
    assert verification.contradicts
