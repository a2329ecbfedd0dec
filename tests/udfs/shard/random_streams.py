"""Random streams of events, cut anyhow, and the rows that come of them as a bag."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from itertools import pairwise

import msgspec
from hypothesis import strategies as st

from tests.core_config import core_config
from tests.udfs.shard.shard_script import CLUSTER, FAR, Cluster, beat, clock, count, ends, join, leave, of_group
from udfs.model.config import CoreConfig
from udfs.model.events import (
    AnyEvent,
    AssignmentReported,
    CommitsDeleted,
    GroupDeleted,
    GroupSettings,
    GroupSnapshot,
    MemberInfo,
    Mode,
    Progress,
    QueueOffset,
    QueueRef,
)
from udfs.model.group_api import GroupLogic
from udfs.model.journal import Rebalance, Rejected
from udfs.shard.savepoint import export_shard
from udfs.shard.shard import Row

LATENESS = 2_000


TIMEOUT = 10_000
TIMEOUTS = (TIMEOUT, TIMEOUT, TIMEOUT // 2, 2 * TIMEOUT)
GROUPS = ("g", "h", "i")


MEMBERS = ("a", "b", "c", "d")


TOPICS = ("t", "u")


def progress(at: int, group: str, *queues: QueueOffset) -> Progress:
    return Progress(**of_group(at, group), queues=queues)


def deleted(at: int, group: str) -> GroupDeleted:
    return GroupDeleted(**of_group(at, group))


def snapshot(
    at: int,
    group: str,
    generation: int | None,
    members: list[str],
    held: bool,
    topic: str,
    timeout_ms: int | None,
) -> GroupSnapshot:
    """A coordinator's or a poll's view; ``held``: it says who holds what, in the order of the members."""
    infos = tuple(
        MemberInfo(member_id=member, subscriptions=(topic,), strategies=("range",), session_timeout_ms=timeout_ms)
        for member in members
    )
    queues = {member: (QueueRef(topic, index),) for index, member in enumerate(members)}
    return GroupSnapshot(
        **of_group(at, group),
        generation=generation,
        state="Stable" if members else "Empty",
        members=infos,
        assignments=queues if held else None,
    )


def report(at: int, group: str, member: str, generation: int | None, queue: int) -> AssignmentReported:
    return AssignmentReported(
        **of_group(at, group),
        member_id=member,
        generation=generation,
        queues=(QueueRef(TOPICS[0], queue),),
    )


def change(at: int, group: str, strategy: str | None, mode: Mode | None) -> GroupSettings:
    return GroupSettings(
        **of_group(at, group),
        strategy=strategy,
        mode=mode,
    )


class Dice(random.Random):
    """Draws streams of events from a seed. Hypothesis draws seeds and lengths: lists of its own are mostly short."""

    def time(self) -> int:
        """Steps rather than any millisecond: the same moment, a timeout and one more must come up often."""
        step = self.randrange(25) * TIMEOUT // 2
        return max(0, step + self.choice((0, 0, 0, 1, -1, 700, 1_999)))

    def event(self) -> AnyEvent:
        at, group, member, topic = self.time(), self.choice(GROUPS), self.choice(MEMBERS), self.choice(TOPICS)
        topics = self.choice((None, (), TOPICS[:1], TOPICS[1:], TOPICS))
        event_id = self.choice((None, None, None, "x", "y"))
        kind = self.randrange(23)
        if kind < 8:
            return beat(member, at, group)
        if kind < 12:
            reported = {"subscriptions": topics, "session_timeout_ms": self.choice(TIMEOUTS), "event_id": event_id}
            return join(member, at, group, instance_id=self.choice((None, None, "i")), **reported)
        match kind:
            case 12:
                return beat(member, at, group, subscriptions=topics)
            case 13:
                return leave(member, at, group)
            case 14 | 15:
                return count(topic, self.randrange(7), at, event_id=event_id)
            case 16:
                return self.choice((clock(at), progress(at, group, QueueOffset(TOPICS[0], self.randrange(3)))))
            case 17 if self.snapshots:
                cast = sorted(self.sample(MEMBERS, self.randrange(4)))
                generation = self.choice((None, 0, 1, 2, 3, 4, 7))
                timeout = self.choice((None, None, *TIMEOUTS[1:]))
                return snapshot(at, group, generation, cast, self.random() < 0.5, topic, timeout)
            case 18 if self.snapshots:
                return report(at, group, member, self.choice((None, 1, 2, 3)), self.randrange(3))
            case 19:
                strategy, mode = self.choice((None, "range", "kafka.roundrobin")), self.choice((None, "broadcasting"))
                return self.choice((deleted(at, group), change(at, group, strategy, mode)))
            case 20 | 21:
                return progress(at, group, *(self.offset(queue) for queue in self.sample(range(3), 2)))
            case 22:
                return ends(TOPICS[0], at, **{f"q{queue}": self.randrange(60) for queue in self.sample(range(3), 2)})
            case _:
                return clock(at)

    def offset(self, queue: int) -> QueueOffset:
        """Return a commit, or what a poll shows without one; each with or without what some sources lack."""
        offset, end, position = (self.choice((None, self.randrange(60))) for _ in range(3))
        moved = self.random() < 0.8
        found = QueueOffset(TOPICS[0], queue, None, offset, end_offset=end, moved=moved, position=position)
        message = self.choice((None, self.randrange(60)))
        return msgspec.structs.replace(found, written_offset=message, written_at=message and 100 * message)

    def stream(self, length: int, delay: int = LATENESS) -> list[AnyEvent]:
        """Return events in the order of their arrival, none later than by a delay; some come twice."""
        self.snapshots = self.random() < 0.5
        drawn = [(self.event(), self.randrange(delay + 1)) for _ in range(length)]
        drawn += [(self.choice(drawn)[0], self.randrange(delay + 1)) for _ in range(length // 10)]
        return [event for event, delay in sorted(drawn, key=lambda pair: pair[0].event_time + pair[1])]

    def standstill(self, length: int, delay: int = LATENESS) -> list[AnyEvent]:
        """Return a stream in which queues are written all the time, and read now and then by members that come and go.

        Nothing is late, for what is late counts in the batch that brings it.
        """
        ends_of = dict.fromkeys(range(3), 0)
        read = dict.fromkeys(((group, queue) for group in GROUPS[:2] for queue in ends_of), 0)
        events: list[AnyEvent] = [count(TOPICS[0], 3, 0)]
        generation = 0
        for step in range(length):
            at = 500 * step + self.choice((0, 0, 1, 499, self.randrange(500)))
            group, member = self.choice(GROUPS[:2]), self.choice(MEMBERS[:2])
            grown = self.sample(range(3), self.randrange(4))
            for queue in grown:
                ends_of[queue] += self.choice((0, 1, 5))
            grown_to = ends(TOPICS[0], at, **{f"q{queue}": ends_of[queue] for queue in grown})
            # Retention keeps the last few messages, and deletes three at a time.
            kept = (
                msgspec.structs.replace(end, start_offset=max(0, end.end_offset - 6) // 3 * 3)
                for end in grown_to.queues
            )
            events.append(msgspec.structs.replace(grown_to, queues=tuple(kept)))
            events += [beat(name, at, GROUPS[1]) for name in MEMBERS[:2] if self.random() < 0.8]
            kind = self.randrange(40)
            if kind < 12:
                queue = self.randrange(3)
                read[group, queue] = self.choice((read[group, queue], ends_of[queue], max(0, ends_of[queue] - 3)))
                events.append(progress(at, group, QueueOffset(TOPICS[0], queue, None, read[group, queue])))
            elif kind == 12 or step < 2:
                generation += 1
                cast = sorted(self.sample(MEMBERS, self.choice((1, 1, 2, 3))))
                events.append(snapshot(at, GROUPS[0], generation, cast, True, TOPICS[0], None))
            elif kind == 13 or step < 6:
                events.append(join(member, at, GROUPS[1], subscriptions=TOPICS[:1]))
            elif kind == 14:
                events.append(self.choice((leave(member, at, GROUPS[1]), deleted(at, group), clock(at))))
        delayed = [(event, self.randrange(delay)) for event in events]
        return [event for event, after in sorted(delayed, key=lambda pair: pair[0].event_time + pair[1])]

    def commits(self, length: int, delay: int = LATENESS) -> list[AnyEvent]:
        """Return a stream of standstills in which commits go back more often, and those of a group that only commits
        show are deleted, as the topic is.
        """
        events = self.standstill(length, delay=1)
        for number in range(self.randrange(40)):
            at, queue = self.randrange(500 * length), self.randrange(2)
            made = self.choice(("commit", "commit", "commit", "delete", "topic", "empty"))
            if made == "commit":
                group = self.choice((*GROUPS, GROUPS[2]))
                events.append(progress(at, group, QueueOffset(TOPICS[0], queue, None, self.randrange(3))))
            elif made == "delete":
                events.append(CommitsDeleted(**of_group(at, GROUPS[2]), queues=(QueueRef(TOPICS[0], queue),)))
            elif made == "topic":
                events.append(count(TOPICS[0], 3, at, topic_id=f"id{number}"))
            else:
                events.append(snapshot(at, GROUPS[0], 0, [], True, TOPICS[0], None))
        events.sort(key=lambda event: event.event_time)
        generation = 0
        for place, event in enumerate(events):
            if isinstance(event, GroupSnapshot):
                generation += 1
                events[place] = msgspec.structs.replace(event, generation=generation)
        delayed = [(event, self.randrange(delay)) for event in events]
        return [event for event, after in sorted(delayed, key=lambda pair: pair[0].event_time + pair[1])]

    def cut(self, stream: Sequence[AnyEvent]) -> list[Sequence[AnyEvent]]:
        """Cut a stream into batches: anything from one to one for each event."""
        often = self.choice((0, 0.05, 0.15, 0.4))
        edges = [0, *(place for place in range(1, len(stream)) if self.random() < often), len(stream)]
        return [stream[start:end] for start, end in pairwise(edges)]


dice = st.integers(0, 2**64).map(Dice)


lengths = st.integers(1, 50)


def config_of(shards: int) -> CoreConfig:
    """Return settings for short histories: queues stall within one."""
    return core_config(
        shards=shards,
        allowed_lateness_ms=LATENESS,
        queue_progress_ms=TIMEOUT,
        stalled_after_ms=1_500,
        stalled_first_ms=3_000,
    )


def run(
    logic: GroupLogic, batches: Sequence[Sequence[AnyEvent]], *, shards: int = 1, tasks: int = 1, ahead: int = FAR
) -> Cluster:
    cluster = Cluster(logic, config_of(shards))
    for number, batch in enumerate(batches):
        cluster.batch(*batch, tasks=tasks, batch_ms=ahead + number)
    return cluster


def finish(cluster: Cluster) -> list[bytes]:
    """Flush, and return all rows as a bag, without what may differ."""
    cluster.batch(clock(200_000), flush=True)
    return bag(cluster.rows)


def bag(rows: Sequence[Row]) -> list[bytes]:
    plain = []
    for row in rows:
        row = copy.copy(row)
        if isinstance(row, Rebalance):
            row.detected_at = 0
        if isinstance(row, Rejected):
            row.seen_at = 0
        plain.append(msgspec.json.encode(row, order="deterministic"))
    return sorted(plain)


def moved(cluster: Cluster, shards: int) -> tuple[Cluster, list[AnyEvent]]:
    """Return an empty cluster with another shard count, and the export of the old one."""
    exported: list[AnyEvent] = []
    for number, data in cluster.states.items():
        assert data is not None
        exported += export_shard(CLUSTER, number, data, cluster.config, cluster.logic)
    return Cluster(cluster.logic, config_of(shards)), exported
