"""Section 5 at reduced width: what the paper states of d = 20 and d = 100."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope.errors import InputError
from leakscope.relu import TrainingPlan
from papers.relu_margin import margin_experiment


def test_the_papers_statements_hold_at_reduced_width() -> None:
    plan = TrainingPlan(width=300, steps=5000, flow_steps=1500)
    found = margin_experiment([10, 20, 100], plan=plan, networks=4, test_points=1000)
    ten, twenty, hundred = found.rows
    assert min(row.fitted for row in found.rows) >= 3
    # About 80% of the test points lie below the margin at d = 20, nearly all at d = 100.
    assert 0.7 < 1.0 - twenty.test_above < 0.9
    assert 1.0 - hundred.test_above > 0.98
    assert ten.test_above > twenty.test_above > hundred.test_above
    assert ten.train_5 < hundred.train_5 == 1.0
    assert hundred.residual_largest < 0.03
    frame = found.to_frame()
    assert list(frame["features"]) == [10, 20, 100]
    assert found.to_dict()["rows"][1]["features"] == 20


def test_two_points_with_contradicting_labels_fit_no_network() -> None:
    plan = TrainingPlan(width=10, steps=100, flow_steps=10)
    row = margin_experiment([1], plan=plan, networks=2, test_points=5).rows[0]
    assert row.fitted == 0
    assert np.isnan(row.test_above)


def test_no_dimension_is_refused() -> None:
    with pytest.raises(InputError, match="dimensions"):
        margin_experiment([])
