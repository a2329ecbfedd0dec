"""A shard: its clock, what waits, which groups it wakes, what it calls late."""

from __future__ import annotations

import pytest

from tests.core_config import core_config
from tests.udfs.shard.plain_group import PlainLogic
from tests.udfs.shard.sessions import bodies, closed, late, opened
from tests.udfs.shard.shard_script import CLUSTER, T0, Cluster, beat, clock, count, join, leave
from udfs.model.journal import ClusterBegun, FindingClosed, FindingOpened, TopicChanged


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
    logic.inputs.clear()
    assert cluster.batch(beat("m", 90_000), beat("m", 45_000), clock(90_001)) == []
    assert logic.inputs == []


def test_a_heartbeat_of_an_unknown_member_joins_when_it_is_due(cluster: Cluster) -> None:
    assert opened(cluster.batch(beat("m", 5))) == []
    assert opened(cluster.batch(clock(6))) == [("m", 5)]


def test_a_waiting_heartbeat_outlives_its_members_departure(cluster: Cluster) -> None:
    cluster.batch(join("m", 0), clock(1))
    cluster.batch(beat("m", 30))
    assert closed(cluster.batch(leave("m", 20))) == [("m", 20, "left")]
    assert opened(cluster.batch(clock(31))) == [("m", 30)]


@pytest.mark.parametrize(("gap", "repeat"), [(599_999, True), (600_000, True), (600_001, False)])
def test_an_id_is_remembered_for_the_span(cluster: Cluster, gap: int, repeat: bool) -> None:
    cluster.batch(join("m", 0, event_id="x"), leave("m", 10), clock(11))
    rows = cluster.batch(join("m", gap, event_id="x"), clock(gap + 1))
    assert opened(rows) == ([] if repeat else [("m", gap)])


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


def test_a_silent_source_is_found_from_its_last_event_to_its_next(cluster: Cluster) -> None:
    cluster.batch(clock(0))
    assert bodies(cluster.batch(clock(60_000), clock(60_001)), FindingOpened) == []
    rows = cluster.batch(clock(120_002), clock(120_003))
    [finding] = bodies(rows, FindingOpened)
    [end] = bodies(rows, FindingClosed)
    assert (finding.finding, finding.opened_at - T0, end.closed_at - T0) == ("source_silent", 120_001, 120_002)


def test_each_batch_with_events_shows_how_far_the_cluster_is_known(cluster: Cluster) -> None:
    cluster.batch(clock(5), clock(0), batch_ms=T0 + 10)
    cluster.batch(batch_ms=T0 + 20)
    cluster.batch(clock(30_000), clock(7), batch_ms=T0 + 30)  # one producer's clock is ahead
    found = [(row.system, row.latest_ms - T0, row.newest_ms - T0) for row in cluster.observed]
    assert found == [("kafka", 5, 5), ("kafka", 7, 30_000)]


@pytest.mark.parametrize(("silence", "begun"), [("expire", [CLUSTER]), ("wait", [])])
def test_a_cluster_is_named_with_its_first_state_if_silence_expires(silence: str, begun: list[str]) -> None:
    cluster = Cluster(PlainLogic(), core_config(shards=1, allowed_lateness_ms=2_000, silence=silence))
    first = cluster.batch(join("m", 0))  # not before the clock: nothing is decided of it
    assert [row.cluster for row in first if isinstance(row, ClusterBegun)] == begun
    assert not [row for row in first if not isinstance(row, ClusterBegun)]
    assert [row for row in cluster.batch(join("n", 1)) if isinstance(row, ClusterBegun)] == []
