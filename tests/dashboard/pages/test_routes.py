"""Every page shows what the tables of the story hold, once for a version."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboard.app import create_app
from streaming.settings.model import Dashboard
from tests.streaming.tables.journals import Journal, assigned, released, stable
from tests.streaming.views.story import FIRST, SECOND, THIRD, rebalance, store, write_audited_story

PAGES = {
    "/": ["orders", "twin", "popping", "c1", "c2"],
    "/?q=orders": ["orders"],
    "/group?cluster=c1&group=orders": ["orders-0", "orders-1", "app-a", "static-a", "h2", "expected_differs"],
    "/rebalances": [THIRD, SECOND, "a expired", "b joined"],
    f"/rebalance?id={THIRD}": ["a expired", "session_expired", "orders(0,1)", "event-bb33"],
    "/member?member=b": ["orders-0", "orders-1", "h2"],
    "/members?open=yes": ["b"],
    "/findings": ["expected_differs", "compare the strategies of the clients"],
    "/rejected-events": ["Nothing fits these filters."],
    "/job": ["rebalances", "3.0 s"],
}


@pytest.mark.parametrize("path", PAGES)
def test_a_page_shows_what_the_tables_hold(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert [text for text in PAGES[path] if text not in answer.text] == []


@pytest.mark.parametrize("path", PAGES)
def test_a_page_that_is_there_already_is_sent_once(client: TestClient, path: str) -> None:
    first = client.get(path)
    again = client.get(path, headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_a_search_leaves_the_others_out(client: TestClient) -> None:
    assert "popping" not in client.get("/?q=orders").text


@pytest.mark.parametrize("path", PAGES)
def test_no_page_has_inline_scripts_or_styles(client: TestClient, path: str) -> None:
    text = client.get(path).text
    assert "<style" not in text
    assert " style=" not in text
    assert " onclick=" not in text
    assert all("src=" in part.split(">")[0] for part in text.split("<script")[1:])


def test_pages_of_a_group_and_of_a_rebalance_show_audits(tmp_path: Path, settings: Dashboard) -> None:
    write_audited_story(tmp_path)
    with TestClient(create_app(tmp_path, settings)) as client:
        group = client.get("/group?cluster=c1&group=orders").text
        shown = ["Audits", "stale_metadata", "It is so with fewer queues.", "contradicted by 3 generations since"]
        assert [text for text in shown if text not in group] == []
        rebalance = client.get(f"/rebalance?id={SECOND}").text
        shown = ["Queues that differ", "orders-1", "missing", "nobody", "the leader, or a member, knew another number"]
        assert [text for text in shown if text not in rebalance] == []
        assert "No queue differs." in client.get(f"/rebalance?id={FIRST}").text
        (audit,) = client.get("/api/v1/audits?verdict=differs&since=0").json()["rows"]
        assert (audit["rebalance_id"], audit["differing"][0]["expected"]) == (SECOND, ["a"])
        csv = client.get("/api/v1/audits?since=0&format=csv").text
        assert len(csv.splitlines()) == 3


def write_costs(root: Path) -> None:
    """Let a queue move twice: the first time nothing is known of its messages."""
    second = {"repeated_messages": 1_200, "repeated_estimated_messages": 34, "waiting_messages": 5_678}
    third = {"repeated_estimated_messages": 56}
    history = Journal()
    happened = [
        (0, assigned(0, "a", 0)),
        (10_000, released(0, "a", 10_000)),
        (10_000, assigned(0, "b", 10_000, generation=2, **second)),
        (10_000, stable(1, 2, 10_000)),
    ]
    rows = [
        rebalance("r1", 0, "group_created", None),
        rebalance("r2", 10_000, "member_left", "a", **second),
        rebalance("r3", 20_000, "member_left", "a", **third),
    ]
    store(root, rows, [history.change(at, body, group="orders") for at, body in happened])


def test_pages_lists_and_data_have_the_cost_in_messages(tmp_path: Path, settings: Dashboard) -> None:
    write_costs(tmp_path)
    about = '<abbr title="estimated">~</abbr>'
    cells = ["Messages read twice", f"1,200 + {about}34", "Messages that waited", "5,678"]
    with TestClient(create_app(tmp_path, settings)) as client:
        for path in ("/rebalances", "/group?cluster=c1&group=orders", "/rebalance?id=r2"):
            text = client.get(path).text
            assert [one for one in cells if one not in text] == []
        # Of the queue that moved, as of the whole rebalance.
        assert client.get("/rebalance?id=r2").text.count(f"1,200 + {about}34") == 2
        facts = " ".join(client.get("/rebalance?id=r1").text.split())
        assert '<dt>Messages that waited</dt><dd><span class="none">–</span></dd>' in facts
        rows = client.get("/api/v1/rebalances?since=0&sort=-repeated_messages").json()["rows"]
        assert [row["rebalance_id"] for row in rows] == ["r2", "r3", "r1"]
        assert [row["waiting_messages"] for row in rows] == [5_678, None, None]
        head, *lines = client.get("/api/v1/rebalances?since=0&format=csv").text.splitlines()
        csv = [dict(zip(head.split(","), line.split(","), strict=False)) for line in lines]
        assert [row["rebalance_id"] for row in csv] == ["r3", "r2", "r1"]
        assert {"repeated_messages", "repeated_estimated_messages", "waiting_messages"} < csv[0].keys()
        (moved,) = client.get("/api/v1/rebalances/r2").json()["moves"]["computed"]
        assert (moved["repeated_messages"], moved["waiting_messages"]) == (1_200, 5_678)


def test_lists_without_any_cost_have_no_column_of_it(client: TestClient) -> None:
    for path in ("/rebalances", "/group?cluster=c1&group=orders"):
        assert "Messages" not in client.get(path).text


@pytest.mark.parametrize("path", [*PAGES, "/questions", "/questions/most-rebalances"])
def test_a_page_refuses_parameters_that_it_does_not_take_or_that_come_twice(client: TestClient, path: str) -> None:
    sign = "&" if "?" in path else "?"
    assert client.get(f"{path}{sign}colour=red").status_code == 400
    name = path.split("?")[1].split("=")[0] if "?" in path else "q"
    answer = client.get(f"{path}{sign}{name}=x&{name}=y")
    assert answer.status_code == 400
    assert "is given more than once" in answer.text or "does not take" in answer.text


def test_a_filter_by_a_value_that_there_is_not_is_refused(client: TestClient) -> None:
    assert client.get("/findings?severity=bogus").status_code == 400
    assert "expected_differs" in client.get("/findings?open=true").text
    assert client.get("/findings?severity=any").status_code == 200


def test_a_group_may_be_called_any(client: TestClient) -> None:
    assert "Nothing fits these filters." in client.get("/rebalances?group_id=any").text
