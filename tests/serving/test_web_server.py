"""``leakscope serve`` as a process of its own: started, asked, interrupted."""

from __future__ import annotations

import asyncio
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from leakscope.cli import main


@contextmanager
def server(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "leakscope", "serve", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", line)
        assert found, line
        yield process, int(found[1]), found[2]
    finally:
        process.kill()
        process.communicate()


def ask(port: int, path: str, **headers: str) -> http.client.HTTPResponse:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=300)) as connection:
        connection.request("GET", path, headers=headers)
        with connection.getresponse() as answer:
            answer.read()
            return answer


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_is_private_and_leaves_nothing_behind(tmp_path, how):
    if signal.getsignal(how) is signal.SIG_IGN and how is signal.SIGHUP:
        pytest.skip("these tests run under nohup, which a server rightly inherits")
    with server(tmp_path, "--max-upload", "1") as (process, port, token):
        assert ask(port, "/").status == 403
        answer = ask(port, f"/?token={token}")
        assert answer.status == 200
        cookie = answer.headers["set-cookie"].split(";")[0]
        assert "server" not in answer.headers
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        # Listening on this machine's own address and no other.
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port), timeout=2)
        # An upload without a length is refused long before it ends.
        own = f"http://127.0.0.1:{port}"
        with socket.create_connection(("127.0.0.1", port), timeout=300) as raw:
            raw.sendall(
                f"POST /api/uploads?name=a.csv HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                f"Cookie: {cookie}\r\nOrigin: {own}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
            )
            chunk = b"%x\r\n%s\r\n" % (100_000, b"1" * 100_000)
            for _ in range(11):
                raw.sendall(chunk)
            assert raw.recv(100).startswith(b"HTTP/1.1 413")
        assert [file.name for file in folder.iterdir()] == [".in-use"]
        assert process.stdout is not None
        assert "Ctrl-C" in process.stdout.readline()
        process.send_signal(how)
        _, err = process.communicate(timeout=600)
        assert process.returncode == 0
        assert err == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--host", "0.0.0.0"], "--allow-remote"),
        (["--host", "example.org"], "--allow-remote"),
        (["--port", "70000"], "--port must be"),
        (["--max-upload", "0"], "--max-upload must be"),
        (["--host", "no such host", "--allow-remote"], "Cannot listen"),
    ],
)
def test_what_is_refused(options, told, capsys):
    assert main(["serve", *options]) == 2
    assert told in capsys.readouterr().err


def test_an_interruption_at_once_in_the_background_of_a_shell(tmp_path):
    """There SIGINT is ignored until somebody takes it."""
    # A trap of the empty command is inherited; preexec_fn would fork a process that has threads.
    shell = 'trap "" INT; exec "$0" -m leakscope serve'
    started = subprocess.Popen(
        ["sh", "-c", shell, sys.executable],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        assert started.stdout is not None
        started.stdout.readline()
        started.send_signal(signal.SIGINT)
        started.communicate(timeout=600)
        assert started.returncode == 0
    finally:
        started.kill()
        started.communicate()
    assert list(tmp_path.iterdir()) == []


def test_a_port_in_use_is_refused(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["serve", "--port", str(taken.getsockname()[1])]) == 2
    assert "Cannot listen on 127.0.0.1" in capsys.readouterr().err


def test_a_missing_extra_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["serve"]) == 2
    assert "pip install 'leakscope[web]'" in capsys.readouterr().err


def test_listening_to_others_prints_a_warning(tmp_path):
    with server(tmp_path, "--host", "0.0.0.0", "--allow-remote") as (process, port, token):
        assert process.stdout is not None
        assert "nothing is encrypted" in process.stdout.readline()
        assert ask(port, f"/?token={token}").status == 200
        assert ask(port, f"/?token={token}", Host=f"rebound.example:{port}").status == 403
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=600)
        assert process.returncode == 0


def test_the_browser_is_opened_with_the_address(monkeypatch, tmp_path):
    from leakscope.serving import Limits, server

    opened = []
    monkeypatch.setattr(server.webbrowser, "open", opened.append)
    monkeypatch.setattr(server.tempfile, "mkdtemp", lambda prefix: str(tmp_path))

    async def started(self, sockets=None):
        return None

    monkeypatch.setattr("uvicorn.Server.startup", started)
    run = "uvicorn.Server.run"
    monkeypatch.setattr(run, lambda self, sockets: asyncio.run(self.startup(sockets)))
    said = []
    server.serve(
        host="127.0.0.1",
        port=0,
        allow_remote=False,
        open_browser=True,
        limits=Limits(),
        say=said.append,
    )
    assert len(opened) == 1
    # By way of a page of this user's own: other users see what a browser was started with.
    assert opened[0] == f"file://{tmp_path}/open.html"
    assert not tmp_path.exists()


def test_a_broken_body_is_refused_without_a_word(tmp_path):
    """Before the answer there is a 400; after it the connection is closed, and nothing is said."""
    with server(tmp_path) as (process, port, _):
        head = f"POST /api/jobs HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        head += "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
        for wait, statuses in ((False, (b"400", b"403")), (True, (b"403",))):
            with socket.create_connection(("127.0.0.1", port), timeout=300) as raw:
                raw.sendall(head.encode() + (b"" if wait else b"ZZ\r\n"))
                answer = raw.recv(100)
                if wait:
                    raw.sendall(b"ZZ\r\n")
                while raw.recv(65536):
                    pass
            assert answer.split()[1] in statuses
        assert ask(port, "/").status == 403
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=600)
        assert err == ""
