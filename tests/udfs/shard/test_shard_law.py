"""The law: what is decided does not depend on how events are cut into batches, tasks and shards, nor on whether
the state went through an export in between."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from itertools import pairwise

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core_config import core_config
from tests.udfs.shard.plain_group import PlainLogic
from tests.udfs.shard.shard_script import CLUSTER, FAR, SYSTEM, T0, Cluster, beat, clock, count, join, leave
from udfs.group import coordinator
from udfs.model.events import (
    AnyEvent,
    AssignmentReported,
    Clock,
    GroupDeleted,
    GroupSettings,
    GroupSnapshot,
    MemberInfo,
    Mode,
    Progress,
    QueueOffset,
    QueueRef,
    TopicQueues,
)
from udfs.model.group_api import GroupLogic
from udfs.model.journal import Rebalance, Rejected
from udfs.packets.packet import carry_event, group_key, shard_of
from udfs.shard.savepoint import export_shard
from udfs.shard.shard import Row

LATENESS = 2_000
TIMEOUT = 10_000
TIMEOUTS = (TIMEOUT, TIMEOUT, TIMEOUT // 2, 2 * TIMEOUT)
GROUPS = ("g", "h", "i")
MEMBERS = ("a", "b", "c", "d")
TOPICS = ("t", "u")


def commit(at: int, group: str, queue: int) -> Progress:
    queues = (QueueOffset(TOPICS[0], queue),)
    return Progress(schema_version=1, event_time=T0 + at, system=SYSTEM, cluster=CLUSTER, group=group, queues=queues)


def deleted(at: int, group: str) -> GroupDeleted:
    return GroupDeleted(schema_version=1, event_time=T0 + at, system=SYSTEM, cluster=CLUSTER, group=group)


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
        schema_version=1,
        event_time=T0 + at,
        system=SYSTEM,
        cluster=CLUSTER,
        group=group,
        generation=generation,
        state="Stable" if members else "Empty",
        members=infos,
        assignments=queues if held else None,
    )


def report(at: int, group: str, member: str, generation: int | None, queue: int) -> AssignmentReported:
    return AssignmentReported(
        schema_version=1,
        event_time=T0 + at,
        system=SYSTEM,
        cluster=CLUSTER,
        group=group,
        member_id=member,
        generation=generation,
        queues=(QueueRef(TOPICS[0], queue),),
    )


def change(at: int, group: str, strategy: str | None, mode: Mode | None) -> GroupSettings:
    return GroupSettings(
        schema_version=1,
        event_time=T0 + at,
        system=SYSTEM,
        cluster=CLUSTER,
        group=group,
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
        kind = self.randrange(20)
        if kind < 8:
            return beat(member, at, group)
        if kind < 12:
            told = {"subscriptions": topics, "session_timeout_ms": self.choice(TIMEOUTS), "event_id": event_id}
            return join(member, at, group, instance_id=self.choice((None, None, "i")), **told)
        match kind:
            case 12:
                return beat(member, at, group, subscriptions=topics)
            case 13:
                return leave(member, at, group)
            case 14 | 15:
                return count(topic, self.randrange(7), at, event_id=event_id)
            case 16:
                return self.choice((clock(at), commit(at, group, self.randrange(3))))
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
            case _:
                return clock(at)

    def stream(self, length: int, delay: int = LATENESS) -> list[AnyEvent]:
        """Return events in the order of their arrival, none later than by a delay; some come twice."""
        self.snapshots = self.random() < 0.5
        drawn = [(self.event(), self.randrange(delay + 1)) for _ in range(length)]
        drawn += [(self.choice(drawn)[0], self.randrange(delay + 1)) for _ in range(length // 10)]
        return [event for event, delay in sorted(drawn, key=lambda one: one[0].event_time + one[1])]

    def cut(self, stream: Sequence[AnyEvent]) -> list[Sequence[AnyEvent]]:
        """Cut a stream into batches: anything from one to one for each event."""
        often = self.choice((0, 0.05, 0.15, 0.4))
        edges = [0, *(place for place in range(1, len(stream)) if self.random() < often), len(stream)]
        return [stream[start:end] for start, end in pairwise(edges)]


dice = st.integers(0, 2**64).map(Dice)
lengths = st.integers(1, 50)


def run(
    logic: GroupLogic, batches: Sequence[Sequence[AnyEvent]], *, shards: int = 1, tasks: int = 1, ahead: int = FAR
) -> Cluster:
    cluster = Cluster(logic, core_config(shards=shards, allowed_lateness_ms=LATENESS))
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


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(dice=dice, length=lengths, shards=st.integers(1, 3), tasks=st.integers(1, 3))
def test_rows_do_not_depend_on_how_the_input_was_cut(dice: Dice, length: int, shards: int, tasks: int) -> None:
    stream = dice.stream(length)
    first = run(coordinator, dice.cut(stream))
    second = run(coordinator, dice.cut(stream), shards=shards, tasks=tasks, ahead=FAR + 10**6)
    assert finish(first) == finish(second)


def moved(cluster: Cluster, shards: int) -> tuple[Cluster, list[AnyEvent]]:
    """Return an empty cluster with another shard count, and the export of the old one."""
    exported: list[AnyEvent] = []
    for number, data in cluster.states.items():
        assert data is not None
        exported += export_shard(CLUSTER, number, data, cluster.rules, cluster.logic)
    return Cluster(cluster.logic, core_config(shards=shards, allowed_lateness_ms=LATENESS)), exported


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(dice=dice, length=lengths, before=st.integers(1, 3), after=st.integers(1, 3), flush=st.booleans())
def test_a_state_that_moves_to_another_shard_count_goes_on_as_if_undisturbed(
    dice: Dice, length: int, before: int, after: int, flush: bool
) -> None:
    stream = dice.stream(length)
    place = dice.randrange(length + 1)
    first, second = dice.cut(stream[:place]), stream[place:]
    undisturbed = run(coordinator, first, shards=before)
    source = run(coordinator, first, shards=before)
    if flush:  # then what follows may be late, in both
        undisturbed.batch(flush=True)
        source.batch(flush=True)
    target, exported = moved(source, after)
    assert target.batch(*exported) == []
    target.rows = list(source.rows)
    target.batch(*second)
    undisturbed.batch(*second)
    assert finish(target) == finish(undisturbed)


def test_an_export_is_events_of_the_contract_that_say_they_are_restored() -> None:
    cluster = run(PlainLogic(), [[join("a", 0), beat("b", 5_000, "h"), count("t", 3, 0), clock(5_000)]], shards=2)
    _, exported = moved(cluster, 3)
    restored = [event for event in exported if isinstance(event, Clock | TopicQueues | GroupSnapshot)]
    assert [(type(event), event.restored) for event in restored] == [
        (Clock, True),
        (GroupSnapshot, True),
        (TopicQueues, True),
    ]
    # What its clock has not reached is exported as it came.
    assert [event for event in exported if event not in restored] == [beat("b", 5_000, "h")]
    for event in exported:
        assert msgspec.json.decode(msgspec.json.encode(event), type=AnyEvent) == event


def test_a_restored_group_that_is_known_already_is_left_as_it_is_and_said() -> None:
    cluster = run(PlainLogic(), [[join("a", 0), clock(5_000)]])
    _, exported = moved(cluster, 1)
    rows = cluster.batch(*exported)
    assert [row.reason for row in rows if isinstance(row, Rejected)] == ["restored_known_already"]


@pytest.mark.parametrize(
    ("damage", "word"), [("!", "cannot be read"), ("AAAA", "cannot be read"), ("kWM=", "encoding 99")]
)
def test_a_damaged_or_newer_export_is_rejected_and_stops_nothing(damage: str, word: str) -> None:
    cluster = run(PlainLogic(), [[join("a", 0), clock(5_000)]])
    target, exported = moved(cluster, 1)
    [snapshot] = [event for event in exported if isinstance(event, GroupSnapshot)]
    snapshot.restored_group = damage
    rows = target.batch(*exported)
    assert [(row.reason, word in row.detail) for row in rows if isinstance(row, Rejected)] == [
        ("restored_unreadable", True)
    ]


def test_a_group_goes_to_the_shard_of_its_key() -> None:
    cluster = run(PlainLogic(), [[join("a", 0, name) for name in GROUPS], [clock(5_000)]], shards=3)
    for name in GROUPS:
        home = shard_of(group_key(CLUSTER, name), 3)
        state = cluster.states[home]
        assert state is not None
        names = [
            event.group
            for event in export_shard(CLUSTER, home, state, cluster.rules, cluster.logic)
            if isinstance(event, GroupSnapshot)
        ]
        assert name in names


def test_an_events_content_is_the_same_after_an_export() -> None:
    event = join("a", 0, subscriptions=("t",))
    carried = carry_event(event, "", "")
    again = carry_event(msgspec.json.decode(carried.content, type=AnyEvent), "", "")
    assert (again.event_id, again.content) == (carried.event_id, carried.content)
