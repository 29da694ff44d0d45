"""Labels are named where they disagree more than chance explains, and hardly ever elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import leakscope
from leakscope.subjects.process.explanation import FALSE_ALARM, calibrated, surprising_from


def null_audit(seed: int, noise_variance: float, classes: int | None = None) -> leakscope.Audit:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 4))
    y = rng.normal(size=120)
    if classes is not None:
        y = np.eye(classes)[rng.integers(0, classes, 120)] - 1.0 / classes
    return leakscope.audit(X, y, noise_variance=noise_variance, sensitivity=False)


@pytest.mark.parametrize("noise_variance", [0.01, 1.0])
def test_labels_of_noise_are_hardly_ever_named(noise_variance: float) -> None:
    """A binomial bound: of 60 datasets at most 8 have one (at 5% such a count has p < 0.01)."""
    named = [len(null_audit(seed, noise_variance).details.disagreeing) > 0 for seed in range(60)]
    assert sum(named) <= 8


@pytest.mark.parametrize("classes", [2, 5])
def test_classes_of_noise_are_not_named(classes: int) -> None:
    named = [len(null_audit(seed, 0.01, classes).details.disagreeing) > 0 for seed in range(20)]
    assert sum(named) <= 3


def test_the_noise_that_was_assumed_makes_no_claim() -> None:
    """At the default noise the raw disagreement of a null label is tens of deviations."""
    audits = [null_audit(seed, 0.01) for seed in range(10)]
    assert np.median([a.laws.separation.disagreement.max() for a in audits]) > 10.0
    assert all(calibrated(a.laws.separation.disagreement, 1).max() < 5.0 for a in audits)


def test_a_wrong_label_is_named_at_any_noise() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=120)
    row = int(np.argmin(np.abs(X).sum(axis=1)))
    y[row] += 3.0
    for noise_variance in (1e-3, 0.01, 0.1):
        result = leakscope.audit(X, y, noise_variance=noise_variance, sensitivity=False)
        first = result.details.disagreeing[0]
        assert first.record_id == row
        assert first.disagreement > surprising_from(120, 1)


@pytest.mark.parametrize(("records", "outputs"), [(50, 1), (400, 3), (2000, 10)])
def test_the_threshold_is_that_of_the_farthest_normal_label(records: int, outputs: int) -> None:
    rng = np.random.default_rng(0)
    squares = (rng.normal(size=(2000, records, outputs)) ** 2).mean(axis=2) if records < 500 else (
        rng.chisquare(outputs, size=(2000, records)) / outputs
    )  # fmt: skip
    share = float(np.mean(np.sqrt(squares.max(axis=1)) > surprising_from(records, outputs)))
    spread = np.sqrt(FALSE_ALARM * (1.0 - FALSE_ALARM) / 2000)
    # Bonferroni's bound: no more than the share, and for independent labels hardly less.
    assert FALSE_ALARM * 0.95 - 4.0 * spread <= share <= FALSE_ALARM + 4.0 * spread
