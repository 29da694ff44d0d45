"""Long work in parts: kept, resumed after a kill, and the same wherever it is computed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from leakscope import InputError
from leakscope.running.parts import Part, kept_part, part_key, run_parts, workers_at

PARTS = {f"part={number:03d}": number for number in range(12)}

SCRIPT = """
import sys, time
from functools import partial
from pathlib import Path
sys.path.insert(0, {here!r})
from test_parts import PARTS, drawn
from leakscope.running.parts import run_parts
run_parts(PARTS, partial(drawn, 0.05), folder=Path(sys.argv[1]))
"""


def drawn(seconds, name, number):
    time.sleep(seconds)
    values = part_key(name, 7).generator().normal(size=3)
    return Part({"number": number}, {"values": values})


def values(parts):
    return np.stack([part.arrays["values"] for part in parts])


@pytest.fixture(scope="module")
def undisturbed():
    return values(run_parts(PARTS, partial(drawn, 0.0)))


def test_a_killed_run_goes_on_and_gives_the_same(tmp_path, undisturbed):
    script = SCRIPT.format(here=str(Path(__file__).parent))
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)])
        before = len(list(tmp_path.glob("part*.npz")))
        deadline = time.monotonic() + 120.0
        while len(list(tmp_path.glob("part*.npz"))) < before + 2 and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
    parts = run_parts(PARTS, partial(drawn, 0.0), folder=tmp_path)
    assert np.array_equal(values(parts), undisturbed)
    assert sum(part.kept is not None for part in parts) >= 6


def test_a_garbled_part_is_computed_again(tmp_path, undisturbed):
    run_parts(PARTS, partial(drawn, 0.0), folder=tmp_path)
    first, second = sorted(tmp_path.glob("*.npz"))[:2]
    first.write_bytes(first.read_bytes()[:-40])
    second.write_bytes(b"nothing")
    assert kept_part(tmp_path, "part=000") is kept_part(tmp_path, "part=001") is None
    assert np.array_equal(
        values(run_parts(PARTS, partial(drawn, 0.0), folder=tmp_path)), undisturbed
    )
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


@pytest.mark.parametrize("at", ["threads", 2])
def test_the_same_in_threads_and_processes(undisturbed, at):
    assert np.array_equal(values(run_parts(PARTS, partial(drawn, 0.0), at=at)), undisturbed)


def test_the_same_on_a_cluster(undisturbed):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, processes=True, dashboard_address=None) as cluster,
        workers_at(scheduler=cluster.scheduler_address) as client,
    ):
        parts = run_parts(PARTS, partial(drawn, 0.0), at=client)
    assert np.array_equal(values(parts), undisturbed)


def failing(name, number):
    if number == 3:
        raise InputError("the fourth")
    return Part({"number": number})


@pytest.mark.parametrize("at", [None, "threads"])
def test_what_was_finished_before_an_error_is_kept(tmp_path, at):
    with pytest.raises(InputError, match="fourth"):
        run_parts(PARTS, failing, folder=tmp_path, at=at)
    assert kept_part(tmp_path, "part=000") is not None


def test_progress_counts_what_was_there(tmp_path):
    told = []
    run_parts(dict(list(PARTS.items())[:4]), partial(drawn, 0.0), folder=tmp_path)
    run_parts(PARTS, partial(drawn, 0.0), folder=tmp_path, on_progress=told.append)
    assert [(each.done, each.total) for each in told] == [(n, 12) for n in range(4, 13)]


@pytest.mark.parametrize("given", [{"scheduler": "x", "workers": 1}, {"workers": 0}])
def test_bad_workers_are_refused(given):
    with pytest.raises(InputError), workers_at(**given):
        pass


def test_a_scheduler_that_is_not_there():
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match="scheduler"), workers_at(scheduler="tcp://127.0.0.1:1"):
        pass


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError):
        run_parts(PARTS, partial(drawn, 0.0), folder=tmp_path / "file" / "parts")
    assert os.path.isfile(tmp_path / "file")
