"""Burrow's routes over the story."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from fastapi.testclient import TestClient

from dashboard.app import create_app
from streaming.settings.model import Dashboard
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import GROUPS, QUEUE_PROGRESS
from streaming.tables.writer import Mark
from tests.streaming.tables.journals import T0
from tests.streaming.tables.signs import leave_living_sign
from tests.streaming.views.story import write_story


def test_clusters_consumers_and_topics_are_listed(client: TestClient) -> None:
    assert client.get("/v3/kafka").json()["clusters"] == ["c1", "c2"]
    assert client.get("/v3/kafka/c1/consumer").json()["consumers"] == ["orders", "twin"]
    assert client.get("/v3/kafka/c1/topic").json()["topics"] == []
    assert client.get("/v3/kafka/c1/topic/orders/consumers").json()["consumers"] == ["orders"]
    assert client.get("/v3/kafka/c1").json()["error"] is False


def test_a_consumer_has_its_status_and_the_owners_that_it_reports(client: TestClient) -> None:
    status = client.get("/v3/kafka/c1/consumer/orders/status").json()["status"]
    assert (status["status"], status["group"], status["partitions"]) == ("WARN", "orders", [])
    full = client.get("/v3/kafka/c1/consumer/orders/lag").json()["status"]
    assert [(part["topic"], part["partition"], part["owner"]) for part in full["partitions"]] == [("orders", 1, "h2")]
    assert (full["totallag"], full["maxlag"], full["partitions"][0]["current_lag"]) == (0, None, None)
    topics = client.get("/v3/kafka/c1/consumer/orders").json()["topics"]
    assert [part["partition"] for part in topics["orders"]] == [1]


def moved(queue: int, at: int, committed: int | None, end: int | None) -> dict[str, object]:
    """Return a row of ``queue_progress``: what orders had committed in a queue then, and where the queue ended."""
    fields = {"cluster": "c1", "group_id": "orders", "topic": "orders", "queue_id": queue, "event_time": T0 + at}
    lag = None if committed is None or end is None else end - committed
    offsets = {"committed_offset": committed, "committed_at": None if committed is None else T0 + at + 5}
    return dict.fromkeys(QUEUE_PROGRESS.names) | fields | offsets | {"end_offset": end, "end_at": T0 + at, "lag": lag}


def test_a_consumer_has_the_lags_that_the_tables_have(tmp_path: Path, settings: Dashboard) -> None:
    write_story(tmp_path)
    offsets = [moved(0, 80_000, 90, 97), moved(1, 80_000, 40, 45), moved(1, 90_000, 42, 60), moved(2, 90_000, None, 7)]
    DeltaRsTable(tmp_path, QUEUE_PROGRESS).append(to_arrow(QUEUE_PROGRESS, offsets), Mark("offsets", 0))
    with TestClient(create_app(tmp_path, settings)) as client:
        full = client.get("/v3/kafka/c1/consumer/orders/lag").json()["status"]
        short = client.get("/v3/kafka/c1/consumer/orders/status").json()["status"]
        topics = client.get("/v3/kafka/c1/consumer/orders").json()["topics"]
    assert [(part["partition"], part["owner"], part["current_lag"]) for part in full["partitions"]] == [
        (0, "", 7),
        (1, "h2", 18),
        (2, "", None),
    ]
    newest = {"offset": 42, "timestamp": T0 + 90_005, "lag": 18}
    assert [part["end"] for part in full["partitions"]][1:] == [newest, None]
    assert (full["totallag"], full["maxlag"]["partition"]) == (25, 1)
    assert (short["totallag"], short["maxlag"]["current_lag"], short["partitions"]) == (25, 18, [])
    assert [(part["offsets"], part["current-lag"]) for part in topics["orders"]][1] == ([newest], 18)


def test_a_group_that_only_commits_is_a_consumer_with_its_lag(tmp_path: Path, settings: Dashboard) -> None:
    empty = {"cluster": "c1", "group_id": "loader", "system": "kafka", "state": "empty", "members": 0, "queues": 0}
    write_story(tmp_path)
    DeltaRsTable(tmp_path, GROUPS).append(to_arrow(GROUPS, [dict.fromkeys(GROUPS.names) | empty]), Mark("more", 0))
    rows = [moved(0, 80_000, 90, 97) | {"group_id": "loader"}, moved(1, 90_000, None, None) | {"group_id": "gone"}]
    DeltaRsTable(tmp_path, QUEUE_PROGRESS).append(to_arrow(QUEUE_PROGRESS, rows), Mark("offsets", 0))
    with TestClient(create_app(tmp_path, settings)) as client:
        assert client.get("/v3/kafka/c1/consumer").json()["consumers"] == ["loader", "orders", "twin"]
        assert client.get("/v3/kafka/c1/topic/orders/consumers").json()["consumers"] == ["loader", "orders"]
        status = client.get("/v3/kafka/c1/consumer/loader/lag").json()["status"]
    assert (status["status"], status["partition_count"], status["totallag"], status["members"]) == ("OK", 1, 7, 0)


def test_total_lag_has_the_queues_that_have_not_moved_for_hours(tmp_path: Path, settings: Dashboard) -> None:
    empty = {"cluster": "c1", "group_id": "loader", "system": "kafka", "state": "empty", "members": 0, "queues": 0}
    write_story(tmp_path)
    DeltaRsTable(tmp_path, GROUPS).append(to_arrow(GROUPS, [dict.fromkeys(GROUPS.names) | empty]), Mark("more", 0))
    rows = [moved(0, 0, 4, 40), moved(1, 7_200_000, 8, 20)]
    rows = [row | {"group_id": "loader"} for row in rows]
    DeltaRsTable(tmp_path, QUEUE_PROGRESS).append(to_arrow(QUEUE_PROGRESS, rows), Mark("offsets", 0))
    with TestClient(create_app(tmp_path, settings)) as client:
        status = client.get("/v3/kafka/c1/consumer/loader/lag").json()["status"]
        listed = client.get("/api/v1/progress", params={"cluster": "c1", "group_id": "loader"}).json()["rows"]
    assert (status["totallag"], status["partition_count"]) == (48, 2)
    assert [row["lag"] for row in listed] == [36, 12]


def test_deleted_groups_and_commits_are_no_consumers_of_a_topic(tmp_path: Path, settings: Dashboard) -> None:
    write_story(tmp_path)
    names = ("gone", "elsewhere", "polled", "again")
    there = [
        {"cluster": "c1", "group_id": name, "system": "kafka", "state": "empty"} for name in ("elsewhere", "again")
    ]
    full = [dict.fromkeys(GROUPS.names) | row for row in there]
    DeltaRsTable(tmp_path, GROUPS).append(to_arrow(GROUPS, full), Mark("more", 0))
    rows = [moved(5, 10_000, 3, 4) | {"group_id": name} for name in names]
    # The last row of a queue whose commit was deleted has no offsets; a group that polls lack has no last row.
    rows += [moved(5, 80_000, None, None) | {"group_id": name} for name in ("gone", "elsewhere", "again")]
    rows.append(moved(5, 90_000, 1, 4) | {"group_id": "again"})
    DeltaRsTable(tmp_path, QUEUE_PROGRESS).append(to_arrow(QUEUE_PROGRESS, rows), Mark("offsets", 0))
    with TestClient(create_app(tmp_path, settings)) as client:
        assert client.get("/v3/kafka/c1/topic/orders/consumers").json()["consumers"] == ["again", "orders"]


def test_missing_items_give_burrows_error(client: TestClient) -> None:
    for path in ("nowhere", "nowhere/consumer", "c1/consumer/nobody", "c1/consumer/nobody/status", "nowhere/topic"):
        answer = client.get(f"/v3/kafka/{path}")
        assert answer.status_code == 404
        assert answer.json()["error"] is True


def test_names_with_slashes_line_breaks_and_parts_of_the_routes_are_found(tmp_path: Path, settings: Dashboard) -> None:
    breaks = ["a\nb", "\n", "a\n", "\r\nx", "a\x85b", "a\u2028b", "x\n/lag"]
    groups = {"c": ["x", "x/lag", "x/status", "/", "日 本", "a%2Fb", "lag", *breaks], "c\n": ["y", "y\n"]}
    groups["c/d"] = ["y", "consumer/z"]
    rows = [
        {"cluster": cluster, "group_id": group, "system": "kafka", "state": "stable"}
        for cluster, names in groups.items()
        for group in names
    ]
    DeltaRsTable(tmp_path, GROUPS).append(to_arrow(GROUPS, rows), Mark("job", 1))
    leave_living_sign(tmp_path, *groups)
    with TestClient(create_app(tmp_path, settings)) as client:
        assert client.get("/v3/kafka").json()["clusters"] == sorted(groups)
        for cluster, names in groups.items():
            folder = f"/v3/kafka/{quote(cluster, safe='')}"
            assert client.get(folder).status_code == 200
            assert client.get(f"{folder}/topic").status_code == 200
            assert sorted(client.get(f"{folder}/consumer").json()["consumers"]) == sorted(names)
            for group in names:
                address = f"{folder}/consumer/{quote(group, safe='')}"
                assert client.get(address).json()["topics"] == {}
                for more in ("status", "lag"):
                    status = client.get(f"{address}/{more}").json()["status"]
                    assert (status["cluster"], status["group"]) == (cluster, group)
        # A client that does not encode a slash reaches the group all the same, unless its name ends like a route.
        assert client.get("/v3/kafka/c%2Fd/consumer/consumer/z/lag").json()["status"]["group"] == "consumer/z"
        assert client.get("/v3/kafka/c/consumer/x/lag").json()["status"]["group"] == "x"
        for wrong in ("%ff", "%00", "%", "%zz", "%2F%2F", "%ed%a0%80"):
            assert client.get(f"/v3/kafka/{wrong}/consumer").status_code == 404
            assert client.get(f"/v3/kafka/c/consumer/{wrong}/lag").status_code == 404
