"""A client of the web application, with or without what it needs to be let in."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from starlette.testclient import TestClient

from leakscope.serving import Limits
from leakscope.serving.application import application
from leakscope.serving.audit_job import run_audit
from leakscope.serving.security import Access
from leakscope.subjects.process import choices

PORT = 8000
HOME = f"http://127.0.0.1:{PORT}"


@contextmanager
def client(
    folder: Path, limits: Limits | None = None, *, let_in: bool = True, run: Any = None
) -> Iterator[tuple[TestClient, Access]]:
    access = Access(port=PORT)
    guarded = application(access, folder, limits, run=run or run_audit)
    # Without the comparison of kernels, which compiles a network: these tests are of the web page.
    quick = mock.patch.object(choices, "COMPARED_UP_TO", 1)
    with quick, TestClient(guarded, base_url=HOME) as found:
        if let_in:
            found.headers["origin"] = HOME
            assert found.get("/", params={"token": access.token}).status_code == 200
        yield found, access


def upload(found: TestClient, name: str, content: bytes) -> Any:
    return found.post("/api/uploads", params={"name": name}, content=content)


def finished(found: TestClient, job: str, seconds: float = 600.0) -> dict[str, Any]:
    """The job's state once it is done, failed or cancelled."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        told: dict[str, Any] = found.get(f"/api/jobs/{job}").json()
        if told["state"] not in ("waiting", "running"):
            return told
        time.sleep(0.05)
    raise AssertionError("the audit did not finish")
