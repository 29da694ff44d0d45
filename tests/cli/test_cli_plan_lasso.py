"""leakscope plan lasso: keys, mechanisms, optimum, unstable points, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leakscope.cli import main

BASE = ["plan", "lasso", "--alpha", "0.5", "--rho", "0.1", "--sigma-xi", "0.1"]
POINT = ["--lam", "1", "--sigma-eta", "0.2"]
KEYS = {
    "stable",
    "stability_ratio",
    "generalization_error",
    "training_error",
    "active_fraction",
    "overlap_error",
    "cw_onavg_kl",
    "cw_onavg_kl_paper",
    "joint_onavg_kl_limit",
    "auc",
    "assumptions",
}


def run(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    assert main([*BASE, *more, "--json", "-"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_keys(capsys: pytest.CaptureFixture[str], mechanism: str) -> None:
    found = run(capsys, *POINT, "--mechanism", mechanism)
    assert set(found) >= KEYS
    assert found["stable"] is True
    assert 0.5 < found["auc"] < 1.0
    assert any("guarantee" in entry["statement"] for entry in found["assumptions"])


def test_optimize(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, *POINT, "--optimize")
    assert 0.0 < found["sigma_eta_opt"] < 0.94
    assert len(found["curve"]["sigma_eta"]) == len(found["curve"]["generalization_error"]) > 20
    assert found["optimum"]["divergence"] == "joint"


def test_unstable_point(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "--lam", "0.3", "--sigma-eta", "0.3")
    assert found["stable"] is False
    assert all(found[key] is None for key in ("generalization_error", "cw_onavg_kl", "auc"))
    assert "lam must be above" in found["advice"]
    assert main([*BASE, "--lam", "0.3", "--sigma-eta", "0.3"]) == 0
    assert "unstable" in capsys.readouterr().out


def test_table_and_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    assert main([*BASE, *POINT, "--optimize", "--json", str(path)]) == 0
    text = capsys.readouterr().out
    assert "not a differential-privacy guarantee" in " ".join(text.split())
    assert "nearest to the origin" in text
    assert json.loads(path.read_text())["kind"] == "plan_lasso"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--lam", "-1", "--sigma-eta", "0.2"], "--lam must be above zero"),
        (["--lam", "1", "--sigma-eta", "nan"], "--sigma-eta must be finite"),
        ([*POINT, "--mechanism", "gradient"], "--mechanism must be one of"),
        ([*POINT, "--target-error", "0.1", "--target-advantage", "0.2"], "--target-error or"),
        ([*POINT, "--target-error", "0"], "--target-error must be above zero, but it is 0"),
    ],
)
def test_refusals(more: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BASE, *more]) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


def test_delta_fpr_and_curve(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(
        capsys, *POINT, "--delta", "1e-4,1e-6", "--fpr", "0.02", "--curve", "sigma_eta",
        "--settings", "0.1,0.3",
    )  # fmt: skip
    assert list(found["epsilon_at_delta"]) == ["0.0001", "1e-06"]
    assert list(found["tpr_at_fpr"]) == ["0.02"]
    assert found["curves"][0]["settings"] == [0.1, 0.3]


def test_an_impossible_advantage_as_a_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BASE, *POINT, "--target-advantage", "1.5"]) == 2
    assert "must be below 1" in capsys.readouterr().err


def test_a_page_of_ones_own_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "plan.html"
    assert main([*BASE, *POINT, "--html", str(page)]) == 0
    assert "Page: " in capsys.readouterr().out
    text = page.read_text()
    assert "No data were read." in text
    assert "As sensitive as the data" not in text
    for name in ("error_sigma_eta", "kl_sigma_eta", "advantage_lam"):
        assert f'id="chart-{name}"' in text
    assert main([*BASE, *POINT, "--html", str(tmp_path / "plan.png")]) == 2
    assert not (tmp_path / "plan.png").exists()
