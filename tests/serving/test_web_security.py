"""Who is let in, and what every answer carries."""

from __future__ import annotations

import json

import pytest
from starlette.testclient import TestClient

from leakscope.serving.security import HEADERS, Access, Guard, is_loopback
from serving import HOME, PORT, client

PATHS = ["/", "/static/web.css", "/static/job.js", "/jobs/x", "/jobs/x/report", "/api/jobs/x"]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with client(tmp_path_factory.mktemp("served"), let_in=False) as (found, access):
        yield found, access


@pytest.fixture
def guest(served):
    found, access = served
    found.cookies.clear()
    found.headers.pop("origin", None)
    return found, access


@pytest.fixture
def owner(served):
    found, access = served
    found.cookies.clear()
    found.cookies.set(access.cookie, access.session)
    found.headers["origin"] = HOME
    return found, access


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_shown_without_the_cookie(guest, path):
    answer = guest[0].get(path)
    assert answer.status_code == 403
    assert "token" in answer.text
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("token", ["", "wrong", "é", "\x00", "a" * 10_000])
def test_a_wrong_token_is_refused(guest, token):
    answer = guest[0].get("/", params={"token": token})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_the_token_opens_the_start_page_only_and_becomes_a_cookie(guest):
    found, access = guest
    assert found.get("/static/web.css", params={"token": access.token}).status_code == 403
    assert found.post("/", params={"token": access.token}).status_code == 403
    answer = found.get("/", params={"token": access.token})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert access.token not in cookie
    assert access.token not in answer.text
    page = found.get("/")
    assert page.status_code == 200
    assert "Your model is not examined" in page.text


@pytest.mark.parametrize(
    "cookie",
    ["", "leakscope=x", "{name}=wrong", "{name}={value}x", "{name}=", "=;;{name}", "{name}=é"],
)
def test_a_wrong_cookie_is_refused(guest, cookie):
    found, access = guest
    given = cookie.format(name=access.cookie, value=access.session)
    assert found.get("/", headers={"cookie": given.encode()}).status_code == 403


def test_secrets_are_drawn_anew_and_not_shown(guest):
    one, two = Access(port=1), Access(port=1)
    assert one.token != two.token
    assert one.session != two.session
    assert len(one.token) >= 40
    assert one.token not in repr(one)


@pytest.mark.parametrize(
    "cookie",
    [
        'other={{"a": 1}}; {name}={value}',
        "a b=c; {name}={value}; =x; y",
        "{name}={value}; sp@ce d=\x7f",
        "{name}=wrong; {name}={value}",
    ],
)
def test_cookies_of_other_servers_do_not_stand_in_the_way(guest, cookie):
    """Cookies do not tell one port from another, and notebooks write odd ones."""
    found, access = guest
    given = cookie.format(name=access.cookie, value=access.session)
    assert found.get("/", headers={"cookie": given.encode()}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        "127.0.0.1:9999",
        f"127.0.0.1.evil.example:{PORT}",
        f"localhost.:{PORT}",
        f"192.168.1.1:{PORT}",
        "",
        f":{PORT}",
    ],
)
def test_another_host_is_refused_even_with_the_cookie(owner, host):
    answer = owner[0].get("/", headers={"host": host})
    assert answer.status_code == 403
    assert "name" in answer.text


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
def test_its_own_names_are_taken(owner, host):
    found, access = owner
    cookie = f"{access.cookie}={access.session}"
    assert found.get("/", headers={"host": host, "cookie": cookie}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    [None, "null", "http://evil.example", f"https://127.0.0.1:{PORT}", "http://127.0.0.1:9999"],
)
@pytest.mark.parametrize("path", ["/api/jobs", "/api/uploads?name=a.csv", "/api/jobs/x/give-up"])
def test_only_its_own_pages_may_change_something(owner, origin, path):
    found, _ = owner
    del found.headers["origin"]
    headers = {} if origin is None else {"origin": origin}
    answer = found.post(path, headers=headers, content=b"{}")
    assert answer.status_code == 403
    assert "own pages" in answer.text


def test_the_origin_must_be_that_of_the_same_host(owner):
    headers = {"origin": f"http://localhost:{PORT}"}
    assert owner[0].post("/api/jobs", headers=headers, content=b"{}").status_code == 403


def test_nobody_else_may_ask_by_cors(owner):
    found, _ = owner
    headers = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    answer = found.options("/api/jobs", headers=headers)
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert not [name for name in found.get("/").headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", [*PATHS, "/nothing", "/?token=wrong"])
@pytest.mark.parametrize("who", ["guest", "owner"])
def test_every_answer_has_the_headers(who, path, request):
    found, _ = request.getfixturevalue(who)
    answer = found.get(path)
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert "server" not in answer.headers


def test_something_unforeseen_has_the_headers_and_no_traceback(tmp_path, monkeypatch):
    with client(tmp_path) as (found, access):
        guarded = found.app
    from leakscope.serving import application as module

    def broken(*_, **__):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(module.pages, "render", broken)
    with TestClient(guarded, base_url=HOME, raise_server_exceptions=False) as found:
        found.cookies.set(access.cookie, access.session)
        answer = found.get("/")
    assert answer.status_code == 500
    assert "secret detail" not in answer.text
    for name, value in HEADERS.items():
        assert answer.headers[name] == value


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_other_methods_are_refused(owner, method):
    answer = owner[0].request(method, "/api/jobs")
    assert answer.status_code == 405
    assert answer.json()["error"]


@pytest.mark.parametrize(
    "path",
    [
        "/static/../security.py",
        "/static/..%2fsecurity.py",
        "/static/%2e%2e/%2e%2e/errors.py",
        "/static/start.html",
        "/static/",
        "/jobs/..%2f..%2fetc%2fpasswd/report",
        "/jobs/%2e%2e/report",
        "/jobs/../../../../etc/passwd",
        "//etc/passwd",
    ],
)
def test_no_path_leads_to_a_file(owner, path):
    answer = owner[0].get(path)
    assert answer.status_code == 404
    assert "root:" not in answer.text
    assert "jinja" not in answer.text.lower()


def test_a_websocket_is_closed(owner):
    found, _ = owner
    with pytest.raises(Exception, match=r".*"), found.websocket_connect("/"):
        pass


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "JSON object"),
        (b"[1]", "JSON object"),
        (b"{", "JSON object"),
        (b"\xff\xfe", "JSON object"),
        (b"[" * 100_000, "JSON object"),
        (b'{"a": ' + b"1" * 5000 + b"}", "JSON object"),
        (b"{}", "not both"),
        (b'{"example": "nothing"}', "no such example"),
        (b'{"example": "../../etc/passwd"}', "no such example"),
        (b'{"example": "wine", "upload": "x"}', "not both"),
        (b'{"upload": "../../etc/passwd"}', "no longer there"),
        (b'{"example": "wine", "run_dir": "/tmp/x"}', "run_dir"),
        (b'{"example": ["wine"]}', "example"),
        (b'{"example": "wine", "kernel": "__import__"}', "kernel"),
        (b"x" * 1_100_000, "too long"),
    ],
)
def test_a_bad_request_is_one_sentence(owner, body, told):
    answer = owner[0].post("/api/jobs", content=body)
    assert answer.status_code == 400
    assert told in answer.json()["error"]
    assert "\n" not in answer.json()["error"]


def test_a_page_of_an_unknown_audit_says_so(owner):
    answer = owner[0].get("/jobs/<script>alert(1)</script>")
    assert answer.status_code == 404
    assert "<script>alert" not in answer.text


def test_hosts_of_a_server_for_others():
    access = Access.listening("0.0.0.0", PORT)
    assert access.remote
    assert access.own_host(f"192.168.1.7:{PORT}")
    assert access.own_host(f"[fe80::1]:{PORT}")
    assert not access.own_host(f"rebound.example:{PORT}")
    assert not access.own_host("192.168.1.7:80")
    assert access.own_origin(f"http://192.168.1.7:{PORT}", f"192.168.1.7:{PORT}")
    assert not Access.listening("127.0.0.1", PORT).own_host(f"192.168.1.7:{PORT}")


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.1", False),
        ("example.org", False),
    ],
)
def test_what_is_this_machine_only(host, loopback):
    assert is_loopback(host) is loopback


def test_two_hosts_in_one_request_are_refused():
    """As raw ASGI: a client library does not send this."""
    import asyncio

    access, sent = Access(port=PORT), []

    async def app(scope, receive, send):
        raise AssertionError("let in")

    async def send(message):
        sent.append(message)

    own = f"127.0.0.1:{PORT}".encode()
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "query_string": b"",
        "headers": [(b"host", own), (b"host", b"evil.example")],
    }
    asyncio.run(Guard(app, access)(scope, None, send))
    assert sent[0]["status"] == 403


def test_the_policies_allow_no_other_place():
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "http" not in policy
    assert json.dumps(HEADERS).count("*") == 0
