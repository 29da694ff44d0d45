"""A function that trains many models at once: the same models, one call, nothing trained twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakscope
from leakscope import InputError
from leakscope.subjects.training import half_models
from tests.audits import trained_audit

RNG = np.random.default_rng(8)
X = RNG.normal(size=(90, 5))
Y = (X[:, 0] + RNG.normal(size=90) > 0.0).astype(int)


def alone(features: np.ndarray, targets: np.ndarray, seed: int, shrink: float = 1.0) -> Any:
    gram = features.T @ features + shrink * np.eye(features.shape[1])
    weights = np.linalg.solve(gram, features.T @ (2.0 * targets - 1.0))
    weights = weights + 0.1 * np.random.default_rng(seed).normal(size=len(weights))
    return lambda asked: 1.0 / (1.0 + np.exp(-3.0 * (asked @ weights)))


class Together:
    """Counts its calls; ``train`` is what the audit is given."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def train(self, X: Any, y: Any, rows: Any, seeds: Any, shrink: float = 1.0) -> list[Any]:
        self.calls.append(len(seeds))
        assert rows.shape == (len(seeds), len(y))
        return [alone(X[own], y[own], seed, shrink) for own, seed in zip(rows, seeds, strict=True)]


def test_the_models_are_those_that_are_trained_alone() -> None:
    many = Together()
    one = trained_audit(X, Y, alone, models=6, seed=4)
    all_at_once = trained_audit(X, Y, many.train, models=6, seed=4)
    np.testing.assert_array_equal(
        one.examined.half_models.scores, all_at_once.examined.half_models.scores
    )
    np.testing.assert_array_equal(one.advantage, all_at_once.advantage)
    # Three small ones see whether it looks at its rows and its seed.
    assert many.calls == [1, 1, 1, 6]


def test_four_then_eight_train_four_more_in_calls_of_a_limited_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(half_models, "MOST_TOGETHER", 3)
    many = Together()
    trained_audit(X, Y, many.train, models=4, keep=tmp_path / "models")
    trained_audit(X, Y, many.train, models=8, keep=tmp_path / "models")
    assert [count for count in many.calls if count > 1] == [3, 3]
    assert many.calls == [1, 1, 1, 3, 1, 1, 1, 1, 3, 1]


def test_its_options_are_advised_on() -> None:
    many = Together()
    result = trained_audit(X, Y, many.train, models=4)
    target = leakscope.AuditTarget("advantage", 0.5)
    found = leakscope.advise(result, target, tries={"shrink": [50.0]})
    assert found.options[0].name in ("shrink", "output noise") or found.own.meets
    assert many.calls[-1] == 4


def test_what_is_wrong_is_one_sentence_and_what_was_trained_is_kept(tmp_path: Path) -> None:
    def two_short(X: Any, y: Any, rows: Any, seeds: Any) -> list[Any]:
        found = [alone(X[own], y[own], seed) for own, seed in zip(rows, seeds, strict=True)]
        return found[:-1] if len(found) > 1 else found

    with pytest.raises(InputError, match=r"asked for 4 models at once and gave 3.*0 of 4 models"):
        trained_audit(X, Y, two_short, models=4, keep=tmp_path / "models")
