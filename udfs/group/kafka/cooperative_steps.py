"""Core: generations that complete the previous one: queues on the move, topics its leader lacked. No I/O."""

from __future__ import annotations

from collections.abc import Collection

from udfs.group.assignment.rebalance_plan import COOPERATIVE
from udfs.group.batch.finding_texts import counted
from udfs.group.kafka.polled_generations import is_converging
from udfs.group.kafka.triggers import Causes, released
from udfs.group.state.group import Group, Owners, Queue
from udfs.model.events import GroupSnapshot, MemberInfo

# The protocol of Kafka Streams: its tasks move in steps, too, and the first step may leave some without an owner.
_STREAMS = "kafka.stream"


def pending_queues(
    group: Group,
    snapshot: GroupSnapshot,
    strategy: str | None,
    before: Owners,
    reported: Owners | None,
    existing: Collection[Queue],
    causes: Causes,
) -> list[Queue]:
    """Return the queues that a generation leaves without an owner because they are on the move.

    Args:
        before, reported: The reported assignments of the previous and of this generation. causes: This generation's
            causes.
        existing: All queues of its topics.
    Returns: queues this generation revokes; queues revoked earlier and not yet reassigned, even if the group is now
        empty; for Kafka Streams, once, queues without an owner.
    """
    if not snapshot.members:
        return list(group.revoked_pending)
    if strategy not in (COOPERATIVE, _STREAMS) and not is_converging(snapshot):
        return []
    there = set(existing)
    if reported is None:
        return [queue for queue in group.revoked_pending if queue in there]
    waiting = _still_waiting(group, snapshot, reported, causes)
    pending = dict.fromkeys([*released(before, reported), *waiting])
    if strategy == _STREAMS:
        past = {*reported, *group.revoked_pending}
        pending |= dict.fromkeys(queue for queue in existing if queue not in past)
    return [queue for queue in pending if queue in there]


def _still_waiting(group: Group, snapshot: GroupSnapshot, reported: Owners, causes: Causes) -> list[Queue]:
    """Return the queues revoked by earlier generations that this one could not assign yet.

    The leader assigns a queue once no member owns it: a queue waits while a member reports it as owned (kafka-python
    joins again before it has given it up; a member that missed the last assignment does not have it). If members do not
    report what they own, a queue waits as long as other members join.
    """
    waiting = [queue for queue in group.revoked_pending if queue not in reported]
    if all(info.owned is not None for info in snapshot.members):
        claimed = {(ref.topic, None, ref.queue_id) for info in snapshot.members for ref in info.owned or ()}
        return [queue for queue in waiting if queue in claimed]
    return waiting if any(trigger.kind == "member_joined" for trigger in causes.triggers) else []


def waiting_since(
    group: Group, pending: Collection[Queue], before: Owners, reported: Owners | None
) -> dict[Queue, int | None]:
    """Return when the queues on the move that an earlier generation revoked were revoked.

    Args:
        before, reported: The reported assignments of the previous and of this generation; None if a queue may have had
            an owner in between, so that the time is unknown.
    """
    earlier = set(group.revoked_pending).difference(before)
    return {queue: None if reported is None else group.revoked_at(queue) for queue in pending if queue in earlier}


def add_causes_of_steps(
    group: Group, snapshot: GroupSnapshot, reported: Owners | None, causes: Causes, event_id: str | None
) -> None:
    """Add why a generation without any other cause was made: only the assignment shows a change."""
    if causes.triggers or reported is None or not group.exists or not _by_records(snapshot):
        return
    waiting = [queue for queue in group.revoked_pending if queue not in reported]
    if waiting:
        detail = counted(len(waiting), "queue") + " not released yet"
        causes.add("cooperative_follow_up", event_id=event_id, detail=detail)


def _by_records(snapshot: GroupSnapshot) -> list[MemberInfo]:
    """Return the members whose client library is reported, as in Kafka's own records."""
    return [info for info in snapshot.members if info.client_library is not None]
