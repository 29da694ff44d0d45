"""An audit on a device (a CPU here) or with its factor on disk: the answer of the dense route."""

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


@pytest.mark.parametrize("route", ["device", "disk"])
def test_equals_the_dense_route(route, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    X, y = problem()
    dense, other = (
        leakscope.audit(X, y, kernel=kernels.nngp(depth=2), noise_variance=0.05, route=each)
        for each in ("dense", route)
    )
    np.testing.assert_allclose(other.to_frame()["kl"], dense.to_frame()["kl"], rtol=1e-9)
    np.testing.assert_array_equal(
        other.to_frame()[["record_id", "rank_low", "rank_high"]],
        dense.to_frame()[["record_id", "rank_low", "rank_high"]],
    )
    assert other.laws.separation.route == route
    assert other.details.route_reason.startswith("exact, ")
    assert list(tmp_path.iterdir()) == []


def test_a_kernel_without_jax_code_is_refused() -> None:
    with pytest.raises(InputError, match="needs a kernel with JAX code"):
        leakscope.audit(
            np.eye(4), np.arange(4.0), kernel=kernels.rbf(1.0), noise_variance=0.1, route="device"
        )


@pytest.mark.parametrize("route", ["device", "disk"])
def test_a_scale_is_not_fitted(route) -> None:
    chosen = {"noise_variance": "leave_one_out", "fit_kernel_scale": True}
    with pytest.raises(InputError, match=f"the {route} route does not fit the kernel's scale"):
        leakscope.audit(*problem(), kernel=kernels.nngp(depth=2), route=route, **chosen)


def test_a_stage_tells_how_far_it_is() -> None:
    told = []
    leakscope.audit(*problem(), kernel="rbf", route="disk", on_stage=told.append)
    assert "factorise: 100%" in told
    assert "sensitivity: 100%" in told
    assert told.index("factorise") < told.index("factorise: 100%") < told.index("sensitivity")


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

    def test_disk(self, monkeypatch):
        told = self.told(100_000, monkeypatch, route="disk", sensitivity=False)
        assert "matrix: 41.6 GB of disk and about 2.4 h on 2 cores" in told

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
        assert main([*run, "--route", "disk", "--no-sensitivity"]) == 0
        assert capsys.readouterr().err.count("exact, by factorising a 442 x 442 matrix") == 1
