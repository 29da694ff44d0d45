"""Threads: what the process is given, and no more than it was told."""

from __future__ import annotations

import os

import numpy as np
import pytest

from leakscope import measures
from leakscope._numerics.cores import MOST, in_threads, usable_cores
from leakscope.laws import LawPair, Normal


@pytest.mark.parametrize(
    ("told", "cores"), [("1", 1), ("3", 3), ("64", MOST), ("", MOST), ("x", MOST), ("0", MOST)]
)
def test_the_variable_limits_the_threads(monkeypatch, told, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(12)), raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    assert usable_cores() == cores


def test_the_affinity_limits_the_threads(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3}, raising=False)
    assert usable_cores() == 1


def test_where_the_system_knows_no_affinity(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert usable_cores() == 4


@pytest.mark.parametrize("cores", [1, 3])
def test_every_start_is_worked_on_once_and_errors_come_out(monkeypatch, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    done: list[int] = []
    in_threads(done.append, range(0, 70, 10))
    assert sorted(done) == list(range(0, 70, 10))

    def fails(start: int) -> None:
        if start == 20:
            raise ValueError("in the third block")

    with pytest.raises(ValueError, match="third block"):
        in_threads(fails, range(0, 70, 10))


def test_measures_are_the_same_on_one_core_and_on_several(monkeypatch):
    generator = np.random.default_rng(0)
    pair = LawPair(
        Normal(generator.normal(size=5000), generator.uniform(0.5, 2.0, 5000)), Normal(0.0, 1.0)
    )
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    found = []
    for cores in (1, 4):
        given = set(range(cores))
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid, given=given: given, raising=False)
        found.append(np.asarray(measures.auc(pair)))
    np.testing.assert_array_equal(*found)
