"""The frame refuses some requests, and adds headers to every answer."""

from __future__ import annotations

import asyncio

import pytest
from fastapi.testclient import TestClient
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from dashboard.security.frame import MAX_BODY_BYTES, SecurityFrame
from dashboard.security.headers import HEADERS
from dashboard.security.rate_limit import BURST, RateLimit
from dashboard.security.token import COOKIE, SESSION_S, new_session
from streaming.machine.http_access import AllowedHosts

TOKEN = "a long enough token"
NOW = 1_767_225_600


async def inner(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] == "/slow":
        await asyncio.Event().wait()  # This event is never set: the request hangs.
    await PlainTextResponse("inner", headers={"cache-control": "max-age=9"} if scope["path"] == "/kept" else None)(
        scope, receive, send
    )


def framed(token: str = "", per_second: int = 1_000, timeout_s: float = 30.0) -> TestClient:
    frame = SecurityFrame(
        inner,
        token=token,
        hosts=AllowedHosts("127.0.0.1", ["testserver"]),
        limit=RateLimit(per_second),
        timeout_s=timeout_s,
        now_s=lambda: NOW,
        elapsed_s=lambda: 0.0,
    )
    return TestClient(frame, follow_redirects=False)


def test_every_answer_has_the_headers_a_refusal_too() -> None:
    for answer in (framed().get("/"), framed(TOKEN).get("/"), framed().get("/", headers={"host": "evil.example"})):
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert answer.headers["cache-control"] == "private, no-cache"
    assert framed().get("/kept").headers["cache-control"] == "max-age=9"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_nothing_can_be_written(method: str) -> None:
    assert framed().request(method, "/").status_code == 405


def test_an_answer_to_head_has_the_headers_of_get_and_no_body() -> None:
    for client in (framed(), framed(TOKEN)):
        for path in ("/", "/kept", "/healthz", "/login"):
            got, head = client.get(path), client.head(path)
            assert (head.status_code, head.content, head.headers) == (got.status_code, b"", got.headers)
    # A stream has no end.
    stream = framed().head("/live")
    assert (stream.status_code, stream.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")


def test_a_refusal_names_the_methods_that_there_are() -> None:
    assert framed().put("/").headers["allow"] == "GET, HEAD"
    assert framed().put("/login").headers["allow"] == "GET, HEAD, POST"


def test_the_token_is_required() -> None:
    client = framed(TOKEN)
    assert client.get("/").status_code == 401
    assert client.get("/", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert client.get("/", headers={"authorization": f"Bearer {TOKEN}"}).text == "inner"
    session = {"cookie": f"{COOKIE}={new_session(TOKEN, NOW)}"}
    assert client.get("/", headers=session).text == "inner"
    expired = {"cookie": f"{COOKIE}={new_session(TOKEN, NOW - SESSION_S)}"}
    assert client.get("/", headers=expired).status_code == 401
    # A wrong token is not healed by a session.
    assert client.get("/", headers={**session, "authorization": "Bearer wrong"}).status_code == 401


def test_a_browser_is_sent_to_the_login_and_back() -> None:
    answer = framed(TOKEN).get("/group?group=a%26b", headers={"accept": "text/html"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=%2Fgroup%3Fgroup%3Da%2526b")


def test_health_needs_no_token() -> None:
    assert framed(TOKEN).get("/healthz").text == "inner"
    assert framed(TOKEN).get("/healthz/x").status_code == 401


def test_input_over_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    client = framed()
    # The client itself has a limit that is lower than the frame's.
    monkeypatch.setattr("dashboard.security.frame.MAX_PATH_BYTES", 1_000)
    assert client.get("/?" + "x" * 999).text == "inner"
    assert client.get("/?" + "x" * 1_000).status_code == 414
    assert client.post("/login", content=b"x" * (MAX_BODY_BYTES + 1)).status_code == 413
    assert client.post("/login", content=iter([b"x"])).status_code == 413
    assert framed(timeout_s=0.05).get("/slow").status_code == 503


def test_too_many_requests_of_one_address_are_refused() -> None:
    client = framed(per_second=1)
    assert [client.get("/").status_code for _ in range(BURST)] == [200] * BURST
    assert client.get("/").status_code == 429
