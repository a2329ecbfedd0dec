"""The page of a member shows its sessions and queues in all of its groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.pages import member_page as shown
from dashboard.pages.member_page import member_page
from dashboard.reading.questions import Reading
from streaming.settings.model import Dashboard
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.errors import NotFoundError
from streaming.tables.schema import ASSIGNMENTS, MEMBERS, Row
from streaming.tables.writer import Mark

T0 = 1_767_225_600_000
GROUPS, ENDED = 130, 20


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, settings: Dashboard) -> Reading:
    """A member in 130 groups, two queues in each; in the 20 that it joined last its session has ended."""
    root: Path = tmp_path_factory.mktemp("member")
    members: list[Row] = []
    spans: list[Row] = []
    for number in range(GROUPS):
        group = {"cluster": f"c{number % 2}", "group_id": f"g{number:03}", "member_id": "m"}
        ended = T0 + 1_000_000 if number >= GROUPS - ENDED else None
        members.append(group | {"address": f"h{number % 3}", "joined_at": T0 + number, "left_at": ended})
        spans += [
            group
            | {"topic": "t", "queue_id": queue, "origin": "computed", "generation": 1, "rebalance_id": "r"}
            | {"valid_from": T0 + number, "valid_to": ended, "inferred": False}
            for queue in range(2)
        ]
    # The same names of another cluster and group are not the member's.
    spans.append(spans[0] | {"cluster": "c1", "queue_id": 9})
    for table, rows in ((MEMBERS, members), (ASSIGNMENTS, spans)):
        DeltaRsTable(root, table).append(to_arrow(table, rows), Mark("job", 1))
    return Reading.of(root, settings)


def test_counts_are_of_all_sessions(many: Reading) -> None:
    found = member_page(many, "m", "")
    assert (found["session_count"], len(found["sessions"])) == (GROUPS, shown.SESSIONS)
    assert (found["groups"], found["current"]) == (GROUPS, GROUPS - ENDED)
    assert found["hosts"] == ["h0", "h1", "h2"]


def test_queues_are_those_of_the_groups_that_it_joined_last_and_is_in(many: Reading) -> None:
    found = member_page(many, "m", "")
    assert (found["searched"], found["held_count"]) == (shown.GROUPS, 2 * shown.GROUPS)
    assert {row["group_id"] for row in found["held"]} == {f"g{number:03}" for number in range(10, GROUPS - ENDED)}
    assert found["held"][0]["queue"] == "t-0"
    assert found["data"]["held"] == "/api/v1/assignments?member_id=m&open=yes&limit=10000"


def test_a_cluster_bounds_it(many: Reading) -> None:
    found = member_page(many, "m", "c0")
    assert (found["groups"], found["held_count"]) == (GROUPS // 2, 2 * found["current"])


def test_a_member_without_a_session_is_not_found(many: Reading) -> None:
    with pytest.raises(NotFoundError):
        member_page(many, "nobody", "")
