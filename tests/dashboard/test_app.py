"""The application over the tables of the story."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from fastapi.testclient import TestClient

from dashboard import app as application
from dashboard.app import create_app
from dashboard.pages.listing_page import OWN
from dashboard.pages.page_routes import LISTINGS_OF_PAGES
from dashboard.questions.catalog import questions
from streaming.settings.model import Dashboard, load
from streaming.tables.errors import NoTablesError
from tests.dashboard.hostile import HOSTILE


def test_routes_are_behind_the_frame(client: TestClient) -> None:
    answer = client.get("/nothing-here")
    assert answer.status_code == 404
    assert "content-security-policy" in answer.headers


@pytest.mark.parametrize("path", ["/", "/healthz", "/metrics", "/api/v1/groups", "/static/pages.css", "/live"])
def test_head_is_answered_everywhere(client: TestClient, path: str) -> None:
    answer = client.head(path)
    assert (answer.status_code, answer.content) == (200, b"")
    assert "content-security-policy" in answer.headers


VALUES = (
    "",
    "-1",
    "²",
    "9" * 5_000,
    "1000000999999999999",
    "1e5",
    "true",
    "\0",
    "\ud800",
    "日",
    "0001-01-01T00:00:00+14:00",
)
VALUES = (*VALUES, "9223372036854775808", "WzEsIDJd", "W" * 40_000, "csv", "orders", "c1", "-event_time", *HOSTILE[:60])


def addresses(client: TestClient) -> list[tuple[str, list[str]]]:
    """Return every address with the parameters that it takes."""
    api = client.get("/api/v1/openapi.json").json()["paths"]
    found = [
        (path, [parameter["name"] for parameter in each["get"].get("parameters", ())]) for path, each in api.items()
    ]
    found += [(path, [*listing.parameters, *OWN]) for path, listing in LISTINGS_OF_PAGES.items()]
    found += [(f"/questions/{name}", [*question.parameters]) for name, question in questions().items()]
    return [
        *found,
        *(("/group", ["cluster", "group"]), ("/rebalance", ["id"]), ("/member", ["member", "cluster"])),
        *(("/search", ["q", "range", "from", "to"]), ("/job", ["range", "from", "to"])),
        *(("/client", ["client", "cluster"]), ("/host", ["host", "cluster"])),
    ]


def test_no_text_in_an_address_is_an_error_of_the_server(story_tables: Path) -> None:
    random = Random(1)
    given = {"dashboard.allowed_hosts": ["testserver"], "dashboard.requests_per_second": 10_000}
    app = create_app(story_tables, load(overrides=given).dashboard)
    with TestClient(app, follow_redirects=False, raise_server_exceptions=False) as client:
        for path, names in addresses(client):
            for _ in range(8):
                chosen = {
                    name: random.choice(VALUES) for name in random.sample(names, random.randrange(len(names) + 1))
                }
                url = re.sub(r"\{\w+\}", lambda _: quote(random.choice(HOSTILE[:150]), safe=""), path)
                address = f"{url}?{urlencode(chosen, errors='surrogatepass')}"
                if len(address) < 60_000:
                    assert client.get(address).status_code < 500, address


def test_without_tables_there_is_no_application_unless_they_may_come_later(tmp_path: Path, settings: Dashboard) -> None:
    with pytest.raises(NoTablesError):
        create_app(tmp_path, settings)
    create_app(tmp_path, settings, must_exist=False)


def test_more_pages_than_the_limit_are_refused(story_tables: Path) -> None:
    settings = load(overrides={"dashboard.allowed_hosts": ["testserver"], "dashboard.max_streams": 1}).dashboard
    app = create_app(story_tables, settings)
    with TestClient(app) as client:
        app.state.streams = 1
        assert client.get("/live").status_code == 503


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[threading.Event]:
    """Set the first one when the application waits for its warm-up at its start, the second one at its end."""
    events, left = [threading.Event(), threading.Event()], iter((0, 1))

    async def noted(*tasks: Any, **options: Any) -> object:
        events[next(left)].set()
        return await asyncio.wait(*tasks, **options)

    monkeypatch.setattr(application, "asyncio", SimpleNamespace(create_task=asyncio.create_task, wait=noted))
    return events


def test_the_first_request_finds_the_server_warm(
    story_tables: Path, settings: Dashboard, monkeypatch: pytest.MonkeyPatch, waits: list[threading.Event]
) -> None:
    done = []

    def slow(*_: object) -> None:
        if waits[0].wait(60):
            done.append("warm")

    monkeypatch.setattr(application, "warm_up", slow)
    monkeypatch.setattr(application, "MAX_WARM_UP_S", 60.0)
    with TestClient(create_app(story_tables, settings)):
        assert done == ["warm"]


def test_a_slow_store_delays_no_answer_and_no_thread_reads_after_the_end(
    story_tables: Path, settings: Dashboard, monkeypatch: pytest.MonkeyPatch, waits: list[threading.Event]
) -> None:
    done = []

    def slow(*_: object) -> None:
        if waits[1].wait(60):
            done.append("warm")

    monkeypatch.setattr(application, "warm_up", slow)
    monkeypatch.setattr(application, "MAX_WARM_UP_S", 0.01)
    with TestClient(create_app(story_tables, settings), base_url="http://127.0.0.1") as client:
        assert client.get("/healthz").status_code == 200
        assert done == []
    assert done == ["warm"]


_VISITS = """
import sys
from pathlib import Path
from fastapi.testclient import TestClient
from dashboard.app import create_app
from dashboard.pages.listing_page import OWN
from dashboard.pages.page_routes import LISTINGS_OF_PAGES
from dashboard.questions.catalog import questions
from streaming.settings.model import load
app = create_app(Path(sys.argv[1]), load().dashboard)
with TestClient(app, base_url="http://127.0.0.1") as client:
    for path in sys.argv[2:]:
        print(client.get(path).status_code, "pandas" in sys.modules)
"""


def test_pages_import_no_pandas_which_would_take_a_third_of_a_second(story_tables: Path) -> None:
    group = "cluster=c1&group"
    paths = ["/", f"/group?{group}=orders", "/rebalances?since=0", "/member?member=b", "/members", "/findings"]
    paths += ["/rejected-events", "/job", "/questions/most-rebalances", f"/api/v1/timeline?{group}_id=orders"]
    paths += [f"/api/v1/progress?{group}_id=orders", "/api/v1/assignments", "/api/v1/groups", "/api/v1/churn"]
    paths += ["/topic?cluster=c1&topic=orders", f"/api/v1/lag?{group}_id=orders", "/advice", "/replays"]
    paths.append(f"/what-if?{group}=orders&add=1")
    command = [sys.executable, "-c", _VISITS, str(story_tables), *paths]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert found == ["200 False"] * len(paths)
