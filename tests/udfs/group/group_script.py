"""Gives one group its events, cut into batches at given clocks, and keeps what it decided. It knows no rule but
when an event is due and when it is late."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from tests.core_config import core_config
from tests.udfs.group.single_spans import SingleSpans
from udfs.group.coordinator import advance, decode_group, encode_group, new_group
from udfs.model.audits import Audited
from udfs.model.config import CoreConfig
from udfs.model.events import (
    AnyEvent,
    AssignmentReported,
    GroupDeleted,
    GroupSettings,
    GroupSnapshot,
    Heartbeat,
    HeldQueue,
    MemberInfo,
    MemberJoined,
    MemberLeft,
    Progress,
    QueueInfo,
    QueueOffset,
    QueueRef,
    TopicQueues,
)
from udfs.model.group_api import DueEvent, GroupInput, GroupOutput
from udfs.model.journal import (
    Change,
    FindingClosed,
    FindingOpened,
    GroupChanged,
    MemberChanged,
    MemberClosed,
    MemberOpened,
    MemberReopened,
    MemberReplaced,
    Rebalance,
)
from udfs.model.observations import UNKNOWN, Observation, ReadOffsets
from udfs.model.spans import QueueAssigned, QueueReleased, SpansWithdrawn
from udfs.packets.packet import queue_key

T0 = 1_700_000_000_000  # times in tests are ms after this


class DedupWindow:
    """Remembers every id for ever."""

    def __init__(self) -> None:
        self.applied: set[str] = set()

    def is_repeat(self, event_id: str, time_ms: int) -> bool:
        if event_id in self.applied:
            return True
        self.applied.add(event_id)
        return False


class Topics:
    """Topics as a list of their events."""

    def __init__(self) -> None:
        self.events: list[TopicQueues] = []

    def take(self, event: TopicQueues) -> bool:
        if any(known.topic == event.topic and known.event_time > event.event_time for known in self.events):
            return False  # older than what is known of its topic
        if event not in self.events:
            self.events.append(event)
            self.events.sort(key=lambda listed: (listed.event_time, listed.event_id or ""))
        times = (event.event_time - 1, event.event_time)
        was, now = ((self.at(event.topic, at), self.topic_id(event.topic, at)) for at in times)
        return was != now

    def at(self, topic: str, time_ms: int) -> tuple[QueueInfo, ...] | None:
        found = [event for event in self.events if event.topic == topic and event.event_time <= time_ms]
        if not found:
            return None
        if found[-1].queues is not None:
            return tuple(sorted(found[-1].queues, key=lambda queue: (queue.broker or "", queue.queue_id)))
        return tuple(QueueInfo(number) for number in range(found[-1].queue_count or 0))

    def before(self, topic: str, time_ms: int) -> tuple[QueueInfo, ...] | None:
        return self.at(topic, time_ms - 1)

    def first_description(self, topic: str) -> tuple[QueueInfo, ...] | None:
        first = next((event for event in self.events if event.topic == topic), None)
        return None if first is None else self.at(topic, first.event_time)

    def has_any(self, time_ms: int) -> bool:
        return any(event.event_time <= time_ms for event in self.events)

    def topic_id(self, topic: str, time_ms: int) -> str | None:
        lives = self._lives(topic)
        return next((name for at, name in reversed(lives) if at <= time_ms), lives[0][1] if lives else None) or None

    def renewed_at(self, topic: str, time_ms: int) -> int | None:
        return next((at for at, _ in reversed(self._lives(topic)[1:]) if at <= time_ms), None)

    def appeared_at(self, topic: str, time_ms: int) -> int | None:
        times = [event.event_time for event in self.events if event.topic == topic and event.event_time <= time_ms]
        return max((at for at in times if self.at(topic, at) and not self.before(topic, at)), default=None)

    def _lives(self, topic: str) -> list[tuple[int, str | None]]:
        lives: list[tuple[int, str | None]] = []
        for event in self.events:
            if event.topic == topic and (lives or self.at(topic, event.event_time)):
                name = event.topic_id or (lives[-1][1] if lives else None) or None
                name = name if self.at(topic, event.event_time) else ""
                if not lives or lives[-1][1] != name:
                    lives.append((event.event_time, name))
        return lives


class Script:
    """One group of one cluster. Times are given as ms after ``T0``; so are those in the answers."""

    def __init__(self, system: str = "kafka", config: CoreConfig | None = None, **reported: Any) -> None:
        self.system = system
        self.config = msgspec.structs.replace(config or core_config(), **reported)
        self.group = new_group("c", system, "g")
        self.topics = Topics()
        self.dedup = DedupWindow()
        self.waiting: list[AnyEvent] = []
        self.clock: int | None = None
        self.last_heartbeats: dict[str, int] = {}
        self.commits: dict[int, list[int]] = {}
        self.observed: dict[int, list[Observation]] = {}
        self.rebalances: list[Rebalance] = []
        self.changes: list[Change] = []  # span by span
        self.written: list[Change] = []
        self.single_spans = SingleSpans()
        self.last = GroupOutput()
        self.ids = 0

    # ---- events

    def event(self, kind: type, at: int, **fields: Any) -> None:
        """Have an event wait for the next batch."""
        self.ids += 1
        fields.setdefault("event_id", f"e{self.ids}")
        if "group" in kind.__struct_fields__:
            fields.setdefault("group", "g")
        self.waiting.append(kind(schema_version=1, event_time=T0 + at, system=self.system, cluster="c", **fields))

    def join(self, at: int, member: str, topics: Iterable[str] | None = ("t",), **fields: Any) -> None:
        subscriptions = None if topics is None else tuple(topics)
        self.event(MemberJoined, at, member_id=member, subscriptions=subscriptions, **fields)

    def beat(self, at: int, member: str, **fields: Any) -> None:
        self.event(Heartbeat, at, member_id=member, **fields)

    def leave(self, at: int, member: str, **fields: Any) -> None:
        self.event(MemberLeft, at, member_id=member, **fields)

    def queues(self, at: int, topic: str, count: int | None = None, **fields: Any) -> None:
        self.event(TopicQueues, at, topic=topic, queue_count=count, **fields)

    def settings(self, at: int, **fields: Any) -> None:
        self.event(GroupSettings, at, **fields)

    def delete(self, at: int) -> None:
        self.event(GroupDeleted, at)

    def commit(self, at: int, topic: str, queue: int) -> None:
        self.event(Progress, at, queues=(QueueOffset(topic, queue),))

    def observe(self, at: int, topic: str, queue: int, committed: int = UNKNOWN, end: int = UNKNOWN) -> None:
        """Have offsets of a queue be observed: a commit, or where it ends."""
        key = queue_key(topic, None, queue)
        self.observed[key] = sorted([*self.observed.get(key, ()), (T0 + at, committed, end, UNKNOWN)])
        if committed != UNKNOWN:
            self.commit(at, topic, queue)

    def holds(
        self,
        at: int,
        member: str,
        queues: Iterable[tuple[str, int]],
        pulls: dict[tuple[str, int], int] | None = None,
        **fields: Any,
    ) -> None:
        """Have a member say what it holds; ``pulls``: when it last pulled a queue."""
        pulled = {queue: T0 + time for queue, time in (pulls or {}).items()}
        held = tuple(HeldQueue(topic, number, last_pull_at=pulled.get((topic, number))) for topic, number in queues)
        self.event(AssignmentReported, at, member_id=member, queues=held, **fields)

    def poll(self, at: int, *connections: tuple[str, str | None] | str, **fields: Any) -> None:
        """Have a poll show these connections (id, address), all of them subscribed to ``t``."""
        reported = [(connection, None) if isinstance(connection, str) else connection for connection in connections]
        infos = tuple(MemberInfo(member_id=name, host=host, subscriptions=("t",)) for name, host in reported)
        self.event(GroupSnapshot, at, members=infos, **fields)

    def snapshot(
        self,
        at: int,
        generation: int | None,
        members: dict[str, Sequence[str]],
        assignments: dict[str, Sequence[tuple[str, int]]] | None = None,
        describe: dict[str, dict[str, Any]] | None = None,
        **fields: Any,
    ) -> None:
        infos = tuple(
            MemberInfo(member_id=name, subscriptions=tuple(topics), **(describe or {}).get(name, {}))
            for name, topics in members.items()
        )
        reported = None
        if assignments is not None:
            reported = {name: tuple(QueueRef(*queue) for queue in queues) for name, queues in assignments.items()}
        self.event(GroupSnapshot, at, generation=generation, members=infos, assignments=reported, **fields)

    # ---- batches

    def run(self, clock: int, batch_ms: int = 0) -> Script:
        """Move the clock and apply what is due; the group is encoded and decoded on the way."""
        before, self.clock = self.clock, T0 + clock
        due = [event for event in self.waiting if event.event_time < self.clock]
        self.waiting = [event for event in self.waiting if event.event_time >= self.clock]
        events: list[DueEvent] = []
        beats: dict[str, list[int]] = {}
        last_applied = self.last.last_applied_ms
        for event in sorted(due, key=lambda queued: queued.event_time):
            if isinstance(event, Progress):
                for queue in event.queues:
                    key = queue_key(queue.topic, queue.broker, queue.queue_id)
                    self.commits[key] = sorted({*self.commits.get(key, []), event.event_time})
                continue
            if isinstance(event, TopicQueues) and not self.topics.take(event):
                continue
            late = before is not None and last_applied is not None and event.event_time < min(before, last_applied)
            plain = isinstance(event, Heartbeat) and event.host is None and event.subscriptions is None
            if plain and not event.strategies and not late:
                beats.setdefault(event.member_id, []).append(event.event_time)
            else:
                events.append(DueEvent(event, event.event_id or "", late))
        facts = GroupInput(
            cluster="c",
            system=self.system,
            group_id="g",
            clock_before=before,
            clock=self.clock,
            detected_at=batch_ms,
            events=events,
            heartbeats={member: sorted(set(times)) for member, times in beats.items()},
            last_heartbeat=self.last_heartbeats,
            progress=self.commits,
            offsets=ReadOffsets(self.observed),
        )
        self.last = advance(self.group, facts, self.topics, self.dedup, self.config)
        self.last_heartbeats = self.last.last_heartbeat
        # Only the newest commit of each queue is remembered from batch to batch, and none of a group that is forgotten.
        known_since = self.last.observed_since or 0
        self.commits = {key: [at for at in times if at >= known_since][-1:] for key, times in self.commits.items()}
        self.group = decode_group(encode_group(self.group))
        self.rebalances += self.last.rebalances
        self.written += self.last.changes
        self.changes += self.single_spans.of(self.last.changes)
        return self

    # ---- what was decided

    def decided(self) -> list[str]:
        """Return the rebalances as lines: time, generation, members, causes, the main one first."""
        lines = []
        for row in self.rebalances:
            causes = " ".join(
                trigger.kind + (f":{trigger.member_id or trigger.topic}" if trigger.member_id or trigger.topic else "")
                for trigger in row.triggers
            )
            assert row.trigger == row.triggers[0].kind
            lines.append(f"{row.event_time - T0} #{row.generation} {row.members_before}->{row.members_after} {causes}")
        return lines

    def spans(self, origin: str = "computed") -> list[str]:
        """Return the spans of one origin, as they would lie in a table: without those of no length."""
        over: list[tuple[QueueAssigned, str, int]] = []
        opened: dict[tuple[Any, ...], QueueAssigned] = {}
        for change in self.changes:
            body = change.body
            if isinstance(body, SpansWithdrawn) and origin == "computed":
                opened = {key: start for key, start in opened.items() if start.valid_from < body.since}
                over = [(start, member, end) for start, member, end in over if start.valid_from < body.since]
                for start, member, _ in [ended_span for ended_span in over if ended_span[2] >= body.since]:
                    opened[start.topic, start.broker, start.queue_id, member] = start
                over = [ended_span for ended_span in over if ended_span[2] < body.since]
            if isinstance(body, MemberReplaced):
                for key in [key for key in opened if key[3] == body.former_member_id]:
                    start = opened.pop(key)
                    over.append((start, body.former_member_id, body.replaced_at))
                    opened[*key[:3], body.member_id] = msgspec.structs.replace(start, valid_from=body.replaced_at)
            if isinstance(body, QueueAssigned) and body.origin == origin:
                key = (body.topic, body.broker, body.queue_id, body.member_id)
                assert key not in opened, f"opened twice: {key}"
                opened[key] = body
            if isinstance(body, QueueReleased) and body.origin == origin:
                start = opened.pop((body.topic, body.broker, body.queue_id, body.member_id))
                assert start.valid_from <= body.valid_to
                over.append((start, body.member_id, body.valid_to))
        ended = [_span(start, member, end) for start, member, end in over if start.valid_from < end]
        return sorted([*ended, *(_span(start, key[3], None) for key, start in opened.items())])

    def owners(self, at: int, origin: str = "computed") -> dict[str, str]:
        """Return who held each queue at a time, by the spans."""
        held: dict[str, list[str]] = {}
        for span in self.spans(origin):
            queue, member, times = span.split(" ")[:3]
            start, end = times.split("..")
            if int(start) <= at and (not end or at < int(end)):
                held.setdefault(queue, []).append(member)
        return {queue: "+".join(sorted(members)) for queue, members in sorted(held.items())}

    def sessions(self) -> list[str]:
        """Return the sessions as they would lie in a table: member, from..to, reason."""
        rows: dict[tuple[str, int], str] = {}
        live: dict[str, int] = {}
        for change in self.changes:
            body = change.body
            if isinstance(body, MemberChanged):
                assert live[body.member_id] == body.joined_at, f"no session to change: {body.member_id}"
            elif isinstance(body, MemberOpened | MemberReopened):
                assert body.member_id not in live, f"opened twice: {body.member_id}"
                live[body.member_id] = body.joined_at
                rows[body.member_id, body.joined_at] = ""
            elif isinstance(body, MemberClosed):
                assert body.left_at >= body.joined_at
                if live.get(body.member_id) == body.joined_at:
                    del live[body.member_id]
                rows[body.member_id, body.joined_at] = f"{body.left_at - T0} {body.left_reason}"
        assert set(live) == set(self.group.members)
        return sorted(f"{member} {joined_at - T0}..{end}" for (member, joined_at), end in rows.items())

    def findings(self) -> list[str]:
        """Return the findings: kind, from..to."""
        opened: dict[str, tuple[str, int]] = {}
        found: list[str] = []
        for change in self.changes:
            body = change.body
            if isinstance(body, FindingOpened):
                opened[body.finding_id] = (body.finding, body.opened_at)
            elif isinstance(body, FindingClosed):
                kind, at = opened.pop(body.finding_id)
                found.append(f"{kind} {at - T0}..{body.closed_at - T0}")
        return sorted([*found, *(f"{kind} {at - T0}.." for kind, at in opened.values())])

    def audits(self) -> list[Audited]:
        """Return the last audit of each generation."""
        return list({audited.rebalance_id: audited for audited in self.bodies(Audited)}.values())

    def bodies(self, *kinds: type) -> list[Any]:
        """Return the changes of these kinds that were written, without their times."""
        return [change.body for change in self.written if isinstance(change.body, kinds)]

    def row(self) -> GroupChanged:
        """Return the group as its last change wrote it."""
        return [change.body for change in self.changes if isinstance(change.body, GroupChanged)][-1]


def _span(start: QueueAssigned, member: str, end: int | None) -> str:
    broker = f"{start.broker}-" if start.broker else ""
    to = "" if end is None else end - T0
    mark = " inferred" if start.inferred else ""
    return f"{start.topic}/{broker}{start.queue_id} {member} {start.valid_from - T0}..{to}{mark}"


def assigned(**held: str) -> dict[str, list[tuple[str, int]]]:
    """Spell an assignment: a="0 1" is partitions 0 and 1 of topic t."""
    return {member: [("t", int(number)) for number in numbers.split()] for member, numbers in held.items()}


def restored(script: Script, at: int, **fields: object) -> None:
    script.event(GroupSnapshot, at, restored=True, **fields)
