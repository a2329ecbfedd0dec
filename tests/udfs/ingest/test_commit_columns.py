"""What groups have reached is packed for their shards; where queues end, for all."""

from __future__ import annotations

from udfs.ingest.commit_columns import CommitColumns, pack_ends, pack_progress
from udfs.model.events import Progress, QueueEnd, QueueEnds, QueueOffset
from udfs.model.observations import UNKNOWN
from udfs.packets.packet import group_key, queue_key, shard_of
from udfs.packets.progress_columns import place_of


def commit(cluster: str, group: str, at: int, *queues: int, system: str = "rocketmq", **fields: int) -> Progress:
    return Progress(
        schema_version=1,
        event_time=at,
        system=system,  # type: ignore[arg-type]
        cluster=cluster,
        group=group,
        queues=tuple(QueueOffset("t", number, "b", **fields) for number in queues),  # type: ignore[arg-type]
    )


def test_commits_are_packed_once_each_by_shard_group_queue_and_time() -> None:
    parts = CommitColumns.of([commit("c2", "g1", 9, 1), commit("c1", "g2", 8, 1, 0), commit("c1", "g1", 7, 0)])
    again = CommitColumns.of([commit("c1", "g2", 8, 0), commit("c1", "g2", 6, 0)])
    found = []
    for cluster, shard, packed in pack_progress([*parts, *again], 3):
        rows = packed.columns()
        found += [(cluster, shard, *row) for row in zip(*(column.tolist() for column in rows[:3]), strict=True)]
    expected = []
    for cluster, group, at, number in (
        ("c1", "g1", 7, 0),
        ("c1", "g2", 6, 0),
        ("c1", "g2", 8, 0),
        ("c1", "g2", 8, 1),
        ("c2", "g1", 9, 1),
    ):
        key = group_key(cluster, group)
        expected.append((cluster, shard_of(key, 3), key, queue_key("t", "b", number), at))
    assert found == sorted(expected)


def test_each_packet_names_its_groups_and_queues() -> None:
    [(_, _, packed)] = pack_progress(CommitColumns.of([commit("c", "g", 5, 3, 1)]), 1)
    assert packed.names is not None
    assert list(packed.names.groups().values()) == [("g", "rocketmq")]
    keys, numbers, ids, places = packed.names.queues()
    named = zip(keys.tolist(), numbers.tolist(), ids.tolist(), strict=True)
    assert {(key, *place_of(places[number]), queue) for key, number, queue in named} == {
        (queue_key("t", "b", 1), "t", "b", 1),
        (queue_key("t", "b", 3), "t", "b", 3),
    }


def test_offsets_ends_and_positions_are_carried_where_they_are_reported() -> None:
    written: dict[str, int] = {"written_offset": 6, "written_at": 4}
    first = commit("c", "g", 5, 1, offset=7, end_offset=9, **written)
    [part] = CommitColumns.of([first, commit("c", "g", 6, 1, position=8, written_at=4)])
    assert [column.tolist() for column in part.columns[3:]] == [
        [7, UNKNOWN],
        [9, UNKNOWN],
        [UNKNOWN, 8],
        [True, True],
        [6, UNKNOWN],
        [4, UNKNOWN],  # a time is of no use without its message
    ]


def test_a_queue_without_progress_is_no_commit() -> None:
    [part] = CommitColumns.of([commit("c", "g", 5, 1, end_offset=9, moved=False)])
    assert part.columns.commits.tolist() == [False]


def test_a_partition_of_kafka_is_the_same_whichever_broker_leads_it() -> None:
    [part] = CommitColumns.of([commit("c", "g", 5, 1, system="kafka")])
    assert part.columns.queues.tolist() == [queue_key("t", None, 1)]
    ends = QueueEnds(
        schema_version=1,
        event_time=4,
        system="kafka",
        cluster="c",
        topic="t",
        queues=(QueueEnd(1, 20, broker="b"), QueueEnd(2, 30, start_offset=7)),
    )
    queues, times, offsets, starts = pack_ends([ends])["c"].columns()
    assert queues.tolist() == [queue_key("t", None, 1), queue_key("t", None, 2)]
    assert (times.tolist(), offsets.tolist(), starts.tolist()) == ([4, 4], [20, 30], [UNKNOWN, 7])
