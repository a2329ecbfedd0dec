"""The cost of a rebalance of a real RocketMQ group equals what its members count themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.kit import processes
from tests.kit import rocketmq_admin as admin
from tests.kit.rocketmq import RocketMq
from tests.kit.rocketmq_members import RocketMqMember, queues_of, wait_until, wait_until_assigned
from tests.live.rocketmq_findings import rebalances_of
from tests.live.rocketmq_story import Event, Story, collecting
from tests.live.steps import Queue
from tests.simulation.core_run import CoreRun, run_of
from tests.udfs.group.single_spans import SingleSpans
from udfs.model.journal import Rebalance
from udfs.model.spans import QueueAssigned

pytestmark = [pytest.mark.broker, pytest.mark.timeout(900)]
StartMember = Callable[..., RocketMqMember]
A, B = "127.0.0.1@a", "127.0.0.1@b"
JOINED = (("group_created", None), ("member_joined", A))
# They commit only when they pull, which is before they have consumed what they pulled.
SLOW: dict[str, Any] = {
    "rebalance_interval_ms": 2_000,
    "consume_ms": 50,
    "settings": {"persist_interval_ms": 3_600_000, "stuck_on": "stuck"},
}
Costs = tuple[int | None, int | None, int | None]


def test_messages_that_are_read_twice_and_that_wait_are_those_that_members_count(
    each_rocketmq: RocketMq, new_rocketmq_member: StartMember, tmp_path: Path
) -> None:
    cluster, group, queues = each_rocketmq, "costing", queues_of("costs", 2)
    cluster.create_topic("costs", 2)
    with collecting(cluster, tmp_path / "events", include_groups=(group,)) as collected:
        story = Story(group, collected)
        a = new_rocketmq_member(cluster, group, ["costs"], instance="a", **SLOW)
        wait_until_assigned([a], queues)
        story.record("one joins", [a], *JOINED)
        _read(cluster, "costs", 20, [a], total=40)
        collected.poll()
        # Else its successor may ask for the offset before the first commits it, and reads all again.
        _obey(a, "persist")
        processes.wait_until(
            lambda: [_committed(cluster, group, queue) for queue in queues] == [20, 20], "offsets committed"
        )
        _obey(a, "resume")
        b = new_rocketmq_member(cluster, group, ["costs"], instance="b", **SLOW)
        wait_until_assigned([a, b], queues)
        story.record("another joins", [a, b], ("member_joined", B))
        _read(cluster, "costs", 30, [a, b], total=100)
        collected.poll_until(lambda events: _last(events, group, queues, "position") == [50, 50], "both have read all")
        given_up = b.held("costs")[0]
        twice = 50 - _committed(cluster, group, given_up)
        _obey(a, "resume")
        b.kill()
        wait_until_assigned([a], queues)
        a.wait_until(lambda: a.records_read + b.records_read == 100 + twice)
        story.record("one is killed", [a], ("member_gone", B))
        _obey(a, "suspend")
        offsets = [0, 0]

        def are_reported(events: Sequence[Event]) -> bool:
            offsets[:] = [_committed(cluster, group, queue) for queue in queues]
            return _last(events, group, queues, "offset") == offsets

        collected.poll_until(are_reported, "what is committed at the end")
        at_departure = _known_at_departure(collected.events(), group, given_up, B)
        waiting = 50 - at_departure.committed
    run = story.check()
    assert _shown(run, group, "costs") == {queue: (offset, 50) for queue, offset in zip(queues, offsets, strict=True)}
    assert a.records_read + b.records_read == 100 + twice
    joined, killed = rebalances_of(run, group)[-2:]
    assert _costs(joined)[:2] == (None, 0)
    assert 0 <= twice <= 30
    # Where its successor has committed before the poll that lacks it, only an estimate is left.
    costs = _costs(killed)
    repeated = (twice, None) if waiting == twice else (None, twice)
    assert costs[:2] == repeated
    assert costs[2] is not None
    # Where no end had changed since the poll before, what may have come is estimated.
    assert costs[2] == waiting if at_departure.end_is_known else costs[2] >= waiting
    assert _of_spans(run, group, "computed", killed) == costs
    # Reports come after the poll, and what may have come by then is estimated.
    reported = _of_spans(run, group, "reported", killed)
    assert reported[:2] == repeated
    assert reported[2] is not None
    assert costs[2] <= reported[2] <= costs[2] + 30


def test_messages_behind_one_that_is_stuck_are_read_twice(
    rocketmq55: RocketMq, new_rocketmq_member: StartMember, tmp_path: Path
) -> None:
    cluster, group, queues = rocketmq55, "sticking", queues_of("sticks", 2)
    cluster.create_topic("sticks", 2)
    with collecting(cluster, tmp_path / "events", include_groups=(group,)) as collected:
        a, b = members = [new_rocketmq_member(cluster, group, ["sticks"], instance=name, **SLOW) for name in "ab"]
        wait_until_assigned(members, queues)
        collected.poll()
        _read(cluster, "sticks", 20, members, total=40)
        mine = a.held("sticks")[0]
        admin.put_message(cluster.broker.address, "sticks", mine[2], b"stuck")
        _read(cluster, "sticks", 30, members, total=100)
        collected.poll_until(lambda events: _last(events, group, [mine], "position") == [50], "all but the stuck one")
        twice = 50 - _committed(cluster, group, mine)
        _obey(b, "resume")
        a.kill()
        wait_until_assigned([b], queues)
        b.wait_until(lambda: b.records_read == 50 + twice)
        collected.poll_until(lambda events: _has_departed(events, group, A), "one is killed")
    row = rebalances_of(run_of(collected.lines()), group)[-1]
    assert [trigger.kind for trigger in row.triggers] == ["member_gone"]
    assert b.records_read == 50 + twice
    assert twice >= 30
    # The one that it worked on may be finished by then.
    assert _costs(row) == (None, twice, twice + 1)


def _read(cluster: RocketMq, topic: str, count: int, members: Sequence[RocketMqMember], *, total: int) -> None:
    """Send so many messages to each queue, and wait until members that get them at once have consumed a total.

    They are suspended then: they commit nothing more, and take no queue over.
    """
    for member in members:
        _obey(member, "suspend")
    cluster.send(topic, count)
    for member in members:
        _obey(member, "resume")
    wait_until(members, lambda: sum(member.records_read for member in members) == total)
    for member in members:
        _obey(member, "suspend")


def _obey(member: RocketMqMember, command: str) -> None:
    done = [report for report in member.reports if report.event == "done"]
    member.send(command)
    member.wait_until(lambda: len([report for report in member.reports if report.event == "done"]) > len(done))


def _committed(cluster: RocketMq, group: str, queue: Queue) -> int:
    topic, broker, queue_id = queue
    return admin.committed_offset(cluster.brokers[broker].address, group, topic, queue_id)


def _has_departed(events: Sequence[Event], group: str, member_id: str) -> bool:
    """Return whether a group's last snapshot lacks a member."""
    snapshots = [event for event in events if event["type"] == "group_snapshot" and event["group"] == group]
    return bool(snapshots) and member_id not in [member["member_id"] for member in snapshots[-1]["members"]]


def _last(events: Sequence[Event], group: str, queues: Sequence[Queue], what: str) -> list[int | None]:
    """Return the last report of each queue: its owner's ``position``, or the committed ``offset``."""
    found: dict[Queue, int] = {}
    for event in events:
        if event["type"] == "progress" and event["group"] == group:
            for queue_row in event["queues"]:
                if what in queue_row:
                    found[queue_row["topic"], queue_row["broker"], queue_row["queue_id"]] = queue_row[what]
    return [found.get(queue) for queue in queues]


class _AtDeparture(NamedTuple):
    """What was known of a queue when its owner was gone: its committed offset, and whether that poll had its end."""

    committed: int
    end_is_known: bool


def _known_at_departure(events: Sequence[Event], group: str, queue: Queue, member_id: str) -> _AtDeparture:
    """Return what was known of a queue at the first poll that lacks a member which has been there."""
    snapshots = [event for event in events if event["type"] == "group_snapshot" and event["group"] == group]
    present = [member_id in [member["member_id"] for member in event["members"]] for event in snapshots]
    departed_at = snapshots[present.index(False, present.index(True))]["event_time"]
    known = [event for event in events if event["event_time"] <= departed_at]
    (committed,) = _last(known, group, [queue], "offset")
    assert committed is not None
    of_that_poll = [event for event in known if event["event_time"] == departed_at]
    return _AtDeparture(committed, _last(of_that_poll, group, [queue], "end_offset") != [None])


def _costs(row: Rebalance) -> Costs:
    waiting = row.waiting_estimated_messages if row.waiting_messages is None else row.waiting_messages
    return row.repeated_messages, row.repeated_estimated_messages, waiting


def _shown(run: CoreRun, group: str, topic: str) -> dict[Queue, tuple[int | None, int | None]]:
    """Return what ``queue_progress`` has last of each queue: where it is committed, and where it ends."""
    found: dict[Queue, tuple[int | None, int | None]] = {}
    for row in sorted(run.progress, key=lambda progress: progress.span_start):
        if (row.group_id, row.topic) == (group, topic):
            found |= {(topic, row.broker or "", queue): (offset, end) for queue, offset, _, end, *_ in row.queues}
    return found


def _of_spans(run: CoreRun, group: str, origin: str, row: Rebalance) -> Costs:
    """Return the sums over the spans of a rebalance."""
    spans = [
        change.body
        for change in SingleSpans().of(run.changes)
        if change.group_id == group and isinstance(change.body, QueueAssigned)
        if change.body.origin == origin and change.body.rebalance_id == row.rebalance_id
    ]

    def total(name: str) -> int | None:
        values = [getattr(span, name) for span in spans if getattr(span, name) is not None]
        return sum(values) if values else None

    waiting = total("waiting_messages")
    waiting = total("waiting_estimated_messages") if waiting is None else waiting
    return total("repeated_messages"), total("repeated_estimated_messages"), waiting
