from __future__ import annotations

import csv
import json
import stat
from datetime import UTC, datetime

import numpy as np
import pytest
from test_results import audit_document

from leakscope import InputError, results
from leakscope.results import run_directory as runs
from leakscope.results.run_directory import default_run_directory


def write(directory):
    return results.write_run_directory(
        directory,
        audit_document(),
        columns=["record_id", "kl"],
        rows=[[0, 1.5], ["b,c", 0.5]],
        arrays={"kl": np.array([1.5, 0.5])},
    )


def test_everything_is_there_and_private(tmp_path):
    run = write(tmp_path / "deep" / "run")
    assert stat.S_IMODE(run.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in run.iterdir()} == {0o600}
    assert results.read_result(run / "result.json").kind == "audit"
    settings = json.loads((run / "settings.json").read_text())
    assert settings["settings"] == {"noise_variance": 0.01}
    assert settings["versions"]["numpy"] == np.__version__
    with (run / "records.csv").open(newline="") as stream:
        assert list(csv.reader(stream))[2] == ["b,c", "0.5"]
    with np.load(run / "arrays.npz", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["kl"], [1.5, 0.5])


def test_an_existing_run_is_never_overwritten(tmp_path):
    write(tmp_path / "run")
    with pytest.raises(InputError, match="already there"):
        write(tmp_path / "run")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="already there"):
        write(tmp_path / "file")


def test_an_empty_directory_is_taken(tmp_path):
    (tmp_path / "run").mkdir()
    run = write(tmp_path / "run")
    assert len(list(run.iterdir())) == 5
    assert stat.S_IMODE(run.stat().st_mode) == 0o700


def test_nothing_is_left_of_a_failed_run(tmp_path, monkeypatch):
    def fail(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs.np, "savez_compressed", fail)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_unwritable(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot be written"):
        write(tmp_path / "file" / "run")


def test_default_names_do_not_collide(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    first = default_run_directory("audit", "../a b", now=now)
    assert first.as_posix() == "leakscope-runs/20260102T030405Z-audit-a_b"
    first.mkdir(parents=True)
    assert default_run_directory("audit", "../a b", now=now).name == first.name + "-2"
    assert default_run_directory("audit", "...", now=now).name.endswith("-audit-run")


def test_two_runs_that_end_in_one_second_are_both_kept(tmp_path, monkeypatch):
    """Both proposed the same name while neither was there."""
    monkeypatch.chdir(tmp_path)
    name = default_run_directory("audit", "data")
    first, second, third = write(name), write_late(name), write_late(name)
    assert {first.name, second.name, third.name} == {name.name, f"{name.name}-2", f"{name.name}-3"}
    assert all((run / "result.json").exists() for run in (first, second, third))
    # A name that somebody gave is never changed.
    write(tmp_path / "own")
    with pytest.raises(InputError, match="cannot be written"):
        write_late(tmp_path / "own")


def write_late(directory):
    """As if the directory had been free when the run began."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "require_free", lambda place: None)
        return write(directory)
