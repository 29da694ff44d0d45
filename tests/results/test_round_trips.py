"""An audit of every kind, written and read again: the same numbers, words, frame and trust."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier

import leakscope
from leakscope.auditing import audit_streamed
from leakscope.results import Audit, Trust
from leakscope.results.columns import trust_columns

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X[:, 0] + RNG.normal(size=40)
LABELS = (Y > 0.0).astype(int)
LOGISTIC = LogisticRegression(C=0.1, tol=1e-8).fit(X, LABELS)

KINDS: dict[str, dict[str, Any]] = {
    "process": {"y": Y, "kernel": "rbf", "explain": 2},
    "unswept": {"y": Y, "kernel": "rbf", "sensitivity": False},
    "outputs": {"y": np.column_stack([Y, -Y]), "kernel": "rbf", "sensitivity": False},
    "groups": {"y": Y, "kernel": "rbf", "groups": [f"g{row // 2}" for row in range(40)]},
    "nystrom": {"y": Y, "kernel": "rbf", "route": "nystrom", "inducing": 15},
    "fit": {"y": Y, "model": Ridge().fit(X, Y), "explain": 2},
    "label": {"y": LABELS, "model": LOGISTIC, "observes": "label"},
    "training": {"y": LABELS, "train": DecisionTreeClassifier(min_samples_leaf=5)},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_is_read_is_what_was_written(kind: str, tmp_path: Path) -> None:
    audit = leakscope.audit(X, **KINDS[kind])
    again = Audit.open(audit.write(tmp_path / "run"))
    assert again == audit
    assert again.to_dict() == audit.to_dict()
    assert again.answer() == audit.answer()
    assert again.answer(threshold=0.3) == audit.answer(threshold=0.3)
    assert (again.verdict, again.attacker, again.doubt) == (
        audit.verdict,
        audit.attacker,
        audit.doubt,
    )
    assert again.ranking() == audit.ranking()
    assert [again.trust.why(row) for row in again.order] == [
        audit.trust.why(row) for row in audit.order
    ]
    ours, theirs = audit.to_frame(), again.to_frame()
    assert ours.columns.tolist() == theirs.columns.tolist()
    for name in ours.columns.drop("record_id"):
        np.testing.assert_array_equal(
            ours[name].to_numpy(dtype=float), theirs[name].to_numpy(dtype=float), err_msg=name
        )


def test_a_streamed_audit(tmp_path: Path) -> None:
    many = np.random.default_rng(1).normal(size=(600, 4))
    pd.DataFrame(many, columns=list("abcy")).to_parquet(tmp_path / "r.parquet", index=False)
    audit = audit_streamed(tmp_path / "r.parquet", directory=tmp_path / "run", target="y")
    again = Audit.open(tmp_path / "run")
    assert again == audit
    assert (again.units, again.complete) == (600, False)


@pytest.mark.filterwarnings("ignore:For .* of the records a few others")
def test_what_failed_and_what_nobody_looked_at_are_told_apart(tmp_path: Path) -> None:
    audit = leakscope.audit(X, Y, model=Ridge().fit(X, Y))
    trust = Trust(audit.checks, np.array([0] * 38 + [-1, -2]))
    table = type(audit.table)(
        {**audit.table.columns, **trust_columns(trust)}, np.arange(len(audit.table))
    )
    doubted = audit.model_copy(update={"table": table})
    again = Audit.open(doubted.write(tmp_path / "run"))
    assert [again.trust.why(row) for row in (0, 38, 39)] == [
        audit.checks[0],
        f"failed: {audit.checks[0]}",
        "not checked",
    ]
