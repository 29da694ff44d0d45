"""What an audit will take is said right, and refused before it is taken."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakscope
from leakscope.auditing import audit_streamed
from leakscope.errors import InputError
from leakscope.settings import ModelSettings
from leakscope.single_fit import ConvexProblem, solve_cavity
from leakscope.subjects.fit.subject import Fit
from leakscope.subjects.stream.passes import StreamCost

GB = 10**9


def test_softmax_asks_for_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 records of 60 classes took 12 GB where 4.6 were asked for."""
    problem = ConvexProblem(
        y=np.arange(20_000.0) % 60, loss="softmax", X=np.ones((20_000, 5)), classes=60
    )
    monkeypatch.setattr("leakscope._numerics.memory.available_memory", lambda: 6 * GB)
    with pytest.raises(InputError, match=r"needs 12\.\d GB"):
        solve_cavity(problem, 0.5)


def test_a_stream_says_what_it_takes() -> None:
    """200 x 10,001: 2.02 GB and 1 s were said, gigabytes and ten minutes taken."""
    cost = StreamCost(records=200, columns=10_001, file_bytes=1, several=False)
    said = cost.sentence(ModelSettings(model="ridge", alpha=1.0), 1)
    assert "6.82 GB" in said


def test_a_stream_too_wide_is_refused_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = pd.DataFrame(np.zeros((3, 4000)), columns=[f"x{i}" for i in range(4000)]).assign(y=1.0)
    wide.to_parquet(tmp_path / "d.parquet")
    monkeypatch.setattr("leakscope._numerics.memory.available_memory", lambda: GB)
    with pytest.raises(InputError, match="4,001 features needs"):
        audit_streamed(tmp_path / "d.parquet", directory=tmp_path / "run", target="y")
    assert not (tmp_path / "run").exists()


def test_a_fit_of_millions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = SimpleNamespace(features=np.broadcast_to(0.0, (5_000_000, 4)))
    asked: Any = SimpleNamespace(dataset=dataset, model=None)
    with monkeypatch.context() as patch:
        patch.setattr("leakscope._numerics.memory.available_memory", lambda: 10 * GB)
        with pytest.raises(InputError, match=r"5,000,000 records needs 33"):
            Fit.cost(asked)


def test_memory_that_runs_out_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def out(*given: Any, **more: Any) -> None:
        raise MemoryError("Unable to allocate 4 GiB")

    monkeypatch.setattr(sys.modules["leakscope.auditing.audit"], "audit_subject", out)
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(InputError, match="the memory ran out"):
        leakscope.audit(X, X[:, 0], model="rbf")
