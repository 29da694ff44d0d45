"""Training that stops: nothing is trained twice, and nothing else is taken for the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from small_training import Linear, X, Y, train

import leakscope
from leakscope import InputError
from leakscope.running.cell_store import read_cells


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


DRIVER = """
import os, signal, sys, time
from pathlib import Path
import numpy as np
from leakscope.subjects.training.half_models import train_halves
from leakscope.subjects.training.own_training import training_of
from leakscope.running import open_cells
from leakscope.running.cell_store import read_cells

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
    broken = True

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
    broken = False
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
