"""Who may ask: the secret, the host, the origin, and the headers of every answer.

- **Secret.**  The printed address carries a token; it is exchanged for a cookie that scripts
  cannot read and other sites cannot send.  Everything else without the cookie is refused.
- **Host.**  A name that merely resolves to this machine (DNS rebinding) is refused: the Host header
  must be one of the server's own.
- **Origin.**  What changes something must come from a page of this server.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)

# A report has its own policy in its own head; only who may frame it cannot be said there.
REPORT_POLICY = "frame-ancestors 'self'"

HEADERS: dict[str, str] = {
    "cache-control": "no-store",
    "content-security-policy": PAGE_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")

# The browser follows this address itself: after a redirect from another program's link it would
# hold a cookie with SameSite=Strict back.
ENTRY = (
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>leakscope</title>'
    '<link rel="icon" href="data:,"><meta http-equiv="refresh" content="0;url=/"></head>'
    '<body><p><a href="/">Go on</a></p></body></html>'
)


def is_loopback(host: str) -> bool:
    """Whether an address that is listened on can be reached from this machine only.

    Examples
    --------
    >>> from leakscope.serving.security import is_loopback
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Access:
    """The server's secrets and its own names.

    Attributes
    ----------
    port
        Where it listens.
    remote
        Whether other machines may ask.  Then any IP address is a good Host, since the attack that
        the check is for needs a name.
    names
        Host names that are the server's own, without the port.
    token, session
        What the printed address carries, and what the cookie does.
    cookie
        The cookie's name, drawn too: cookies do not tell one port from another.

    Examples
    --------
    >>> from leakscope.serving.security import Access
    >>> access = Access(port=8000)
    >>> access.own_host("127.0.0.1:8000"), access.own_host("evil.example:8000")
    (True, False)
    >>> access.right_token(access.token), access.right_token("guess")
    (True, False)
    """

    port: int
    remote: bool = False
    names: tuple[str, ...] = LOOPBACK_NAMES
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    cookie: str = field(default_factory=lambda: f"leakscope_{secrets.token_hex(4)}", repr=False)

    @classmethod
    def listening(cls, host: str, port: int) -> Access:
        """Access to a server that listens on this address."""
        if is_loopback(host):
            shown = f"[{host}]" if ":" in host else host
            return cls(port=port, names=tuple(dict.fromkeys((*LOOPBACK_NAMES, shown))))
        own = (*LOOPBACK_NAMES, host.lower(), socket.gethostname().lower())
        return cls(port=port, remote=True, names=own)

    def right_token(self, given: str) -> bool:
        """Compared in constant time."""
        return hmac.compare_digest(given.encode(), self.token.encode())

    def right_cookie(self, header: str) -> bool:
        """Whether the Cookie header holds the session, compared in constant time.

        Cookies of other servers on this machine come along, and may be written in any way.
        """
        held = (part.strip().partition("=") for part in header.split(";"))
        given = [value for name, _, value in held if name == self.cookie]
        return any(hmac.compare_digest(one.encode(), self.session.encode()) for one in given)

    def own_host(self, header: str) -> bool:
        """Whether a Host header names this server."""
        name, _, port = header.rpartition(":")
        if port != str(self.port) or not name:
            return self.port == 80 and self._own_name(header)
        return self._own_name(name)

    def own_origin(self, header: str, host: str) -> bool:
        """Whether an Origin header is that of a page which this host served."""
        return self.own_host(host) and header.lower() == f"http://{host}".lower()

    def set_cookie(self) -> str:
        """The header that hands the session over."""
        return f"{self.cookie}={self.session}; HttpOnly; SameSite=Strict; Path=/"

    def _own_name(self, name: str) -> bool:
        if name.lower() in self.names:
            return True
        if not self.remote:
            return False
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True


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

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", ()))
                named = {name.lower() for name, _ in given}
                given += [
                    (name.encode(), value.encode())
                    for name, value in HEADERS.items()
                    if name.encode() not in named
                ]
                message["headers"] = given
            await send(message)

        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = self._answer(scope)
        if answer is None:
            await self.app(scope, receive, with_headers)
        else:
            await answer(scope, receive, with_headers)

    def _answer(self, scope: Scope) -> ASGIApp | None:
        """The answer to what does not go on; None for what does."""
        from starlette.responses import HTMLResponse, PlainTextResponse

        def refused(sentence: str) -> ASGIApp:
            return PlainTextResponse(sentence + "\n", status_code=403)

        headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value.decode("latin-1"))
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or not self.access.own_host(hosts[0]):
            return refused("This server does not answer under that name.")
        if scope["path"] == "/" and scope["method"] == "GET":
            query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
            if "token" in query:
                if not self.access.right_token(query["token"]):
                    return refused("The token in this address is wrong; copy it whole.")
                return HTMLResponse(ENTRY, headers={"set-cookie": self.access.set_cookie()})
        if not self.access.right_cookie("; ".join(headers.get(b"cookie", []))):
            return refused("Open the address, with its token, that leakscope serve printed.")
        if scope["method"] not in ("GET", "HEAD"):
            origins = headers.get(b"origin", [])
            if len(origins) != 1 or not self.access.own_origin(origins[0], hosts[0]):
                return refused("Only this server's own pages may ask for that.")
        return None
