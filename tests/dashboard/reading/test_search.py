"""A search finds whatever has a name, and only that."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboard.pages.search_page import address_of
from dashboard.reading.questions import Reading
from dashboard.reading.search import LONGEST, search
from streaming.settings.locations import location_of
from tests.browser.day_tables import T0, write_rows
from tests.dashboard.hostile import HOSTILE
from tests.streaming.views.story import THIRD


@pytest.mark.parametrize(
    ("text", "hits"),
    [
        ("ORD", [("group", "orders"), ("topic", "orders"), ("finding", "expected_differs")]),
        ("h2", [("client", "b@h2"), ("host", "h2")]),
        ("orders-1", [("queue", "orders-1")]),
        ("orders@none-1", []),
        (THIRD[:8], [("rebalance", THIRD)]),
        ("expected_differs", [("finding", "expected_differs")]),
        ("o", []),
        ("nothing has this", []),
    ],
)
def test_a_text_finds_what_has_it_in_its_name(reading: Reading, text: str, hits: list[tuple[str, str]]) -> None:
    found = search(reading, text, 25)
    assert [(hit.kind, hit.note if hit.kind == "finding" else hit.name) for hit in found] == hits


def test_a_search_is_bounded_by_kind(reading: Reading) -> None:
    kinds = [hit.kind for hit in search(reading, "or", 1)]
    assert len(kinds) == len(set(kinds)) > 1


def test_a_hit_says_whether_it_is_there(reading: Reading) -> None:
    assert {hit.name: hit.is_open for text in ("static-a", "b@h2") for hit in search(reading, text, 25)} == {
        "static-a": False,
        "b@h2": True,
    }


@pytest.mark.parametrize("text", ["orders", "h1", "orders-1", THIRD, "expected"])
def test_each_hit_has_a_page(client: TestClient, reading: Reading, text: str) -> None:
    hits = search(reading, text, 5)
    assert hits
    page = client.get("/search", params={"q": text}).text
    for hit in hits:
        assert client.get(address_of(hit)).status_code == 200
        assert f'<span class="hit-kind">{hit.kind}</span>' in page


@pytest.mark.parametrize("name", HOSTILE[:40], ids=range(40))
def test_a_hostile_text_is_only_text(client: TestClient, name: str) -> None:
    answer = client.get("/search", params={"q": name})
    assert answer.status_code == 200
    assert "<script>" not in answer.text.replace('<script src="', "")
    assert client.get("/api/v1/search", params={"q": name[:200]}).status_code == 200


@pytest.mark.parametrize("path", ["/search", "/api/v1/search"])
def test_a_text_that_is_no_name_is_refused(client: TestClient, path: str) -> None:
    answers = [client.get(path, params={"q": "x" * length}) for length in (LONGEST, LONGEST + 1, 5_000)]
    assert [answer.status_code for answer in answers] == [200, 400, 400]
    assert all("at most 200 characters" in answer.text for answer in answers[1:])


def test_a_queue_that_no_group_ever_owned_is_found_by_its_topic(tmp_path: Path) -> None:
    topic = {"cluster": "c", "topic": "lone", "queue_count": 2, "valid_from": T0}
    write_rows(
        tmp_path, "topics", [topic | {"queues": [{"broker": None, "queue_id": n, "racks": []} for n in range(2)]}]
    )
    reading = Reading.once(location_of(str(tmp_path)))
    assert [(hit.kind, hit.id, hit.cluster) for hit in search(reading, "lone-1", 9)] == [("queue", "lone-1", "c")]
    assert search(reading, "lone-2", 9) == []
