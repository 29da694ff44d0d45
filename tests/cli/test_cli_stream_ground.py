"""Ground that gives way under a streamed audit: one sentence, status 2, and it goes on later."""

from __future__ import annotations

import shlex
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest

from leakscope.cli import main
from leakscope.running import cells

ASKED = ["--target", "y", "--model", "ridge", "--alpha", "1", "--run-dir"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    (tmp_path / "many").mkdir()
    for number in range(3):
        frame = pd.DataFrame(rng.normal(size=(4000, 4)), columns=["a", "b", "c", "y"])
        frame.to_parquet(tmp_path / "many" / f"{number}.parquet", index=False)
    return tmp_path


def one_sentence(text):
    """The last line of stderr, joined: what a person reads; never a traceback."""
    assert "Traceback" not in text
    return " ".join(text.split())


FULL = textwrap.dedent(
    """
    mount -t tmpfs -o size={size}k tmpfs {place} || exit 77
    python() {{ {python} -m leakscope audit many {asked} {place}/run; }}
    python; first=$?
    find {place}/run -name '*.json' -o -name '*.parquet' | wc -l
    mount -o remount,size=20m {place} || exit 77
    python || exit 1
    cp -r {place}/run after || exit 1
    exit $first
    """
)


@pytest.mark.parametrize("size", [8, 60, 260, 700, 1100])
def test_a_disk_that_is_full(size, here):
    # A file system of our own of so many kB: full before the run, in its cells, in the answers, or
    # when the result is written.
    place = here / "small"
    place.mkdir()
    script = FULL.format(size=size, place=place, python=sys.executable, asked=" ".join(ASKED))
    # Without util-linux the shell says "unshare: not found".
    own = f"unshare -rm sh -c {shlex.quote(script)}"
    done = subprocess.run(["sh", "-c", own], capture_output=True, text=True, check=False)
    if "unshare:" in done.stderr or done.returncode == 77:
        pytest.skip("no file system of our own can be mounted here")
    assert done.returncode == 2, done.stderr
    told = one_sentence(done.stderr)
    assert "space" in told or "full" in told
    assert main(["audit", "many", *ASKED, "whole"]) == 0
    pd.testing.assert_frame_equal(
        pd.read_parquet(here / "after" / "answers"), pd.read_parquet(here / "whole" / "answers")
    )


class TestCluster:
    """A scheduler that is not there, one that goes, and workers that are not like us."""

    @pytest.fixture(autouse=True)
    def dask(self, monkeypatch):
        pytest.importorskip("distributed")
        monkeypatch.setattr(cells, "CONNECT_SECONDS", 2)

    def test_a_scheduler_that_is_not_there(self, here, capsys):
        asked = ["audit", "many", *ASKED, "run", "--cluster", "tcp://127.0.0.1:1"]
        assert main(asked) == 2
        out, err = capsys.readouterr()
        assert out == ""
        told = one_sentence(err)
        assert "no Dask scheduler answers at tcp://127.0.0.1:1" in told
        assert not (here / "run").exists()
        assert main(["audit", "many", *ASKED, "run"]) == 0

    def test_an_address_that_is_none(self, capsys):
        assert main(["audit", "many", *ASKED, "run", "--cluster", "nowhere at all"]) == 2
        assert "no Dask scheduler answers at nowhere at all" in one_sentence(capsys.readouterr()[1])
