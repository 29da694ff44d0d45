"""Training that stops: nothing is trained twice, and nothing else is taken for the same."""

from __future__ import annotations

import importlib
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from small_training import Linear, X, Y, train

import leakscope
from leakscope import InputError
from leakscope.halves import train as training
from leakscope.recipes.recipe import recipe_of


@pytest.fixture
def as_many_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "USUAL", 64)
    monkeypatch.setattr(training, "MOST", 256)


def test_four_models_then_eight_trains_four(tmp_path: Path) -> None:
    trained: list[int] = []

    def counted(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
        trained.append(seed)
        return train(features, targets, seed)

    def count(**asked: Any) -> tuple[int, Any]:
        before = len(trained)
        audit = leakscope.audit(X, Y, train=counted, **asked)
        return len(trained) - before - 3, audit  # three times it is tried on few records

    first, four = count(models=4, keep=str(tmp_path))
    again, same = count(models=4, keep=str(tmp_path))
    more, eight = count(models=8, keep=str(tmp_path))
    assert (first, again, more) == (4, 0, 4)
    assert np.array_equal(four.advantage, same.advantage)
    assert (eight.details.models, eight.details.reused) == (8, 4)
    assert f"(4 trained, 4 reused, made on {datetime.now(UTC):%Y-%m-%d})" in eight.answer()[0]
    assert np.array_equal(eight.advantage, leakscope.audit(X, Y, train=train, models=8).advantage)


@pytest.mark.usefixtures("as_many_as_it_takes")
def test_models_double_until_they_confirm(monkeypatch: pytest.MonkeyPatch) -> None:
    def flat(features: np.ndarray, targets: np.ndarray, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        weights = rng.normal(size=features.shape[1]) + 1e-6 * targets.sum()
        return lambda asked: 1.0 / (1.0 + np.exp(-asked @ weights))

    counts = {name: leakscope.audit(X, Y, train=train) for name in ("own",)}
    assert counts["own"].details.models in (64, 128, 256)
    same = leakscope.audit(X, Y, train=train, models=counts["own"].details.models)
    assert np.array_equal(same.advantage, counts["own"].advantage)
    assert leakscope.audit(X, Y, train=flat).details.models < 256


@pytest.mark.usefixtures("as_many_as_it_takes")
def test_slow_models_are_four_and_minutes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "USUAL_MINUTES", 1e-4)
    assert leakscope.audit(X, Y, train=train).details.models == 4
    assert leakscope.audit(X, Y, train=train, minutes=1e-6).details.models == 4
    assert leakscope.audit(X, Y, train=train, minutes=10.0).details.models > 4
    assert leakscope.audit(X, Y, train=train, models=6).details.models == 6


def test_a_third_model_that_fails_keeps_the_first_two(tmp_path: Path) -> None:
    broken = [3]

    def fragile(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
        if len(targets) == 60 and seed > 2:
            broken[0] -= 1
            if broken[0] == 0:
                raise FloatingPointError("loss is nan")
        return train(features, targets, seed)

    with pytest.raises(InputError, match=r"Model 3: .*FloatingPointError: loss is nan"):
        leakscope.audit(X, Y, train=fragile, models=4, keep=str(tmp_path))
    assert len(list(tmp_path.glob("*/model=*.npz"))) == 2
    audit = leakscope.audit(X, Y, train=fragile, models=4, keep=str(tmp_path))
    assert audit.details.reused == 2


def test_another_recipe_or_data_are_other_models(tmp_path: Path) -> None:
    for data, trees in ((X, 5), (X, 6), (X + 1.0, 5)):
        audit = leakscope.audit(
            data, Y, train=RandomForestClassifier(trees), models=2, keep=str(tmp_path)
        )
        assert audit.details.reused == 0
    assert len(list(tmp_path.iterdir())) == 3


HELPER = "RATE = {rate}\n"
OWN = """
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

class Mine(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        from helper_of_a_user import RATE
        self.weights_ = {times} * RATE * X.T @ (2.0 * y - 1.0)
        return self
"""


def test_an_edited_estimator_or_helper_has_another_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same parameters, another ``fit``; the same ``fit``, another constant that it imports."""
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = set()
    for rate, times in ((1.0, 3.0), (1.0, 1.0), (40.0, 3.0)):
        (tmp_path / "helper_of_a_user.py").write_text(HELPER.format(rate=rate))
        (tmp_path / "mine_of_a_user.py").write_text(OWN.format(times=times))
        for module in ("helper_of_a_user", "mine_of_a_user"):
            sys.modules.pop(module, None)
        importlib.invalidate_caches()
        mine = importlib.import_module("mine_of_a_user").Mine()
        seen.add(recipe_of(mine, X, Y, "classification").describe()["digest"])
    assert len(seen) == 3
    sys.modules.pop("mine_of_a_user", None)


def test_what_a_function_is_closed_over_counts() -> None:
    def made(rate: float) -> Any:
        history: list[float] = [np.random.default_rng().random()]  # nothing that is learned from

        def own(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
            history.append(rate)
            return train(rate * features, targets, seed)

        return own

    digests = [
        recipe_of(made(rate), X, Y, "classification").describe()["digest"]
        for rate in (1.0, 1.0, 2.0)
    ]
    assert digests[0] == digests[1] != digests[2]
