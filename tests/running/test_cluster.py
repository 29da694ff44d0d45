from __future__ import annotations

import os
import signal
import time

import pytest
from killed_run import CELLS, SEED, SETTINGS, compute, table

from leakscope import InputError
from leakscope.running.cell_store import open_cells
from leakscope.running.cells import Cell, Found, cluster_client, run_cells

pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    with cluster_client(workers=2) as client:
        yield client


def test_the_same_numbers_as_in_one_process(tmp_path, client):
    for name, where in (("here", None), ("cluster", client)):
        with open_cells(tmp_path / name, settings=SETTINGS, seed=SEED) as store:
            run_cells(store, CELLS[:20], compute, seed=SEED, client=where)
    assert table(tmp_path / "here") == table(tmp_path / "cluster")


def suicidal(parameters, key):
    """Kills its own worker, the first time round."""
    try:
        with open(parameters["mark"], "x"):
            pass
    except FileExistsError:
        return Found({"value": float(key.generator().random())})
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)
    return Found({})


def test_a_dead_worker_costs_its_cell_which_is_tried_again(tmp_path):
    cells = [Cell(f"{i}", {"mark": str(tmp_path / "mark")}) for i in range(6)]
    with (
        cluster_client(workers=2) as client,
        open_cells(tmp_path / "run", settings={}, seed=0) as store,
    ):
        done = run_cells(store, cells, suicidal, seed=0, client=client)
    assert [cell.numbers["value"] for cell in done] == [
        float(cell.key(0).generator().random()) for cell in cells
    ]


def failing(parameters, key):
    raise ValueError("never")


def test_a_cell_that_always_fails_is_named(tmp_path, client):
    with (
        open_cells(tmp_path / "run", settings={}, seed=0) as store,
        pytest.raises(ValueError, match="never") as caught,
    ):
        run_cells(store, CELLS[:1], failing, seed=0, client=client)
    assert "while computing the cell 'cell=000'" in caught.value.__notes__


def one_of_three_fails(parameters, key):
    """The second fails after the first has finished; the third finishes after that."""
    failed = parameters["mark"]
    if parameters["number"] == 1:
        time.sleep(0.7)
        with open(failed, "x"):
            raise ValueError("the second")
    if parameters["number"] == 2:
        while not os.path.exists(failed):
            time.sleep(0.05)
        time.sleep(0.7)
    return Found({"value": 1.0})


def test_what_others_finish_is_kept_when_one_fails(tmp_path, client):
    mark = str(tmp_path / "failed")
    cells = [Cell(f"{i}", {"number": i, "mark": mark}) for i in range(3)]

    def until_all_are_done(progress):
        if progress.done == 1:
            while any(client.processing().values()):
                time.sleep(0.05)
            time.sleep(0.5)

    with (
        open_cells(tmp_path / "run", settings={}, seed=0) as store,
        pytest.raises(ValueError, match="the second"),
    ):
        run_cells(
            store,
            cells,
            one_of_three_fails,
            seed=0,
            client=client,
            retries=0,
            on_progress=until_all_are_done,
        )
    with open_cells(tmp_path / "run", settings={}, seed=0) as store:
        assert store.finished() == {"0", "2"}


def test_refusals():
    with pytest.raises(InputError, match="not both"), cluster_client(scheduler="x", workers=1):
        pass
    with pytest.raises(InputError, match="1 or more"), cluster_client(workers=0):
        pass
