"""Streamed audits: the numbers of the audit in memory, whatever the cuts, kills and clusters."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression, Ridge

import leakscope
from leakscope.auditing import audit_streamed
from leakscope.data.models import write_model
from leakscope.errors import InputError
from leakscope.results import Audit
from leakscope.settings import ModelSettings
from leakscope.single_fit import cavity
from leakscope.subjects.stream import records as stream_records

RECORDS = 1200
RIDGE = ModelSettings(model="ridge", alpha=1.0)
COLUMNS = ("advantage", "tpr_at_fpr_0_01", "auc", "kl", "mean_with", "sd_with", "sd_without")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def tight(monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory the rounds stop at 3e-4 of a standard deviation; passes go on to rounding."""
    monkeypatch.setattr(cavity, "TOLERANCE", 1e-10)


def made_table(records: int = RECORDS) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(records, 3)) * [1.0, 50.0, 1e-3], columns=list("abc"))
    frame["b"] += 1e4
    frame["city"] = rng.choice(["Bern", "Genf", "Zug"], size=records, p=[0.7, 0.25, 0.05])
    frame["member"] = rng.random(records) < 0.3
    frame["cost"] = frame["a"] + 2.0 * (frame["city"] == "Zug") + rng.normal(size=records)
    frame["name"] = [f"p{i}" for i in range(records)]
    return frame


def diabetes() -> pd.DataFrame:
    return load_diabetes(as_frame=True).frame.rename(columns={"target": "cost"})


def cancer() -> pd.DataFrame:
    frame = load_breast_cancer(as_frame=True).frame.iloc[:, [0, 1, 4, 5, 8, 9, 30]]
    frame.columns = [f"x{i}" for i in range(6)] + ["cost"]
    frame["cost"] = np.where(frame["cost"] == 1, "benign", "malignant")
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("records")
    whole = made_table()
    for number, rows in enumerate(np.array_split(np.arange(RECORDS), 3)):
        part = pa.Table.from_pandas(whole.iloc[rows], preserve_index=False)
        pq.write_table(part, place / f"{number}.parquet", row_group_size=150)
    return place


def streamed(source: Path, run: Path, chosen: ModelSettings = RIDGE, **options: Any) -> Audit:
    asked = {"target": "cost", "ignore": ("name",), "cell_records": 150, "block_bytes": 2**12}
    return audit_streamed(source, directory=run, chosen=chosen, **{**asked, **options})


def answers_of(run: Path) -> pd.DataFrame:
    return pd.read_parquet(run / "answers").sort_values("record_id").reset_index(drop=True)


@pytest.mark.parametrize(
    ("data", "chosen", "tolerance"),
    [
        (diabetes, {"model": "ridge", "alpha": 3.0}, 1e-7),
        (diabetes, {"model": "ridge"}, 1e-7),
        (diabetes, {"model": "linear"}, 1e-7),
        (diabetes, {"model": "ridge", "alpha": 3.0, "question": "population"}, 1e-7),
        (made_table, {"model": "ridge", "alpha": 1.0}, 1e-7),
        (cancer, {"model": "logistic", "C": 0.01}, 2e-6),
        (cancer, {"model": "logistic"}, 2e-6),
    ],
)
def test_passes_give_the_numbers_of_memory(
    tmp_path: Path, data: Any, chosen: dict[str, Any], tolerance: float
) -> None:
    frame = data().drop(columns="name", errors="ignore")
    frame.to_parquet(tmp_path / "d.parquet", row_group_size=150)
    found = streamed(tmp_path / "d.parquet", tmp_path / "run", ModelSettings(**chosen), ignore=())
    held = leakscope.audit_frame(frame, target="cost", **chosen)
    answers, known = answers_of(tmp_path / "run"), held.to_frame().sort_values("record_id")
    for name in COLUMNS:
        np.testing.assert_allclose(answers[name], known[name], rtol=tolerance, atol=1e-8)
    assert found.model.name == held.model.name
    assert found.record_ids[0] == held.ranking()[0]
    assert found.totals.exposed == int(np.sum(held.advantage >= held.exposed_above))
    # Both count their laws on refits of their own.
    assert abs(found.totals.unconfirmed - held.unconfirmed) <= 0.1 * held.units
    for name, value in found.details.worst.items():
        assert value == pytest.approx(held.table.of(name).max(), rel=10 * tolerance)
    for share, value in found.details.advantage_quantiles.items():
        exact = np.quantile(held.advantage, float(share), method="inverted_cdf")
        assert 0.999 * exact <= value <= 1.0235 * exact
    assert Audit.open(tmp_path / "run") == found
    assert oct((tmp_path / "run/answers/0000000.parquet").stat().st_mode & 0o777) == "0o600"


def test_subgroups_are_those_of_memory(tmp_path: Path) -> None:
    frame = made_table().assign(age=np.arange(RECORDS) % 7 * 1.0)
    frame.to_parquet(tmp_path / "r.parquet", row_group_size=150)
    found = streamed(tmp_path / "r.parquet", tmp_path / "run", by=("city", "member", "age"))
    held = leakscope.audit_frame(
        frame, target="cost", ignore=("name",), by=("city", "member", "age"), model="ridge", alpha=1
    )
    known = {(entry.column, entry.value): entry for entry in held.subgroups}
    assert len(found.subgroups) == len(known) == 3 + 2 + 7
    for entry in found.subgroups:
        exact = known[entry.column, entry.value]
        assert (entry.count, entry.small) == (exact.count, exact.small)
        assert entry.largest_advantage == pytest.approx(exact.largest_advantage, rel=1e-8)
        assert entry.median_advantage == pytest.approx(exact.median_advantage, rel=0.0235)


def test_records_with_empty_values_are_dropped_or_refused(tmp_path: Path) -> None:
    frame = made_table()
    frame.loc[[3, 500], "a"] = np.nan
    # A whole row group without a single record.
    frame.loc[150:299, "city"] = None
    frame.to_parquet(tmp_path / "r.parquet", row_group_size=150)
    with pytest.raises(InputError, match="column 'a' has 1 missing values"):
        streamed(tmp_path / "r.parquet", tmp_path / "no")
    assert not (tmp_path / "no").exists()
    streamed(tmp_path / "r.parquet", tmp_path / "run", missing="drop")
    held = leakscope.audit_frame(
        frame, target="cost", ignore=("name",), missing="drop", model="ridge", alpha=1.0
    )
    answers, known = answers_of(tmp_path / "run"), held.to_frame().sort_values("record_id")
    assert answers["record_id"].tolist() == known["record_id"].tolist()
    np.testing.assert_allclose(answers["advantage"], known["advantage"], rtol=1e-7)


def test_a_column_of_equal_numbers_is_not_scaled_and_a_tiny_one_is(tmp_path: Path) -> None:
    advantages = {}
    for name, change in (
        ("usual", {}),
        ("tiny", {"a": lambda frame: np.ldexp(frame["a"], -700)}),
        ("equal", {"c": 3.7}),
    ):
        frame = made_table(300).assign(**change)
        frame.to_parquet(tmp_path / f"{name}.parquet")
        streamed(tmp_path / f"{name}.parquet", tmp_path / name)
        advantages[name] = answers_of(tmp_path / name)["advantage"]
    np.testing.assert_allclose(advantages["tiny"], advantages["usual"], rtol=1e-7)
    held = leakscope.audit_frame(frame, target="cost", ignore=("name",), model="ridge", alpha=1.0)
    known = held.to_frame().sort_values("record_id")["advantage"]
    np.testing.assert_allclose(advantages["equal"], known, rtol=1e-7)


def test_a_model_file_is_checked_by_a_pass(tmp_path: Path) -> None:
    frame = diabetes()
    frame.to_parquet(tmp_path / "d.parquet")
    X, y = frame.drop(columns="cost").to_numpy(), frame["cost"].to_numpy()
    file = write_model(Ridge(alpha=0.1).fit(X, y), tmp_path / "m.skops")
    streamed(tmp_path / "d.parquet", tmp_path / "run", ModelSettings(model=str(file)), ignore=())
    held = leakscope.audit(X, y, model=Ridge(alpha=0.1).fit(X, y))
    np.testing.assert_allclose(
        answers_of(tmp_path / "run")["advantage"], held.advantage, rtol=1e-6, atol=1e-9
    )
    other = write_model(Ridge(alpha=0.1).fit(X[:200], y[:200]), tmp_path / "o.skops")
    with pytest.raises(InputError, match="not the optimum"):
        streamed(
            tmp_path / "d.parquet", tmp_path / "no", ModelSettings(model=str(other)), ignore=()
        )
    assert not (tmp_path / "no").exists()


def test_a_model_file_with_classes_in_another_order(tmp_path: Path) -> None:
    """As texts "10" comes before "9"; the model's first class is 9."""
    frame = cancer()
    frame["cost"] = np.where(frame["cost"] == "benign", 9, 10)
    X = frame.drop(columns="cost").to_numpy()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    frame[frame.columns[:-1]] = X
    model = LogisticRegression(C=0.01, tol=1e-10, max_iter=10_000).fit(X, frame["cost"])
    file = write_model(model, tmp_path / "m.skops")
    frame.to_parquet(tmp_path / "d.parquet")
    chosen = ModelSettings(model=str(file))
    found = streamed(tmp_path / "d.parquet", tmp_path / "run", chosen, ignore=())
    held = leakscope.audit(X, frame["cost"], model=model)
    assert found.totals.largest["advantage"] == pytest.approx(held.advantage.max(), rel=1e-5)


# Lives of one audit, each a process of its own that is killed after some cells.
PROGRAM = """
import sys
from leakscope.auditing import audit_streamed
from leakscope.settings import ModelSettings
audit_streamed(sys.argv[1], directory=sys.argv[2], target="cost", ignore=("name",),
               cell_records=150, chosen=ModelSettings(model="ridge", alpha=1.0), block_bytes=2**12)
"""


def kept_cells(run: Path) -> int:
    return len(list((run / "cells").glob("*.npz")))


def test_killed_it_goes_on_to_the_very_same_answer(folder: Path, tmp_path: Path) -> None:
    streamed(folder, tmp_path / "whole")
    run, kills = tmp_path / "run", 0
    for more in (3, 20, 10_000):
        child = subprocess.Popen([sys.executable, "-W", "ignore", "-c", PROGRAM, folder, run])
        before = kept_cells(run)
        while child.poll() is None and kept_cells(run) < before + more:
            time.sleep(0.005)
        if child.poll() is None:
            child.send_signal(signal.SIGKILL)
            kills += 1
        child.wait()
    assert kills >= 1
    assert (run / "result.json").exists()
    pd.testing.assert_frame_equal(answers_of(run), answers_of(tmp_path / "whole"))
    assert not (run / "cells").exists()
    assert not list((run / "answers").glob(".*"))


def test_a_cluster_gives_the_very_same_numbers(folder: Path, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    streamed(folder, tmp_path / "here")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        streamed(folder, tmp_path / "there", client=client)
    pd.testing.assert_frame_equal(answers_of(tmp_path / "there"), answers_of(tmp_path / "here"))


class TestBrokenGround:
    """One sentence each, and what was computed is kept."""

    @pytest.fixture
    def copy(self, folder: Path, tmp_path: Path) -> Path:
        shutil.copytree(folder, tmp_path / "copy")
        return tmp_path / "copy"

    def test_a_file_that_vanishes_and_comes_back(self, copy: Path, tmp_path: Path) -> None:
        run, hidden = tmp_path / "run", tmp_path / "hidden"

        def hide(progress: Any) -> None:
            if kept_cells(run) >= 4 and not hidden.exists():
                (copy / "2.parquet").rename(hidden)

        with pytest.raises(InputError, match="no longer there"):
            streamed(copy, run, on_progress=hide)
        kept = kept_cells(run)
        assert kept >= 4
        hidden.rename(copy / "2.parquet")
        streamed(copy, run)
        assert len(answers_of(run)) == RECORDS
        with pytest.raises(InputError, match="already there"):
            streamed(copy, run)

    def test_a_changed_file_is_another_run(self, copy: Path, tmp_path: Path) -> None:
        run = tmp_path / "run"

        def stop(progress: Any) -> None:
            if kept_cells(run) >= 4:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            streamed(copy, run, on_progress=stop)
        os.utime(copy / "1.parquet", (1, 1))
        with pytest.raises(InputError, match="was begun with files"):
            streamed(copy, run)

    def test_a_file_that_changes_while_it_is_read(
        self, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        frames, opened = stream_records.frames, []

        def changing(group: Any, *asked: Any) -> Any:
            opened.append(group.path)
            if len(opened) == 20:
                with Path(group.path).open("ab") as file:
                    file.write(b"more")
            yield from frames(group, *asked)

        monkeypatch.setattr(stream_records, "frames", changing)
        with pytest.raises(InputError, match="was changed while it was read"):
            streamed(copy, tmp_path / "run")

    def test_a_schema_that_changes_from_file_to_file(self, copy: Path, tmp_path: Path) -> None:
        frame = pd.read_parquet(copy / "1.parquet")
        frame.assign(a="x").to_parquet(copy / "1.parquet", index=False)
        with pytest.raises(InputError, match="column 'a' is not the same in all files"):
            streamed(copy, tmp_path / "run")
        frame.drop(columns="a").to_parquet(copy / "1.parquet", index=False)
        with pytest.raises(InputError, match=r"1\.parquet has no column 'a'"):
            streamed(copy, tmp_path / "run")

    def test_a_garbled_row_group(self, copy: Path, tmp_path: Path) -> None:
        content = bytearray((copy / "1.parquet").read_bytes())
        content[4:60] = b"\xff" * 56
        (copy / "1.parquet").write_bytes(bytes(content))
        with pytest.raises(InputError, match=r"1\.parquet can no longer be read"):
            streamed(copy, tmp_path / "run")

    @pytest.mark.parametrize(
        ("chosen", "changed", "words"),
        [
            ({}, {"target": "none"}, "none"),
            ({}, {"target": None}, "--target"),
            ({}, {"group_column": "city"}, "--group"),
            ({}, {"missing": "impute"}, "missing=impute"),
            ({}, {"ignore": ()}, "'name'"),
            ({}, {"task": "classification"}, "predicts a quantity"),
            ({"model": "kernel_ridge"}, {}, "--model kernel_ridge"),
            ({"secret": "city"}, {}, "--secret"),
            ({"alpha": None, "C": 1.0}, {}, "C does not belong"),
        ],
    )
    def test_refusals(
        self, chosen: Any, changed: Any, words: str, folder: Path, tmp_path: Path
    ) -> None:
        model = ModelSettings(**{"model": "ridge", "alpha": 1.0, **chosen})
        with pytest.raises(InputError, match=words):
            streamed(folder, tmp_path / "run", model, **changed)
        assert not (tmp_path / "run").exists()
