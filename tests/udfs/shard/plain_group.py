"""A group without strategies: it opens and closes sessions and says what its topics count. It stands in for
``udfs.group.coordinator`` where a test checks what a shard passes to its groups."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

import msgspec

from udfs.model.config import CoreConfig
from udfs.model.events import (
    ORDER_AT_ONE_TIME,
    GroupDeleted,
    GroupSnapshot,
    Heartbeat,
    MemberInfo,
    MemberJoined,
    MemberLeft,
    TopicQueues,
)
from udfs.model.group_api import DedupView, GroupInput, GroupOutput, TopicsView
from udfs.model.journal import Body, Change, GroupChanged, MemberClosed, MemberOpened


class PlainMember(msgspec.Struct, array_like=True):
    joined_at: int
    timeout: int
    topics: tuple[str, ...] = ()


class PlainGroup(msgspec.Struct, array_like=True):
    number: int = 0
    last_applied: int | None = None
    members: dict[str, PlainMember] = {}
    departed: dict[str, PlainMember] = {}


class PlainLogic:
    """The functions of ``udfs.group.coordinator``; ``inputs`` keeps the arguments of each call."""

    def __init__(self) -> None:
        self.inputs: list[GroupInput] = []

    def new_group(self, cluster: str, system: str, group_id: str) -> PlainGroup:
        return PlainGroup()

    def encode_group(self, group: PlainGroup) -> bytes:
        return msgspec.msgpack.encode(group)

    def decode_group(self, data: bytes) -> PlainGroup:
        return msgspec.msgpack.decode(data, type=PlainGroup)

    def members_by_heartbeat(self, group: PlainGroup) -> Sequence[str]:
        return list(group.members)

    def snapshot_of(self, group: PlainGroup, last_heartbeat: Mapping[str, int], event_time: int) -> GroupSnapshot:
        members = tuple(
            MemberInfo(member_id=name, last_heartbeat_at=last_heartbeat.get(name)) for name in group.members
        )
        return GroupSnapshot(
            schema_version=1, event_time=event_time, system="kafka", cluster="-", group="-", members=members
        )

    def advance(
        self, group: PlainGroup, facts: GroupInput, topics: TopicsView, dedup: DedupView, config: CoreConfig
    ) -> GroupOutput:
        # What it has of queues can be read while the group advances.
        copied = {"progress": dict(facts.progress), "offsets": dict(facts.offsets)}
        self.inputs.append(msgspec.structs.replace(facts, **copied))
        return _Advance(group, facts, topics, dedup, config).run()


class _Advance:
    def __init__(
        self, group: PlainGroup, facts: GroupInput, topics: TopicsView, dedup: DedupView, config: CoreConfig
    ) -> None:
        self.group, self.facts, self.topics, self.dedup, self.config = group, facts, topics, dedup, config
        self.last_heartbeats = dict(facts.last_heartbeat)
        self.answer = GroupOutput(last_applied_ms=group.last_applied)

    def run(self) -> GroupOutput:
        facts = self.facts
        queue: list[tuple[int, int, str, str, object]] = []
        for due in facts.events:
            at = facts.clock_before if due.late else due.event.event_time
            order = ORDER_AT_ONE_TIME[type(due.event)]
            heapq.heappush(queue, (at or 0, order, due.event_id, repr(due.event), due))
        for member_id, times in facts.heartbeats.items():
            for at in times:
                heapq.heappush(queue, (at, ORDER_AT_ONE_TIME[Heartbeat], member_id, "", None))
        while True:
            deadlines = sorted(
                (self.last_heartbeats[m] + self.group.members[m].timeout, m) for m in self.last_heartbeats
            )
            next_event = queue[0][0] if queue else facts.clock
            for deadline, member_id in deadlines:
                if deadline < next_event:
                    self.close(member_id, deadline, "expired")
            if not queue:
                break
            if any(deadline < next_event for deadline, _ in deadlines):
                continue
            at, _, name, _, due = heapq.heappop(queue)
            if due is None:
                self.on_heartbeat(name, at, None)
            elif isinstance(due.event, TopicQueues) or not self.dedup.is_repeat(name, due.event.event_time):
                self.on_event(due.event, at)
        group = self.group
        group.last_applied = self.answer.last_applied_ms
        self.answer.last_heartbeat = self.last_heartbeats
        self.answer.session_timeouts_ms = {m: group.members[m].timeout for m in self.last_heartbeats}
        self.answer.topics = sorted({topic for member in group.members.values() for topic in member.topics})
        return self.answer

    def on_event(self, event: object, at: int) -> None:
        match event:
            case Heartbeat() | MemberJoined():
                self.on_heartbeat(event.member_id, at, event)
            case MemberLeft():
                if event.member_id in self.group.members:
                    self.close(event.member_id, at, "left")
            case GroupDeleted():
                for member_id in sorted(self.group.members):
                    self.close(member_id, at, "gone")
            case TopicQueues():
                if any(event.topic in member.topics for member in self.group.members.values()):
                    self.count(at)

    def on_heartbeat(self, member_id: str, at: int, event: MemberJoined | Heartbeat | None) -> None:
        group = self.group
        member = group.members.get(member_id)
        fresh = member is None
        if member is None:
            timeout = self.config.session_timeouts_ms[self.facts.system]
            member = group.departed.pop(member_id, None) or PlainMember(at, timeout)
            member.joined_at = at
            group.members[member_id] = member
        before = member.topics
        if event is not None:
            member.timeout = event.session_timeout_ms or member.timeout
            member.topics = member.topics if event.subscriptions is None else event.subscriptions
        self.last_heartbeats[member_id] = max(at, self.last_heartbeats.get(member_id, at))
        if fresh:
            self.write(at, MemberOpened(member_id=member_id, joined_at=at, session_timeout_ms=member.timeout))
        if fresh or member.topics != before:
            self.count(at)

    def close(self, member_id: str, at: int, reason: str) -> None:
        member = self.group.members.pop(member_id)
        self.group.departed[member_id] = member
        last = self.last_heartbeats.pop(member_id)
        closed = MemberClosed(
            member_id=member_id, joined_at=member.joined_at, left_at=at, left_reason=reason, last_heartbeat_at=last
        )
        self.write(at, closed)
        self.count(at)

    def count(self, at: int) -> None:
        topics = {topic for member in self.group.members.values() for topic in member.topics}
        queues = sum(len(self.topics.at(topic, at) or ()) for topic in topics)
        changed = GroupChanged(system=self.facts.system, state="stable", members=len(self.group.members), queues=queues)
        self.write(at, changed)

    def write(self, at: int, body: Body) -> None:
        facts = self.facts
        self.group.number += 1
        self.answer.last_applied_ms = max(at, self.answer.last_applied_ms or at)
        self.answer.changes.append(
            Change(
                cluster=facts.cluster,
                group_id=facts.group_id,
                subject=None,
                number=self.group.number,
                event_time=at,
                body=body,
            )
        )
