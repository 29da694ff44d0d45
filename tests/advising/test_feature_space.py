"""Advice under a kernel of few features: the same answers without a matrix of all records."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from refits import advised, measured

from leakscope import kernels, lood
from leakscope.advising import AuditTarget, advise
from leakscope.advising.dropping import drop_exposed
from leakscope.subjects.subject import Stages


def linear_model(records: int, features: int = 4, *, scale: float = 1.0) -> lood.ProcessOnRecords:
    rng = np.random.default_rng(records)
    X = rng.normal(size=(records, features)) * rng.gamma(2.0, size=(records, 1))
    y = np.sign(X[:, 0] + 0.5 * rng.normal(size=records))
    return lood.ProcessOnRecords(
        X,
        y,
        kernels.linear(bias_variance=1.0),
        noise_variance=0.5,
        kernel_scale=scale,
        task="classification",
    )


@pytest.fixture
def by_matrices(monkeypatch: pytest.MonkeyPatch):
    """A function's answer where no process knows its features."""

    def answer(function):
        with monkeypatch.context() as patched:
            patched.setattr(lood.ProcessOnRecords, "phi", None)
            return function()

    return answer


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_every_option_is_that_of_the_kernel_matrix(scale: float, by_matrices) -> None:
    target = AuditTarget("advantage", 0.1)

    def ask():
        return advise(linear_model(90, scale=scale), target, random_state=0)

    ours, known = ask(), by_matrices(ask)
    assert [option.name for option in ours.options] == [option.name for option in known.options]
    for one, other in zip([ours.own, *ours.options], [known.own, *known.options], strict=True):
        assert one.setting == pytest.approx(other.setting, rel=1e-4)
        assert (one.meets, one.dropped) == (other.meets, other.dropped)
        for name in ("worst", "median", "error", "accuracy"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-4), one.name
        for point, there in zip(one.curve, other.curve, strict=True):
            assert point.worst == pytest.approx(there.worst, rel=1e-3)
            assert point.error == pytest.approx(there.error, rel=1e-4)


def test_dropping_is_by_refits_of_the_rest() -> None:
    model, target = linear_model(80), AuditTarget("advantage", 0.05)
    subject = advised(model)
    path = drop_exposed(subject, subject.laws(Stages()), target, most=0.5, batch=10)
    assert len(path.order) >= 10
    for step in path.steps:
        left = path.kept(80, step.dropped)
        matrix = model.between(model.features[left])
        laws = lood.all_records(matrix, model.targets[left], noise_variance=0.5)
        values = measured(target, laws)
        assert step.worst == pytest.approx(values.max(), rel=1e-8)


def test_no_matrix_of_all_records_is_made() -> None:
    model = linear_model(3000)
    tracemalloc.start()
    found = advise(model, AuditTarget("advantage", 0.05), random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert {option.name for option in found.options} >= {"dropping", "fewer features"}
    # One kernel matrix would be 72 MB.
    assert peak < 3000 * 3000 * 8 / 2
