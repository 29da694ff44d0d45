"""Audits that were asked for: one at a time, the rest wait, old ones are dropped."""

from __future__ import annotations

import secrets
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from leakscope.errors import InputError
from leakscope.serving.limits import Limits
from leakscope.serving.wording import in_page_words

State = Literal["waiting", "running", "done", "failed", "cancelled"]

FINISHED: tuple[State, ...] = ("done", "failed", "cancelled")

# How long a server that stops waits for the audit that runs to notice.
PATIENCE_SECONDS = 2.0

OnStage = Callable[[str], None]
Work = Callable[[OnStage], Any]


class GivenUp(Exception):
    """Raised by ``on_stage`` once nobody wants the audit any more."""


class Busy(InputError):
    """Too many audits are waiting."""


@dataclass(frozen=True)
class Job:
    """An audit as it stands.

    Attributes
    ----------
    id
        Drawn at random.
    name
        Of the data, for people.
    stages
        Those to come, in order.
    state, stage
        Where it is.
    ahead
        How many audits come before it.
    seconds
        How long it has run.
    problem
        Why it failed, as a sentence.
    outcome
        What it came to; None until it is done.
    """

    id: str
    name: str
    stages: tuple[str, ...]
    state: State = "waiting"
    stage: str | None = None
    ahead: int = 0
    started: float | None = None
    seconds: float = 0.0
    problem: str | None = None
    outcome: Any = None


class Jobs:
    """The queue, its one worker, and what came out; safe to ask from any thread."""

    def __init__(self, limits: Limits, *, dropped: Callable[[str], None] | None = None) -> None:
        self._limits = limits
        self._dropped = dropped
        self._jobs: dict[str, Job] = {}
        self._work: dict[str, Work] = {}
        self._unwanted: set[str] = set()
        self._changed = threading.Condition()
        self._stopping = False
        # A daemon: nothing that it waits for keeps a server that was told to stop.
        self._worker = threading.Thread(target=self._run, name="leakscope-audits", daemon=True)

    def add(self, name: str, stages: tuple[str, ...], make: Callable[[str], Work]) -> Job:
        """Put an audit into the queue; ``make`` gives its work, once its id is known."""
        with self._changed:
            waiting = sum(job.state == "waiting" for job in self._jobs.values())
            if waiting >= self._limits.jobs_waiting:
                raise Busy(f"{waiting} audits are waiting already; let one finish, or cancel one.")
            job = Job(id=secrets.token_urlsafe(16), name=name, stages=stages)
            self._jobs[job.id] = job
            self._work[job.id] = make(job.id)
            if self._worker.ident is None:
                self._worker.start()
            gone = self._too_many()
            self._changed.notify_all()
        self._tell(gone)
        return job

    def get(self, identity: str) -> Job | None:
        """The audit with this id, as it stands now."""
        with self._changed:
            job = self._jobs.get(identity)
            return None if job is None else self._timed(job)

    def all(self) -> list[Job]:
        """Every audit held, newest first."""
        with self._changed:
            return [self._timed(job) for job in reversed(self._jobs.values())]

    def give_up(self, identity: str) -> Job | None:
        """Take an audit out of the queue, or have its next ``on_stage`` raise ``GivenUp``."""
        with self._changed:
            job = self._jobs.get(identity)
            if job is None:
                return None
            if job.state == "waiting":
                self._work.pop(identity, None)
                self._set(identity, state="cancelled")
            elif job.state == "running":
                self._unwanted.add(identity)
            return self._timed(self._jobs[identity])

    def stop(self) -> None:
        """Give everything up and let the worker end."""
        with self._changed:
            self._stopping = True
            self._work.clear()
            for job in list(self._jobs.values()):
                if job.state == "waiting":
                    self._set(job.id, state="cancelled")
                self._unwanted.add(job.id)
            self._changed.notify_all()
        if self._worker.ident is not None:
            self._worker.join(PATIENCE_SECONDS)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._work and not self._stopping:
                    self._changed.wait()
                if self._stopping:
                    return
                identity = next(iter(self._work))
                work = self._work.pop(identity)
                self._set(identity, state="running", started=time.monotonic())
            self._finish(identity, work)

    def _finish(self, identity: str, work: Work) -> None:
        def on_stage(stage: str) -> None:
            with self._changed:
                if identity in self._unwanted:
                    raise GivenUp
                self._set(identity, stage=stage.partition(":")[0])

        found: dict[str, Any]
        try:
            found = {"state": "done", "outcome": work(on_stage)}
        except GivenUp:
            found = {"state": "cancelled"}
        except InputError as error:
            found = {"state": "failed", "problem": in_page_words(error)}
        except MemoryError:
            found = {"state": "failed", "problem": "There was not enough memory for this audit."}
        except Exception:
            traceback.print_exc(file=sys.stderr)
            found = {
                "state": "failed",
                "problem": "Something went wrong inside leakscope; the terminal where it runs "
                "shows the error.",
            }
        with self._changed:
            started = self._jobs[identity].started or time.monotonic()
            self._unwanted.discard(identity)
            self._set(identity, seconds=time.monotonic() - started, **found)
        if found["state"] != "done":
            self._tell([identity])

    def _set(self, identity: str, **values: Any) -> None:
        self._jobs[identity] = replace(self._jobs[identity], **values)

    def _timed(self, job: Job) -> Job:
        if job.state == "running" and job.started is not None:
            return replace(job, seconds=time.monotonic() - job.started)
        if job.state == "waiting":
            running = any(other.state == "running" for other in self._jobs.values())
            return replace(job, ahead=list(self._work).index(job.id) + int(running))
        return job

    def _too_many(self) -> list[str]:
        """Drop the oldest finished jobs beyond those that are held; their ids."""
        finished = [job.id for job in self._jobs.values() if job.state in FINISHED]
        surplus = max(0, len(self._jobs) - self._limits.jobs_held)
        gone = finished[:surplus]
        for identity in gone:
            del self._jobs[identity]
        return gone

    def _tell(self, gone: list[str]) -> None:
        for identity in gone:
            if self._dropped is not None:
                self._dropped(identity)
