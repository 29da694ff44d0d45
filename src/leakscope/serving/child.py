"""A command as a child process: its output as it comes, its end, and how it is ended."""

from __future__ import annotations

import codecs
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Literal

from leakscope.serving.commands import Command

# Characters of output that are kept.
KEPT = 1_000_000

# A cancelled command may end by itself before it is killed.
GRACE_SECONDS = 5.0

# A result is there, whatever it says: a limit that is not met (3), or that cannot be told (4).
ANSWERED = (0, 3, 4)

# Output as it comes, in lines that do not wrap.
ENVIRONMENT = {"PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8", "COLUMNS": "96"}


class Child:
    """Commands that run one after the other, each where the one before has answered.

    Attributes
    ----------
    state, status, started
        How it stands, the exit status of the last command that ended, and when the first began.
    """

    def __init__(self, commands: tuple[Command, ...], folder: Path) -> None:
        self.commands = commands
        self.folder = folder
        self.state: Literal["running", "done", "cancelled"] = "running"
        self.status: int | None = None
        self.started = time.time()
        self._text, self._dropped = "", 0
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def output(self, start: int) -> tuple[str, int]:
        """What was printed from this character on, and where it ends."""
        with self._lock:
            return self._text[max(0, start - self._dropped) :], self._dropped + len(self._text)

    def cancel(self) -> None:
        """End the command and whatever it started."""
        with self._lock:
            if self.state != "running":
                return
            self.state, process = "cancelled", self._process
        if process is not None:
            _signal(process, "SIGINT")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_SECONDS)
            _signal(process, "SIGKILL")
        self._thread.join()

    def _run(self) -> None:
        for command in self.commands:
            with self._lock:
                if self.state != "running":
                    return
                self._process = subprocess.Popen(
                    # The folder is no place for Python's own modules; --model finds its code there.
                    [sys.executable, "-P", "-m", "leakscope", *command],
                    cwd=self.folder,
                    env={**os.environ, **ENVIRONMENT},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            with self._process:
                self._read(self._process)
            self.status = self._process.returncode
            if self.status not in ANSWERED:
                break
        with self._lock:
            self.state = "done" if self.state == "running" else self.state

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while block := os.read(process.stdout.fileno(), 65536):
            with self._lock:
                self._text += decoder.decode(block)
                excess = max(0, len(self._text) - KEPT)
                self._text, self._dropped = self._text[excess:], self._dropped + excess


def _signal(process: subprocess.Popen[bytes], name: str) -> None:
    """To the whole group of the process, where there are groups."""
    if not hasattr(os, "killpg"):
        process.kill()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, getattr(signal, name))
