"""The routes: pages, uploads, audits."""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from leakscope._numerics.memory import memory_ceiling
from leakscope.data.sources import EXAMPLES
from leakscope.errors import InputError
from leakscope.reporting.pages import in_order
from leakscope.serving import application as pages
from leakscope.serving.audit_job import (
    LIBRARY_FILE,
    AuditRequest,
    Outcome,
    model_fields,
    model_words,
)
from leakscope.serving.audit_process import AuditProcess
from leakscope.serving.inspection import inspect
from leakscope.serving.jobs import Busy, Job, Jobs
from leakscope.serving.limits import MEGABYTE, Limits
from leakscope.serving.security import REPORT_POLICY, Access, Guard
from leakscope.serving.uploads import SUFFIXES, TooLarge, Upload, Uploads
from leakscope.serving.wording import form_fields, in_page_words, stage_words
from leakscope.settings.decide import Thresholds
from leakscope.settings.setting import validated

# An audit: what is wanted, the file, where to write, what to call at each stage.
Run = Callable[[AuditRequest, Upload | None, Path, Callable[[str], None]], Outcome]

EXAMPLE_WORDS = {
    "diabetes": "442 patients, 10 measurements; the course of the disease",
    "breast_cancer": "569 tumours, 30 measurements; benign or malignant",
    "digits": "1797 pictures of handwritten digits; which digit",
    "iris": "150 flowers, 4 measurements; which species",
    "wine": "178 wines, 13 measurements; which grower",
}


def application(
    access: Access, folder: Path, limits: Limits | None = None, *, run: Run | None = None
) -> Guard:
    """The web application, behind its guard; any ASGI server can run it.

    Parameters
    ----------
    access
        Who may ask.
    folder
        A private directory, where uploads and runs go; it is emptied when the server stops.
    limits
        What is taken and kept.
    run
        What audits; a process of its own where left out.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from leakscope.serving.security import Access
    >>> from leakscope.serving.application import application
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     guarded = application(Access(port=8000), pathlib.Path(folder))
    ...     [route.path for route in guarded.app.routes][:2]
    ['/', '/static/{name}']
    """
    house = _House(folder, limits or Limits(), run)
    app = Starlette(
        routes=[
            Route("/", house.start),
            Route("/static/{name}", house.static),
            Route("/jobs/{job}", house.job_page),
            Route("/jobs/{job}/report", house.report),
            Route("/jobs/{job}/pages/{page}", house.page),
            Route("/api/uploads", house.upload, methods=["POST"]),
            Route("/api/jobs", house.ask, methods=["POST"]),
            Route("/api/jobs/{job}", house.state),
            Route("/api/jobs/{job}/give-up", house.give_up, methods=["POST"]),
        ],
        exception_handlers={
            InputError: _refused,
            HTTPException: _failed,
            ClientDisconnect: _gone,
            Exception: _unforeseen,
        },
        lifespan=house.lifespan,
    )
    # Around everything: an answer to something unforeseen has the same headers.
    return Guard(app, access)


class _House:
    """What the routes share: the uploads, the audits and their folder."""

    def __init__(self, folder: Path, limits: Limits, run: Run | None) -> None:
        self.process = AuditProcess()
        self.run = run or self.process.run
        self.warm = self.process.warm if run is None else lambda: None
        self.folder = folder
        self.limits = limits
        self.uploads = Uploads(folder, limits)
        self.jobs = Jobs(limits, dropped=self._drop)
        self.asked: dict[str, AuditRequest] = {}
        # A few files are taken apart at a time: one that takes long must not hold up the others,
        # and many large tables may not fit.
        self.reading = threading.Semaphore(limits.uploads_read)

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self.jobs.stop()
            self.process.close()
            for entry in self.folder.iterdir():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink(missing_ok=True)

    async def start(self, request: Request) -> Response:
        await run_in_threadpool(self.warm)
        asked = model_fields()
        names = dict.fromkeys(name for own in asked.values() for name in own)
        return HTMLResponse(
            pages.render(
                "start.html",
                examples=[(name, EXAMPLE_WORDS.get(name, "")) for name in EXAMPLES],
                models=model_words().items(),
                settings=form_fields(names, asked),
                jobs=self.jobs.all(),
                suffixes=SUFFIXES,
                limit=self.limits.upload_bytes,
                limit_megabytes=f"{self.limits.upload_bytes / MEGABYTE:g}",
            )
        )

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name == LIBRARY_FILE and (self.folder / LIBRARY_FILE).exists():
            return FileResponse(self.folder / LIBRARY_FILE, headers={"content-type": pages.SCRIPT})
        text = pages.static_file(name)
        if text is None:
            raise HTTPException(404)
        return Response(text, headers={"content-type": pages.STATIC[name]})

    async def upload(self, request: Request) -> Response:
        announced = request.headers.get("content-length")
        upload = await self.uploads.receive(
            request.query_params.get("name", ""),
            int(announced) if announced is not None and announced.isdigit() else None,
            request.stream(),
        )
        try:
            return JSONResponse(await run_in_threadpool(self._inspected, upload))
        except BaseException:
            self.uploads.drop(upload.id)
            raise

    def _inspected(self, upload: Any) -> dict[str, Any]:
        with self.reading, memory_ceiling(self.limits.table_bytes):
            return inspect(upload)

    async def ask(self, request: Request) -> Response:
        body = await self._body(request)
        try:
            given = json.loads(body)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise InputError("The request must be a JSON object.")
        wanted = self._wanted({str(name): value for name, value in given.items()})
        if (wanted.upload is None) == (wanted.example is None):
            raise InputError("Choose an example, or upload a file, and not both.")
        if wanted.example is not None and wanted.example not in EXAMPLES:
            raise InputError(f"There is no such example; there are {', '.join(EXAMPLES)}.")
        held = None if wanted.upload is None else self.uploads.get(wanted.upload)
        # Newer files may push the upload out while the audit waits.
        upload = None if held is None else self.uploads.kept(held)
        name = upload.name if upload is not None else str(wanted.example)
        try:
            job = self.jobs.add(
                name,
                wanted.stages,
                lambda identity: partial(self._run, wanted, upload, self._directory(identity)),
            )
        except BaseException:
            self.uploads.release(upload)
            raise
        self.asked[job.id] = wanted
        return JSONResponse({"job": job.id}, status_code=201)

    def _wanted(self, given: dict[str, Any]) -> AuditRequest:
        """What is asked for; ``again`` is an audit of before, of which more is wanted."""
        again = given.pop("again", None)
        if again is not None:
            before = self.asked.get(str(again))
            if before is None:
                raise InputError("That audit is no longer there; start it again.")
            nothing = {
                **dict.fromkeys(Thresholds.model_fields),
                "verify": False,
                "against": None,
            }
            given = {**before.model_dump(), **nothing, **given}
        asked = validated(AuditRequest, **given)
        asked.settings()
        if again is not None and asked.stages == asked.model_copy(update=nothing).stages:
            raise InputError("Give the advantage, TPR or PPV that no record may exceed.")
        if asked.against is not None and not self._finished(asked.against):
            raise InputError("The audit to compare with is no longer there.")
        return asked

    def _finished(self, identity: str) -> bool:
        """Whether an audit of this id is done, so that its run is there."""
        job = self.jobs.get(identity)
        return job is not None and job.outcome is not None

    def _run(
        self,
        wanted: AuditRequest,
        upload: Upload | None,
        directory: Path,
        on_stage: Callable[[str], None],
    ) -> Outcome:
        try:
            return self.run(wanted, upload, directory, on_stage)
        finally:
            self.uploads.release(upload)

    async def state(self, request: Request) -> Response:
        job = self._job(request)
        outcome: Outcome | None = job.outcome
        return JSONResponse(
            {
                "name": job.name,
                "state": job.state,
                "stage": job.stage,
                "ahead": job.ahead,
                "seconds": round(job.seconds, 1),
                "problem": job.problem,
                "outcome": None
                if outcome is None
                else {
                    "verdict": outcome.verdict,
                    "warnings": outcome.warnings,
                    "records": outcome.records,
                    "features": outcome.features,
                    "unit": outcome.unit,
                    "noise": outcome.noise,
                    "no_noise": outcome.no_noise,
                    "examined": outcome.examined,
                    "pages": list(outcome.pages),
                },
            }
        )

    async def give_up(self, request: Request) -> Response:
        job = self.jobs.give_up(self._job(request).id)
        return JSONResponse({"state": "cancelled" if job is None else job.state})

    async def job_page(self, request: Request) -> Response:
        job = self._job(request)
        told = [(stage, stage_words(stage)) for stage in job.stages]
        others = [one for one in self.jobs.all() if one.outcome is not None and one.id != job.id]
        return HTMLResponse(pages.render("job.html", job=job, stages=told, others=others))

    async def report(self, request: Request) -> Response:
        outcome: Outcome | None = self._job(request).outcome
        if outcome is None:
            raise HTTPException(404)
        redacted = "redact" in request.query_params
        name = "report-redacted.html" if redacted else "report.html"
        return _page_file(request, outcome.redacted if redacted else outcome.report, name)

    async def page(self, request: Request) -> Response:
        outcome: Outcome | None = self._job(request).outcome
        name = request.path_params["page"]
        if outcome is None or name not in outcome.pages:
            raise HTTPException(404)
        return _page_file(request, outcome.pages[name], f"{name}.html")

    def _job(self, request: Request) -> Job:
        job = self.jobs.get(request.path_params["job"])
        if job is None:
            raise HTTPException(404)
        return job

    async def _body(self, request: Request) -> bytes:
        found = bytearray()
        async for chunk in request.stream():
            found += chunk
            if len(found) > self.limits.request_bytes:
                raise InputError("The request is too long.")
        return bytes(found)

    def _directory(self, identity: str) -> Path:
        return self.folder / f"run-{identity}"

    def _drop(self, identity: str) -> None:
        self.asked.pop(identity, None)
        directory = self._directory(identity)
        # A run that was cancelled while it was written stands beside its place, under another name.
        for path in (directory, *self.folder.glob(f".{directory.name}.*")):
            shutil.rmtree(path, ignore_errors=True)


def _page_file(request: Request, path: Path, name: str) -> Response:
    """A page that was written; to be saved under its name where that is asked for."""
    return FileResponse(
        path,
        media_type="text/html; charset=utf-8",
        headers={"content-security-policy": REPORT_POLICY, "x-frame-options": "SAMEORIGIN"},
        filename=name if "download" in request.query_params else None,
    )


async def _refused(request: Request, error: Exception) -> Response:
    status = 413 if isinstance(error, TooLarge) else 429 if isinstance(error, Busy) else 400
    assert isinstance(error, InputError)
    return _sentence(request, in_page_words(error), status)


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = {
        404: "There is nothing at this address; an old audit may have been removed.",
        405: "This address does not take that kind of request.",
    }
    return _sentence(request, words.get(error.status_code, error.detail), error.status_code)


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=400)


async def _unforeseen(request: Request, error: Exception) -> Response:
    # Without a template, which may be what failed.
    sentence = "Something went wrong inside leakscope; the terminal where it runs shows the error."
    return JSONResponse({"error": sentence}, status_code=500)


def _sentence(request: Request, sentence: str, status: int) -> Response:
    """The same sentence to a script and to a person."""
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": sentence}, status_code=status)
    return HTMLResponse(pages.render("message.html", sentence=sentence), status_code=status)


STATIC: dict[str, str] = {
    "web.css": "text/css; charset=utf-8",
    "start.js": "text/javascript; charset=utf-8",
    "job.js": "text/javascript; charset=utf-8",
}

SCRIPT = "text/javascript; charset=utf-8"


def static_file(name: str) -> str | None:
    """The text of a file beside the pages; None for a name that is not on the list."""
    return part(name) if name in STATIC else None


def render(template: str, **values: Any) -> str:
    """A page; every value is escaped."""
    page: str = _environment().get_template(template).render(**values)
    # A lone surrogate in a name cannot be written as UTF-8.
    return page.encode("utf-8", "replace").decode("utf-8")


@cache
def part(name: str) -> str:
    """A template's or a script's own text."""
    folder = resources.files("leakscope.serving") / "templates"
    return (folder / name).read_text(encoding="utf-8")


@cache
def _environment() -> Any:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(part),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: in_order(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
