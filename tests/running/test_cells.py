from __future__ import annotations

import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from killed_run import CELLS, SEED, SETTINGS, compute, table

from leakscope import InputError
from leakscope._numerics.cores import side_by_side, usable_cores
from leakscope.running.cell_store import CELLS_FILE, open_cells, read_cells, run_description
from leakscope.running.cells import Cell, Found, duration, run_cells

SCRIPT = Path(__file__).with_name("killed_run.py")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    place = tmp_path_factory.mktemp("undisturbed") / "run"
    with open_cells(place, settings=SETTINGS, seed=SEED) as store:
        run_cells(store, CELLS, compute, seed=SEED)
    return table(place)


def started(place, *arguments) -> subprocess.Popen[bytes]:
    with place.with_suffix(".err").open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, str(SCRIPT), str(place), *arguments], stderr=errors
        )


def said(place) -> str:
    return place.with_suffix(".err").read_text()


def begun(place) -> None:
    """Wait until the run has finished its first cell."""
    deadline = time.monotonic() + 600.0
    while time.monotonic() < deadline:
        if (place / CELLS_FILE).exists():
            with read_cells(place) as store:
                if any(store.cells()):
                    return
        time.sleep(0.005)
    raise AssertionError("the run did not begin")


def test_killed_ten_times_it_ends_as_if_undisturbed(tmp_path, undisturbed):
    place, rng = tmp_path / "run", random.Random(0)
    kills, sizes = 0, []
    for _ in range(10):
        process = started(place)
        begun(place)
        time.sleep(rng.uniform(0.0, 0.06))
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        sizes.append(len(table(place)))
    assert sizes == sorted(sizes)
    assert kills >= 3
    process = started(place)
    assert process.wait() == 0, said(place)
    assert table(place) == undisturbed


def test_a_finished_cell_is_never_computed_again(tmp_path):
    log = tmp_path / "log"
    cells = [Cell(c.name, {**c.parameters, "log": str(log)}) for c in CELLS[:12]]
    with open_cells(tmp_path / "run", settings=SETTINGS, seed=SEED) as store:
        run_cells(store, cells[:5], compute, seed=SEED)
        run_cells(store, cells, compute, seed=SEED)
    assert [int(line) for line in log.read_text().split()] == list(range(12))


def test_two_processes_on_one_run(tmp_path, undisturbed):
    place = tmp_path / "run"
    both = [started(place), started(place)]
    assert [process.wait() for process in both] == [0, 0], said(place)
    assert table(place) == undisturbed


def test_a_full_disk_is_said_and_costs_nothing(tmp_path, undisturbed):
    place = tmp_path / "run"
    process = started(place, "60000")
    assert process.wait() != 0
    assert "finished cells stay as they are" in said(place)
    before = table(place)
    assert 0 < len(before) < len(undisturbed)
    assert before == [row for row in undisturbed if row[0] in {b[0] for b in before}]
    assert started(place).wait() == 0
    assert table(place) == undisturbed


@pytest.mark.parametrize("column", ["numbers", "arrays", "checksum"])
def test_a_garbled_cell_is_computed_again(tmp_path, undisturbed, column):
    place = tmp_path / "run"
    with open_cells(place, settings=SETTINGS, seed=SEED) as store:
        run_cells(store, CELLS, compute, seed=SEED)
    connection = sqlite3.connect(place / CELLS_FILE)
    value = b"garbled" if column == "arrays" else "garbled"
    connection.execute(f"UPDATE cells SET {column} = ? WHERE name = 'cell=007'", (value,))
    connection.commit()
    connection.close()
    with open_cells(place, settings=SETTINGS, seed=SEED) as store:
        assert len(list(store.cells())) == len(CELLS) - 1
        with pytest.raises(InputError, match="no finished cell 'cell=007'"):
            store.get("cell=007")
        run_cells(store, CELLS, compute, seed=SEED)
    assert table(place) == undisturbed


def test_a_claim_ends_with_its_process(tmp_path):
    place = tmp_path / "run"
    with open_cells(place, settings=SETTINGS, seed=SEED) as store:
        script = (
            "import sys; from leakscope.running.cell_store import read_cells; "
            f"print(read_cells({str(place)!r}).claim('cell=000'))"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
        assert done.stdout.split() == [b"True"]
        assert store.claim("cell=000")
        connection = sqlite3.connect(place / CELLS_FILE)
        connection.execute("UPDATE claims SET process = ?", (os.getppid(),))
        connection.commit()
        assert not store.claim("cell=000")
        connection.execute("UPDATE claims SET host = 'elsewhere', made = made - 1e4")
        connection.commit()
        connection.close()
        assert store.claim("cell=000")


def test_a_failing_cell_names_itself_and_keeps_the_others(tmp_path):
    def fails(parameters, key):
        if parameters["number"] == 3:
            raise ValueError("no")
        return Found({"number": parameters["number"]})

    with open_cells(tmp_path / "run", settings={}, seed=0) as store:
        with pytest.raises(ValueError, match="no") as caught:
            run_cells(store, CELLS[:6], fails, seed=0)
        assert caught.value.__notes__ == ["while computing the cell 'cell=003'"]
        assert store.finished() == {"cell=000", "cell=001", "cell=002"}
        assert store.claim("cell=003")


class TestThreads:
    """Cells side by side: the same numbers, and the same care when one fails."""

    @pytest.fixture(autouse=True)
    def three_cores(self, monkeypatch):
        monkeypatch.setenv("OMP_NUM_THREADS", "3")
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})

    def test_the_same_numbers_side_by_side(self, tmp_path, undisturbed):
        with open_cells(tmp_path / "run", settings=SETTINGS, seed=SEED) as store:
            done = run_cells(store, CELLS, compute, seed=SEED, threads=True)
        assert [cell.name for cell in done] == [cell.name for cell in CELLS]
        assert table(tmp_path / "run") == undisturbed

    def test_as_many_at_once_as_there_are_cores_and_each_has_one(self, tmp_path):
        meet = threading.Barrier(3, timeout=300.0)

        def waits(parameters, key):
            meet.wait()
            with side_by_side() as for_each:
                ran = []
                for_each(ran.append, range(2))
            return Found({"cores": usable_cores(), "ran": ran})

        with open_cells(tmp_path / "run", settings={}, seed=0) as store:
            done = run_cells(store, CELLS[:6], waits, seed=0, threads=True)
        assert [cell.numbers for cell in done] == [{"cores": 1, "ran": [0, 1]}] * 6
        assert usable_cores() == 3

    def test_a_failing_cell_gives_back_all_that_were_under_way(self, tmp_path):
        def fails(parameters, key):
            if parameters["number"] == 3:
                raise ValueError("no")
            return compute(parameters, key)

        with open_cells(tmp_path / "run", settings={}, seed=0) as store:
            with pytest.raises(ValueError, match="no") as caught:
                run_cells(store, CELLS[:20], fails, seed=0, threads=True)
            assert caught.value.__notes__ == ["while computing the cell 'cell=003'"]
            finished = store.finished()
            assert len(finished) <= 6
            assert "cell=003" not in finished
        with sqlite3.connect(tmp_path / "run" / CELLS_FILE) as connection:
            assert connection.execute("SELECT count(*) FROM claims").fetchone() == (0,)
        connection.close()


def test_progress_counts_cells_and_only_new_ones_set_the_pace(tmp_path):
    seen = []
    with open_cells(tmp_path / "run", settings={}, seed=0) as store:
        run_cells(store, CELLS[:2], compute, seed=0)
        run_cells(store, CELLS[:5], compute, seed=0, on_progress=seen.append)
    assert [(p.done, p.total) for p in seen] == [(2, 5), (3, 5), (4, 5), (5, 5)]
    assert seen[0].seconds_left is None
    assert seen[1].seconds_left > 0.0
    assert seen[-1].seconds_left == 0.0


def test_other_settings_and_strange_directories_are_refused(tmp_path):
    place = tmp_path / "run"
    open_cells(place, settings={"models": 4}, seed=0).close()
    with pytest.raises(InputError, match="begun with models = 4, and now it is 5"):
        open_cells(place, settings={"models": 5}, seed=0)
    with pytest.raises(InputError, match="begun with seed = 0"):
        open_cells(place, settings={"models": 4}, seed=1)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("")
    with pytest.raises(InputError, match="is no run"):
        open_cells(tmp_path / "other", settings={}, seed=0)
    with pytest.raises(InputError, match="is no run"):
        read_cells(tmp_path / "other")
    (place / CELLS_FILE).write_bytes(b"not a database" * 100)
    with pytest.raises(InputError, match="is not a file of cells"):
        open_cells(place, settings={"models": 4}, seed=0)
    (place / "run.json").write_text("[]")
    with pytest.raises(InputError, match="does not describe a run"):
        run_description(place)
    with (
        open_cells(tmp_path / "new", settings={}, seed=0) as store,
        pytest.raises(InputError, match="two cells have the name 'a'"),
    ):
        run_cells(store, [Cell("a", {}), Cell("a", {})], compute, seed=0)


def test_private(tmp_path):
    place = tmp_path / "run"
    with open_cells(place, settings=SETTINGS, seed=SEED) as store:
        run_cells(store, CELLS[:4], compute, seed=SEED)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    for path in (place / "run.json", place / CELLS_FILE):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_durations_are_read_at_a_glance():
    assert [duration(seconds) for seconds in (42.0, 420.0, 5400.0)] == ["42 s", "7 min", "1.5 h"]


def test_keys_are_the_names_and_the_seeds():
    first, second = CELLS[0].key(0), CELLS[1].key(0)
    assert first != second
    assert first != CELLS[0].key(1)
    assert first == Cell(CELLS[0].name, {"other": 1}).key(0)
