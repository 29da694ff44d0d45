"""What is known by an interval is shown by it: on the screen, in a notebook, on the report."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Ridge

import leakscope
from leakscope.cli.audit import page
from leakscope.comparing import compare
from leakscope.reporting.audit_page import record_columns, table_columns
from leakscope.results.columns import shown_columns
from leakscope.results.shown import ends_text


@pytest.fixture(scope="module")
def forest():
    X, y = load_wine(return_X_y=True)
    return leakscope.audit(X, y, train=RandomForestClassifier(n_estimators=10), models=8)


def test_a_counted_tpr_is_shown_by_its_ends(forest):
    """It stood as 0.8506, where only that it lies between 0.001 and 1 was known."""
    first = forest.records[0]
    low, high = first.tpr_at_fpr_0_01_low, first.tpr_at_fpr_0_01_high
    screen = page(forest, 3)
    assert "TPR at 1% (95%)" in screen
    assert ends_text(low, high) in screen
    # No number of the table is shown without its interval.
    hidden = [forest.table.of(name)[forest.order[:3]] for name in ("tpr_at_fpr_0_01", "auc", "kl")]
    for value in np.concatenate(hidden):
        assert f"{value:.4f}" not in screen
        assert f"{value:.4f}" not in forest.in_short().to_markdown()
    rate = r"[\d.]+% to >?[\d.]+%"
    assert re.search(rf"TPR {rate} at 0.1% FPR and {rate} at 1%", " ".join(screen.split()))


def test_the_notebook_and_the_report_have_the_same(forest):
    short = forest.in_short()
    assert short.headings == (
        "record",
        "advantage",
        "TPR at 1%",
        "TPR at 0.1%",
        "confirmed",
    )
    first = forest.records[0]
    wanted = ends_text(first.tpr_at_fpr_0_001_low, first.tpr_at_fpr_0_001_high)
    assert short.rows[0][3] == wanted
    columns, values = table_columns(forest), record_columns(forest)
    cells = {column.heading: column.cell(values, 0) for column in columns}
    assert cells["TPR at 0.1%, 95%"] == wanted
    assert not {"AUC", "kl", "shift", "TPR at 1%"} & set(cells)


def test_two_forests_are_compared_without_rates_that_may_be_anything(forest):
    found = compare(forest, forest)
    assert found.first.largest_tpr_at_fpr_0_001 is None


def test_exact_numbers_stay_as_they_were():
    X, y = load_diabetes(return_X_y=True)
    exact = leakscope.audit(X, y, model=Ridge(alpha=0.1))
    names = [column.name for column in shown_columns(exact.about.screen, exact.table)]
    assert {"tpr_at_fpr_0_01", "shift_in_sd"} < set(names)
    assert f"{exact.records[0].tpr_at_fpr_0_01:.4f}" in page(exact, 1)
