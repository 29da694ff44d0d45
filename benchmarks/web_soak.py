"""A soak of ``leakscope serve``: many requests and audits from several threads, for some time.

    python benchmarks/web_soak.py --seconds 120 --threads 6

A server is started as a process of its own on the loopback address, and asked for pages, states,
uploads (good, broken, too large), audits and reports, and for things that must be refused (no
cookie, another host, another origin, paths that lead out).  The table counts the answers by what
was asked and their status; nothing may come back as 500, no refusal may be let through, and the
memory of the server and of the process that audits (VmRSS of /proc) is shown as it goes.  The
exit status is 1 where something came back that should not have.
"""

from __future__ import annotations

import argparse
import collections
import http.client
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

# What each kind of request may come back as.
EXPECTED = {
    "start page": {200},
    "script": {200, 404},  # 404: no audit is done yet
    "upload": {200},
    "broken upload": {400},
    "large upload": {413, 0},  # 0: the connection was closed while the rest was being sent
    "audit of an example": {201, 429},
    "audit of an upload": {201, 400, 429},  # 400: the file was dropped for newer ones
    "state": {200, 404},
    "report": {200, 404},
    "give up": {200, 404},
    "no cookie": {403},
    "wrong token": {403},
    "wrong host": {403},
    "wrong origin": {403},
    "path out": {404},
    "bad JSON": {400},
}


def resident(server: int) -> str:
    """What the server holds, and what its children do: the process that audits."""
    own, children = 0.0, 0.0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text(encoding="ascii", errors="replace")
        except OSError:
            continue
        size = re.search(r"VmRSS:\s+(\d+) kB", text)
        if size and int(status.parent.name) == server:
            own = int(size[1]) / 1e3
        elif size and re.search(rf"PPid:\s+{server}\n", text):
            children += int(size[1]) / 1e3
    return f"{own:.0f} MB, its child {children:.0f} MB"


class Visitor(threading.Thread):
    """One thread that asks for one thing after another."""

    def __init__(self, port: int, token: str, seed: int, until: float) -> None:
        super().__init__(daemon=True)
        self.port, self.token, self.until = port, token, until
        self.random = random.Random(seed)
        self.counts: collections.Counter[tuple[str, int]] = collections.Counter()
        self.slowest = 0.0
        self.jobs: list[str] = []
        self.uploads: list[str] = []
        self.cookie = ""

    def run(self) -> None:
        _, headers, _ = self.ask("GET", f"/?token={self.token}", cookie="")
        self.cookie = headers["set-cookie"].split(";")[0]
        kinds = list(EXPECTED)
        weights = [60, 20, 30, 30, 10, 5, 5, 200, 60, 1, 30, 30, 30, 30, 30, 30]
        while time.monotonic() < self.until:
            kind = self.random.choices(kinds, weights)[0]
            started = time.monotonic()
            status = self.visit(kind)
            self.slowest = max(self.slowest, time.monotonic() - started)
            self.counts[kind, status] += 1
            time.sleep(self.random.uniform(0.0, 0.02))

    def visit(self, kind: str) -> int:
        job = self.random.choice(self.jobs) if self.jobs else "none"
        if kind == "start page":
            return self.ask("GET", "/")[0]
        if kind == "script":
            return self.ask("GET", "/static/vega.js")[0]
        if kind == "upload":
            status, _, body = self.ask("POST", "/api/uploads?name=people.csv", self.table())
            if status == 200:
                self.uploads.append(json.loads(body)["upload"])
            return status
        if kind == "broken upload":
            name = self.random.choice(["x.parquet", "x.npz", "x.arrow", "x.exe", "..%2fx"])
            return self.ask("POST", f"/api/uploads?name={name}", os.urandom(2000))[0]
        if kind == "large upload":
            return self.ask("POST", "/api/uploads?name=x.csv", b"1,2\n" * 400_000)[0]
        if kind == "audit of an example":
            name = self.random.choice(["iris", "wine", "diabetes"])
            return self.audit({"example": name})
        if kind == "audit of an upload":
            if not self.uploads:
                return 400
            return self.audit({"upload": self.uploads[-1], "target": "y", "id_column": "who"})
        if kind == "state":
            return self.ask("GET", f"/api/jobs/{job}")[0]
        if kind == "report":
            return self.ask("GET", f"/jobs/{job}/report")[0]
        if kind == "give up":
            return self.ask("POST", f"/api/jobs/{job}/give-up")[0]
        if kind == "no cookie":
            return self.ask("GET", f"/api/jobs/{job}", cookie="")[0]
        if kind == "wrong token":
            return self.ask("GET", "/?token=guess", cookie="")[0]
        if kind == "wrong host":
            return self.ask("GET", "/", host=f"evil.example:{self.port}")[0]
        if kind == "wrong origin":
            return self.ask("POST", "/api/jobs", b"{}", origin="http://evil.example")[0]
        if kind == "path out":
            return self.ask("GET", "/static/..%2f..%2f..%2fetc%2fpasswd")[0]
        return self.ask("POST", "/api/jobs", b"{" * 50)[0]

    def audit(self, wanted: dict[str, str]) -> int:
        status, _, body = self.ask("POST", "/api/jobs", json.dumps(wanted).encode())
        if status == 201:
            self.jobs = [*self.jobs[-9:], json.loads(body)["job"]]
        return status

    def table(self) -> bytes:
        numbers = np.random.default_rng(self.random.randrange(10**6)).normal(size=(60, 4))
        lines = io.StringIO()
        lines.write("who,a,b,c,y\n")
        for row, values in enumerate(numbers):
            lines.write(f"p{row}," + ",".join(f"{value:.6f}" for value in values) + "\n")
        return lines.getvalue().encode()

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        cookie: str | None = None,
        host: str | None = None,
        origin: str | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        own = f"127.0.0.1:{self.port}"
        headers = {"Host": host or own, "Cookie": self.cookie if cookie is None else cookie}
        if method == "POST":
            headers["Origin"] = origin or f"http://{own}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, found, answer.read()
        except (ConnectionError, http.client.HTTPException):
            return 0, {}, b""
        finally:
            connection.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--threads", type=int, default=6)
    options = parser.parse_args()
    server = subprocess.Popen(
        [sys.executable, "-m", "leakscope", "serve", "--max-upload", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    found = re.search(r":(\d+)/\?token=(\S+)", server.stdout.readline())
    assert found
    time.sleep(2.0)
    memory = [("at the start", resident(server.pid))]
    began = time.monotonic()
    until = began + options.seconds
    visitors = [Visitor(int(found[1]), found[2], seed, until) for seed in range(options.threads)]
    for visitor in visitors:
        visitor.start()
    for share in (0.25, 0.5, 0.75, 1.0):
        time.sleep(max(0.0, began + share * options.seconds - time.monotonic()))
        memory.append((f"after {share * options.seconds:.0f} s", resident(server.pid)))
    for visitor in visitors:
        visitor.join(120.0)
    server.send_signal(signal.SIGINT)
    _, said = server.communicate(timeout=60)
    total = sum((visitor.counts for visitor in visitors), collections.Counter())
    wrong = 0
    print(f"{'asked for':<22} {'status':>6} {'count':>7}")
    for (kind, status), count in sorted(total.items()):
        bad = status not in EXPECTED[kind]
        wrong += count if bad else 0
        print(f"{kind:<22} {status:>6} {count:>7}{'  WRONG' if bad else ''}")
    audits = sum(count for (kind, status), count in total.items() if status == 201)
    print(f"\n{sum(total.values())} requests, {audits} audits accepted, {wrong} wrong answers")
    print(f"slowest answer {max(visitor.slowest for visitor in visitors):.2f} s")
    for when, size in memory:
        print(f"memory of the server {when}: {size}")
    print(f"exit status {server.returncode}, {len(said.splitlines())} lines on stderr")
    if said:
        print(said[-2000:])
    return int(wrong > 0 or server.returncode != 0 or bool(said))


if __name__ == "__main__":
    sys.exit(main())
