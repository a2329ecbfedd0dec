"""A batch says to the shards just what its lines say one by one."""

from __future__ import annotations

import base64
import hashlib
import json
from itertools import pairwise

import hypothesis.strategies as st
import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from tests.core_config import core_config
from tests.udfs.event_lines import COMMON, NOW, VALID, line, with_field
from tests.udfs.ingest.test_parser import HOSTILE
from udfs.ingest.combiner import Combiner, FollowedCluster, Packed, RawRows, first_and_last_times, line_position
from udfs.ingest.parser import is_blank
from udfs.kafka.consumer_offsets import GroupPatterns
from udfs.model.config import CoreConfig
from udfs.model.systems import BY_NUMBER, SYSTEMS
from udfs.packets.packet import (
    STATELESS,
    Packet,
    cluster_key,
    decode_packet,
    encode_packet,
    group_key,
    queue_key,
    read_event,
    shard_of,
)

RULES = core_config(shards=4, source_silent_after_ms=60_000, raw_limit_bytes=64)


def rows_of(lines: list[bytes | None], source: str = "events") -> RawRows:
    return RawRows(source, pa.array(lines, pa.binary()), lambda index: f"row {index}")


def combined(*batches: list[bytes | None], config: CoreConfig = RULES, source: str = "events") -> list[Packed]:
    combiner = Combiner(NOW, config)
    for lines in batches:
        if source == "control":
            combiner.read_marks(rows_of(lines, source))
        else:
            combiner.read_lines(rows_of(lines, source))
    return [(cluster, shard, decode_packet(encode_packet(packet))) for cluster, shard, packet in combiner.packets()]


def heartbeats_of(packet: Packet) -> list[tuple[str, str, str, int]]:
    """Unpack (system, group, member, time), in the order of the packet."""
    packed = packet.heartbeats
    if packed is None:
        return []
    groups, members = packed.group_names.unpack(), packed.member_names.unpack()
    _, owners, _, pair_members, times = packed.columns()
    member_groups = owners.tolist()
    pairs = zip(pair_members.tolist(), times.tolist(), strict=True)
    return [
        (BY_NUMBER[packed.systems[member_groups[member]]], groups[member_groups[member]], members[member], time)
        for member, time in pairs
    ]


def commits_of(packet: Packet) -> list[tuple[int, int, int]]:
    if packet.progress is None:
        return []
    columns = (packet.progress.group_keys, "<u8"), (packet.progress.queue_keys, "<u8"), (packet.progress.times, "<i8")
    return list(zip(*(np.frombuffer(data, kind).tolist() for data, kind in columns), strict=True))


def content_of(packets: list[Packed]) -> set[tuple[object, ...]]:
    """Return everything that packets say, each thing once, with its shard."""
    everything: set[tuple[object, ...]] = set()
    for cluster, shard, packet in packets:
        everything |= {(cluster, shard, "heartbeat", *pair) for pair in heartbeats_of(packet)}
        everything |= {(cluster, shard, "commit", *commit) for commit in commits_of(packet)}
        everything |= {(cluster, shard, "event", event.event_id, event.content) for event in packet.events}
        everything |= {(cluster, shard, "rejected", row.raw_sha256, row.reason) for row in packet.rejected}
        everything |= {(cluster, shard, "annotation", change.subject) for change in packet.annotations}
    return everything


HEARTBEATS = st.builds(
    lambda cluster, system, group, member, time: line(
        {
            **VALID["heartbeat"],
            "cluster": cluster,
            "system": system,
            "group": group,
            "member_id": member,
            "event_time": time,
        }
    ),
    st.sampled_from(["c1", "ü"]),
    st.sampled_from(sorted(SYSTEMS)),
    st.sampled_from(["g1", "g2", "é", "g1 "]),
    st.sampled_from(["m1", "m2", "日本", "x" * 300, "m\n"]),
    st.one_of(st.integers(NOW - 3, NOW), st.sampled_from([NOW - 200_000, NOW + 600_000, NOW + 600_001, 0, 10**25]))
    | st.sampled_from(["2026-11-21T07:11:59.999Z", "2026-11-21T09:12:00+02:00", "2026-11-21", "2026-02-30T00:00:00Z"]),
)
LINES = st.lists(
    st.one_of(HEARTBEATS, HEARTBEATS, st.sampled_from([line(event) for event in VALID.values()]), HOSTILE), max_size=12
)


@settings(max_examples=500)
@given(LINES)
def test_a_batch_has_the_content_of_its_lines_one_by_one(lines: list[bytes]) -> None:
    together = combined(lines)
    singly = [combined([raw]) for raw in lines]
    assert content_of(together) == set().union(*(content_of(packets) for packets in singly))
    newest = {cluster: {packet.newest_ms for of, _, packet in together if of == cluster} for cluster, _, _ in together}
    for cluster, values in newest.items():
        alone = [packet.newest_ms for packets in singly for of, _, packet in packets if of == cluster]
        assert values == {max((value for value in alone if value is not None), default=None)}


@settings(max_examples=500)
@given(HOSTILE)
def test_no_line_is_lost_and_none_is_two_things(raw: bytes) -> None:
    packets = combined([raw])
    rejected = [row for _, _, packet in packets for row in packet.rejected]
    homes = [
        packet.first_and_last_times
        for cluster, _, packet in packets
        if cluster != STATELESS and packet.first_and_last_times
    ]
    annotations = [change for _, _, packet in packets for change in packet.annotations]
    assert len(rejected) + len(homes) + len(annotations) == (0 if is_blank(raw) else 1)


def test_a_rejected_line_is_kept_with_its_length_hash_place_and_the_beginning_of_its_text() -> None:
    raw = b'{"schema_version":1,"cluster":"c1","group":"g1","x":"' + "ü".encode() * 100 + b'"}'
    ((cluster, _, packet),) = combined([raw])
    (row,) = packet.rejected
    assert cluster == STATELESS
    # 64 bytes end within a ü: it is left out whole.
    assert row.raw == raw[:63].decode()
    assert (row.raw_length, row.source, row.position, row.seen_at) == (255, "events", "row 0", NOW)
    assert row.raw_sha256 == hashlib.sha256(raw).hexdigest()
    assert (row.reason, row.cluster, row.group_id) == ("missing_type", "c1", "g1")


def test_bytes_that_are_no_text_are_kept_readable() -> None:
    ((_, _, packet),) = combined([b'{"a":"\xff\x00"}'])
    assert packet.rejected[0].raw == '{"a":"\\xff\x00"}'


def test_rare_events_of_a_cluster_go_to_every_shard_and_those_of_a_group_to_its_own() -> None:
    packets = combined([line(VALID["topic_queues"]), line(VALID["clock"]), line(VALID["group_deleted"])])
    assert [(cluster, shard) for cluster, shard, _ in packets] == [("c1", shard) for shard in range(4)]
    for _, shard, packet in packets:
        kinds = [read_event(event).__class__.__name__ for event in packet.events]
        at_home = ["GroupDeleted"] if shard == shard_of(group_key("c1", "g1"), 4) else []
        assert kinds == ["TopicQueues", "Clock", *at_home]


def test_only_the_home_shard_gets_the_times_at_which_something_came() -> None:
    packets = combined([*(with_field("event_time", NOW - ago) for ago in (100_000, 7, 9, 8)), line(VALID["clock"])])
    spans = {shard: packet.first_and_last_times for _, shard, packet in packets}
    home = shard_of(cluster_key("c1"), 4)
    assert spans.pop(home) == [(NOW - 100_000, NOW - 100_000), (NOW - 9, NOW - 7), (NOW, NOW)]
    assert all(not times for times in spans.values())


@settings(max_examples=200)
@given(st.lists(st.integers(0, 2000), min_size=1), st.integers(1, 300))
def test_first_and_last_times_hold_every_gap_that_is_longer_than_the_span(times: list[int], span_ms: int) -> None:
    observed = first_and_last_times(np.array(times), span_ms)
    assert all(first in times and last in times for first, last in observed)
    every = sorted(set(times))
    gaps = [(before, after) for before, after in pairwise(every) if after - before >= span_ms]
    flat = sorted({time for pair in observed for time in pair})
    assert [pair for pair in pairwise(flat) if pair[1] - pair[0] >= span_ms] == gaps


def test_a_described_heartbeat_is_carried_whole_and_a_bare_one_is_packed() -> None:
    packets = combined([line(VALID["described heartbeat"]), with_field("event_id", "e7"), with_field("note", "beyond")])
    carried = [event for _, _, packet in packets for event in packet.events]
    pairs = [pair for _, _, packet in packets for pair in heartbeats_of(packet)]
    assert json.loads(carried[0].content) == VALID["described heartbeat"]
    assert len(carried) == 1
    assert pairs == [("kafka", "g1", "m1", NOW)]


def test_progress_of_no_queue_still_moves_the_clock() -> None:
    packets = combined([line({**VALID["progress"], "queues": []})])
    assert {packet.newest_ms for _, _, packet in packets} == {NOW}


def test_marks_of_the_driver_reach_every_shard_of_their_cluster() -> None:
    lines = [b'{"control":"tick","cluster":"c1","time":5}', b'{"control":"tick","cluster":"c1","time":4}']
    lines += [b'{"control":"flush","cluster":"c2"}', b'{"control":"resume","cluster":"c2"}', b"", b"tick"]
    packets = {(cluster, shard): packet for cluster, shard, packet in combined(lines, source="control")}
    for shard in range(4):
        assert (packets["c1", shard].tick_ms, packets["c1", shard].flush) == (5, False)
        assert (packets["c2", shard].tick_ms, packets["c2", shard].flush) == (None, True)
        assert packets["c1", shard].newest_ms is None
    (row,) = [row for packet in packets.values() for row in packet.rejected]
    assert row.reason == "unreadable_control_mark"


def _text(value: str) -> bytes:
    return len(value).to_bytes(2, "big") + value.encode()


def _commit_key(group: str, topic: str, partition: int) -> bytes:
    return b"\x00\x01" + _text(group) + _text(topic) + partition.to_bytes(4, "big")


def test_records_of_consumer_offsets_become_commits_events_and_rejections() -> None:
    # Versions as the broker writes them: a commit in version 3 without metadata, a tombstone of a group.
    commit = b"\x00\x03" + (77).to_bytes(8, "big") + b"\xff\xff\xff\xff" + b"\x00\x00" + NOW.to_bytes(8, "big")
    records: list[tuple[bytes, bytes | None, int]] = [
        (_commit_key("g1", "orders", 3), commit, NOW - 9),
        (_commit_key("skipped", "orders", 3), commit, NOW - 1),
        (_commit_key("g1", "orders", 3), None, NOW),
        (_commit_key("g1", "orders", 4), b"\x00\x63", NOW - 8),
        (b"\x00\x02" + _text("g2"), None, NOW - 7),
    ]
    combiner = Combiner(NOW, RULES)
    combiner.read_records(
        rows_of([value for _, value, _ in records], "offsets"),
        pa.array([key for key, _, _ in records], pa.binary()),
        np.array([time for _, _, time in records]),
        FollowedCluster("live", GroupPatterns((".*",), ("skipped",))),
    )
    packets = combiner.packets()
    commits = [found for _, _, packet in packets for found in commits_of(packet)]
    assert commits == [(group_key("live", "g1"), queue_key("orders", None, 3), NOW - 9)]
    found = sorted((event for _, _, packet in packets for event in packet.events), key=lambda event: event.position)
    assert [(json.loads(event.content)["type"], event.position, event.event_time) for event in found] == [
        ("commits_deleted", "row 2", NOW),
        ("group_deleted", "row 4", NOW - 7),
    ]
    (row,) = [row for _, _, packet in packets for row in packet.rejected]
    assert (row.position, row.group_id) == ("row 3", "g1")
    assert base64.b64decode(msgspec.json.decode(row.raw or "")["value"]) == b"\x00\x63"
    assert {packet.newest_ms for cluster, _, packet in packets if cluster == "live"} == {NOW}


def test_nothing_in_gives_nothing_out() -> None:
    assert combined([]) == []
    assert combined([None, b"", b"\r", b"\xef\xbb\xbf"]) == []


@pytest.mark.parametrize("shards", [1, 3, 256])
def test_each_cluster_has_all_its_shards(shards: int) -> None:
    packets = combined([line({**COMMON, "type": "clock"})], config=core_config(shards=shards))
    assert [shard for _, shard, _ in packets] == list(range(shards))


def test_a_line_s_position_is_its_file_and_its_content() -> None:
    # SHA-256 of "abc", from FIPS 180-2, appendix B.1.
    assert line_position("a.json", b"abc") == "a.json#ba7816bf8f01cfea"
