"""A shard: its clock, what waits, which groups it wakes, what it calls late."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core_config import core_config
from tests.udfs.shard.plain_group import PlainLogic
from tests.udfs.shard.shard_script import CLUSTER, FAR, T0, Cluster, beat, clock, count, join, leave
from udfs.model.journal import (
    Change,
    FindingClosed,
    FindingOpened,
    GroupChanged,
    MemberClosed,
    MemberOpened,
    TopicChanged,
)


@pytest.fixture
def logic() -> PlainLogic:
    return PlainLogic()


@pytest.fixture
def cluster(logic: PlainLogic) -> Cluster:
    return Cluster(logic)


def bodies(rows: list[Any], kind: type) -> list[Any]:
    return [row.body for row in rows if isinstance(row, Change) and isinstance(row.body, kind)]


def opened(rows: list[Any]) -> list[tuple[str, int]]:
    return [(body.member_id, body.joined_at - T0) for body in bodies(rows, MemberOpened)]


def closed(rows: list[Any]) -> list[tuple[str, int, str]]:
    return [(body.member_id, body.left_at - T0, body.left_reason) for body in bodies(rows, MemberClosed)]


def late(rows: list[Any]) -> list[tuple[str | None, str]]:
    return [(row.group_id, row.reason) for row in rows if hasattr(row, "reason")]


def test_what_lies_strictly_before_the_clock_is_applied_and_the_rest_waits(cluster: Cluster) -> None:
    assert opened(cluster.batch(join("m", 0))) == []  # the clock stands at 0
    assert opened(cluster.batch(clock(1))) == [("m", 0)]


def test_the_clock_lags_by_the_allowed_lateness(logic: PlainLogic) -> None:
    cluster = Cluster(logic, core_config(shards=1, allowed_lateness_ms=2000))
    assert opened(cluster.batch(join("m", 0), clock(2000))) == []
    assert opened(cluster.batch(clock(2001))) == [("m", 0)]


def test_the_clock_never_passes_the_batch_less_the_lateness(logic: PlainLogic) -> None:
    cluster = Cluster(logic, core_config(shards=1, allowed_lateness_ms=2000))
    assert opened(cluster.batch(join("m", 0), clock(99_000), batch_ms=T0 + 2000)) == []
    assert opened(cluster.batch(batch_ms=T0 + 2001)) == [("m", 0)]


def test_the_clock_never_goes_back(cluster: Cluster) -> None:
    cluster.batch(clock(100))
    assert opened(cluster.batch(join("m", 50), batch_ms=T0 + 10)) == [("m", 50)]


def test_a_flush_mark_applies_the_newest_event_too(cluster: Cluster) -> None:
    cluster.batch(join("m", 0))
    assert opened(cluster.batch(flush=True)) == [("m", 0)]


def test_a_tick_moves_the_clock_only_where_silence_expires(logic: PlainLogic) -> None:
    for silence, expected in (("wait", []), ("expire", [("m", 45_000, "expired")])):
        cluster = Cluster(logic, core_config(shards=1, allowed_lateness_ms=0, silence=silence))
        cluster.batch(join("m", 0), clock(1))
        assert closed(cluster.batch(tick_ms=T0 + 60_000)) == expected


def test_a_heartbeat_that_says_only_still_here_wakes_no_group(cluster: Cluster, logic: PlainLogic) -> None:
    cluster.batch(join("m", 0), clock(1))
    logic.told.clear()
    for at in range(10_000, 200_000, 10_000):
        assert cluster.batch(beat("m", at), clock(at + 1)) == []
    assert logic.told == []


@pytest.mark.parametrize(("clock_at", "expected"), [(44_999, []), (45_000, []), (45_001, [("m", 45_000, "expired")])])
def test_a_session_ends_when_the_clock_is_past_its_deadline(cluster: Cluster, clock_at: int, expected: list) -> None:
    cluster.batch(join("m", 0), clock(1))
    assert closed(cluster.batch(clock(clock_at))) == expected


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("at", "gap"), [(44_999, False), (45_000, False), (45_001, True)])
def test_a_heartbeat_beyond_the_deadline_does_not_hide_the_gap(cluster: Cluster, at: int, gap: bool, cut: bool) -> None:
    cluster.batch(join("m", 0), clock(1))
    rows = cluster.batch(beat("m", at), beat("m", at + 40_000)) if cut else []
    rows += cluster.batch(beat("m", at), beat("m", at + 40_000), clock(at + 40_001))
    assert closed(rows) == ([("m", 45_000, "expired")] if gap else [])
    assert opened(rows) == ([("m", at)] if gap else [])


def test_a_chain_of_heartbeats_longer_than_a_timeout_hides_nothing(cluster: Cluster, logic: PlainLogic) -> None:
    cluster.batch(join("m", 0), clock(1))
    logic.told.clear()
    assert cluster.batch(beat("m", 90_000), beat("m", 45_000), clock(90_001)) == []
    assert logic.told == []


def test_a_heartbeat_of_an_unknown_member_joins_when_it_is_due(cluster: Cluster) -> None:
    assert opened(cluster.batch(beat("m", 5))) == []
    assert opened(cluster.batch(clock(6))) == [("m", 5)]


def test_a_waiting_heartbeat_outlives_its_members_departure(cluster: Cluster) -> None:
    cluster.batch(join("m", 0), clock(1))
    cluster.batch(beat("m", 30))
    assert closed(cluster.batch(leave("m", 20))) == [("m", 20, "left")]
    assert opened(cluster.batch(clock(31))) == [("m", 30)]


def test_a_late_event_is_listed_and_marked(cluster: Cluster, logic: PlainLogic) -> None:
    cluster.batch(join("m", 0), leave("m", 100), clock(200))
    rows = cluster.batch(join("n", 99))
    assert late(rows) == [("g", "late")]
    assert [due.late for due in logic.told[-1].events] == [True]


def test_an_event_behind_the_clock_is_not_late_if_its_group_has_seen_nothing_newer(
    cluster: Cluster, logic: PlainLogic
) -> None:
    cluster.batch(join("m", 0), leave("m", 100), clock(200))
    rows = cluster.batch(join("n", 100))
    assert late(rows) == []
    assert opened(rows) == [("n", 100)]


def test_a_late_heartbeat_of_a_live_member_only_counts_for_that_member(cluster: Cluster, logic: PlainLogic) -> None:
    cluster.batch(join("m", 0), join("n", 0), clock(1))
    cluster.batch(leave("n", 40_000), clock(44_000))
    assert late(cluster.batch(beat("m", 30_000))) == []  # older than n's leaving, and it counts
    assert closed(cluster.batch(clock(75_000))) == []
    assert closed(cluster.batch(clock(75_001))) == [("m", 75_000, "expired")]


def test_a_late_heartbeat_that_proves_an_expiry_wrong_reaches_the_group(cluster: Cluster, logic: PlainLogic) -> None:
    cluster.batch(join("m", 0), clock(50_000))
    rows = cluster.batch(beat("m", 44_000))
    assert late(rows) == [("g", "late")]
    [due] = logic.told[-1].events
    assert (due.late, due.event.event_time - T0, due.event.member_id) == (True, 44_000, "m")


def test_a_late_heartbeat_from_before_a_members_second_session_reaches_the_group(
    cluster: Cluster, logic: PlainLogic
) -> None:
    cluster.batch(join("m", 0), clock(50_000))
    cluster.batch(beat("m", 60_000), clock(60_001))
    cluster.batch(beat("m", 44_000))
    assert [(due.late, due.event.event_time - T0) for due in logic.told[-1].events] == [(True, 44_000)]


def test_a_repeated_event_that_comes_late_is_a_repeat(cluster: Cluster, logic: PlainLogic) -> None:
    cluster.batch(join("m", 0), leave("m", 100), clock(200))
    assert cluster.batch(join("m", 0)) == []


@pytest.mark.parametrize(("gap", "repeat"), [(599_999, True), (600_000, True), (600_001, False)])
def test_an_id_is_remembered_for_the_span(cluster: Cluster, gap: int, repeat: bool) -> None:
    cluster.batch(join("m", 0, event_id="x"), leave("m", 10), clock(11))
    rows = cluster.batch(join("m", gap, event_id="x"), clock(gap + 1))
    assert opened(rows) == ([] if repeat else [("m", gap)])


def test_a_changed_topic_wakes_its_subscribers_and_nobody_else(cluster: Cluster, logic: PlainLogic) -> None:
    cluster.batch(join("m", 0, "g", subscriptions=("t",)), join("n", 0, "h", subscriptions=("u",)), clock(1))
    logic.told.clear()
    rows = cluster.batch(count("t", 4, 5), clock(6))
    assert [facts.group_id for facts in logic.told] == ["g"]
    assert [(row.group_id, row.body.queues) for row in rows if isinstance(row.body, GroupChanged)] == [("g", 4)]


def test_an_unchanged_count_changes_nothing(cluster: Cluster, logic: PlainLogic) -> None:
    cluster.batch(join("m", 0, subscriptions=("t",)), count("t", 4, 1), clock(5))
    logic.told.clear()
    assert cluster.batch(count("t", 4, 10), clock(11)) == []
    assert logic.told == []


def test_a_group_sees_each_moment_of_a_topic_as_it_was(cluster: Cluster) -> None:
    rows = cluster.batch(
        count("t", 4, 10), count("t", 8, 30), join("m", 5, subscriptions=("t",)), join("n", 20), clock(31)
    )
    assert [(row.event_time - T0, row.body.queues) for row in rows if isinstance(row.body, GroupChanged)] == [
        (5, 0),
        (10, 4),
        (20, 4),
        (30, 8),
    ]


def test_a_member_that_returns_brings_its_topic_back_in_the_batch_in_which_it_changes(cluster: Cluster) -> None:
    cluster.batch(join("m", 0, subscriptions=("t",)), leave("m", 10), clock(11))
    rows = cluster.batch(beat("m", 20), count("t", 4, 30), clock(31))
    assert [row.body.queues for row in rows if isinstance(row.body, GroupChanged)] == [0, 4]


def test_a_topic_is_written_by_its_home_only(logic: PlainLogic) -> None:
    cluster = Cluster(logic, core_config(shards=4, allowed_lateness_ms=0))
    rows = cluster.batch(count("t", 4, 1), clock(2))
    assert [(body.topic, body.queue_count) for body in bodies(rows, TopicChanged)] == [("t", 4)]


def test_an_older_count_changes_nothing_and_is_listed_once(logic: PlainLogic) -> None:
    cluster = Cluster(logic, core_config(shards=4, allowed_lateness_ms=0))
    cluster.batch(count("t", 4, 10), clock(20))
    rows = cluster.batch(count("t", 8, 9))
    assert bodies(rows, TopicChanged) == []
    assert late(rows) == [(None, "late")]


def test_commits_wake_nobody_and_are_told_when_something_else_does(cluster: Cluster, logic: PlainLogic) -> None:
    from udfs.model.events import Progress, QueueOffset
    from udfs.packets.packet import queue_key

    def commit(at: int) -> Progress:
        queues = (QueueOffset("t", 0), QueueOffset("t", 1))
        return Progress(schema_version=1, event_time=T0 + at, system="kafka", cluster=CLUSTER, group="g", queues=queues)

    cluster.batch(join("m", 0), clock(1))
    logic.told.clear()
    cluster.batch(commit(10), commit(20), clock(25))
    cluster.batch(commit(40))
    assert logic.told == []
    cluster.batch(commit(30), leave("m", 35), clock(36))
    key = queue_key("t", None, 1)
    assert [at - T0 for at in logic.told[-1].progress[key]] == [20, 30]


def test_a_silent_source_is_found_from_its_last_event_to_its_next(cluster: Cluster) -> None:
    cluster.batch(clock(0))
    assert bodies(cluster.batch(clock(60_000), clock(60_001)), FindingOpened) == []
    rows = cluster.batch(clock(120_002), clock(120_003))
    [finding] = bodies(rows, FindingOpened)
    [end] = bodies(rows, FindingClosed)
    assert (finding.finding, finding.opened_at - T0, end.closed_at - T0) == ("source_silent", 120_001, 120_002)


def test_a_silence_mark_opens_the_finding_before_the_source_returns(cluster: Cluster) -> None:
    cluster.batch(clock(0))
    [finding] = bodies(cluster.batch(silence_ms=T0 + 60_001), FindingOpened)
    assert finding.opened_at == T0 + 60_000
    assert cluster.batch(silence_ms=T0 + 90_000) == []
    rows = cluster.batch(clock(100_000), clock(100_001))
    assert [body.closed_at - T0 for body in bodies(rows, FindingClosed)] == [100_000]
    assert bodies(rows, FindingOpened) == []


def test_two_members_of_one_key_are_told_apart(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    import udfs.shard.group_dispatcher
    import udfs.shard.shard
    import udfs.shard.state

    def same(ids: list[str]) -> Any:
        return np.full(len(ids), 7 << 24, dtype=np.uint64)

    monkeypatch.setattr(udfs.shard.shard, "cut_keys", same)
    monkeypatch.setattr(udfs.shard.group_dispatcher, "cut_keys", same)
    monkeypatch.setattr(udfs.shard.state, "cut_keys", same)
    cluster.batch(join("m", 0), join("n", 0), clock(1))
    assert cluster.batch(beat("m", 40_000), clock(45_000)) == []
    assert closed(cluster.batch(clock(45_001))) == [("n", 45_000, "expired")]
    assert closed(cluster.batch(clock(85_001))) == [("m", 85_000, "expired")]


def test_when_too_much_waits_the_oldest_is_applied_before_its_time(logic: PlainLogic) -> None:
    cluster = Cluster(logic, core_config(shards=1, allowed_lateness_ms=2000, max_waiting_events=2))
    rows = cluster.batch(join("a", 0), join("b", 1), join("d", 2), batch_ms=FAR)
    assert opened(rows) == [("a", 0)]
