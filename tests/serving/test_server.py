"""Who is let in, what the folder offers, and a command from its form to its report."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from starlette.testclient import TestClient
from visits import write_visits

from leakscope.cli import app
from leakscope.data.tables import READERS, SEPARATORS
from leakscope.serving.application import application
from leakscope.serving.commands import forms
from leakscope.serving.folder import TABLES
from leakscope.serving.security import HEADERS, REPORT_POLICY, Access

PORT = 8000
HOME = f"http://127.0.0.1:{PORT}"
PARSERS: Any = typer.main.get_command(app)
PATHS = ["/", "/page.js", "/api/contents", "/api/run", "/pages/run/report.html", "/nothing"]
POSTS = ["/api/columns", "/api/compose", "/api/run", "/api/cancel"]


@pytest.fixture
def access() -> Access:
    return Access(PORT)


@pytest.fixture
def guest(tmp_path: Path, access: Access) -> Iterator[TestClient]:
    write_visits(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "result.json").write_text("{}")
    (tmp_path / "run" / "report.html").write_text("<script>1</script>")
    with TestClient(
        application(access, tmp_path, forms(PARSERS.commands)), base_url=HOME
    ) as client:
        yield client


@pytest.fixture
def owner(guest: TestClient, access: Access) -> TestClient:
    guest.headers["origin"] = HOME
    assert guest.get("/", params={"token": access.token}).status_code == 200
    return guest


def test_nothing_is_shown_without_the_cookie(guest: TestClient, access: Access) -> None:
    for path in PATHS:
        assert guest.get(path).status_code == 403
    for token in ("", "wrong", "é", access.session):
        answer = guest.get("/", params={"token": token})
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
    assert guest.get("/page.js", params={"token": access.token}).status_code == 403
    for cookie in (f"{access.cookie}=wrong", f"leakscope={access.session}", "=;;"):
        assert guest.get("/", headers={"cookie": cookie}).status_code == 403


def test_the_token_becomes_a_cookie_that_only_this_site_sends(
    guest: TestClient, access: Access
) -> None:
    cookie = guest.get("/", params={"token": access.token}).headers["set-cookie"]
    assert access.token not in cookie
    assert {"HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))
    assert guest.get("/").status_code == 200
    assert access.token not in repr(access)
    assert Access(PORT).token != access.token


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1:9", ""])
def test_another_host_is_refused_even_with_the_cookie(owner: TestClient, host: str) -> None:
    assert owner.get("/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", f"https://127.0.0.1:{PORT}"]
)
def test_only_its_own_pages_may_ask_for_something(owner: TestClient, origin: str | None) -> None:
    del owner.headers["origin"]
    headers = {} if origin is None else {"origin": origin}
    for path in POSTS:
        assert owner.post(path, headers=headers, content=b"{}").status_code == 403


def test_every_answer_has_the_headers(owner: TestClient) -> None:
    report = owner.get("/pages/run/report.html")
    assert report.headers["content-security-policy"] == REPORT_POLICY
    for path in ("/", "/nothing", "/api/contents", "/pages/nothing.html"):
        answer = owner.get(path)
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS


@pytest.mark.parametrize(
    "path", ["/pages/visits.csv", "/pages/..%2Fx.html", "/pages/%2Fetc%2Fpasswd", "/pages/out.html"]
)
def test_only_pages_of_the_folder_are_served(
    owner: TestClient, path: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other") / "x.html"
    other.write_text("secret")
    (tmp_path.parent / "x.html").write_text("secret")
    (tmp_path / "out.html").symlink_to(other)
    assert owner.get(path).status_code in (400, 404)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"verb": "serve", "values": {}}',
        b'{"verb": "plan", "values": {}}',
        b'{"verb": ["audit"], "values": {}}',
        b'{"verb": "report", "values": {"run": "../run"}}',
        b'{"verb": "report", "values": 3}',
        b"[" * 100_000,
        b" " * 2_000_000,
    ],
)
def test_what_is_no_command_is_not_run(owner: TestClient, body: bytes) -> None:
    answer = owner.post("/api/run", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"].endswith(".")
    assert owner.get("/api/run").json() == {"state": "none"}


def test_every_kind_of_table_is_offered() -> None:
    assert set(TABLES) == {*SEPARATORS, *READERS}


def test_the_folder_offers_tables_models_and_runs(owner: TestClient, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import os\ndef train(X, y, seed): ...\n_x = model = os\n")
    (tmp_path / "broken.py").write_text("def")
    (tmp_path / "saved.skops").write_bytes(b"")
    (tmp_path / "signed").mkdir()
    (tmp_path / "signed" / "decision.json").write_text("{}")
    (tmp_path / "signed" / "decision.html").write_text("")
    (tmp_path / "run" / "verify.json").write_text("{}")
    (tmp_path / ".hidden.csv").write_text("a,b\n1,2\n")
    offered = owner.get("/api/contents").json()
    assert offered["tables"] == ["visits.csv"]
    assert offered["models"][-3:] == ["saved.skops", "mine:train", "mine:model"]
    assert offered["results"] == ["run", "run/verify.json"]
    pages = {"run": ["run/report.html"], "signed": ["signed/decision.html"]}
    assert offered["pages"] == pages
    asked = {"verb": "audit", "values": {"file": "visits.csv"}}
    columns = owner.post("/api/columns", json=asked).json()
    assert columns == {"columns": ["patient", "age", "bp", "cost"], "persons": ["patient"]}


def ended(owner: TestClient, seconds: float = 300.0) -> Any:
    until = time.monotonic() + seconds
    while (progress := owner.get("/api/run").json())["state"] == "running":
        assert time.monotonic() < until
        time.sleep(0.2)
    return progress


VALUES = {"file": "visits.csv", "target": "cost", "group_column": "patient", "model": "ridge"}


def test_an_audit_runs_to_its_report(owner: TestClient, tmp_path: Path) -> None:
    asked = {"verb": "audit", "values": {**VALUES, "set_": ["alpha=1"]}}
    shown = owner.post("/api/compose", json=asked).json()["commands"]
    assert owner.post("/api/run", json=asked).json()["commands"] == shown
    progress = ended(owner)
    assert (progress["state"], progress["status"]) == ("done", 0), progress["output"]
    assert progress["commands"] == shown
    assert progress["pages"] == ["leakscope-runs/visits-1/report.html"]
    assert (tmp_path / "leakscope-runs" / "visits-1" / "records.csv").exists()
    assert "Ridge(alpha=1)" in owner.get("/pages/" + progress["pages"][0]).text
    assert owner.get("/api/run", params={"start": progress["end"]}).json()["output"] == ""


def test_a_refusal_of_the_command_line_is_shown(owner: TestClient) -> None:
    values = {**VALUES, "group_column": ""}
    owner.post("/api/run", json={"verb": "audit", "values": values})
    progress = ended(owner)
    assert progress["status"] == 2
    assert "'patient'" in progress["output"]
    assert progress["pages"] == []


def test_a_command_is_cancelled_and_nothing_else_runs_meanwhile(
    owner: TestClient, tmp_path: Path
) -> None:
    (tmp_path / "slow.py").write_text(
        "import os, time\n"
        "def train(X, y, seed):\n"
        "    open('pid', 'w').write(str(os.getpid()))\n"
        "    time.sleep(600)\n"
    )
    asked = {"verb": "audit", "values": {**VALUES, "model": "slow:train"}}
    assert owner.post("/api/run", json=asked).status_code == 201
    assert owner.post("/api/run", json=asked).status_code == 400
    until = time.monotonic() + 120
    while not (tmp_path / "pid").exists() and time.monotonic() < until:
        time.sleep(0.1)
    owner.post("/api/cancel", content=b"{}")
    assert owner.get("/api/run").json()["state"] == "cancelled"
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_the_server_starts_and_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "leakscope", "serve"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline()
        assert re.search(r"http://127\.0\.0\.1:\d+/\?token=\S{40}", address)
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
