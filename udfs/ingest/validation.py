"""Core: checks of an event beyond its types: names without control characters, consistent lists. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from udfs.model.annotations import Annotation, ContractEvent
from udfs.model.events import (
    MAX_INT64,
    AssignmentReported,
    CommitsDeleted,
    GroupRecord,
    GroupSettings,
    GroupSnapshot,
    Heartbeat,
    HeldQueue,
    MemberFields,
    MemberJoined,
    Progress,
    QueueEnd,
    QueueEnds,
    QueueInfo,
    QueueOffset,
    QueueRef,
    TopicQueues,
)
from udfs.model.rejection import Rejection
from udfs.model.systems import SYSTEMS

CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")
MAX_SETTINGS_DEPTH = 16  # for strategy_settings, the only field of free form


def validate(event: ContractEvent, raw: bytes) -> Rejection | None:
    """Return the first violation in an event with valid types; None if there is none."""
    # JSON writes control characters with a backslash, except DEL.
    if b"\\" in raw or b"\x7f" in raw or b"data_base64" in raw:
        for field, name in _names(event):
            if CONTROL_CHARACTER.search(name):
                return Rejection(f"control_character_in_{field}", f"{name!r:.100}")
    if isinstance(event, TopicQueues):
        return _topic_queues_violation(event)
    if isinstance(event, AssignmentReported):
        return _duplicate_queue(event.queues, "$.queues")
    if isinstance(event, GroupSnapshot):
        return _snapshot_violation(event)
    if isinstance(event, Heartbeat | MemberJoined):
        return _member_violation(event, "$")
    if isinstance(event, GroupRecord):
        return _record_violation(event)
    if isinstance(event, GroupSettings):
        return _settings_violation(event.strategy_settings, "$.strategy_settings")
    if isinstance(event, Annotation):
        return _span_violation(event)
    return None


def _names(event: ContractEvent) -> Iterator[tuple[str, str]]:
    """Return every name that serves as an identity."""
    for field in ("cluster", "event_id", "group", "member_id", "topic"):
        name = getattr(event, field, None)
        if name is not None:
            yield field, name
    if isinstance(event, TopicQueues | Progress | AssignmentReported | QueueEnds | CommitsDeleted):
        yield from _queue_names(event.queues or ())
    if isinstance(event, GroupSnapshot):
        for member in event.members:
            yield "member_id", member.member_id
            yield from _described_names(member)
        for member_id, queues in (event.assignments or {}).items():
            yield "assignments", member_id
            yield from _queue_names(queues)
        yield from (("departures", departure.member_id) for departure in event.departures or ())
        yield from (("observations", observation.kind) for observation in event.observations or ())
    if isinstance(event, Heartbeat | MemberJoined):
        yield from _described_names(event)
    if isinstance(event, GroupRecord):
        if event.member is not None:
            yield from _described_names(event.member)
        named = (*(event.topics or ()), *(event.topic_ids or {}).values())
        yield from (("topic", topic) for topic in named)
    if isinstance(event, Annotation):
        yield from ((field, name) for field in ("id", "kind", "url") if (name := getattr(event, field)) is not None)
        yield from ((field, glob) for field in ("groups", "client_ids", "hosts") for glob in getattr(event, field))


def _span_violation(event: Annotation) -> Rejection | None:
    if event.from_ is not None and event.to is not None and event.to < event.from_:
        return Rejection("to_before_from", f"it ends {event.from_ - event.to} ms before it begins - at `$.to`")
    return None


def _record_violation(event: GroupRecord) -> Rejection | None:
    if event.member_id is None and event.record.startswith("member"):
        return Rejection("missing_member_id", f"a record {event.record!r} needs it")
    if event.epoch is None and not event.deleted and event.record in ("group", "target", "member_current"):
        return Rejection("missing_epoch", f"a record {event.record!r} needs it")
    return None


def _described_names(member: MemberFields) -> Iterator[tuple[str, str]]:
    yield from (("subscriptions", topic) for topic in member.subscriptions or ())
    yield from (("strategies", strategy) for strategy in member.strategies or ())
    yield from _queue_names(member.owned or ())


def _queue_names(
    queues: Iterable[QueueRef | HeldQueue | QueueOffset | QueueInfo | QueueEnd],
) -> Iterator[tuple[str, str]]:
    for queue in queues:
        if not isinstance(queue, QueueInfo | QueueEnd):
            yield "topic", queue.topic
        if queue.broker is not None:
            yield "broker", queue.broker


def _topic_queues_violation(event: TopicQueues) -> Rejection | None:
    if event.queues is None:
        if event.queue_count is None:
            return Rejection("missing_queues", "one of queues and queue_count is needed")
        return None
    if event.queue_count is not None and event.queue_count != len(event.queues):
        return Rejection("queue_count_differs", f"queue_count is {event.queue_count}, queues are {len(event.queues)}")
    per_broker = SYSTEMS[event.system].counts_queues_per_broker
    distinct = set()
    for queue in event.queues:
        key = (queue.broker if per_broker else None, queue.queue_id)
        if key in distinct:
            return Rejection("duplicate_queue", f"broker {queue.broker!r}, queue {queue.queue_id} - at `$.queues`")
        distinct.add(key)
    return None


def _snapshot_violation(event: GroupSnapshot) -> Rejection | None:
    # A repeated id means two connections if their hosts (or instances) differ.
    connections = set()
    for index, member in enumerate(event.members):
        connection = (member.member_id, member.host, member.instance_id)
        if connection in connections:
            return Rejection("duplicate_member", f"{member.member_id!r:.100} - at `$.members[{index}]`")
        connections.add(connection)
        violation = _member_violation(member, f"$.members[{index}]")
        if violation is not None:
            return violation
    for member_id, queues in (event.assignments or {}).items():
        if not member_id:
            return Rejection("empty_member_id", "a member id is empty - at `$.assignments`")
        violation = _duplicate_queue(queues, "$.assignments")
        if violation is not None:
            return violation
    return None


def _member_violation(member: MemberFields, path: str) -> Rejection | None:
    return _duplicate_queue(member.owned or (), f"{path}.owned") or _settings_violation(
        member.strategy_settings, f"{path}.strategy_settings"
    )


def _duplicate_queue(queues: Iterable[QueueRef | HeldQueue], path: str) -> Rejection | None:
    distinct = set()
    for queue in queues:
        key = (queue.topic, queue.broker, queue.queue_id)
        if key in distinct:
            return Rejection(
                "duplicate_queue",
                f"topic {queue.topic!r:.100}, broker {queue.broker!r}, {queue.queue_id} - at `{path}`",
            )
        distinct.add(key)
    return None


def _settings_violation(settings: dict[str, object] | None, path: str) -> Rejection | None:
    """Return the first violation in settings, which travel as JSON to every worker: 64-bit numbers, no deep nesting."""
    level: list[object] = [] if settings is None else [settings]
    for _ in range(MAX_SETTINGS_DEPTH):
        if not level:
            return None
        below: list[object] = []
        for thing in level:
            if isinstance(thing, dict):
                below.extend(thing.values())
            elif isinstance(thing, list):
                below.extend(thing)
            elif isinstance(thing, int) and abs(thing) > MAX_INT64:
                return Rejection("out_of_range_strategy_settings", f"{thing} does not fit 64 bits - at `{path}`")
        level = below
    if not level:
        return None
    return Rejection("too_deep", f"more than {MAX_SETTINGS_DEPTH} levels - at `{path}`")
