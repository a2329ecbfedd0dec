"""The law: what is decided does not depend on how events are cut into batches, tasks and shards, nor on whether
the state went through an export in between."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import pairwise

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.udfs.plain_group import PlainLogic
from tests.udfs.shard_script import CLUSTER, FAR, SYSTEM, T0, Cluster, beat, clock, count, join, leave
from udfs import group as group_logic
from udfs.events import AnyEvent, Clock, GroupDeleted, GroupSnapshot, Progress, QueueOffset, TopicQueues
from udfs.facts import GroupLogic
from udfs.journal import Rebalance, Rejected
from udfs.packing import carry_event, group_key, shard_of
from udfs.restoring import export_shard
from udfs.rules import Rules
from udfs.shard import Row

LATENESS = 2_000
TIMEOUT = 10_000
GROUPS = ("g", "h", "i")
MEMBERS = ("a", "b", "c", "d")
TOPICS = ("t", "u")

LOGICS = [pytest.param(PlainLogic(), id="plain"), pytest.param(group_logic, id="real")]


def commit(at: int, group: str, queue: int) -> Progress:
    queues = (QueueOffset(TOPICS[0], queue),)
    return Progress(schema_version=1, event_time=T0 + at, system=SYSTEM, cluster=CLUSTER, group=group, queues=queues)


def deleted(at: int, group: str) -> GroupDeleted:
    return GroupDeleted(schema_version=1, event_time=T0 + at, system=SYSTEM, cluster=CLUSTER, group=group)


# Steps rather than any millisecond: the same moment, a timeout and one more, and a span must come up often.
times = st.builds(
    lambda step, off: step * TIMEOUT // 2 + off, st.integers(0, 24), st.sampled_from([0, 0, 0, 1, -1, 700, 1_999])
).map(lambda at: max(at, 0))
groups, members = st.sampled_from(GROUPS), st.sampled_from(MEMBERS)
subscriptions = st.sampled_from([None, (), TOPICS[:1], TOPICS[1:], TOPICS])
ids = st.sampled_from([None, None, None, "x", "y"])
events = st.one_of(
    st.builds(lambda at, g, m: beat(m, at, g), times, groups, members),
    st.builds(lambda at, g, m: beat(m, at, g), times, groups, members),
    st.builds(
        lambda at, g, m, s, i: join(m, at, g, subscriptions=s, session_timeout_ms=TIMEOUT, event_id=i),
        times,
        groups,
        members,
        subscriptions,
        ids,
    ),
    st.builds(lambda at, g, m, s: beat(m, at, g, subscriptions=s), times, groups, members, subscriptions),
    st.builds(lambda at, g, m: leave(m, at, g), times, groups, members),
    st.builds(lambda at, t, n, i: count(t, n, at, event_id=i), times, st.sampled_from(TOPICS), st.integers(0, 6), ids),
    st.builds(commit, times, groups, st.integers(0, 2)),
    st.builds(deleted, times, groups),
    st.builds(clock, times),
)


class Stream(msgspec.Struct):
    """Events in the order of their arrival: disorder stays within the lateness."""

    events: list[AnyEvent]


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    drawn = draw(st.lists(st.tuples(events, st.integers(0, LATENESS)), min_size=1, max_size=40))
    repeated = draw(st.lists(st.tuples(st.integers(0, len(drawn) - 1), st.integers(0, LATENESS)), max_size=4))
    drawn += [(drawn[index][0], delay) for index, delay in repeated]
    arrival = sorted(range(len(drawn)), key=lambda index: drawn[index][0].event_time + drawn[index][1])
    return Stream([drawn[index][0] for index in arrival])


cuts = st.lists(st.integers(0, 44), max_size=6)


def batches_of(stream: Stream, cut: Sequence[int]) -> list[list[AnyEvent]]:
    edges = [0, *sorted(min(place, len(stream.events)) for place in cut), len(stream.events)]
    return [stream.events[start:end] for start, end in pairwise(edges)]


def run(
    logic: GroupLogic, batches: Sequence[Sequence[AnyEvent]], *, shards: int = 1, tasks: int = 1, ahead: int = FAR
) -> Cluster:
    cluster = Cluster(logic, Rules(shards=shards, allowed_lateness_ms=LATENESS))
    for number, batch in enumerate(batches):
        cluster.batch(*batch, tasks=tasks, batch_ms=ahead + number)
    return cluster


def finish(cluster: Cluster) -> list[bytes]:
    """Flush, and answer all rows as a bag, without what may differ."""
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


@pytest.mark.parametrize("logic", LOGICS)
@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(stream=streams(), one=cuts, other=cuts, shards=st.integers(1, 3), tasks=st.integers(1, 3))
def test_rows_do_not_depend_on_how_the_input_was_cut(
    logic: GroupLogic, stream: Stream, one: list[int], other: list[int], shards: int, tasks: int
) -> None:
    first = run(logic, batches_of(stream, one))
    second = run(logic, batches_of(stream, other), shards=shards, tasks=tasks, ahead=FAR + 10**6)
    assert finish(first) == finish(second)


def moved(cluster: Cluster, shards: int) -> tuple[Cluster, list[AnyEvent]]:
    """Answer an empty cluster with another shard count, and the export of the old one."""
    exported: list[AnyEvent] = []
    for number, data in cluster.states.items():
        assert data is not None
        exported += export_shard(CLUSTER, number, data, cluster.rules, cluster.logic)
    return Cluster(cluster.logic, Rules(shards=shards, allowed_lateness_ms=LATENESS)), exported


@pytest.mark.parametrize("logic", LOGICS)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(stream=streams(), cut=st.integers(0, 44), before=st.integers(1, 3), after=st.integers(1, 3), flush=st.booleans())
def test_a_state_that_moves_to_another_shard_count_goes_on_as_if_undisturbed(
    logic: GroupLogic, stream: Stream, cut: int, before: int, after: int, flush: bool
) -> None:
    first, second = stream.events[:cut], stream.events[cut:]
    undisturbed = run(logic, [first], shards=before)
    source = run(logic, [first], shards=before)
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
    assert [type(event) for event in restored if event.restored] == [Clock, TopicQueues, GroupSnapshot] or {
        type(event) for event in restored
    } == {Clock, TopicQueues, GroupSnapshot}
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
