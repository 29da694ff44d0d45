"""A fitted model on files that are read some at a time: the same numbers as in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression, Ridge

import leakscope
from leakscope.auditing import audit_streamed
from leakscope.errors import InputError
from leakscope.results import Audit
from leakscope.settings import AuditSettings, ModelSettings
from leakscope.single_fit import cavity

COLUMNS = ("advantage", "tpr_at_fpr_0_01", "auc", "kl", "mean_with", "sd_with", "sd_without")


@pytest.fixture(autouse=True)
def tight(monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory the rounds stop at 3e-4 of a standard deviation; passes go on to rounding."""
    monkeypatch.setattr(cavity, "TOLERANCE", 1e-10)


def diabetes() -> pd.DataFrame:
    frame = load_diabetes(as_frame=True).frame
    frame["clinic"] = np.array(["a", "b", "c"])[np.arange(len(frame)) % 3]
    return frame


def cancer() -> pd.DataFrame:
    frame = load_breast_cancer(as_frame=True).frame.iloc[:, [0, 1, 4, 5, 8, 9, 30]]
    frame.columns = [f"x{i}" for i in range(6)] + ["target"]
    frame["target"] = np.where(frame["target"] == 1, "benign", "malignant")
    return frame


def of_answers(run: Path) -> pd.DataFrame:
    parts = [
        pq.read_table(file).to_pandas() for file in sorted((run / "answers").glob("*.parquet"))
    ]
    return pd.concat(parts).sort_values("record_id").reset_index(drop=True)


def both(
    frame: pd.DataFrame, tmp_path: Path, *, chosen: ModelSettings, **more: Any
) -> tuple[Audit, Audit, pd.DataFrame]:
    path = tmp_path / "d.parquet"
    frame.to_parquet(path, row_group_size=150)
    run = tmp_path / "run"
    streamed = audit_streamed(
        path, directory=run, chosen=chosen, target="target", cell_records=200, block_bytes=8000,
        **more,
    )  # fmt: skip
    held = leakscope.audit_frame(
        pd.read_parquet(path), target="target", model=chosen,
        task="classification" if frame["target"].dtype == object else None,
    )  # fmt: skip
    return streamed, held, of_answers(run)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "chosen",
    [
        ModelSettings(model="ridge", alpha=3.0),
        ModelSettings(model="ridge"),
        ModelSettings(model="linear"),
        ModelSettings(model="ridge", alpha=3.0, question="population"),
    ],
)
def test_ridge_by_passes_is_ridge_in_memory(tmp_path: Path, chosen: ModelSettings) -> None:
    frame = diabetes() if chosen.model == "ridge" else diabetes().drop(columns="clinic")
    streamed, held, answers = both(frame, tmp_path, chosen=chosen)
    table = held.to_frame().sort_values("record_id")
    for name in COLUMNS:
        np.testing.assert_allclose(answers[name], table[name], rtol=1e-7, atol=1e-9, err_msg=name)
    np.testing.assert_array_equal(answers["confirmed"], table["confirmed"])
    assert streamed.model.name == held.model.name
    assert streamed.record_ids[0] == held.ranking()[0]
    assert streamed.exposed == held.totals.exposed
    assert streamed.totals.unconfirmed == held.unconfirmed
    again = Audit.open(tmp_path / "run")
    assert again == streamed


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("C", [0.01, None])
def test_logistic_by_passes_is_logistic_in_memory(tmp_path: Path, C: float | None) -> None:
    streamed, held, answers = both(cancer(), tmp_path, chosen=ModelSettings(model="logistic", C=C))
    table = held.to_frame().sort_values("record_id")
    assert streamed.model.name == held.model.name
    for name in COLUMNS:
        np.testing.assert_allclose(answers[name], table[name], rtol=2e-6, atol=1e-8, err_msg=name)
    np.testing.assert_array_equal(answers["confirmed"], table["confirmed"])


@pytest.mark.filterwarnings("ignore")
def test_a_skops_file_is_checked_by_a_pass(tmp_path: Path) -> None:
    from leakscope.data.models import write_model

    frame = diabetes().drop(columns="clinic")
    X, y = frame.drop(columns="target").to_numpy(), frame["target"].to_numpy()
    file = write_model(Ridge(alpha=0.1).fit(X, y), tmp_path / "m.skops")
    streamed, held, answers = both(frame, tmp_path, chosen=ModelSettings(model=str(file)))
    table = held.to_frame().sort_values("record_id")
    np.testing.assert_allclose(answers["advantage"], table["advantage"], rtol=1e-6, atol=1e-9)
    assert "is the optimum" in " ".join(one.statement for one in streamed.assumptions)
    other = write_model(Ridge(alpha=0.1).fit(X[:200], y[:200]), tmp_path / "o.skops")
    with pytest.raises(InputError, match="are not the optimum on these records"):
        audit_streamed(
            tmp_path / "d.parquet", directory=tmp_path / "no", target="target",
            chosen=ModelSettings(model=str(other)),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("chosen", "more", "words"),
    [
        (
            ModelSettings(model="kernel_ridge"),
            {},
            "kernel_ridge needs all records",
        ),
        (ModelSettings(model="ridge", secret="age"), {}, "--secret needs all records"),
        (ModelSettings(model="ridge"), {"group_column": "clinic"}, "--group needs all records"),
        (ModelSettings(model="ridge", C=1.0), {}, "--set C=does not belong to --model ridge"),
    ],
)
def test_what_is_not_streamed_is_said(
    tmp_path: Path, chosen: ModelSettings, more: dict[str, Any], words: str
) -> None:
    diabetes().to_parquet(tmp_path / "d.parquet")
    with pytest.raises(InputError, match=words):
        audit_streamed(
            tmp_path / "d.parquet", directory=tmp_path / "no", target="target", chosen=chosen,
            settings=AuditSettings(), **more,
        )  # fmt: skip
    assert not (tmp_path / "no").exists()


def test_the_command_line_streams_a_fitted_model(tmp_path: Path, monkeypatch, capsys) -> None:
    from leakscope.cli import main

    monkeypatch.chdir(tmp_path)
    diabetes().to_parquet("d.parquet")
    told = ["audit", "d.parquet", "--target", "target", "--model", "ridge", "--set", "alpha=3"]
    assert main([*told, "--run-dir", "run"]) == 0
    seen = capsys.readouterr()
    assert "passes in about" in seen.err
    assert "Ridge(alpha=3), alpha as given; d.parquet, 442 records; laws of one fit, by" in (
        " ".join(seen.out.split())
    )
    assert main(["report", "run", "--output", "r.html"]) in (0, 2)
    assert main(["verify", "run"]) == 2


def test_a_logistic_file_with_classes_in_another_order(tmp_path: Path) -> None:
    """As texts "10" comes before "9"; the model's first class is 9."""
    from leakscope.data.models import write_model

    frame = cancer()
    frame["target"] = np.where(frame["target"] == "benign", 9, 10)
    X = frame.drop(columns="target").to_numpy()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    frame[frame.columns[:-1]] = X
    model = LogisticRegression(C=0.01, tol=1e-10, max_iter=10_000).fit(X, frame["target"])
    file = write_model(model, tmp_path / "m.skops")
    frame.to_parquet(tmp_path / "d.parquet")
    found = audit_streamed(
        tmp_path / "d.parquet", directory=tmp_path / "run", target="target",
        chosen=ModelSettings(model=str(file)),
    )  # fmt: skip
    held = leakscope.audit(X, frame["target"], model=model)
    assert found.median_advantage == pytest.approx(held.median_advantage, rel=0.03)
    assert found.totals.largest["advantage"] == pytest.approx(held.advantage.max(), rel=1e-5)


class Stopped(Exception):
    pass


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    import pickle

    from leakscope.single_fit import blocks
    from leakscope.subjects.stream import fits

    diabetes().to_parquet(tmp_path / "d.parquet", row_group_size=100)
    asked: dict[str, Any] = {
        "target": "target", "chosen": ModelSettings(model="ridge", alpha=3.0), "cell_records": 200,
    }  # fmt: skip

    def stop(progress: Any) -> None:
        if progress.done >= 9:
            raise Stopped

    with pytest.raises(Stopped):
        audit_streamed(
            tmp_path / "d.parquet", directory=tmp_path / "run", on_progress=stop, **asked
        )
    seen: list[int] = []
    audit_streamed(
        tmp_path / "d.parquet", directory=tmp_path / "run",
        on_progress=lambda progress: seen.append(progress.done), **asked,
    )  # fmt: skip
    assert seen[0] > 1
    audit_streamed(tmp_path / "d.parquet", directory=tmp_path / "whole", **asked)
    pd.testing.assert_frame_equal(of_answers(tmp_path / "run"), of_answers(tmp_path / "whole"))
    # What goes to a cluster can be sent there.
    fit = blocks.LinearFit("square", np.ones(3), np.zeros(3))
    work = fits.partial(fits._summed, fits.partial(blocks._newton, fit), False, 1000)
    assert pickle.loads(pickle.dumps(work)).func is fits._summed
