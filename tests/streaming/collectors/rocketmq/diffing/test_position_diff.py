"""Positions that members report: where they have come further, or begin again."""

from __future__ import annotations

import msgspec
import pytest

from streaming.collectors.rocketmq.diffing.position_diff import positions_of
from streaming.collectors.rocketmq.remoting.messages import (
    MessageQueue,
    ProcessQueue,
    QueueOffsets,
    RunningInfo,
    Subscription,
)
from tests.simulation.core_run import run_of
from tests.streaming.collectors.rocketmq.surveys import (
    ONE,
    TWO,
    Lists,
    Rounds,
    broker,
    config,
    connections,
    info,
    offsets,
    reports,
    route,
)
from tests.udfs.group.single_spans import SingleSpans
from udfs.model.events import AnyEvent, Clock, Progress
from udfs.model.spans import QueueAssigned

QUEUE = MessageQueue("t", "a", 0)
CACHED = {"cached_msg_count": 3}
PULLS = {QUEUE: QueueOffsets(70, 40, pull_offset=60)}


def at(position: int | None, *, queue: MessageQueue = QUEUE, dropped: bool = False, **cached: int) -> RunningInfo:
    """Make a report of a member that has consumed up to here."""
    state = ProcessQueue(commit_offset=position, dropped=dropped, last_pull_timestamp=1, **cached)
    return msgspec.structs.replace(info(), queues={queue: state})


def positions(events: list[AnyEvent]) -> list[tuple[int, int | None]]:
    """Return the queues whose position is reported."""
    reported = [
        queue for event in events if isinstance(event, Progress) for queue in event.queues if queue.position is not None
    ]
    assert all(queue.offset is None and not queue.moved for queue in reported)
    return [(queue.queue_id, queue.position) for queue in reported]


def test_a_position_is_reported_where_it_is_another_than_before() -> None:
    rounds = Rounds()
    assert positions(rounds.take(ONE, infos={"c1": at(7)})) == [(0, 7)]
    assert positions(rounds.take(ONE, infos={"c1": at(7)})) == []
    assert positions(rounds.take(ONE)) == []
    assert positions(rounds.take(ONE, infos={"c1": at(9)})) == [(0, 9)]
    assert positions(rounds.take(ONE, infos={"c1": at(4)})) == [(0, 4)]
    rounds.restart()
    assert positions(rounds.take(ONE, infos={"c1": at(4)})) == [(0, 4)]


def test_positions_of_a_new_owner_are_later_than_the_group_without_the_old_one() -> None:
    rounds = Rounds()
    rounds.take(TWO, infos={"c1": info(), "c2": at(9)}, offsets=offsets(q0=5))
    events = rounds.take(ONE, infos={"c1": at(6)}, offsets=offsets(q0=5))
    (report,) = reports(events)
    (progress,) = [event for event in events if isinstance(event, Progress)]
    assert positions(events) == [(0, 6)]
    assert progress.event_time > report.event_time


@pytest.mark.parametrize(
    ("why", "report", "expected"),
    [
        ("it has consumed all that it fetched", at(40), 40),
        ("it has consumed messages behind one that it works on", at(40, **CACHED), 57),
        ("all that it fetched is still to be consumed", at(40, cached_msg_count=20), 40),
        ("it has fetched more than the broker reports", at(40, cached_msg_count=30), 40),
        ("it is dropped", at(40, dropped=True), None),
        ("all queues of a broker", at(40, queue=MessageQueue("t", "a", -1)), None),
        ("no position", at(None), None),
        ("no position yet", at(-1), None),
        (
            "it reads some of the messages only",
            msgspec.structs.replace(at(40, **CACHED), subscriptions=(Subscription("t", "red || blue"),)),
            40,
        ),
        (
            "each member has offsets of its own",
            msgspec.structs.replace(at(40), properties={"messageModel": "BROADCASTING"}),
            None,
        ),
    ],
)
def test_up_to_where_a_member_has_consumed(why: str, report: RunningInfo, expected: int | None) -> None:
    assert positions_of(report, PULLS) == ({} if expected is None else {QUEUE: expected}), why


def test_behind_a_message_at_work_there_is_no_position_where_a_broker_does_not_report_pulls() -> None:
    assert positions_of(at(40, **CACHED), {}) == {QUEUE: 40}
    assert positions_of(at(40, **CACHED), {QUEUE: QueueOffsets(70, 40)}) == {QUEUE: 40}


def test_the_core_has_what_the_successor_of_a_killed_member_reads_again() -> None:
    rounds, lines = Rounds(), list[bytes]()

    def take(members: Lists, infos: dict[str, RunningInfo], committed: tuple[int, int]) -> None:
        events = rounds.take(
            members,
            infos=infos,
            offsets=offsets(q0=committed),
            brokers=[broker("a", topics=config("t", 1))],
            topics={"t": route("t", {"a": 1})},
        )
        clock = Clock(schema_version=1, event_time=rounds.now_ms, system="rocketmq", cluster="test")
        lines.extend(msgspec.json.encode(event) for event in [*events, clock])

    alone = {"g": {"a": connections(["c2"])}}
    take(TWO, {"c1": at(3), "c2": info()}, (3, 9))
    take(TWO, {"c1": at(9), "c2": info()}, (5, 9))
    take(alone, {"c2": info()}, (5, 9))
    take(alone, {"c2": at(7)}, (5, 9))
    take(alone, {"c2": at(9)}, (9, 9))
    run = run_of(lines)
    (row,) = [rebalance for rebalance in run.rebalances if rebalance.triggers[0].kind == "member_gone"]
    assert (row.repeated_messages, row.repeated_estimated_messages) == (4, None)
    assert (row.waiting_messages, row.waiting_estimated_messages) == (None, 4)
    spans = [change.body for change in SingleSpans().of(run.changes) if isinstance(change.body, QueueAssigned)]
    taken = [span for span in spans if span.member_id == "c2" and span.valid_from >= row.event_time]
    assert sorted(span.origin for span in taken) == ["computed", "reported"]
    assert {(span.repeated_messages, span.waiting_estimated_messages) for span in taken} == {(4, 4)}
