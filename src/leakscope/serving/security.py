"""Who may ask: the secret, the host, the origin, and the headers of every answer.

- **Secret.**  The printed address carries a token; it is exchanged for a cookie that scripts
  cannot read and other sites cannot send.  Everything else without the cookie is refused.
- **Host.**  A name that merely resolves to this machine (DNS rebinding) is refused: the Host header
  must be one of the server's own.
- **Origin.**  What changes something must come from a page of this server.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)

# A report's scripts run in a world of its own: they cannot ask this server for anything.
REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads allow-modals allow-popups; frame-ancestors 'none'"
)

HEADERS: dict[str, str] = {
    "cache-control": "no-store",
    "content-security-policy": PAGE_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}

NAMES = ("127.0.0.1", "localhost")

# The browser follows this address itself: after a redirect from another program's link it would
# hold a cookie with SameSite=Strict back.
ENTRY = (
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>leakscope</title>'
    '<link rel="icon" href="data:,"><meta http-equiv="refresh" content="0;url=/"></head>'
    '<body><p><a href="/">Go on</a></p></body></html>'
)


@dataclass(frozen=True)
class Access:
    """The server's port and its secrets.

    Attributes
    ----------
    port
        Where it listens, on this machine's loopback address.
    token, session
        What the printed address carries, and what the cookie does.
    cookie
        The cookie's name, drawn too: cookies do not tell one port from another.
    """

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    cookie: str = field(default_factory=lambda: f"leakscope_{secrets.token_hex(4)}", repr=False)

    @property
    def address(self) -> str:
        """What to open, token and all."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def is_token(self, given: str) -> bool:
        """Compared in constant time."""
        return hmac.compare_digest(given.encode(), self.token.encode())

    def has_cookie(self, header: str) -> bool:
        """Whether the Cookie header holds the session; other servers' cookies come along."""
        held = (part.strip().partition("=") for part in header.split(";"))
        given = [value for name, _, value in held if name == self.cookie]
        return any(hmac.compare_digest(value.encode(), self.session.encode()) for value in given)

    def is_host(self, header: str) -> bool:
        """Whether a Host header names this server."""
        return header.lower() in {f"{name}:{self.port}" for name in NAMES}


class Guard:
    """Every request passes here first, and every answer last."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or hand over with the headers of every answer."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", ()))
                named = {name.lower() for name, _ in given}
                added = ((name.encode(), value.encode()) for name, value in HEADERS.items())
                message["headers"] = given + [pair for pair in added if pair[0] not in named]
            await send(message)

        await (self._answer(scope) or self.app)(scope, receive, with_headers)

    def _answer(self, scope: Scope) -> ASGIApp | None:
        """The answer to what does not go on; None for what does."""
        from starlette.responses import HTMLResponse, PlainTextResponse

        def refused(sentence: str) -> ASGIApp:
            return PlainTextResponse(sentence + "\n", status_code=403)

        headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value.decode("latin-1"))
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or not self.access.is_host(hosts[0]):
            return refused("This server does not answer under that name.")
        if scope["path"] == "/" and scope["method"] == "GET":
            query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
            if "token" in query:
                if not self.access.is_token(query["token"]):
                    return refused("The token in this address is wrong; copy it whole.")
                cookie = f"{self.access.cookie}={self.access.session}"
                handed = f"{cookie}; HttpOnly; SameSite=Strict; Path=/"
                return HTMLResponse(ENTRY, headers={"set-cookie": handed})
        if not self.access.has_cookie("; ".join(headers.get(b"cookie", []))):
            return refused("Open the address, with its token, that leakscope serve printed.")
        origins = [origin.lower() for origin in headers.get(b"origin", [])]
        if scope["method"] not in ("GET", "HEAD") and origins != [f"http://{hosts[0]}".lower()]:
            return refused("Only this server's own pages may ask for that.")
        return None
