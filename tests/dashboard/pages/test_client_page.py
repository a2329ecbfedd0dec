"""The pages of a client and of a host show its sessions under all member ids."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboard.app import create_app
from dashboard.pages.client_page import client_page
from dashboard.reading.questions import Reading
from dashboard.reading.time_range import TimeRange
from streaming.settings.model import Dashboard
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.errors import NotFoundError
from streaming.tables.schema import MEMBERS, REBALANCES, Row
from streaming.tables.writer import Mark

T0 = 1_767_225_600_000

ALL_TIMES = TimeRange(0, 1, is_chosen=False)


def session(number: int, client: str, group: str = "g", **more: object) -> Row:
    of_it = {"cluster": "c", "group_id": group, "member_id": f"{client}-{number}", "client": client, "address": "h1"}
    times = {"joined_at": T0 + 1_000 * number, "left_at": T0 + 1_000 * number + 500, "left_reason": "expired"}
    return {**of_it, **times, **more}


def rebalance(number: int, *causes: tuple[str, str | None], group: str = "g") -> Row:
    triggers = [{"kind": kind, "member_id": f"{client}-{number}", "client": client} for kind, client in causes]
    return {
        "rebalance_id": f"r{number}",
        "cluster": "c",
        "group_id": group,
        "event_time": T0 + 1_000 * number,
        "trigger": causes[0][0],
        "triggers": triggers,
        "queues_moved": 2,
        "outage_min_ms": 1_000,
        "outage_max_ms": 1_500,
        "members_before": 1,
        "members_after": 2,
        "status": "completed",
        "generation": number,
    }


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory, settings: Dashboard) -> Reading:
    """A client with fourteen sessions, each under an id of its own, beside a quiet one; and one of another host."""
    root: Path = tmp_path_factory.mktemp("client")
    members = [session(number, "loop", client_version="V5", language="JAVA") for number in range(14)]
    members += [session(20, "quiet", left_at=None, left_reason=None), session(21, "far", address="h2")]
    rebalances = [rebalance(0, ("group_created", "loop"), ("member_joined", "loop"))]
    rebalances += [rebalance(number, ("session_expired", "loop")) for number in range(1, 14)]
    rebalances += [
        rebalance(20, ("member_joined", "quiet"), ("session_expired", "loop")),
        rebalance(21, ("member_joined", "far")),
        # A client of the same name in a group to which this one never belonged.
        rebalance(22, ("member_joined", "loop"), group="other"),
    ]
    for table, rows in ((MEMBERS, members), (REBALANCES, rebalances)):
        DeltaRsTable(root, table).append(to_arrow(table, rows), Mark("job", 1))
    return Reading.of(root, settings)


def test_a_clients_sessions_and_rebalances_are_counted_over_its_member_ids(reading: Reading) -> None:
    found = client_page(reading, "client", "loop", "", ALL_TIMES)
    assert (found["session_count"], found["member_ids"], found["open"], found["groups"]) == (14, 14, 0, 1)
    assert found["ended"] == [("expired", 14)]
    assert (found["rebalance_count"], found["queues_moved"]) == (14, 28)
    assert found["cost"].startswith("14 rebalances: nobody read queues for 14.0 s to 21.0 s added up")
    assert (found["hosts"], found["client_versions"]) == (["h1"], ["JAVA V5"])
    assert [row["rebalance_id"] for row in found["rebalances"][:2]] == ["r20", "r13"]


def test_a_hosts_clients_are_listed_with_what_each_caused(reading: Reading) -> None:
    found = client_page(reading, "address", "h1", "c", ALL_TIMES)
    assert found["clients"] == [
        {"client": "loop", "sessions": 14, "open": 0, "expired": 14, "rebalances": 14},
        {"client": "quiet", "sessions": 1, "open": 1, "expired": 0, "rebalances": 1},
    ]
    assert (found["rebalance_count"], found["open"]) == (14, 1)


def test_missing_clients_are_not_found(reading: Reading) -> None:
    with pytest.raises(NotFoundError, match="there is no client nope"):
        client_page(reading, "client", "nope", "", ALL_TIMES)
    with pytest.raises(NotFoundError, match="there is no host h1"):
        client_page(reading, "address", "h1", "another", ALL_TIMES)


def test_a_range_leaves_out_what_was_at_other_times(reading: Reading) -> None:
    at_ms = T0 + 13_000
    found = client_page(reading, "client", "loop", "", TimeRange(at_ms, at_ms + 1))
    assert [row["rebalance_id"] for row in found["rebalances"]] == ["r13"]
    assert found["session_count"] == 1


def test_the_page_names_the_versions_of_the_client(reading: Reading, settings: Dashboard) -> None:
    with TestClient(create_app(reading.tables.root, settings)) as client:
        lead = client.get("/client?client=loop").text.partition('class="lead"')[2].partition("</p>")[0]
    assert re.findall(r"<code>.*?</code>", lead) == ['<code><bdi class="id">JAVA V5</bdi></code>']
