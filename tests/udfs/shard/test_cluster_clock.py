"""How far a cluster's clock goes in a batch."""

from __future__ import annotations

from tests.core_config import core_config
from tests.udfs.shard.plain_group import PlainLogic
from tests.udfs.shard.sessions import closed, opened
from tests.udfs.shard.shard_script import FAR, T0, Cluster, clock, join


def test_events_strictly_before_the_clock_are_applied_and_the_rest_waits(cluster: Cluster) -> None:
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


def test_the_clock_never_moves_back(cluster: Cluster) -> None:
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


def test_when_too_much_waits_the_oldest_is_applied_before_its_time(logic: PlainLogic) -> None:
    cluster = Cluster(logic, core_config(shards=1, allowed_lateness_ms=2000, max_waiting_events=2))
    rows = cluster.batch(join("a", 0), join("b", 1), join("d", 2), batch_ms=FAR)
    assert opened(rows) == [("a", 0)]
