"""The page of a group shows what the story's tables hold of it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboard.app import create_app
from dashboard.pages.group_page import group_page, queue_owners
from dashboard.reading import group_timeline
from dashboard.reading.questions import Reading
from dashboard.reading.time_range import TimeRange
from streaming.settings.model import Dashboard
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.errors import NotFoundError
from streaming.tables.schema import REBALANCES, TABLES, Row
from streaming.tables.writer import Mark
from tests.streaming.tables.journals import T0
from tests.streaming.views.rebalancing_story import WAITS, write_rebalancing
from tests.streaming.views.story import FIRST, SECOND, THIRD, rebalance, write_story
from tests.streaming.views.test_progress import moved, write


def test_members_queues_findings_and_rebalances_are_the_groups(reading: Reading) -> None:
    found = group_page(reading, "c1", "orders", TimeRange.preset(reading))
    (member,) = found["members"]
    assert (member["member_id"], member["host"], member["computed_text"], member["reported_text"]) == (
        "b",
        "h2",
        "orders(0,1)",
        "orders(1)",
    )
    assert [(row["queue"], row["computed"], row["reported"], row["agrees"]) for row in found["queues"]] == [
        ("orders-0", "b", None, False),
        ("orders-1", "b", "b", True),
    ]
    assert [row["kind"] for row in found["findings"]] == ["expected_differs"]
    assert [row["rebalance_id"] for row in found["rebalances"]] == [THIRD, SECOND, FIRST]
    assert [row["member_id"] for row in found["sessions"]] == ["b", "a"]
    assert sum(row["rebalances"] for row in found["hours"]) == 3


def test_a_timeline_that_is_cut_is_marked(
    story_tables: Path, settings: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_timeline, "MAX_SPANS", 1)
    with TestClient(create_app(story_tables, settings)) as client:
        assert "only the newest 1 spans" not in page_of(client, "orders")
        monkeypatch.setattr(group_timeline, "MAX_SPANS", 0)
    with TestClient(create_app(story_tables, settings)) as client:
        assert "only the newest 0 spans" in page_of(client, "orders")


def test_a_timeline_with_more_rebalances_than_marks_is_marked(
    story_tables: Path, settings: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TestClient(create_app(story_tables, settings)) as client:
        assert "only the newest" not in page_of(client, "orders")
    monkeypatch.setattr(group_timeline, "MAX_MARKS", 2)
    with TestClient(create_app(story_tables, settings)) as client:
        assert re.search("only the newest 2 of <a [^>]*>3 rebalances</a>", page_of(client, "orders"))


def test_a_group_of_another_cluster_is_not_found(reading: Reading) -> None:
    with pytest.raises(NotFoundError):
        group_page(reading, "c2", "orders", TimeRange.preset(reading))


def test_a_queue_that_is_shared_has_a_row_for_each_owner() -> None:
    span = {"topic": "t", "broker": None, "queue_id": -1, "origin": "computed", "valid_from": 1}
    rows = queue_owners([{**span, "member_id": "b"}, {**span, "member_id": "a"}])
    assert [(row["computed"], row["agrees"]) for row in rows] == [("a", None), ("b", None)]
    (row,) = queue_owners([{**span, "member_id": "a", "origin": "reported"}])
    assert (row["computed"], row["reported"], row["agrees"]) == (None, "a", None)


@pytest.fixture(scope="module")
def rebalancing(tmp_path_factory: pytest.TempPathFactory, settings: Dashboard) -> Iterator[TestClient]:
    root = tmp_path_factory.mktemp("rebalancing")
    write_rebalancing(root)
    with TestClient(create_app(root, settings)) as client:
        yield client


def page_of(client: TestClient, group: str) -> str:
    return " ".join(client.get("/group", params={"cluster": "c1", "group": group}).text.split())


def test_the_library_is_shown_beside_the_strategy(rebalancing: TestClient) -> None:
    assert '<bdi class="id">kafka-python</bdi>' in page_of(rebalancing, "classic")
    rows = rebalancing.get("/api/v1/groups?library=kafka-python").json()["rows"]
    assert [row["library"] for row in rows] == ["kafka-python"] * 5


def test_while_a_group_rebalances_its_lag_is_not_reliable(rebalancing: TestClient) -> None:
    text = page_of(rebalancing, "classic")
    assert "The group rebalances now (preparing_rebalance): its lag is not reliable" in text
    assert '4<abbr title="not reliable">?</abbr>' in text
    (row,) = rebalancing.get("/api/v1/progress?cluster=c1&group_id=classic").json()["rows"]
    assert (row["lag"], row["lag_reliable"]) == (4, False)
    assert "its lag is not reliable" not in page_of(rebalancing, "polled")
    of_each = [
        ("Members and owners are those before it" in page_of(rebalancing, name)) for name in ("classic", "newer")
    ]
    assert of_each == [False, True]


def test_members_that_wait_are_listed(rebalancing: TestClient) -> None:
    text = page_of(rebalancing, "newer")
    assert [wait in text for wait in WAITS.split("; ")] == [True, True]
    assert "<dt>Group epoch</dt><dd>3</dd>" in text
    assert "Who waits for whom" not in page_of(rebalancing, "classic")


def test_members_of_a_group_with_epochs_show_theirs(rebalancing: TestClient) -> None:
    text = page_of(rebalancing, "newer")
    assert ">Epoch</th>" in text
    assert '<td class="k-count wide">2</td>' in text
    (row,) = rebalancing.get("/api/v1/groups?group_id=newer").json()["rows"]
    assert row["member_epochs"] == [{"member_id": "old", "epoch": 2}]
    assert ">Epoch</th>" not in page_of(rebalancing, "classic")


def test_members_of_a_group_that_reconciles_are_those_of_now(rebalancing: TestClient) -> None:
    text = page_of(rebalancing, "listed")
    assert "Queues with their owners, the timeline, and the downloads of members, are those before it" in text
    assert ["member=old" in text, "member=young" in text] == [True, False]  # it has no page yet
    assert ">Target</th>" in text
    assert text.count("orders(1)") == 1  # young is to get this queue
    (row,) = rebalancing.get("/api/v1/groups?group_id=listed").json()["rows"]
    assert [member["state"] for member in row["reconciling"]] == ["unrevoked", "unreleased"]
    assert ">Target</th>" not in page_of(rebalancing, "classic")
    # A group with this many members lists none of them: their targets are not known.
    assert ">Target</th>" not in page_of(rebalancing, "newer")


def test_a_group_that_only_polls_show_is_marked(rebalancing: TestClient) -> None:
    assert "Known by admin calls alone (polls)" in page_of(rebalancing, "polled")
    assert "admin calls" not in page_of(rebalancing, "classic")


def test_the_page_of_a_rebalance_has_its_phases_and_links_the_other_part(rebalancing: TestClient) -> None:
    first = " ".join(rebalancing.get("/rebalance?id=r1").text.split())
    assert "Phases: join 1.2 s, sync 300 ms; began " in first
    assert "part 1 of 2 of logical rebalance r1" in first
    assert '<a href="/rebalance?id=r2">generation 2</a>' in first
    assert '<a href="/rebalance?id=r1">generation 1</a>' in rebalancing.get("/rebalance?id=r2").text
    assert "join 1.2 s, sync 300 ms" in page_of(rebalancing, "classic")


def test_a_group_that_only_commits_has_a_page(tmp_path: Path, settings: Dashboard) -> None:
    write(tmp_path, TABLES["groups"], [{"system": "kafka", "state": "empty", "members": 0, "queues": 0}])
    write(tmp_path, TABLES["queue_progress"], [moved(0, 10, 5, 9)])
    with TestClient(create_app(tmp_path, settings)) as client:
        assert "group?cluster=c&amp;group=g" in client.get("/?state=empty").text
        assert "group?cluster=c&amp;group=g" not in client.get("/?state=stable").text
        assert "No member has been observed." in client.get("/group?cluster=c&group=g").text
        assert client.get("/group?cluster=c&group=other").status_code == 404


def test_a_streams_group_has_the_state_of_its_coordinator(tmp_path: Path, settings: Dashboard) -> None:
    waits = "m waits for subtopology 0-1 of other"
    row = {"system": "kafka", "state": "not_followed", "protocol": "streams", "members": 2, "generation": 3, "epoch": 3}
    write(tmp_path, TABLES["groups"], [row | {"assignment_epoch": 3, "waits": waits}])
    with TestClient(create_app(tmp_path, settings)) as client:
        page = client.get("/group?cluster=c&group=g").text
    assert '<span class="tag">reconciling (not_followed)</span>' in page
    assert waits in page


def test_downloads_have_what_is_shown_as_open(tmp_path: Path, settings: Dashboard) -> None:
    group = {"cluster": "c", "group_id": "g"}
    rows: dict[str, list[Row]] = {
        "groups": [group | {"system": "kafka", "state": "stable", "last_rebalance_at": T0}],
        "assignments": [
            group
            | {"topic": "t", "queue_id": queue, "member_id": f"m{begin}", "origin": "computed", "generation": 1}
            | {"rebalance_id": "r", "valid_from": T0 - 1_000 * begin, "inferred": False}
            | {"valid_to": T0 - 1_000 * begin + 1_000 if begin else None}
            for queue in range(180)
            for begin in range(7)
        ],
        "members": [
            group | {"member_id": f"m{number}", "joined_at": T0, "left_at": T0 + 1 if number else None}
            for number in range(6)
        ],
        "findings": [
            group
            | {"finding_id": f"f{number}", "kind": "odd", "severity": "warning", "message": "m", "advice": "a"}
            | {"evidence": [], "opened_at": T0, "closed_at": T0 + 1 if number else None}
            for number in range(6)
        ],
    }
    for name, some in rows.items():
        DeltaRsTable(tmp_path, TABLES[name]).append(to_arrow(TABLES[name], some), Mark("job", 1))
    with TestClient(create_app(tmp_path, settings)) as client:
        text = client.get("/group?cluster=c&group=g").text
        counts = {}
        for table in ("assignments", "members", "findings"):
            (link,) = {html.unescape(address) for address in re.findall(rf'"(/api/v1/{table}\?[^"]*format=csv)"', text)}
            counts[table] = len(client.get(link).text.splitlines()) - 1
    assert counts == {"assignments": 180, "members": 1, "findings": 1}


def test_a_rebalance_that_the_other_tables_have_yet_to_follow_is_announced(tmp_path: Path, settings: Dashboard) -> None:
    """Rebalances are written at once, what follows from them within ``job.materialize_interval_ms``."""
    write_story(tmp_path)
    with TestClient(create_app(tmp_path, settings)) as client:
        assert "in the list of rebalances already" not in page_of(client, "orders")
    later = rebalance("r9", 600_000, "member_left", "b", members_before=1)
    DeltaRsTable(tmp_path, REBALANCES).append(to_arrow(REBALANCES, [later]), Mark("job", 1))
    with TestClient(create_app(tmp_path, settings)) as client:
        assert "Generation 9 is in the list of rebalances already" in page_of(client, "orders")
