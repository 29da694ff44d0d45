"""Threads: what the process is given, and no more than it was told."""

from __future__ import annotations

import os

import pytest

from leakscope._numerics.cores import MOST, usable_cores


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
