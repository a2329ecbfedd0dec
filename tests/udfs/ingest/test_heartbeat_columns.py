"""Heartbeats and commits as columns: joined, filtered, packed in the order that packets promise."""

import numpy as np
import pyarrow as pa

from tests.udfs.event_lines import NOW, QUEUE, VALID, line, with_field
from tests.udfs.ingest.test_combiner import combined, commits_of, heartbeats_of
from udfs.ingest import heartbeat_columns
from udfs.ingest.heartbeat_columns import HeartbeatColumns, pack_heartbeats, pack_texts
from udfs.model.events import Heartbeat
from udfs.packets.packet import group_key, member_key, queue_key, shard_of


def beat(cluster: str, group: str, member: str, at: int, system: str = "kafka") -> Heartbeat:
    return Heartbeat(
        schema_version=1,
        event_time=at,
        system=system,  # type: ignore[arg-type]
        cluster=cluster,
        group=group,
        member_id=member,
    )


def columns(*beats: Heartbeat) -> HeartbeatColumns:
    return HeartbeatColumns.of(beats, np.array([heartbeat.event_time for heartbeat in beats], np.int64))


def rows(of: HeartbeatColumns) -> list[tuple[str, str, str, str, int]]:
    """Return the rows as tuples, each with the key that its member must have."""
    assert of.member_keys.tolist() == [member_key(member) for member in of.member_ids.to_pylist()]
    texts = (of.systems, of.clusters, of.groups, of.member_ids)
    return list(zip(*(column.to_pylist() for column in texts), of.times.tolist(), strict=True))


FIRST = columns(beat("c1", "g1", "m1", 5), beat("c1", "g2", "m2", 6, "metaq"))
SECOND = columns(beat("c2", "g1", "m1", 7), beat("c1", "g1", "é", 8))


def test_parts_are_joined_whether_or_not_their_clusters_and_systems_are_the_same() -> None:
    assert rows(HeartbeatColumns.concat([FIRST])) == rows(FIRST)
    assert rows(HeartbeatColumns.concat([FIRST, SECOND, FIRST])) == rows(FIRST) + rows(SECOND) + rows(FIRST)
    assert rows(HeartbeatColumns.concat([FIRST, FIRST])) == rows(FIRST) * 2


def test_only_some_rows_are_kept() -> None:
    joined = HeartbeatColumns.concat([FIRST, SECOND])
    assert rows(joined.where(np.array([True, False, False, True]))) == [rows(FIRST)[0], rows(SECOND)[1]]
    assert len(joined.where(np.zeros(4, bool))) == 0


def test_each_cluster_has_its_own_times_and_producers() -> None:
    joined = HeartbeatColumns.concat([FIRST, SECOND])
    assert {name: times.tolist() for name, times in joined.times_by_cluster().items()} == {"c1": [5, 6, 8], "c2": [7]}
    spoken = {name: (times.tolist(), keys.tolist()) for name, times, keys in joined.speaking()}
    assert spoken == {
        "c1": ([5, 6, 8], [member_key(name) for name in ("m1", "m2", "é")]),
        "c2": ([7], [member_key("m1")]),
    }
    alone = FIRST.times_by_cluster()
    assert {name: times.tolist() for name, times in alone.items()} == {"c1": [5, 6]}
    assert [(name, times.tolist()) for name, times, _ in FIRST.speaking()] == [("c1", [5, 6])]


def test_one_name_in_two_systems_or_clusters_is_two_groups() -> None:
    beats = [beat(cluster, "g", "m", 5, system) for cluster in ("c1", "c2") for system in ("kafka", "rocketmq")]
    packed = list(pack_heartbeats(columns(*beats), 1))
    assert [(cluster, shard) for cluster, shard, _ in packed] == [("c1", 0), ("c2", 0)]
    for _, _, heartbeats in packed:
        assert heartbeats.group_names.unpack() == ["g", "g"]
        assert sorted(heartbeats.systems) == [0, 1]
        assert heartbeats.member_names.unpack() == ["m", "m"]


def test_pairs_too_many_for_one_number_are_sorted_as_well() -> None:
    members, times = np.array([2**31, 0, 2**31, 0]), np.array([2**41, 5, 2**41, 0])
    pair_members, pair_times = heartbeat_columns._sorted_pairs(members, times)
    assert list(zip(pair_members.tolist(), pair_times.tolist(), strict=True)) == [(0, 0), (0, 5), (2**31, 2**41)]


def test_no_heartbeats_are_no_packets() -> None:
    assert list(pack_heartbeats(FIRST.where(np.zeros(2, bool)), 4)) == []


def test_texts_of_a_slice_are_those_of_the_slice() -> None:
    texts = pa.array(["ab", "", "é", "d"], pa.string())
    assert pack_texts(texts.slice(1, 2)).unpack() == ["", "é"]
    assert pack_texts(pa.array([], pa.string())).unpack() == []


def test_pairs_are_distinct_and_sorted_as_the_packet_promises() -> None:
    times = [NOW, NOW - 5, NOW, NOW - 3, NOW - 5]
    lines = [
        line({**VALID["heartbeat"], "group": f"g{group}", "member_id": f"m{member}", "event_time": time})
        for time in times
        for group in range(6)
        for member in range(3)
    ]
    group_names = []
    for _, shard, packet in combined(lines):
        if packet.heartbeats is None:
            continue
        packed = packet.heartbeats
        group_keys, member_groups, member_keys, members, at = packed.columns()
        pairs = list(zip(members.tolist(), at.tolist(), strict=True))
        assert pairs == sorted(set(pairs))
        assert np.all(np.diff(member_groups) >= 0)
        names = packed.group_names.unpack()
        assert group_keys.tolist() == sorted(group_key("c1", name) for name in names)
        assert group_keys.tolist() == [group_key("c1", name) for name in names]
        assert {shard_of(group_key("c1", name), 4) for name in names} == {shard}
        ids = packed.member_names.unpack()
        assert member_keys.tolist() == [member_key(name) for name in ids]
        assert len(pairs) == 3 * len(ids)
        group_names += names
    assert sorted(group_names) == [f"g{group}" for group in range(6)]


def test_members_of_one_group_are_distinct_though_their_keys_are_equal_in_40_bits() -> None:
    ids = ["member-2731569", "member-686697"]
    assert len({member_key(name) >> 24 for name in ids}) == 1
    lines = [with_field("member_id", name) for name in ids]
    ((_, _, packet),) = [packed for packed in combined(lines) if packed[2].heartbeats is not None]
    assert sorted(member for _, _, member, _ in heartbeats_of(packet)) == ids


def test_progress_is_packed_by_the_keys_of_its_queues() -> None:
    event = {
        **VALID["progress"],
        "system": "rocketmq",
        "queues": [{**QUEUE, "offset": 5}, {"topic": "orders", "queue_id": 4}, {**QUEUE, "offset": 6}],
    }
    event["queues"].append({"topic": "orders", "queue_id": 5, "offset": 7, "end_offset": 9, "moved": False})
    commits = [commit for _, _, packet in combined([line(event)], [line(event)]) for commit in commits_of(packet)]
    key = group_key("c1", "g1")
    # A queue whose offset did not move is no commit of its owner, but has an end that is news.
    expected = [(key, queue_key("orders", broker, queue), NOW) for broker, queue in [("b0", 3), (None, 4), (None, 5)]]
    assert commits == sorted(expected)
