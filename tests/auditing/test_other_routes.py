"""An audit on a device (a CPU here): the answer of the dense route; and what audits cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import leakscope
from leakscope import InputError, data, kernels
from leakscope.cli import main
from leakscope.settings import AuditSettings
from leakscope.subjects.process import routes as route_costs
from leakscope.subjects.subject import Asked, kind_for


def problem(records=60):
    generator = np.random.default_rng(3)
    return generator.standard_normal((records, 5)), generator.standard_normal(records)


def test_equals_the_dense_route() -> None:
    X, y = problem()
    dense, other = (
        leakscope.audit(X, y, kernel=kernels.nngp(depth=2), noise_variance=0.05, route=each)
        for each in ("dense", "device")
    )
    np.testing.assert_allclose(other.to_frame()["kl"], dense.to_frame()["kl"], rtol=1e-9)
    np.testing.assert_array_equal(
        other.to_frame()[["record_id", "rank_low", "rank_high"]],
        dense.to_frame()[["record_id", "rank_low", "rank_high"]],
    )
    assert other.laws.separation.route == "device"
    assert other.details.route_reason.startswith("exact, ")


def test_a_kernel_without_jax_code_is_refused() -> None:
    with pytest.raises(InputError, match="needs a kernel with JAX code"):
        leakscope.audit(
            np.eye(4), np.arange(4.0), kernel=kernels.rbf(1.0), noise_variance=0.1, route="device"
        )


def test_a_scale_is_not_fitted() -> None:
    chosen = {"noise_variance": "leave_one_out", "fit_kernel_scale": True}
    with pytest.raises(InputError, match="the device route does not fit the kernel's scale"):
        leakscope.audit(*problem(), kernel=kernels.nngp(depth=2), route="device", **chosen)


class TestCost:
    @staticmethod
    def told(records, monkeypatch, **chosen):
        # docs/benchmarks/size.md: 25,000 records took 136 s of two cores.
        monkeypatch.setattr(route_costs, "usable_cores", lambda: 2)
        X, y = np.broadcast_to(0.0, (records, 3)), np.broadcast_to(0.0, records)
        dataset = replace(data.read_example("diabetes"), features=X, target=y)
        settings = AuditSettings(kernel="rbf", **chosen)
        return kind_for(Asked(dataset=dataset, settings=settings)).cost(
            Asked(dataset=dataset, settings=settings)
        )

    def test_quick_audits_say_nothing(self, monkeypatch):
        assert self.told(5_000, monkeypatch) is None

    def test_dense(self, monkeypatch):
        told = self.told(25_000, monkeypatch, route="dense", sensitivity=False)
        assert told.startswith("exact, by factorising a 25,000 x 25,000 matrix: 5 GB and about 2")
        assert "--no-sensitivity" not in told
        assert "--no-sensitivity takes 2 min" in self.told(25_000, monkeypatch, route="dense")

    def test_it_is_said_before_it_is_paid(self, monkeypatch, capsys, tmp_path):
        monkeypatch.setattr(route_costs, "SAID_FROM", 0.0)
        run = [
            "audit",
            "--example",
            "diabetes",
            "--kernel",
            "rbf",
            "--run-dir",
            str(tmp_path / "r"),
        ]
        assert main([*run, "--route", "dense", "--no-sensitivity"]) == 0
        assert capsys.readouterr().err.count("exact, by factorising a 442 x 442 matrix") == 1
