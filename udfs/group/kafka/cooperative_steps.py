"""Core: generations that complete what the one before began: queues that move, topics its leader lacked. No I/O."""

from __future__ import annotations

from collections.abc import Collection

from udfs.group.assignment.rebalance_plan import COOPERATIVE
from udfs.group.batch.findings import counted
from udfs.group.kafka.triggers import Causes, released
from udfs.group.state.group import Group, Owners, Queue
from udfs.model.events import GroupSnapshot, MemberInfo

# The protocol of Kafka Streams: its tasks move in steps, too, and the first may leave some without an owner.
_STREAMS = "kafka.stream"


def pending_queues(
    group: Group,
    snapshot: GroupSnapshot,
    strategy: str | None,
    before: Owners,
    told: Owners | None,
    existing: Collection[Queue],
) -> list[Queue]:
    """Return the queues that a generation leaves without an owner because they are on the move.

    Args:
        before, told: The reported assignment before, and of this generation.
    Returns: those that it takes from a member; those taken before whose former owner still reports them as owned
        (kafka-python joins again before it has given them up); with Kafka Streams also those that nobody had, once.
    """
    if told is None or not snapshot.members or strategy not in (COOPERATIVE, _STREAMS):
        return []
    topics = {queue[0] for queue in existing}
    claimed = {(ref.topic, None, ref.queue_id) for info in _by_records(snapshot) for ref in info.owned or ()}
    waiting = [queue for queue in group.revoked_pending if queue not in told and queue in claimed]
    pending = dict.fromkeys([*released(before, told), *waiting])
    if strategy == _STREAMS:
        past = {*told, *group.revoked_pending}
        pending |= dict.fromkeys(queue for queue in existing if queue not in past)
    return [queue for queue in pending if queue[0] in topics]


def add_causes_of_steps(
    group: Group, snapshot: GroupSnapshot, told: Owners | None, causes: Causes, event_id: str | None
) -> None:
    """Add why a generation without any other cause was made: nothing changed but what the assignment shows."""
    if causes.triggers or told is None or not group.exists or not _by_records(snapshot):
        return
    waiting = [queue for queue in group.revoked_pending if queue not in told]
    if waiting:
        detail = counted(len(waiting), "queue") + " not released yet"
        causes.add("cooperative_follow_up", event_id=event_id, detail=detail)
        return
    known = {queue[0] for queue in group.reported}
    for topic in sorted({queue[0] for queue in told} - known):
        if group.counts.get(topic) and group.members_decided:
            causes.add("queue_count_changed", topic=topic, event_id=event_id, detail="the leader had no metadata of it")


def _by_records(snapshot: GroupSnapshot) -> list[MemberInfo]:
    """Return the members whose client library is reported, as Kafka's own records have it."""
    return [info for info in snapshot.members if info.client_library is not None]
