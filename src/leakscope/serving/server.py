"""The server: a loopback socket, an address with a token, and a clean end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from leakscope.errors import InputError, required
from leakscope.serving.commands import forms

# Connections at once; a browser opens six.
CONNECTIONS = 64


def listen(commands: Mapping[str, Any], *, port: int, say: Callable[[str], None]) -> None:
    """Serve the page of this folder to this machine until interrupted.

    ``commands`` are the parsers of the verbs, ``port`` 0 is a free one, and ``say`` takes the lines
    for the terminal.
    """
    if not 0 <= port <= 65_535:
        raise InputError(f"--port must be from 0 to 65535, but it is {port}.")
    for library in ("starlette", "uvicorn"):
        required(library, "leakscope serve")
    import uvicorn

    from leakscope.serving.application import application
    from leakscope.serving.security import Access

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            # Only now does an interruption end it as it should.
            say(f"Leakscope is at {access.address}")
            say("Press Ctrl-C to stop.")

    # A closed terminal ends the command that runs, as Ctrl-C does; nohup's stays ignored.
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None and signal.getsignal(hangup) is signal.SIG_DFL:
        signal.signal(hangup, lambda *_: signal.raise_signal(signal.SIGINT))
    # Whenever it comes, an interruption is how a server ends, and no error.
    with contextlib.suppress(KeyboardInterrupt), _socket(port) as listening:
        access = Access(listening.getsockname()[1])
        config = uvicorn.Config(
            application(access, Path.cwd(), forms(commands)),
            http="h11",
            ws="none",
            loop="asyncio",
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=2,
        )
        Server(config).run(sockets=[listening])


def _socket(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # Only to take over a port in its time of rest; a port in use is still refused.
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen(CONNECTIONS)
    except OSError as error:
        listening.close()
        raise InputError(f"Cannot listen on port {port}: {error.strerror}.") from None
    return listening
