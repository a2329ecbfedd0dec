"""Which groups decide in a batch, and what each of them gets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.udfs.shard.plain_group import PlainLogic
from tests.udfs.shard.sessions import closed
from tests.udfs.shard.shard_script import CLUSTER, T0, Cluster, beat, clock, count, join, leave
from udfs.model.journal import GroupChanged


def test_a_bare_heartbeat_of_a_live_member_wakes_no_group(cluster: Cluster, logic: PlainLogic) -> None:
    cluster.batch(join("m", 0), clock(1))
    logic.inputs.clear()
    for at in range(10_000, 200_000, 10_000):
        assert cluster.batch(beat("m", at), clock(at + 1)) == []
    assert logic.inputs == []


def test_a_changed_topic_wakes_its_subscribers_and_no_other_group(cluster: Cluster, logic: PlainLogic) -> None:
    cluster.batch(join("m", 0, "g", subscriptions=("t",)), join("n", 0, "h", subscriptions=("u",)), clock(1))
    logic.inputs.clear()
    rows = cluster.batch(count("t", 4, 5), clock(6))
    assert [facts.group_id for facts in logic.inputs] == ["g"]
    assert [(row.group_id, row.body.queues) for row in rows if isinstance(row.body, GroupChanged)] == [("g", 4)]


def test_an_unchanged_count_changes_nothing(cluster: Cluster, logic: PlainLogic) -> None:
    cluster.batch(join("m", 0, subscriptions=("t",)), count("t", 4, 1), clock(5))
    logic.inputs.clear()
    assert cluster.batch(count("t", 4, 10), clock(11)) == []
    assert logic.inputs == []


def test_a_group_gets_a_topic_as_it_was_at_each_event_time(cluster: Cluster) -> None:
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


def test_only_the_first_commits_wake_a_group_and_later_ones_come_with_what_does(
    cluster: Cluster, logic: PlainLogic
) -> None:
    from udfs.model.events import Progress, QueueOffset
    from udfs.packets.packet import queue_key

    def commit(at: int) -> Progress:
        queues = (QueueOffset("t", 0), QueueOffset("t", 1))
        return Progress(schema_version=1, event_time=T0 + at, system="kafka", cluster=CLUSTER, group="g", queues=queues)

    cluster.batch(join("m", 0), commit(0), clock(1))
    logic.inputs.clear()
    cluster.batch(commit(10), commit(20), clock(25))
    cluster.batch(commit(40))
    assert logic.inputs == []
    cluster.batch(commit(30), leave("m", 35), clock(36))
    key = queue_key("t", None, 1)
    assert [at - T0 for at in logic.inputs[-1].progress[key]] == [20, 30]


def test_two_members_of_one_key_have_sessions_of_their_own(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    import udfs.shard.shard
    import udfs.shard.shard_groups
    import udfs.shard.state

    def same(ids: list[str]) -> Any:
        return np.full(len(ids), 7 << 24, dtype=np.uint64)

    monkeypatch.setattr(udfs.shard.shard, "cut_keys", same)
    monkeypatch.setattr(udfs.shard.shard_groups, "cut_keys", same)
    monkeypatch.setattr(udfs.shard.state, "cut_keys", same)
    cluster.batch(join("m", 0), join("n", 0), clock(1))
    assert cluster.batch(beat("m", 40_000), clock(45_000)) == []
    assert closed(cluster.batch(clock(45_001))) == [("n", 45_000, "expired")]
    assert closed(cluster.batch(clock(85_001))) == [("m", 85_000, "expired")]
