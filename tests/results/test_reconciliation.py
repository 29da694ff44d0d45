"""One table for audit, verify and measure: what agrees, which to believe, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import leakscope
from leakscope import auditing, results
from leakscope.errors import InputError
from leakscope.results.reader import read_run
from leakscope.results.reconciliation import reconciled, was_retrained
from leakscope.verifying import Retraining
from tests.audits import trained_audit


def data(records: int = 200) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(records, 6))
    return X, (X[:, 0] + X[:, 1] + 1.5 * rng.normal(size=records) > 0).astype(int)


def own_scores(model: Any, X: Any, y: Any, seed: int) -> tuple[Any, Any]:
    """Log-odds of the label where half was trained on, and on the other half."""
    order = np.random.default_rng(seed).permutation(len(y))
    inside, outside = order[: len(y) // 2], order[len(y) // 2 :]
    fit = model.fit(X[inside], y[inside])
    z = np.where(y == 1, 1.0, -1.0) * fit.decision_function(X)
    return z[inside], z[outside]


@pytest.mark.parametrize("boosting", [False, True])
def test_one_threshold_predicts_what_measure_finds(boosting: bool) -> None:
    """The audit's worst record and the scores of the same model are two numbers, not a dispute."""
    X, y = data()
    if boosting:
        model: Any = GradientBoostingClassifier(n_estimators=20, max_depth=2)
        audit = trained_audit(X, y, model, models=8)
    else:
        model = LogisticRegression(C=10.0)
        audit = leakscope.audit(X, y, model=model.fit(X, y))
    found = [leakscope.measure(*own_scores(model, X, y, seed)) for seed in range(4)]
    mean = float(np.mean([one.advantage for one in found]))
    spread = float(np.std([one.advantage for one in found]))
    assert (
        abs((audit.details.for_everybody()["advantage"] or 0.0) - mean) < 4 * max(spread, 0.05) / 2
    )
    rows = reconciled(audit, found[:1])
    assert [row.source for row in rows] == ["measure"] * 3
    assert rows[0].agrees == "agrees"
    assert "one threshold for everybody" in rows[0].why
    assert (audit.records[0].advantage or 0.0) > 2 * (rows[0].measured or 0.0)


@pytest.mark.filterwarnings("ignore:For .* of the records one other record")
def test_another_model_differs() -> None:
    """Shadow models of hardly any penalty against the laws of a strong one, and the other way."""
    X, y = data()
    weak = leakscope.audit(X, y, model=LogisticRegression(C=1e3).fit(X, y))
    strong = leakscope.audit(X, y, model=LogisticRegression(C=1e-3).fit(X, y))
    for laws, models in ((strong, weak), (weak, strong)):
        wrong = laws.model_copy().with_memory(laws.laws, models.examined)
        found = leakscope.verify(wrong, models=100)
        # Both give so little away that the means are alike; the checks are not.
        mean, row = reconciled(laws, [found])
        assert (mean.agrees, row.agrees, row.believe) == ("agrees", "differs", "verify")
    check = next(check for check in found.checks if check.quantity.startswith("mean TPR"))
    for predicted, why in ((0.0102, "understates"), (0.9, "overstates")):
        apart = check.model_copy(update={"predicted": predicted, "verdict": "differs"})
        (row,) = reconciled(weak, [found.model_copy(update={"checks": [apart]})])
        assert (row.agrees, row.believe) == ("differs", "verify")
        assert why in row.why


@pytest.mark.filterwarnings("ignore:For .* of the records one other record")
def test_without_an_interval_nothing_is_compared() -> None:
    X, y = data(60)
    audit = leakscope.audit(X, y, model=LogisticRegression().fit(X, y))
    laws = leakscope.measure("normal:1,1", "normal:0,1")
    assert {row.agrees for row in reconciled(audit, [laws])} == {"cannot be compared"}
    stand_in = leakscope.audit(X, y.astype(float), kernel=leakscope.kernels.rbf(1.0))
    scores = leakscope.measure([1.0, 2.0, 3.0, 0.5], [0.0, 0.5, 1.0, -1.0])
    rows = reconciled(stand_in, [scores])
    assert {row.agrees for row in rows} == {"cannot be compared"}
    assert rows[0].believe == "measure, for the average"
    assert reconciled(scores, [scores, None]) != []
    assert reconciled(stand_in, [None, stand_in]) == []


def constant(X: Any, y: Any, seed: int) -> Any:
    return LogisticRegression().fit(X, y > 0).decision_function


def subsampled(X: Any, y: Any, seed: int) -> Any:
    some = np.random.default_rng(seed).random(len(y)) < 0.7
    return LogisticRegression().fit(X[some], y[some] > 0).decision_function


def test_a_report_never_says_that_a_retrained_model_was_not_examined(tmp_path: Path) -> None:
    from leakscope.reporting.writing import report_html

    X, y = data(40)
    audit = leakscope.audit(X, y - 0.5, kernel=leakscope.kernels.rbf(2.0), noise_variance=0.1)
    run = read_run(auditing.write_run(audit, tmp_path / "run"))
    assert "your model was not examined" in report_html(run)
    drawn = leakscope.verify(audit, records=2)
    assert not was_retrained(drawn)
    again = Retraining(train=subsampled, models=8, run_dir=tmp_path / "cells")
    found = leakscope.verify(audit, records=2, retraining=again)
    assert was_retrained(found)
    results.write_result(found, tmp_path / "run" / "verify.json")
    for redact in (False, True):
        page = report_html(read_run(tmp_path / "run"), redact=redact)
        assert "not examined" not in page
        assert "AUC, mean of 2 records" in page
        assert "it trained your own model" in page
    record = leakscope.decide(tmp_path / "run", threshold_advantage=0.99)
    assert record.exposed_basis == "measured"
    assert record.obstacles == []
    assert "your own model" in record.summary[0]
    assert record.thresholds[0].met in (True, None)
    # Where training is deterministic all models of a record are the same, and nothing is measured.
    again = Retraining(train=constant, models=8, run_dir=tmp_path / "same")
    same = leakscope.verify(audit, records=2, retraining=again)
    (row,) = reconciled(audit, [same])
    assert row.agrees == "cannot be compared"
    assert "every model of a record was the same" in row.why
    assert leakscope.decide(audit, same, threshold_advantage=0.9).thresholds[0].met is None


@pytest.mark.filterwarnings("ignore:For .* of the records one other record")
def test_a_report_takes_results_from_elsewhere(tmp_path: Path) -> None:
    X, y = data(60)
    audit = leakscope.audit(X, y, model=LogisticRegression().fit(X, y))
    run = audit.write(tmp_path / "run")
    scores = leakscope.measure([1.0, 2.0, 3.0, 0.5], [0.0, 0.5, 1.0, -1.0])
    file = results.write_result(scores, tmp_path / "measured.json")
    page = leakscope.report(run, tmp_path / "a.html", beside=[file]).read_text()
    assert "advantage, one threshold for all records" in page
    results.write_result(scores, run / "measure.json")
    page = leakscope.report(run, tmp_path / "b.html").read_text()
    assert "advantage, one threshold for all records" in page
    with pytest.raises(InputError, match="cannot be shown beside an audit"):
        leakscope.report(run, tmp_path / "c.html", beside=[run])
    (run / "measure.json").write_text((run / "result.json").read_text())
    with pytest.raises(InputError, match="does not hold a result of leakscope measure"):
        read_run(run)


def test_the_size_of_the_model_is_in_the_result() -> None:
    X, y = data(100)
    document = leakscope.audit(X, y, model=LogisticRegression(C=0.1).fit(X, y))
    fit = document.details.size()
    assert fit is not None
    assert fit.parameters == 7
    # Against refits of halves: accuracy on those used and on those left out.
    rng, used, left = np.random.default_rng(1), [], []
    for _ in range(200):
        inside = rng.random(100) < 0.5
        right = LogisticRegression(C=0.1).fit(X[inside], y[inside]).predict(X) == y
        used.append(right[inside].mean())
        left.append(right[~inside].mean())
    error = 4 * np.hypot(np.std(used), 0.05) / 200**0.5
    assert fit.training == pytest.approx(np.mean(used), abs=error)
    assert fit.left_out == pytest.approx(np.mean(left), abs=error)
