"""The input of a group from one batch: what counts, what came late, what is repeated."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.udfs.shard.plain_group import PlainLogic
from tests.udfs.shard.sessions import closed, late, opened
from tests.udfs.shard.shard_script import CLUSTER, T0, Cluster, beat, clock, count, join, leave
from udfs.model.events import AnyEvent, TopicQueues
from udfs.model.observations import ReadOffsets
from udfs.packets.packet import carry_event, read_event
from udfs.shard.backlog import BatchInput
from udfs.shard.deduplication import DedupStore
from udfs.shard.due_input import may_bring_back, sort_due, topics_in, unpacked_heartbeat
from udfs.shard.state import Record


def test_a_late_event_is_listed_and_marked(cluster: Cluster, logic: PlainLogic) -> None:
    cluster.batch(join("m", 0), leave("m", 100), clock(200))
    rows = cluster.batch(join("n", 99))
    assert late(rows) == [("g", "late")]
    assert [due.late for due in logic.inputs[-1].events] == [True]


def test_an_event_behind_the_clock_is_not_late_if_its_group_has_applied_nothing_newer(
    cluster: Cluster, logic: PlainLogic
) -> None:
    cluster.batch(join("m", 0), leave("m", 100), clock(200))
    rows = cluster.batch(join("n", 100))
    assert late(rows) == []
    assert opened(rows) == [("n", 100)]


def test_a_late_heartbeat_of_a_live_member_only_counts_for_that_member(cluster: Cluster, logic: PlainLogic) -> None:
    cluster.batch(join("m", 0), join("n", 0), clock(1))
    cluster.batch(leave("n", 40_000), clock(44_000))
    assert late(cluster.batch(beat("m", 30_000))) == []  # older than n's leaving, and it counts
    assert closed(cluster.batch(clock(75_000))) == []
    assert closed(cluster.batch(clock(75_001))) == [("m", 75_000, "expired")]


def test_a_late_heartbeat_that_proves_an_expiry_wrong_reaches_the_group(cluster: Cluster, logic: PlainLogic) -> None:
    cluster.batch(join("m", 0), clock(50_000))
    rows = cluster.batch(beat("m", 44_000))
    assert late(rows) == [("g", "late")]
    [due] = logic.inputs[-1].events
    assert (due.late, due.event.event_time - T0, due.event.member_id) == (True, 44_000, "m")


def test_a_late_heartbeat_from_before_a_members_second_session_reaches_the_group(
    cluster: Cluster, logic: PlainLogic
) -> None:
    cluster.batch(join("m", 0), clock(50_000))
    cluster.batch(beat("m", 60_000), clock(60_001))
    cluster.batch(beat("m", 44_000))
    assert [(due.late, due.event.event_time - T0) for due in logic.inputs[-1].events] == [(True, 44_000)]


def test_a_repeated_event_that_comes_late_is_a_repeat(cluster: Cluster, logic: PlainLogic) -> None:
    cluster.batch(join("m", 0), leave("m", 100), clock(200))
    assert cluster.batch(join("m", 0)) == []


def batch_input(
    *events: AnyEvent, heartbeats: list[tuple[str, int]] | None = None, own_topics: set[str] | None = None
) -> BatchInput:
    carried = [(event, carry_event(event, "s", "p")) for event in events]
    return BatchInput(
        batch=0,
        clock_before=T0 + 200,
        clock=T0 + 900,
        events=[pair for pair in carried if not isinstance(pair[0], TopicQueues)],
        topic_changes=[pair for pair in carried if isinstance(pair[0], TopicQueues)],
        own_topics=own_topics or set(),
        heartbeats=heartbeats or [],
        progress={},
        offsets=ReadOffsets(),
    )


def due(
    given: BatchInput,
    record: Record | None = None,
    last_heartbeats: dict[str, int] | None = None,
    heartbeats: dict[str, list[int]] | None = None,
) -> tuple[list[tuple[str, int, bool]], dict[str, list[int]]]:
    """Return the events as (type, time, late), and the heartbeats that count."""
    record = record or Record("g", "kafka", T0 + 100, None, b"")
    heartbeats = heartbeats or {}
    found = sort_due(
        CLUSTER, record, last_heartbeats or {}, given, heartbeats, [], DedupStore(b"", None, 600_000).of(7)
    )
    events = [
        (type(due_event.event).__name__, due_event.event.event_time - T0, due_event.late) for due_event in found.events
    ]
    assert set(found.late_rows) == {due_event.event_id for due_event in found.events if due_event.late}
    return events, {member: [at - T0 for at in times] for member, times in heartbeats.items()}


@pytest.mark.parametrize(
    ("at", "clock_before", "last_applied", "is_late"),
    [
        (99, 200, 100, True),
        (100, 200, 100, False),
        (99, 99, 100, False),
        (99, None, 100, False),
        (99, 200, None, False),
    ],
)
def test_late_is_what_is_older_than_the_clock_before_and_than_what_was_applied(
    at: int, clock_before: int | None, last_applied: int | None, is_late: bool
) -> None:
    given = batch_input(leave("m", at))
    given = given._replace(clock_before=None if clock_before is None else T0 + clock_before)
    record = Record("g", "kafka", None if last_applied is None else T0 + last_applied, None, b"")
    assert due(given, record) == ([("MemberLeft", at, is_late)], {})


def test_a_count_is_late_only_for_groups_that_subscribe_to_its_topic() -> None:
    assert due(batch_input(count("t", 4, 50), own_topics={"t"}))[0] == [("TopicQueues", 50, True)]
    assert due(batch_input(count("t", 4, 50), own_topics={"u"}))[0] == [("TopicQueues", 50, False)]


def test_events_come_by_time_and_at_one_time_in_the_order_of_the_contract() -> None:
    events = [join("m", 300), leave("m", 300), count("t", 4, 300), join("n", 250)]
    assert due(batch_input(*events))[0] == [
        ("MemberJoined", 250, False),
        ("TopicQueues", 300, False),
        ("MemberLeft", 300, False),
        ("MemberJoined", 300, False),
    ]


def test_heartbeats_that_the_batch_brought_count_once_in_ascending_order_behind_those_that_are_there() -> None:
    given = batch_input(
        heartbeats=[("m", T0 + 300), ("m", T0 + 250), ("m", T0 + 300), ("m", T0 + 240), ("n", T0 + 260)]
    )
    events, heartbeats = due(given, last_heartbeats={"m": T0 + 220}, heartbeats={"m": [T0 + 245]})
    assert events == []
    assert heartbeats == {"m": [245, 250, 300], "n": [260]}


def test_a_heartbeat_older_than_what_was_applied_is_an_event_of_its_own_unless_its_member_has_been_alive_since() -> (
    None
):
    events, heartbeats = due(
        batch_input(heartbeats=[("m", T0 + 50), ("n", T0 + 60)]), last_heartbeats={"m": T0 + 70, "n": T0 + 50}
    )
    assert events == [("Heartbeat", 50, True)]
    assert heartbeats == {"n": [60]}


def test_a_heartbeat_that_travelled_packed_becomes_an_event_with_its_time_and_member() -> None:
    heartbeat, carried = unpacked_heartbeat(CLUSTER, Record("g", "kafka", None, None, b""), "m", T0 + 5)
    assert heartbeat == read_event(carried) == beat("m", 5)
    assert (carried.source, carried.position) == ("packed", "packed")


SNAPSHOT = {
    "type": "group_snapshot",
    "schema_version": 1,
    "event_time": T0,
    "system": "kafka",
    "cluster": "c",
    "group": "g",
}


@pytest.mark.parametrize(
    ("event", "brings_back", "topics"),
    [
        (join("m", 0), True, set()),
        (join("m", 0, subscriptions=("t",)), False, {"t"}),
        (beat("m", 0, subscriptions=()), False, set()),
        (leave("m", 0), False, set()),
        ({**SNAPSHOT, "members": [{"member_id": "m"}, {"member_id": "n", "subscriptions": ["t"]}]}, True, {"t"}),
        ({**SNAPSHOT, "members": [{"member_id": "n", "subscriptions": ["t"]}]}, False, {"t"}),
        ({**SNAPSHOT, "assignments": {"m": [{"topic": "u", "queue_id": 0}]}}, False, {"u"}),
        (
            {
                **SNAPSHOT,
                "type": "assignment_reported",
                "member_id": "m",
                "queues": [{"topic": "u", "queue_id": 0}, {"topic": "t", "queue_id": 0}],
            },
            False,
            {"t", "u"},
        ),
    ],
)
def test_topics_of_an_event_are_those_that_it_names_and_all_where_a_member_may_come_back(
    event: Any, brings_back: bool, topics: set[str]
) -> None:
    event = msgspec.convert(event, AnyEvent) if isinstance(event, dict) else event
    assert (may_bring_back(event), topics_in(event)) == (brings_back, topics)
