"""Training that stops: nothing is trained twice, and nothing else is taken for the same."""

from __future__ import annotations

import importlib
import shutil
import subprocess
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
from leakscope.running.cell_store import read_cells
from leakscope.settings import audit as settings_of_audits
from leakscope.subjects.training.own_training import training_of
from leakscope.subjects.training.subject import rungs


def test_four_models_then_eight_trains_four(tmp_path: Path) -> None:
    trained: list[int] = []

    def counted(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
        if len(targets) == 60:
            trained.append(seed)
        return train(features, targets, seed)

    four = leakscope.audit(X, Y, train=counted, models=4, keep=tmp_path / "kept")
    # The function is tried on few records first, which here are halves too.
    first = len(trained)
    again = leakscope.audit(X, Y, train=counted, models=4, keep=tmp_path / "kept")
    tries = len(trained) - first
    assert first - tries == 4
    assert np.array_equal(four.advantage, again.advantage)
    before = len(trained)
    eight = leakscope.audit(X, Y, train=counted, models=8, keep=tmp_path / "kept")
    assert len(trained) - before - tries == 4
    assert eight.details.models == 8
    whole = leakscope.audit(X, Y, train=counted, models=8)
    assert np.array_equal(eight.advantage, whole.advantage)


def test_minutes_go_on_while_models_pay_and_from_where_they_stopped(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    short = leakscope.audit(X, Y, train=train, models=4, minutes=0.04, keep=kept)
    assert short.details.models > 4
    assert short.details.models % 2 == 0
    assert short.settings["models"] == short.details.models
    longer = leakscope.audit(X, Y, train=train, models=4, minutes=0.001, keep=kept)
    assert longer.details.models >= short.details.models
    assert longer.details.reused == short.details.models
    # The result is that of so many models, whatever the clock said.
    same = leakscope.audit(X, Y, train=train, models=short.details.models)
    assert np.array_equal(same.advantage, short.advantage)


def test_without_models_the_usual_minutes_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that train in milliseconds do not stop at four; a number that is given is kept."""
    monkeypatch.setattr(settings_of_audits, "USUAL_MINUTES", 0.05)
    found = leakscope.audit(X, Y, train=train)
    assert found.details.models > 4
    assert found.details.models in rungs()
    assert found.settings["models"] == found.details.models
    again = leakscope.audit(X, Y, train=train, models=found.details.models)
    assert np.array_equal(again.advantage, found.advantage)
    assert leakscope.audit(X, Y, train=train, models=6).details.models == 6


def test_minutes_stop_where_more_models_tell_nothing_more() -> None:
    """Ridge towards a huge penalty: nothing is given away, which a few models show."""

    def flat(features: np.ndarray, targets: np.ndarray, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        weights = rng.normal(size=features.shape[1]) + 1e-6 * targets.sum()
        return lambda asked: 1.0 / (1.0 + np.exp(-asked @ weights))

    found = leakscope.audit(X, Y, train=flat, models=4, minutes=1.0)
    assert found.details.models < 1024
    assert (found.table.of("advantage_high") - found.advantage <= 0.1).mean() >= 0.95


DRIVER = """
import os, signal, sys, time
from pathlib import Path
import numpy as np
from leakscope.subjects.training.half_models import train_halves
from leakscope.subjects.training.own_training import training_of
from leakscope.subjects.training.subject import rungs
from leakscope.running import open_cells
from leakscope.running.cell_store import read_cells
from leakscope.settings import audit as settings_of_audits

folder = Path(sys.argv[1])
log = folder / "log"
X = np.arange(40.0)[:, None]

def train(X, y, seed):
    with log.open("a") as stream:
        stream.write("begun\\n")
    time.sleep(0.2)
    return lambda asked: asked[:, 0] + seed / 2**31

def begun():
    return len(log.read_text().splitlines()) if log.exists() else 0

def life():
    with open_cells(folder / "cells", settings={}, seed=0) as store:
        train_halves(X, X[:, 0], training_of(train, "regression", None), 16, store, seed=0)

there = {}
for kill in range(10):
    before = begun()
    child = os.fork()
    if child == 0:
        life()
        os._exit(0)
    # In the middle of the second model of this life, so that each life finishes one.
    while begun() < before + 2:
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with read_cells(folder / "cells") as store:
        now = {cell.name: cell.arrays["scores"].tobytes() for cell in store.cells()}
    assert there.items() <= now.items()
    assert len(now) > len(there)
    there = now
life()
with read_cells(folder / "cells") as store:
    done = {cell.name: cell.arrays["scores"].tobytes() for cell in store.cells()}
assert there.items() <= done.items()
assert len(done) == 16
# Ten models were begun and killed; nothing that was finished was begun again.
assert begun() == 16 + 10, begun()
"""


def test_ten_kills_lose_no_trained_model(tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    command = [sys.executable, "-W", "ignore", str(script), str(tmp_path)]
    done = subprocess.run(command, check=False, timeout=1200, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_third_model_that_fails_keeps_the_first_two(tmp_path: Path) -> None:
    calls: list[int] = []
    broken = [True]

    def fragile(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
        calls.append(seed)
        # The first three calls try the function on few records.
        if broken and len(calls) == 6:
            raise FloatingPointError("loss is nan")
        return train(features, targets, seed)

    keep = tmp_path / "kept"
    with pytest.raises(InputError, match=r"Model 3: .*FloatingPointError: loss is nan") as told:
        leakscope.audit(X, Y, train=fragile, models=4, keep=keep)
    assert "2 of 4 models are kept" in str(told.value)
    with read_cells(keep) as store:
        assert store.finished() == {"model=0", "model=1"}
    broken.clear()
    before = len(calls)
    result = leakscope.audit(X, Y, train=fragile, models=4, keep=keep)
    assert len(calls) - before == 3 + 2
    assert np.array_equal(result.advantage, leakscope.audit(X, Y, train=fragile).advantage)


def test_a_changed_training_is_not_taken_for_the_same(tmp_path: Path) -> None:
    leakscope.audit(X, Y, train=RandomForestClassifier(5), models=2, keep=tmp_path / "kept")
    with pytest.raises(InputError, match="was begun with training"):
        leakscope.audit(X, Y, train=RandomForestClassifier(6), models=2, keep=tmp_path / "kept")
    with pytest.raises(InputError, match="was begun with data"):
        leakscope.audit(X + 1, Y, train=RandomForestClassifier(5), models=2, keep=tmp_path / "kept")


HELPER = "RATE = {rate}\n"
OWN = """
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

class Mine(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        from helper_of_a_user import RATE
        self.classes_ = np.unique(y)
        gram = X.T @ X + RATE * np.eye(X.shape[1])
        self.weights_ = {times} * np.linalg.solve(gram, X.T @ (2.0 * y - 1.0))
        return self

    def predict_proba(self, X):
        chance = 1.0 / (1.0 + np.exp(-(X @ self.weights_)))
        return np.stack([1.0 - chance, chance], axis=1)
"""


def test_an_edited_estimator_or_helper_is_not_taken_for_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same parameters, another ``fit``; the same ``fit``, another constant that it imports."""
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = {}
    for name, rate, times in (("first", 1.0, 3.0), ("fit", 1.0, 1.0), ("helper", 40.0, 3.0)):
        (tmp_path / "helper_of_a_user.py").write_text(HELPER.format(rate=rate))
        (tmp_path / "mine_of_a_user.py").write_text(OWN.format(times=times))
        for module in ("helper_of_a_user", "mine_of_a_user"):
            sys.modules.pop(module, None)
        importlib.invalidate_caches()
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        own = importlib.import_module("mine_of_a_user").Mine()
        seen[name] = training_of(own, "classification", None).describe()["digest"]
        if name == "first":
            leakscope.audit(X, Y, train=own, models=2, keep=tmp_path / "kept")
        else:
            with pytest.raises(InputError, match="was begun with training"):
                leakscope.audit(X, Y, train=own, models=2, keep=tmp_path / "kept")
    assert len(set(seen.values())) == 3
    monkeypatch.delitem(sys.modules, "helper_of_a_user", raising=False)
    monkeypatch.delitem(sys.modules, "mine_of_a_user", raising=False)


def test_what_a_function_is_closed_over_counts() -> None:
    def made(rate: float) -> Any:
        def own(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
            return train(rate * features, targets, seed)

        return own

    digests = [training_of(made(r), "classification", None).describe() for r in (1.0, 1.0, 2.0)]
    assert digests[0] == digests[1] != digests[2]


def test_models_that_were_there_are_told(tmp_path: Path) -> None:
    first = leakscope.audit(X, Y, train=train, models=2, keep=tmp_path / "kept")
    again = leakscope.audit(X, Y, train=train, models=4, keep=tmp_path / "kept")
    assert "2 models of halves, trained in 1 s;" in first.answer()[0]
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert f"(2 trained, 2 reused, made on {today});" in again.answer()[0]


def test_a_place_that_is_no_run_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    for text in ("[" * 100_000 + "]" * 100_000, '{"settings": 3, "seed": 1}', "{"):
        (tmp_path / "kept" / "run.json").write_text(text)
        with pytest.raises(InputError, match=r"run\.json"):
            leakscope.audit(X, Y, train=train, models=2, keep=tmp_path / "kept")
