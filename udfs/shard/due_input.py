"""Core: a group's input from one batch, split into events in time, late events and repeats. No I/O."""

from __future__ import annotations

from typing import NamedTuple

from udfs.model.events import (
    AnyEvent,
    AssignmentReported,
    GroupRecord,
    GroupSnapshot,
    Heartbeat,
    MemberJoined,
    TopicQueues,
)
from udfs.model.group_api import DueEvent
from udfs.packets.packet import CarriedEvent, carry_event, order_of
from udfs.shard.backlog import BatchInput
from udfs.shard.deduplication import DedupWindow
from udfs.shard.state import Record

# Source and position of a packed heartbeat: its line or record is not kept.
_PACKED = "packed"


class SortedDue(NamedTuple):
    """The events that are due for a group.

    Attributes:
        late_rows: The input rows of late events, by id. carriers: The input rows of all events except packed
            heartbeats.
    """

    events: list[DueEvent]
    late_rows: dict[str, CarriedEvent]
    carriers: dict[str, CarriedEvent]


def sort_due(
    cluster: str,
    record: Record,
    last_heartbeats: dict[str, int],
    given: BatchInput,
    in_time: dict[str, list[int]],
    late_heartbeats: list[tuple[str, int]],
    dedup: DedupWindow,
) -> SortedDue:
    """Return the events that are due for a group.

    Args:
        in_time: Heartbeats in time; the input's own are added to it.
        late_heartbeats: Late heartbeats, which become events.
    """
    before_ms = given.clock_before
    events: list[DueEvent] = []
    late_rows: dict[str, CarriedEvent] = {}
    carriers: dict[str, CarriedEvent] = {}
    both: list[tuple[AnyEvent, CarriedEvent]] = [*given.events, *given.topic_changes]
    for event, carried in sorted(both, key=lambda pair: order_of(pair[1])):
        late = _is_older(event.event_time, before_ms) and _is_older(event.event_time, record.last_applied)
        if isinstance(event, TopicQueues):
            late = late and event.topic in given.own_topics
        elif late and dedup.was_applied(carried.event_id, event.event_time):
            continue
        if late:
            late_rows[carried.event_id] = carried
        carriers[carried.event_id] = carried
        events.append(DueEvent(event, carried.event_id, late, carried.source, carried.position))
    late_heartbeats = list(late_heartbeats)
    for member_id, at in sorted(given.heartbeats):
        last = last_heartbeats.get(member_id)
        if _is_older(at, before_ms) and _is_older(at, record.last_applied) and (last is None or at < last):
            late_heartbeats.append((member_id, at))
        elif last is None or at > last:
            times = in_time.setdefault(member_id, [])
            if not times or at > times[-1]:
                times.append(at)
    for member_id, at in sorted(set(late_heartbeats)):
        heartbeat, carried = unpacked_heartbeat(cluster, record, member_id, at)
        late_rows[carried.event_id] = carried
        events.append(DueEvent(heartbeat, carried.event_id, late=True))
    return SortedDue(events, late_rows, carriers)


def unpacked_heartbeat(cluster: str, record: Record, member_id: str, event_time: int) -> tuple[Heartbeat, CarriedEvent]:
    """Return a packed heartbeat as an event, and as the row that is written if the event is rejected."""
    heartbeat = Heartbeat(
        schema_version=1,
        event_time=event_time,
        system=record.system,
        cluster=cluster,
        group=record.name,
        member_id=member_id,
    )
    return heartbeat, carry_event(heartbeat, _PACKED, _PACKED)


def _is_older(time_ms: int, than: int | None) -> bool:
    return than is not None and time_ms < than


def may_bring_back(event: AnyEvent) -> bool:
    """Return whether an event may bring a member back with its former subscriptions."""
    if isinstance(event, GroupSnapshot):
        return any(member.subscriptions is None for member in event.members)
    return isinstance(event, MemberJoined | Heartbeat) and event.subscriptions is None


def topics_in(event: AnyEvent) -> set[str]:
    """Return the topics that an event of a group names."""
    if isinstance(event, MemberJoined | Heartbeat):
        return set(event.subscriptions or ())
    if isinstance(event, GroupSnapshot):
        named = {topic for member in event.members for topic in member.subscriptions or ()}
        return named | {queue.topic for queues in (event.assignments or {}).values() for queue in queues}
    if isinstance(event, GroupRecord):
        named = set(event.topics or ()) | set((event.topic_ids or {}).values())
        named.update(*(event.subtopologies or {}).values())
        return named.union(() if event.member is None else event.member.subscriptions or ())
    if isinstance(event, AssignmentReported):
        return {queue.topic for queue in event.queues}
    return set()
