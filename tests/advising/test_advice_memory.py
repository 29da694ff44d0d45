"""What advice keeps from one stage to the next: the kernel matrix, and no eigenvectors."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from leakscope import kernels, lood
from leakscope.advising import AuditTarget, advise


class Enough(Exception):
    pass


def test_the_eigenvectors_go_once_no_other_noise_is_asked_for() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=200)
    model = lood.ProcessOnRecords(X, y, kernels.rbf(2.0), noise_variance=0.01)
    held: dict[str, float] = {}

    def stage(name: str) -> None:
        held[name] = tracemalloc.get_traced_memory()[0] / (8 * 200**2)
        if name == "fewer features":
            raise Enough

    # What is imported on the way is no matrix.
    advise(
        lood.ProcessOnRecords(X[:8], y[:8], kernels.rbf(2.0), 0.01), AuditTarget("advantage", 0.3)
    )
    tracemalloc.start()
    try:
        with pytest.raises(Enough):
            advise(model, AuditTarget("advantage", 0.3), repeats=1, on_stage=stage)
    finally:
        tracemalloc.stop()
    # In matrices of all records; the eigenvectors and their squares were two more.
    assert held["fewer features"] < held["kernel noise"] + 0.5
    assert held["fewer features"] < 2.0
