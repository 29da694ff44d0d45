"""What a first hour in Python tries: a report of an audit in memory, advice for a number."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge

import leakscope

X, Y = (part[:120] for part in load_diabetes(return_X_y=True))


@pytest.fixture(scope="module")
def result():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what refits say of 120 records
        return leakscope.audit(X, Y, model=Ridge(alpha=1.0))


def test_a_report_of_an_audit_in_memory(result, tmp_path, monkeypatch):
    """It ended in a TypeError: a run directory had to be written first."""
    monkeypatch.chdir(tmp_path)
    page = leakscope.report(result)
    assert page.name == "report.html"
    names = [f"record {record}" for record in result.ranking()[:1]]
    assert all(name in page.read_text() for name in names)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    redacted = leakscope.report(result, redact=True)
    assert redacted.name == "report-redacted.html"
    # A stored one is reported where it lies, its own measurements beside it.
    opened = leakscope.Audit.open(result.write(tmp_path / "run"))
    assert leakscope.report(opened) == tmp_path / "run" / "report.html"


def test_a_number_is_an_advantage(result):
    told = [
        leakscope.advise(result, target, folds=2, repeats=1, random_state=0).to_frame()
        for target in (0.1, leakscope.AuditTarget("advantage", 0.1))
    ]
    assert np.array_equal(told[0]["option"], told[1]["option"])
    assert told[0].equals(told[1])


def test_a_decision_shows_itself(result):
    found = leakscope.decide(result, threshold_advantage=0.9, prior=0.01)
    assert "Met by every record" in repr(found) or "advantage" in repr(found)
    shown = found._repr_html_()
    assert "blank, to be signed" in shown
    assert "<td><bdi>advantage</bdi></td><td><bdi>0.9</bdi></td>" in shown
