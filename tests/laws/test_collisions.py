"""Groups, topics, members and events whose hashes are equal by chance are kept apart, or listed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import udfs.ingest.heartbeat_columns
import udfs.packets.packet
import udfs.shard.shard
import udfs.shard.shard_groups
import udfs.shard.state
from tests.udfs.shard.plain_group import PlainLogic
from tests.udfs.shard.shard_script import Cluster, beat, clock, count, join, leave
from tests.udfs.shard.state_samples import RULES, described, snapshot
from udfs.group import coordinator as group_logic
from udfs.model.journal import Change, MemberClosed, MemberOpened, Rejected, TopicChanged
from udfs.packets.packet import hash_texts
from udfs.shard.deduplication import id_key

ONE, TWO = "one", "two"


@pytest.fixture
def one_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give all names with the same beginning the same hash."""

    def same(texts: Any) -> Any:
        return hash_texts([text.rstrip("0123456789").removesuffix(ONE).removesuffix(TWO) for text in texts])

    for module in (udfs.packets.packet, udfs.shard.state):
        monkeypatch.setattr(module, "hash_texts", same)


def bodies(rows: Any, kind: type[Any]) -> list[tuple[str | None, Any]]:
    return [(row.group_id, row.body) for row in rows if isinstance(row, Change) and isinstance(row.body, kind)]


def refused(rows: Any) -> list[tuple[str, str | None]]:
    return [(row.reason, row.group_id) for row in rows if isinstance(row, Rejected)]


@pytest.mark.usefixtures("one_hash")
@pytest.mark.parametrize("batches", [1, 2])
def test_two_groups_of_one_key_are_never_merged_and_the_second_is_listed(batches: int) -> None:
    cluster = Cluster(PlainLogic())
    first, second = [join("m", 0, f"g-{ONE}")], [join("n", 0, f"g-{TWO}"), leave("m", 0, f"g-{TWO}")]
    rows = (
        cluster.batch(*first, *second, clock(1))
        if batches == 1
        else [
            *cluster.batch(*first, clock(1)),
            *cluster.batch(*second, clock(2)),
        ]
    )
    assert [(group, body.member_id) for group, body in bodies(rows, MemberOpened)] == [(f"g-{ONE}", "m")]
    assert bodies(rows, MemberClosed) == []
    assert refused(rows) == [("group_key_collision", f"g-{TWO}")] * 2
    # A heartbeat of a member that the first group does not know proves nothing about that group.
    rows = cluster.batch(beat("stranger", 5, f"g-{TWO}"), clock(10))
    assert bodies(rows, MemberOpened) == []
    assert refused(rows) == [("group_key_collision", f"g-{TWO}")]
    assert bodies(cluster.batch(join("k", 20, f"g-{ONE}"), clock(30)), MemberOpened)[0][0] == f"g-{ONE}"


@pytest.mark.usefixtures("one_hash")
@pytest.mark.parametrize("batches", [1, 2])
def test_two_topics_of_one_key_are_never_merged_and_the_second_is_listed(batches: int) -> None:
    cluster = Cluster(PlainLogic())
    first, second = count(f"t-{ONE}", 3, 0), count(f"t-{TWO}", 9, 1)
    rows = (
        cluster.batch(first, second, clock(2))
        if batches == 1
        else [
            *cluster.batch(first, clock(1)),
            *cluster.batch(second, clock(2)),
        ]
    )
    assert [(body.topic, body.queue_count) for _, body in bodies(rows, TopicChanged)] == [(f"t-{ONE}", 3)]
    assert refused(rows) == [("topic_key_collision", None)]
    [(_, grown)] = bodies(cluster.batch(count(f"t-{ONE}", 4, 5), clock(6)), TopicChanged)
    assert (grown.topic, grown.queue_count) == (f"t-{ONE}", 4)


def history(cluster: Cluster) -> list[Any]:
    cluster.batch(count("orders", 6, 0), described("m-1", 1, "g"), described("m-2", 2, "g"), clock(5_000))
    cluster.batch(beat("m-1", 6_000, "g"), beat("m-2", 6_100, "g"), clock(9_000))
    cluster.batch(described("m-3", 10_000, "g"), leave("m-1", 11_000, "g"), clock(15_000))
    cluster.batch(beat("m-3", 40_000, "g"), snapshot(1_000, "live", 3, ("m-4", "m-5")), clock(45_000))
    cluster.batch(snapshot(46_000, "live", 4, ("m-5",)), clock(70_000))
    cluster.batch(clock(140_000))
    return cluster.rows


def test_members_of_one_key_have_the_history_of_members_of_different_keys(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = history(Cluster(group_logic, RULES))

    def same(member_ids: list[str]) -> Any:
        return np.full(len(member_ids), 7 << 24, dtype=np.uint64)

    for module in (udfs.shard.shard, udfs.shard.shard_groups, udfs.shard.state):
        monkeypatch.setattr(module, "cut_keys", same)
    merged = history(Cluster(group_logic, RULES))
    assert merged == apart
    assert len([body for _, body in bodies(apart, MemberOpened)]) == 5


def test_the_key_of_an_id_has_64_bits() -> None:
    keys = [id_key(f"event-{number}") for number in range(4_096)]
    assert len({key >> 32 for key in keys}) == len({key & 0xFFFFFFFF for key in keys}) == len(keys)
    # Each bit of the 64 is set in about half of the keys: within six standard deviations.
    for bit in range(64):
        assert abs(sum(key >> bit & 1 for key in keys) - 2_048) < 6 * 32
