"""The server: a socket of this machine, an address with a token, and a clean end."""

from __future__ import annotations

import contextlib
import html
import os
import shutil
import signal
import socket
import stat
import tempfile
import time
import webbrowser
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from leakscope.data.files import write_file
from leakscope.errors import InputError, required
from leakscope.serving.limits import Limits
from leakscope.serving.security import Access, is_loopback

# Connections at once; a browser opens six.
CONNECTIONS = 64

# A connection on which no request has begun for this long is closed.
SILENCE_SECONDS = 10.0


def serve(
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    allow_remote: bool = False,
    open_browser: bool = False,
    limits: Limits | None = None,
    say: Callable[[str], None] | None = None,
) -> None:
    """The audit as a local web page: listen until interrupted.

    Upload a dataset or choose an example, watch the audit, read its report, move the noise.  Only
    this machine reaches it, and only with the address that is printed.  Everything uploaded or
    computed is removed at the end.

    Parameters
    ----------
    host, port
        Where to listen; port 0 for a free one.
    allow_remote
        Whether ``host`` may be other than this machine itself.
    open_browser
        Whether to open the address.
    limits
        What is taken and kept; :class:`Limits` where left out.
    say
        Takes the lines for the terminal; they are printed where left out.

    Raises
    ------
    InputError
        Where the host may not be used, the port is taken, or the extra ``web`` is not installed.

    Examples
    --------
    >>> import leakscope
    >>> leakscope.serve(host="0.0.0.0")
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: --host 0.0.0.0 lets other machines in, and data and token travel \
unencrypted; give --allow-remote if that is meant.
    """
    limits = Limits() if limits is None else limits
    tell = _print if say is None else say
    if not 0 <= port <= 65_535:
        raise InputError(f"--port must be from 0 to 65535, but it is {port}.")
    if not is_loopback(host) and not allow_remote:
        raise InputError(
            f"--host {host} lets other machines in, and data and token travel unencrypted; give "
            "--allow-remote if that is meant."
        )
    for library in ("starlette", "h11", "uvicorn"):
        required(library, "leakscope serve")
    import h11
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    from leakscope.serving.application import application

    class Protocol(H11Protocol):
        def send_400_response(self, msg: str) -> None:
            # One answer can be sent: where the body breaks off before it this is the one, and
            # after it there is none.
            if self.cycle is not None:
                self.cycle.disconnected = True
            try:
                super().send_400_response(msg)
            except h11.LocalProtocolError:
                self.transport.close()

    # Whenever it comes, an interruption is how a server ends, and no error.
    with contextlib.suppress(KeyboardInterrupt), _every_end_is_clean():
        listening = _listen(host, port)
        remove_abandoned()
        folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
        held = hold(folder)
        waiting: dict[Any, float] = {}
        try:
            access = Access.listening(host, listening.getsockname()[1])
            config = uvicorn.Config(
                application(access, folder, limits),
                http=Protocol,
                ws="none",
                loop="asyncio",
                lifespan="on",
                log_level="error",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=CONNECTIONS,
                timeout_graceful_shutdown=2,
            )

            class Server(uvicorn.Server):
                async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                    await super().startup(sockets)
                    # Only now does an interruption end it as it should.
                    _announce(host, access, open_browser, tell, folder)

                async def on_tick(self, counter: int) -> bool:
                    close_silent(self.server_state.connections, waiting)
                    return await super().on_tick(counter)

            Server(config).run(sockets=[listening])
        finally:
            listening.close()
            os.close(held)
            shutil.rmtree(folder, ignore_errors=True)


def _print(line: str) -> None:
    """At once, so that a program that started the server can read the address."""
    print(line, flush=True)


def _announce(
    host: str, access: Access, open_browser: bool, say: Callable[[str], None], folder: Path
) -> None:
    address = address_of(host, access)
    say(f"Leakscope is at {address}")
    if not is_loopback(host):
        say(
            "Warning: other machines can reach this server, and nothing is encrypted; whoever has "
            "the address can see the data."
        )
    say("Press Ctrl-C to stop; everything uploaded is then removed.")
    if open_browser:
        webbrowser.open(doorway(folder, address).as_uri())


def address_of(host: str, access: Access) -> str:
    """What to open, token and all.

    Examples
    --------
    >>> from leakscope.serving.security import Access
    >>> from leakscope.serving.server import address_of
    >>> address_of("::1", Access(port=8000, token="secret"))
    'http://[::1]:8000/?token=secret'
    """
    # What listens everywhere is reached from here by the loopback address.
    name = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    return f"http://{name}:{access.port}/?token={access.token}"


def close_silent(connections: Iterable[Any], waiting: dict[Any, float]) -> None:
    """Close connections on which no request has begun for a while: they would fill the limit.

    ``waiting`` keeps since when each has been silent, from one call to the next.
    """
    now = time.monotonic()
    silent = {one for one in connections if getattr(one, "cycle", None) is None}
    for gone in set(waiting) - silent:
        del waiting[gone]
    for one in silent:
        if now - waiting.setdefault(one, now) > SILENCE_SECONDS and one.transport is not None:
            one.transport.close()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Only to take over a port in its time of rest; a port in use is still refused.
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(CONNECTIONS)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"Cannot listen on {host}, port {port}: {reason}.") from None
    return listening


@contextlib.contextmanager
def _every_end_is_clean() -> Iterator[None]:
    """A closed terminal and a kill remove the data as Ctrl-C does."""

    def interrupt(number: int, frame: object) -> None:
        signal.raise_signal(signal.SIGINT)

    # A shell starts what runs in its background with SIGINT ignored; before uvicorn takes it over,
    # an interruption would be lost.
    before = {signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler)}
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # What nohup ignores stays ignored.
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


fcntl: Any
try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None

FOLDER_PREFIX, LOCK_FILE = "leakscope-serve-", ".in-use"


def hold(folder: Path) -> int:
    """Lock a folder for as long as this process lives, however it ends; the lock's descriptor."""
    descriptor = os.open(folder / LOCK_FILE, os.O_WRONLY | os.O_CREAT, 0o600)
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def remove_abandoned(place: Path | None = None) -> None:
    """Remove this user's folders of servers that were killed, with what was uploaded to them."""
    if fcntl is None:
        return
    for folder in (place or Path(tempfile.gettempdir())).glob(f"{FOLDER_PREFIX}*"):
        with contextlib.suppress(OSError):
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                continue
            descriptor = os.open(folder / LOCK_FILE, os.O_WRONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def doorway(folder: Path, address: str) -> Path:
    """A page for this user only that leads to the address.

    The address itself, among a browser's arguments, would show its token to every user.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from leakscope.serving.server import doorway
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = doorway(pathlib.Path(folder), "http://127.0.0.1:8000/?token=secret")
    ...     page.name, oct(page.stat().st_mode & 0o777), "token=secret" in page.read_text()
    ('open.html', '0o600', True)
    """
    page = folder / "open.html"
    text = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>leakscope</title>'
        '<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" '
        f'content="0;url={html.escape(address)}"></head></html>\n'
    )
    write_file(page, text.encode())
    return page
