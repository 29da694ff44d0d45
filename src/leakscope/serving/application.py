"""The routes: the page, what the folder holds, a command composed, run, watched and cancelled."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from leakscope.errors import InputError
from leakscope.serving.child import Child
from leakscope.serving.commands import Command, Form, composed
from leakscope.serving.folder import columns, contents, inside, pages
from leakscope.serving.security import REPORT_POLICY, Access, Guard

STATIC = {"page.html": "text/html", "page.js": "text/javascript", "page.css": "text/css"}

# More than any filled form.
REQUEST_BYTES = 1_000_000


def application(access: Access, folder: Path, forms: Mapping[str, Form]) -> Guard:
    """The web application, behind its guard; any ASGI server can run it.

    It runs the verbs that have ``forms``, in ``folder``, for whom ``access`` lets in.
    """
    page = _Page(folder.resolve(), forms)
    routes = [
        Route("/api/contents", page.contents),
        Route("/api/columns", page.columns, methods=["POST"]),
        Route("/api/compose", page.compose, methods=["POST"]),
        Route("/api/run", page.run, methods=["POST"]),
        Route("/api/run", page.state),
        Route("/api/cancel", page.cancel, methods=["POST"]),
        Route("/pages/{path:path}", page.written),
        Route("/{name}", page.static),
        Route("/", page.static),
    ]
    # Around everything: an answer to something unforeseen has the same headers.
    handlers: dict[Any, Any] = {InputError: _refused}
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=page.lifespan)
    return Guard(app, access)


class _Page:
    """What the routes share: the folder, the forms and the command that runs, one at a time."""

    def __init__(self, folder: Path, forms: Mapping[str, Form]) -> None:
        self.folder = folder
        self.forms = forms
        self.child: Child | None = None

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            if self.child is not None:
                self.child.cancel()

    async def static(self, request: Request) -> Response:
        name = request.path_params.get("name", "page.html")
        if name not in STATIC:
            raise HTTPException(404)
        text = (resources.files("leakscope.serving") / "templates" / name).read_bytes()
        return Response(text, media_type=f"{STATIC[name]}; charset=utf-8")

    async def contents(self, request: Request) -> Response:
        listed = await run_in_threadpool(contents, self.folder)
        return JSONResponse({**listed, "forms": [asdict(form) for form in self.forms.values()]})

    async def columns(self, request: Request) -> Response:
        _, values = await self._filled(request)
        return JSONResponse(await run_in_threadpool(columns, self.folder, values))

    async def compose(self, request: Request) -> Response:
        return JSONResponse({"commands": _lines(await self._commands(request))})

    async def run(self, request: Request) -> Response:
        commands = await self._commands(request)
        if self.child is not None and self.child.state == "running":
            raise InputError("A command is running; wait, or cancel it.")
        self.child = Child(commands, self.folder)
        return JSONResponse({"commands": _lines(commands)}, status_code=201)

    async def state(self, request: Request) -> Response:
        if self.child is None:
            return JSONResponse({"state": "none"})
        start = request.query_params.get("start", "0")
        # What is read first is true of the output that is read then: nothing comes after the end.
        state, status = self.child.state, self.child.status
        output, end = self.child.output(int(start) if start.isdecimal() else 0)
        words = sorted({word for command in self.child.commands for word in command[1:]})
        places = [] if state == "running" else map(self.folder.joinpath, words)
        written = pages(self.folder, places, self.child.started)
        progress = {
            "state": state,
            "status": status,
            "output": output,
            "end": end,
            "pages": written,
        }
        return JSONResponse({**progress, "commands": _lines(self.child.commands)})

    async def cancel(self, request: Request) -> Response:
        if self.child is not None:
            await run_in_threadpool(self.child.cancel)
        return JSONResponse({})

    async def written(self, request: Request) -> Response:
        path = inside(self.folder, request.path_params["path"])
        if path.suffix != ".html" or not path.is_file():
            raise HTTPException(404)
        return FileResponse(path, headers={"content-security-policy": REPORT_POLICY})

    async def _commands(self, request: Request) -> tuple[Command, ...]:
        form, values = await self._filled(request)
        return await run_in_threadpool(composed, form, values, self.folder)

    async def _filled(self, request: Request) -> tuple[Form, dict[str, Any]]:
        """The form of the verb that is asked for, and what was filled in."""
        body = b""
        async for block in request.stream():
            body += block
            if len(body) > REQUEST_BYTES:
                raise InputError("The request is too long.")
        try:
            asked = json.loads(body)
            form, values = self.forms[asked["verb"]], dict(asked["values"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InputError(f"Ask for one of {', '.join(self.forms)}, with its values.") from None
        return form, values


def _lines(commands: tuple[Command, ...]) -> list[str]:
    """As they are typed into a shell."""
    return [shlex.join(("leakscope", *command)) for command in commands]


async def _refused(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, status_code=400)
