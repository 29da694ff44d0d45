"""What a server meets in its life: silent connections, a full house, a death, a browser's argv."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from leakscope.serving import Limits, server
from leakscope.serving.server import FOLDER_PREFIX, LOCK_FILE, hold, remove_abandoned
from leakscope.serving.uploads import Upload, Uploads


class Connection:
    """As much of uvicorn's protocol as is looked at."""

    def __init__(self, cycle: object = None) -> None:
        self.cycle = cycle
        self.closed = False
        self.transport = self

    def close(self) -> None:
        self.closed = True


def test_silent_connections_are_closed_and_busy_ones_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silent, busy, waiting = Connection(), Connection(cycle=object()), dict[Any, float]()
    clock = [100.0]
    monkeypatch.setattr(server.time, "monotonic", lambda: clock[0])
    for clock[0] in (100.0, 105.0, 109.9):
        server.close_silent({silent, busy}, waiting)
        assert not silent.closed
    clock[0] = 110.5
    server.close_silent({silent, busy}, waiting)
    assert silent.closed
    assert not busy.closed
    server.close_silent(set(), waiting)
    assert waiting == {}


@pytest.fixture
def served(tmp_path: Path) -> Any:
    process = subprocess.Popen(
        [sys.executable, "-m", "leakscope", "serve"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://127.0.0.1:(\d+)/\S+", process.stdout.readline())
        assert found
        yield process, found[0], int(found[1])
    finally:
        process.kill()
        process.communicate()


def answers(address: str) -> int:
    try:
        with urllib.request.urlopen(address, timeout=300) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_half_open_connections_do_not_shut_others_out_for_good(served: Any) -> None:
    _, address, port = served
    held = [socket.create_connection(("127.0.0.1", port)) for _ in range(server.CONNECTIONS)]
    try:
        time.sleep(0.5)
        assert answers(address) == 503
        end = time.monotonic() + server.SILENCE_SECONDS + 300.0
        while answers(address) != 200:
            assert time.monotonic() < end
            time.sleep(0.5)
    finally:
        for one in held:
            one.close()


def test_a_killed_server_s_folder_is_removed_by_the_next(served: Any, tmp_path: Path) -> None:
    process, _, _ = served
    (left,) = tmp_path.glob(f"{FOLDER_PREFIX}*")
    (left / "upload-x.csv").write_text("private")
    remove_abandoned(tmp_path)
    assert left.exists(), "a folder in use is left alone"
    process.send_signal(signal.SIGKILL)
    process.wait()
    remove_abandoned(tmp_path)
    assert not left.exists()


def test_what_is_no_server_s_folder_stays(tmp_path: Path) -> None:
    own = tmp_path / f"{FOLDER_PREFIX}mine"
    own.mkdir()
    remove_abandoned(tmp_path)
    assert own.exists(), "without a lock it is nobody's"
    target = tmp_path / "elsewhere"
    target.mkdir()
    (target / LOCK_FILE).write_text("")
    (tmp_path / f"{FOLDER_PREFIX}link").symlink_to(target)
    remove_abandoned(tmp_path)
    assert target.exists()
    descriptor = hold(own)
    remove_abandoned(tmp_path)
    assert own.exists()
    os.close(descriptor)
    remove_abandoned(tmp_path)
    assert not own.exists()


def test_the_token_is_not_among_a_browser_s_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(server.webbrowser, "open", lambda address: opened.append(address))
    access = server.Access(port=8000, token="a-secret-token")
    server._announce("127.0.0.1", access, True, lambda line: None, tmp_path)
    assert opened[0].startswith("file://")
    assert "a-secret-token" not in opened[0]
    assert "a-secret-token" in (tmp_path / "open.html").read_text()


def test_a_waiting_audit_keeps_its_file(tmp_path: Path) -> None:
    held = Uploads(tmp_path, Limits(uploads_held=1))
    path = tmp_path / "upload-1.csv"
    path.write_text("x,y\n1,2\n")
    upload = Upload("id", "people.csv", path)
    kept = held.kept(upload)
    path.unlink()
    assert kept.path.read_text() == "x,y\n1,2\n"
    assert kept.name == "people.csv"
    held.release(upload)
    held.release(kept)
    held.release(None)
    assert list(tmp_path.iterdir()) == []
