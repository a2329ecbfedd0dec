"""A browser logs in with the token, and goes on to where it wanted to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboard.app import create_app
from streaming.settings.model import load

TOKEN = "a long enough token"


@pytest.fixture
def browser(story_tables: Path) -> Iterator[TestClient]:
    settings = load(overrides={"dashboard.allowed_hosts": ["testserver"], "dashboard.token": TOKEN}).dashboard
    with TestClient(create_app(story_tables, settings), headers={"accept": "text/html"}) as client:
        yield client


def test_the_token_opens_the_pages(browser: TestClient) -> None:
    form = browser.get("/findings?open=any")
    assert form.url.path == "/login"
    assert 'value="/findings?open=any"' in form.text
    inside = browser.post("/login", data={"token": TOKEN, "next": "/findings?open=any"})
    assert str(inside.url).endswith("/findings?open=any")
    assert "expected_differs" in inside.text
    assert TOKEN not in str(browser.cookies)


def test_another_token_does_not(browser: TestClient) -> None:
    answer = browser.post("/login", data={"token": "guessed", "next": "/"})
    assert answer.status_code == 403
    assert browser.get("/findings").url.path == "/login"


def test_the_cookie_is_for_this_server_and_no_script(browser: TestClient) -> None:
    answer = browser.post("/login", data={"token": TOKEN}, follow_redirects=False)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert answer.headers["location"] == "/"


def test_a_form_with_many_fields_is_refused(browser: TestClient) -> None:
    answer = browser.post("/login", data={"token": TOKEN, **{f"x{number}": "1" for number in range(20)}})
    assert answer.status_code == 400
    assert "This form has two fields." in answer.text
    assert not browser.cookies
