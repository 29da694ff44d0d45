"""The factor on disk gives what memory gives, goes on after a stop, and refuses in time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import namedtuple

import numpy as np
import pytest

from leakscope import kernels, lood
from leakscope._numerics import disk_cholesky, probes
from leakscope.errors import InputError


def problem(size=300, features=4, outputs=None):
    rng = np.random.default_rng(size)
    shape = size if outputs is None else (size, outputs)
    return rng.normal(size=(size, features)), rng.normal(size=shape)


@pytest.mark.parametrize("width", [7, 37, 64, 150, 300, 1000])
@pytest.mark.parametrize(
    "kernel", [kernels.rbf(1.5), kernels.matern(1.5, 1.0)], ids=["rbf", "matern"]
)
def test_the_answer_in_memory(width, kernel, tmp_path, monkeypatch):
    monkeypatch.setattr(disk_cholesky, "PIECE", 50)
    X, y = problem(outputs=2)
    shares = []
    there = lood.disk_records(
        X,
        y,
        kernel=kernel,
        noise_variance=0.05,
        folder=tmp_path,
        width=width,
        advanced=shares.append,
    )
    here = lood.all_records(kernel(X), y, noise_variance=0.05)
    np.testing.assert_allclose(there.kl, here.kl, rtol=1e-9)
    np.testing.assert_allclose(there.residual, here.residual, rtol=1e-9, atol=1e-12)
    assert there.route == "disk"
    assert there.trusted.all()
    # Nothing is left behind, and progress ends at the end.
    assert list(tmp_path.iterdir()) == []
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_records_taken_out_and_fitted_anew(tmp_path):
    X, y = problem(60)
    kernel, noise = kernels.rbf(1.0), 0.1
    found = lood.disk_records(X, y, kernel=kernel, noise_variance=noise, folder=tmp_path, width=16)
    for record in (0, 17, 59):
        others = np.delete(np.arange(60), record)
        inner = kernel(X[others]) + noise * np.eye(59)
        across = kernel(X[others], X[[record]])[:, 0]
        mean = across @ np.linalg.solve(inner, y[others])
        variance = 1.0 - across @ np.linalg.solve(inner, across)
        assert found.mean_without[record] == pytest.approx(mean, rel=1e-9)
        assert found.variance_without[record] == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize("stopped_after", [1, 3, 5, 7, 9])
def test_it_goes_on_at_the_last_block_column(stopped_after, tmp_path, monkeypatch):
    X, y = problem(100)
    asked = {"kernel": kernels.rbf(1.0), "noise_variance": 0.1, "folder": tmp_path}
    unbroken = lood.disk_records(X, y, **asked, width=20)
    calls = []

    class Stopped(Exception):
        pass

    def stop(share):
        calls.append(share)
        if len(calls) == stopped_after:
            raise Stopped

    with pytest.raises(Stopped):
        lood.disk_records(X, y, **asked, width=20, advanced=stop)
    again = []
    # The blocks are those of the state, whatever the memory is now.
    found = lood.disk_records(X, y, **asked, width=50, advanced=again.append)
    assert len(calls) + len(again) == 10
    np.testing.assert_array_equal(found.kl, unbroken.kl)


def test_a_killed_process_leaves_what_it_had(tmp_path):
    code = (
        "import os, sys, numpy as np\n"
        "from leakscope import kernels, lood\n"
        "rng = np.random.default_rng(1)\n"
        "X, y = rng.normal(size=(200, 3)), rng.normal(size=200)\n"
        "kill = sys.argv[2] == 'kill'\n"
        "found = lood.disk_records(X, y, kernel=kernels.rbf(1.0), noise_variance=0.1,\n"
        "    folder=sys.argv[1], width=20,\n"
        "    advanced=lambda share: os.kill(os.getpid(), 9) if kill and share > 0.4 else None)\n"
        "print(found.kl.tobytes().hex())\n"
    )

    def run(mode):
        command = [sys.executable, "-c", code, str(tmp_path), mode]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert run("kill").returncode == -9
    assert len(list(tmp_path.iterdir())) == 1
    went_on = run("go on")
    assert list(tmp_path.iterdir()) == []
    assert went_on.stdout == run("whole").stdout
    assert went_on.returncode == 0


def test_another_question_does_not_go_on_with_it(tmp_path):
    X, y = problem(40)
    keys = set()
    for rows, targets, noise, kernel in (
        (X, y, 0.1, kernels.rbf(1.0)),
        (X + 1e-9, y, 0.1, kernels.rbf(1.0)),
        (X, -y, 0.1, kernels.rbf(1.0)),
        (X, y, 0.2, kernels.rbf(1.0)),
        (X, y, 0.1, kernels.rbf(2.0)),
    ):
        with pytest.raises(KeyboardInterrupt):
            lood.disk_records(
                rows,
                targets,
                kernel=kernel,
                noise_variance=noise,
                folder=tmp_path,
                advanced=_interrupt,
            )
        keys = {entry.name for entry in tmp_path.iterdir()}
    assert len(keys) == 5


def _interrupt(share):
    raise KeyboardInterrupt


class TestRefusals:
    def test_too_little_disk_is_said_before_the_work(self, tmp_path, monkeypatch):
        usage = namedtuple("usage", "total used free")
        monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(10, 5, 5))
        X, y = problem(100)
        with pytest.raises(InputError, match=r"needs .* of disk, but .*TMPDIR"):
            lood.disk_records(X, y, kernel=kernels.rbf(1.0), noise_variance=0.1, folder=tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_a_disk_that_fills_up_keeps_what_there_is(self, tmp_path, monkeypatch):
        X, y = problem(100)
        asked = {"kernel": kernels.rbf(1.0), "noise_variance": 0.1, "folder": tmp_path, "width": 20}
        unbroken = lood.disk_records(X, y, **asked)
        real, written = os.pwritev, []

        def full(file, buffers, offset):
            written.append(offset)
            if len(written) == 4:
                raise OSError(28, "No space left on device")
            return real(file, buffers, offset)

        monkeypatch.setattr(os, "pwritev", full)
        with pytest.raises(InputError, match=r"No space left on device.*make room.*stays"):
            lood.disk_records(X, y, **asked)
        shares = []
        found = lood.disk_records(X, y, **asked, advanced=shares.append)
        assert len(shares) == 7
        np.testing.assert_array_equal(found.kl, unbroken.kl)

    def test_a_file_cut_short(self, tmp_path):
        X, y = problem(100)
        asked = {"kernel": kernels.rbf(1.0), "noise_variance": 0.1, "folder": tmp_path, "width": 20}

        def cut(share):
            (path,) = tmp_path.glob("*/factor.bin")
            os.truncate(path, 100)

        with pytest.raises(InputError, match="shorter than it was"):
            lood.disk_records(X, y, **asked, advanced=cut)

    def test_not_positive_definite(self, tmp_path):
        X, y = np.zeros((50, 2)), np.zeros(50)
        with pytest.raises(InputError, match="not positive definite"):
            lood.disk_records(
                X, y, kernel=kernels.rbf(1.0), noise_variance=1e-18, folder=tmp_path, width=20
            )
        assert list(tmp_path.iterdir()) == []

    def test_a_factor_that_was_changed_on_the_disk(self, tmp_path, monkeypatch):
        X, y = problem(100)
        done = []

        def damage(share):
            done.append(share)
            if len(done) == 3:
                (path,) = tmp_path.glob("*/factor.bin")
                with path.open("r+b") as file:
                    file.seek(8 * 20 * 50)
                    file.write(np.float64(0.123).tobytes())

        with pytest.raises(probes.WrongProductError, match="on disk"):
            lood.disk_records(
                X,
                y,
                kernel=kernels.rbf(1.0),
                noise_variance=0.1,
                folder=tmp_path,
                width=20,
                advanced=damage,
            )

    def test_too_little_memory(self, tmp_path, monkeypatch):
        monkeypatch.setattr("leakscope.lood.disk.available_memory", lambda: 10**6)
        X, y = problem(100)
        with pytest.raises(InputError, match="128 columns of the kernel matrix of 100 records"):
            lood.disk_records(X, y, kernel=kernels.rbf(1.0), noise_variance=0.1, folder=tmp_path)
