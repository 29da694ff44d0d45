"""Streamed audits on a Dask cluster whose scheduler dies, or whose worker is of another version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pandas as pd
import pytest
from test_streamed import RECORDS, RIDGE, answers_of, folder
from test_streamed_fits import cancer, diabetes, of_answers

from leakscope import auditing
from leakscope.cli import main
from leakscope.errors import InputError
from leakscope.running.parts import workers_at
from leakscope.settings import ModelSettings

pytest.importorskip("distributed")

__all__ = ["folder"]

ASKED = {"target": "cost", "ignore": ("paid", "name"), "cell_records": 150}


@contextmanager
def cluster(place, **environment) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A scheduler and one worker, each a process of its own: the scheduler, and its address."""
    file = place / "scheduler.json"
    told = ["--cluster-file", str(file), "--no-dashboard"]
    commands = {
        "scheduler": ["--host", "127.0.0.1", "--port", "0"],
        "worker": ["--nthreads", "1", "--no-nanny"],
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{name}", *options, *told],
            env={**os.environ, **environment},
            stderr=subprocess.DEVNULL,
        )
        for name, options in commands.items()
    ]
    try:
        while not file.exists():
            assert processes[0].poll() is None
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        # Until the worker is there.
        while True:
            try:
                with workers_at(scheduler=address):
                    break
            except InputError as error:
                if "no workers" not in str(error):
                    break
                time.sleep(0.2)
        yield processes[0], address
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_scheduler_that_dies_leaves_what_is_finished(folder, tmp_path):
    run = tmp_path / "run"
    with cluster(tmp_path) as (scheduler, address), workers_at(scheduler=address) as client:

        def report(progress):
            if progress.done == 5:
                scheduler.kill()

        with pytest.raises(InputError, match=r"the cluster stopped .* what is finished is kept"):
            auditing.audit_streamed(
                folder, directory=run, chosen=RIDGE, client=client, on_progress=report, **ASKED
            )
    kept = len(list((run / "cells").glob("*.npz")))
    assert kept >= 5
    seen = []
    auditing.audit_streamed(
        folder,
        directory=run,
        chosen=RIDGE,
        on_progress=lambda progress: seen.append(progress.done),
        **ASKED,
    )
    assert seen[0] >= min(kept, 7)
    auditing.audit_streamed(folder, directory=tmp_path / "whole", chosen=RIDGE, **ASKED)
    assert len(answers_of(run)) == RECORDS
    pd.testing.assert_frame_equal(answers_of(run), answers_of(tmp_path / "whole"))


def test_fits_on_a_cluster_have_the_same_numbers(tmp_path):
    fits = {
        "ridge": (diabetes(), ModelSettings(model="ridge")),
        "logistic": (cancer(), ModelSettings(model="logistic", C=0.01)),
    }
    with cluster(tmp_path) as (_, address), workers_at(scheduler=address) as client:
        for name, (frame, chosen) in fits.items():
            file = tmp_path / f"{name}.parquet"
            frame.to_parquet(file, row_group_size=150)
            found = [
                auditing.audit_streamed(
                    file, directory=tmp_path / f"{name}-{place}", chosen=chosen, target="target",
                    cell_records=200, client=other,
                )
                for place, other in (("there", client), ("here", None))
            ]  # fmt: skip
            assert found[0].model == found[1].model
            pd.testing.assert_frame_equal(
                of_answers(tmp_path / f"{name}-there"),
                of_answers(tmp_path / f"{name}-here"),
                check_exact=True,
            )
            pd.testing.assert_frame_equal(found[0].to_frame(), found[1].to_frame())


def test_a_worker_of_another_version(folder, tmp_path, capsys):
    # A worker that finds an older leakscope: the same files, under another version.
    shim = tmp_path / "older" / "leakscope-0.0.1.dist-info"
    shim.mkdir(parents=True)
    (shim / "METADATA").write_text("Metadata-Version: 2.1\nName: leakscope\nVersion: 0.0.1\n")
    path = os.pathsep.join([str(shim.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    with cluster(tmp_path, PYTHONPATH=path) as (_, address):
        asked = ["audit", str(folder), "--target", "cost", "--ignore", "paid", "--ignore", "name"]
        asked += [
            "--model",
            "ridge",
            "--alpha",
            "1",
            "--run-dir",
            str(tmp_path / "run"),
            "--cluster",
            address,
        ]
        assert main(asked) == 2
    out, err = capsys.readouterr()
    told = " ".join(err.split())
    assert out == ""
    assert "Traceback" not in told
    assert "has leakscope 0.0.1, but here it is" in told
    assert "install the same version there" in told
    assert not (tmp_path / "run").exists()
