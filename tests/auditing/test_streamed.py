"""Streamed audits: the numbers of the audit in memory, whatever the cuts, kills and clusters."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import leakscope
from leakscope import auditing
from leakscope.errors import InputError
from leakscope.results.reader import read_run
from leakscope.settings import ModelSettings
from leakscope.single_fit import cavity
from leakscope.subjects.stream import parts as file_parts

RECORDS = 1200
RIDGE = ModelSettings(model="ridge", alpha=1.0)


@pytest.fixture(autouse=True)
def tight(monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory the rounds stop at 3e-4 of a standard deviation; passes go on to rounding."""
    monkeypatch.setattr(cavity, "TOLERANCE", 1e-10)


def table(records: int = RECORDS, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(records, 3)) * [1.0, 50.0, 1e-3], columns=list("abc"))
    frame["b"] += 1e4
    frame["city"] = rng.choice(["Bern", "Genf", "Zug"], size=records, p=[0.7, 0.25, 0.05])
    frame["member"] = rng.random(records) < 0.3
    frame["cost"] = frame["a"] + 2.0 * (frame["city"] == "Zug") + rng.normal(size=records)
    frame["paid"] = np.where(frame["cost"] > 0.0, "yes", "no")
    frame["name"] = [f"p{i}" for i in range(records)]
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("records")
    whole = table()
    for number, rows in enumerate(np.array_split(np.arange(RECORDS), 3)):
        part = pa.Table.from_pandas(whole.iloc[rows], preserve_index=False)
        pq.write_table(part, place / f"{number}.parquet", row_group_size=150)
    return place


def in_memory(frame: pd.DataFrame, **data: Any) -> leakscope.Audit:
    return leakscope.audit_frame(frame, model=RIDGE, **data)


def answers_of(run):
    return pd.read_parquet(run / "answers")


def same(answers, known) -> None:
    assert answers["record_id"].tolist() == list(known.record_ids)
    for name in ("kl", "advantage", "auc"):
        np.testing.assert_allclose(answers[name], getattr(known, name), rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(answers["confirmed"], known.confirmed)


@pytest.mark.filterwarnings("ignore")
def test_as_in_memory(folder, tmp_path):
    run = tmp_path / "run"
    data = {"target": "cost", "ignore": ("paid",), "id_column": "name"}
    found = auditing.audit_streamed(
        folder, directory=run, chosen=RIDGE, cell_records=400, block_bytes=2**12, **data
    )
    known = in_memory(table(), **data)
    same(answers_of(run), known)
    assert found.dataset.features == known.dataset.features
    assert [record.record_id for record in found.records[:10]] == list(known.ranking()[:10])
    for name, value in found.details.worst.items():
        assert value == pytest.approx(known.table.of(name).max(), rel=1e-7)
    for share, value in found.details.advantage_quantiles.items():
        exact = np.quantile(known.advantage, float(share), method="inverted_cdf")
        assert exact <= value <= 1.0234 * exact
    assert read_run(run).document.model_dump(mode="json") == found.model_dump(mode="json")
    assert oct((run / "answers" / "0000000.parquet").stat().st_mode & 0o777) == "0o600"


@pytest.mark.filterwarnings("ignore")
def test_subgroups_as_in_memory(tmp_path):
    frame = table().assign(age=np.arange(RECORDS) % 7 * 1.0)
    frame.loc[[5, 700], "paid"] = None
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "r.parquet", row_group_size=150)
    asked = {"target": "cost", "ignore": ("paid", "name"), "by": ("city", "paid", "member", "age")}
    found = auditing.audit_streamed(
        tmp_path / "r.parquet",
        directory=tmp_path / "run",
        chosen=RIDGE,
        cell_records=400,
        block_bytes=2**12,
        **asked,
    )
    entries = in_memory(frame, **asked).subgroups
    known = {(entry.column, entry.value): entry for entry in entries}
    assert {entry.column for entry in found.subgroups} == {"city", "paid", "member", "age"}
    assert len(found.subgroups) == len(known) == 3 + 3 + 2 + 7
    for entry in found.subgroups:
        exact = known[entry.column, entry.value]
        assert (entry.count, entry.small) == (exact.count, exact.small)
        assert entry.largest_advantage == pytest.approx(exact.largest_advantage, rel=1e-8)
        assert entry.share_exposed == pytest.approx(exact.share_exposed, abs=1e-12)
        assert entry.median_advantage == pytest.approx(exact.median_advantage, rel=0.0234)
    with pytest.raises(InputError, match=r"'name' has \d+ different values; --by takes"):
        auditing.audit_streamed(
            tmp_path / "r.parquet",
            directory=tmp_path / "no",
            chosen=RIDGE,
            target="cost",
            ignore=("paid", "name"),
            by=("name",),
        )


@pytest.mark.filterwarnings("ignore")
def test_records_with_empty_values_are_dropped_or_refused(tmp_path):
    frame = table()
    frame.loc[[3, 500], "a"] = np.nan
    # A whole row group without a single record.
    frame.loc[150:299, "city"] = None
    path = tmp_path / "holes.parquet"
    pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=150)
    asked = {"target": "cost", "ignore": ("paid", "name")}
    with pytest.raises(InputError, match="column 'a' has 1 missing values"):
        auditing.audit_streamed(path, directory=tmp_path / "no", chosen=RIDGE, **asked)
    auditing.audit_streamed(
        path,
        directory=tmp_path / "run",
        chosen=RIDGE,
        missing="drop",
        cell_records=150,
        target="cost",
        ignore=("paid", "name"),
    )
    known = in_memory(frame, target="cost", ignore=("paid", "name"), missing="drop")
    same(answers_of(tmp_path / "run"), known)


@pytest.mark.filterwarnings("ignore")
def test_a_column_of_equal_numbers_is_not_scaled(tmp_path):
    frame = table().assign(a=3.7)
    frame.to_parquet(tmp_path / "r.parquet", index=False)
    asked = {"target": "cost", "ignore": ("paid", "name")}
    auditing.audit_streamed(
        tmp_path / "r.parquet", directory=tmp_path / "run", chosen=RIDGE, **asked
    )
    same(answers_of(tmp_path / "run"), in_memory(frame, **asked))


# Lives of one audit, each a process of its own that is forked after what takes seconds to import.
PROGRAM = """
import os, signal, sys, time
from pathlib import Path
import numpy as np
from leakscope import auditing
from leakscope.settings import ModelSettings

def begun(run):
    child = os.fork()
    if child:
        return child
    os.setsid()
    try:
        auditing.audit_streamed(
            sys.argv[1], directory=run, target="cost", ignore=("paid", "name"), cell_records=400,
            chosen=ModelSettings(model="ridge", alpha=1.0), block_bytes=2**12)
        os._exit(0)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)

def progress(run):
    # Cells that are finished, as another process sees them.
    return len(list(Path(run, "cells").glob("[!.]*.npz")))

assert os.waitpid(begun(sys.argv[2]), 0)[1] == 0
rng, run, kills = np.random.default_rng(3), sys.argv[3], 0
for _ in range(40):
    child, ended = begun(run), 0
    # Wait for the next cell or two, and no fixed time: machines differ.
    before = progress(run)
    while not ended and progress(run) < before + 1 + rng.integers(3):
        time.sleep(0.005)
        ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        assert status == 0
        break
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    kills += 1
print(kills)
"""


def test_killed_at_random_it_goes_on_to_the_very_same_answer(folder, tmp_path):
    run = tmp_path / "run"
    asked = [sys.executable, "-c", PROGRAM, str(folder), str(tmp_path / "whole"), str(run)]
    kills = int(subprocess.run(asked, check=True, stdout=subprocess.PIPE).stdout)
    assert (run / "result.json").exists()
    assert kills >= 3
    pd.testing.assert_frame_equal(answers_of(run), answers_of(tmp_path / "whole"))
    ours, known = (read_run(place).document for place in (run, tmp_path / "whole"))
    left_out = {"created", "timing", "settings"}
    assert ours.model_dump(exclude=left_out) == known.model_dump(exclude=left_out)
    assert not (run / "cells").exists()
    assert not list((run / "answers").glob(".*"))


def _progress(run) -> int:
    """Cells that are finished, as another process sees them."""
    return len(list((run / "cells").glob("[!.]*.npz")))


def test_a_cluster_that_loses_a_worker_gives_the_very_same_numbers(folder, tmp_path):
    distributed = pytest.importorskip("distributed")
    asked = {"chosen": RIDGE, "target": "cost", "ignore": ("paid", "name"), "cell_records": 150}
    auditing.audit_streamed(folder, directory=tmp_path / "here", **asked)
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        victims = list(client.run(os.getpid).values())[:1]

        def report(progress):
            if progress.done >= 10 and victims:
                os.kill(victims.pop(), signal.SIGKILL)

        auditing.audit_streamed(
            folder, directory=tmp_path / "there", client=client, on_progress=report, **asked
        )
    assert not victims
    pd.testing.assert_frame_equal(answers_of(tmp_path / "there"), answers_of(tmp_path / "here"))


class TestBrokenGround:
    """One sentence each, and what was computed is kept."""

    @staticmethod
    def ask(source, run, **changed):
        asked = {"target": "cost", "ignore": ("paid", "name"), "cell_records": 150, **changed}
        return auditing.audit_streamed(source, directory=run, chosen=RIDGE, **asked)

    @pytest.fixture
    def copy(self, folder, tmp_path):
        shutil.copytree(folder, tmp_path / "copy")
        return tmp_path / "copy"

    @staticmethod
    def after(cells, action):
        def report(progress):
            if progress.done == cells:
                action()

        return report

    def test_a_file_that_grows(self, copy, tmp_path):
        def grow():
            with (copy / "2.parquet").open("ab") as stream:
                stream.write(b"more")

        with pytest.raises(InputError, match=r"2\.parquet was changed while it was read"):
            self.ask(copy, tmp_path / "run", on_progress=self.after(4, grow))

    def test_a_file_that_vanishes_and_comes_back(self, copy, tmp_path):
        def hide():
            (copy / "2.parquet").rename(tmp_path / "hidden")

        run = tmp_path / "run"
        with pytest.raises(InputError, match=r"2\.parquet is no longer there .* what was computed"):
            self.ask(copy, run, on_progress=self.after(4, hide))
        kept = _progress(run)
        assert kept >= 4
        (tmp_path / "hidden").rename(copy / "2.parquet")
        seen = []
        self.ask(copy, run, on_progress=lambda progress: seen.append(progress.done))
        assert seen[0] == min(kept, 7)

    def test_a_changed_file_is_another_run(self, copy, tmp_path):
        run = tmp_path / "run"

        def stop():
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            self.ask(copy, run, on_progress=self.after(4, stop))
        os.utime(copy / "1.parquet", (1, 1))
        with pytest.raises(InputError, match="was begun with files"):
            self.ask(copy, run)

    def test_a_schema_that_changes_from_file_to_file(self, copy, tmp_path):
        frame = pd.read_parquet(copy / "1.parquet")
        frame.assign(a="x").to_parquet(copy / "1.parquet", index=False)
        words = "column 'a' is not the same in all .*: numbers in some, categories in others"
        with pytest.raises(InputError, match=words):
            self.ask(copy, tmp_path / "run")
        frame.drop(columns="a").to_parquet(copy / "1.parquet", index=False)
        with pytest.raises(InputError, match=r"1\.parquet has no column 'a'"):
            self.ask(copy, tmp_path / "another")

    def test_lists_whose_length_changes_from_row_group_to_row_group(self, tmp_path):
        rng = np.random.default_rng(0)
        schema = pa.schema({"x": pa.list_(pa.float64()), "cost": pa.float64()})
        with pq.ParquetWriter(tmp_path / "r.parquet", schema) as writer:
            for length in (3, 3, 4):
                rows = {"x": rng.normal(size=(60, length)).tolist(), "cost": rng.normal(size=60)}
                writer.write_table(pa.table(rows, schema=schema))
        words = "column 'x' .* lists of 3 numbers in some, lists of 4 numbers in others"
        with pytest.raises(InputError, match=words):
            self.ask(tmp_path / "r.parquet", tmp_path / "run", ignore=())

    @pytest.mark.parametrize("passes", [0, 1, 2])
    def test_a_file_that_changes_within_a_cell(self, passes, copy, tmp_path, monkeypatch):
        read, opened = file_parts.FilePart._read, []

        def changing(part, *asked):
            batches = read(part, *asked)
            yield next(batches)
            opened.append(part.path)
            # Each pass opens every row group once; there are three in each of the three files.
            if len(opened) == 9 * passes + 5:
                with (copy / part.path).open("ab") as stream:
                    stream.write(b"more")
            yield from batches

        monkeypatch.setattr(file_parts.FilePart, "_read", changing)
        with pytest.raises(InputError, match=r"1\.parquet was changed while it was read"):
            self.ask(copy, tmp_path / "run", block_bytes=2**10)
        assert _progress(tmp_path / "run") >= 7 * passes

    def test_a_garbled_row_group(self, copy, tmp_path):
        path = copy / "1.parquet"
        content = bytearray(path.read_bytes())
        content[4:60] = b"\xff" * 56
        path.write_bytes(bytes(content))
        with pytest.raises(InputError, match=r"1\.parquet can no longer be read"):
            self.ask(copy, tmp_path / "run")

    def test_a_full_disk(self, folder, tmp_path, monkeypatch):
        from leakscope.subjects.stream.answers import AnswersFile

        def full(self, columns):
            raise self._failed(OSError(28, "No space left on device"))

        run = tmp_path / "run"
        with monkeypatch.context() as patched:
            patched.setattr(AnswersFile, "write", full)
            with pytest.raises(InputError, match="No space left on device"):
                self.ask(folder, run)
        assert _progress(run) >= 2 * 7
        assert list((run / "answers").iterdir()) == []
        self.ask(folder, run)
        assert len(answers_of(run)) == RECORDS

    def test_a_finished_run_is_not_written_over(self, folder, tmp_path):
        self.ask(folder, tmp_path / "run")
        with pytest.raises(InputError, match="already there"):
            self.ask(folder, tmp_path / "run")

    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            ({"target": "none"}, "has no column"),
            ({"target": None}, "which column is the target"),
            ({"group_column": "city"}, "--group needs all records in memory"),
            ({"missing": "impute"}, "--read missing=impute needs all records"),
            ({"ignore": ()}, "'name' holds more than 50 values"),
            ({"task": "classification"}, "predicts a quantity"),
        ],
    )
    def test_refusals(self, changed, words, folder, tmp_path):
        with pytest.raises(InputError, match=words):
            self.ask(folder, tmp_path / "run", **changed)


@pytest.mark.filterwarnings("ignore")
def test_a_tiny_column_is_standardised_while_streaming_too(tmp_path):
    """Squares of 1e-200 are zero: the column counted as constant, all records confirmed."""
    frame = table(200)[["a", "b", "cost"]]
    found = []
    for name, power in (("usual", 0), ("tiny", -700)):
        frame.assign(a=np.ldexp(frame["a"], power)).to_parquet(tmp_path / f"{name}.parquet")
        found.append(
            auditing.audit_streamed(
                tmp_path / f"{name}.parquet",
                directory=tmp_path / name,
                chosen=RIDGE,
                cell_records=60,
                target="cost",
            )
        )
    assert found[0].record_ids == found[1].record_ids
    np.testing.assert_allclose(found[1].kl, found[0].kl, rtol=1e-7)
