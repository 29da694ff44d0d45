"""Audits in a process of their own.

A factorisation keeps Python's lock for as long as it takes; in the server's own process nobody
would be answered meanwhile.  So one child process audits, and stays for the next audit.  Giving
up ends it at once, and what a large audit took of memory goes with it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from leakscope.errors import InputError
from leakscope.serving.audit_job import AuditRequest, Outcome, run_audit
from leakscope.serving.uploads import Upload
from leakscope.serving.wording import in_page_words

# How often a running audit is looked at.
TICK_SECONDS = 0.1

# A child that has audited this often makes room: compiled kernels of every shape stay in memory.
AUDITS_EACH = 25


class AuditProcess:
    """The child, started when it is first wanted; one audit at a time."""

    def __init__(self) -> None:
        self._process: Any = None
        self._connection: Connection | None = None
        self._audits = 0
        self._in_use = threading.Lock()

    def warm(self) -> None:
        """Start the child, which then imports what an audit needs, unless it is there or in use."""
        if self._in_use.acquire(blocking=False):
            try:
                self._started()
            finally:
                self._in_use.release()

    def run(
        self,
        request: AuditRequest,
        upload: Upload | None,
        directory: Path,
        on_stage: Callable[[str], None],
    ) -> Outcome:
        """As `audit_job.run_audit`; what ``on_stage`` raises ends the child."""
        with self._in_use:
            try:
                kind, value = self._answer((request, upload, directory), on_stage)
            except (EOFError, OSError):
                self.close()
                raise InputError(
                    "The audit's process ended before the audit did; most likely there was not "
                    "enough memory."
                ) from None
            except BaseException:
                self.close()
                raise
            self._audits += 1
            if self._audits >= AUDITS_EACH:
                self.close()
        if kind == "refused":
            raise InputError(value)
        if kind == "unforeseen":
            raise RuntimeError(value)
        found: Outcome = value
        return found

    def close(self) -> None:
        """End the child, whatever it does."""
        process, self._process = self._process, None
        connection, self._connection = self._connection, None
        if process is not None:
            process.kill()
            process.join()
            process.close()
        if connection is not None:
            connection.close()

    def _started(self) -> Connection:
        if self._connection is not None and self._process.is_alive():
            return self._connection
        self.close()
        # A fresh interpreter: a fork of a process with threads may hold locks for ever.
        context = multiprocessing.get_context("spawn")
        own, other = context.Pipe()
        process = context.Process(target=_audit_until_closed, args=(other,), daemon=True)
        process.start()
        other.close()
        self._process, self._connection, self._audits = process, own, 0
        return own

    def _answer(self, wanted: Any, on_stage: Callable[[str], None]) -> tuple[str, Any]:
        connection, stage = self._started(), "read"
        connection.send(wanted)
        while True:
            on_stage(stage)
            if not connection.poll(TICK_SECONDS):
                continue
            kind, value = connection.recv()
            if kind != "stage":
                return kind, value
            stage = value


def _audit_until_closed(connection: Connection) -> None:
    """The child's whole life."""
    # Ctrl-C reaches every process of a terminal; the server decides what happens to this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _import_ahead()
    while True:
        try:
            request, upload, directory = connection.recv()
        except EOFError:
            return
        answer: tuple[str, Any]
        try:
            outcome = run_audit(
                request, upload, directory, lambda stage: connection.send(("stage", stage))
            )
            answer = ("done", outcome)
        except InputError as error:
            answer = ("refused", in_page_words(error))
        except MemoryError:
            answer = ("refused", "There was not enough memory for this audit.")
        except Exception:
            answer = ("unforeseen", traceback.format_exc())
        with contextlib.suppress(OSError):
            connection.send(answer)


def _import_ahead() -> None:
    import leakscope.auditing
    import leakscope.reporting  # noqa: F401
