"""The Arrow step: raw rows of any source in, one row for each cluster and shard out."""

from __future__ import annotations

import gzip
import hashlib
import os
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streaming.pipeline.combine import CHECK, FILES, PARTITION_STEP, READ, combine, combine_batch
from tests.core_config import core_config
from tests.udfs.event_lines import NOW, VALID, line, with_field
from udfs.ingest.combiner import FollowedCluster
from udfs.kafka.consumer_offsets import GroupPatterns
from udfs.model.errors import InvariantError
from udfs.packets.packet import Packet, decode_packet

RULES = core_config(shards=4)
RAW = pa.schema(
    [
        ("source", pa.string()),
        ("place", pa.string()),
        ("number", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp_ms", pa.int64()),
        ("batch_ms", pa.int64()),
    ]
)


def raw_rows(*rows: dict[str, Any]) -> pa.RecordBatch:
    """Make raw rows; fields that are not given are null, except the batch's timestamp and a source."""
    filled = [dict.fromkeys(RAW.names) | {"source": "events", "batch_ms": NOW} | row for row in rows]
    return pa.RecordBatch.from_pylist(filled, schema=RAW)


def packets_of(batch: pa.RecordBatch) -> dict[tuple[str, int], Packet]:
    return {(row["cluster"], row["shard"]): decode_packet(row["payload"]) for row in batch.to_pylist()}


def test_the_function_travels_to_the_workers_by_reference() -> None:
    function = combine(RULES, followed=FollowedCluster("live", GroupPatterns((".*",), ("spark-.*",))))
    travelled = pickle.loads(pickle.dumps(function))  # noqa: S301 (as Spark sends it)
    rows = raw_rows({"place": "a.json", "value": line(VALID["clock"])})
    assert [batch.to_pylist() for batch in travelled(iter([rows]))] == [
        batch.to_pylist() for batch in function(iter([rows]))
    ]


def test_a_task_without_rows_answers_nothing() -> None:
    assert list(combine(RULES)(iter([raw_rows()]))) == []


def test_named_files_are_read_and_unreadable_ones_rejected_by_name(
    tmp_path: Path,
) -> None:
    event, long_line = line(VALID["member_left"]), b"x" * 3_000_000
    files = {"sound.gz": gzip.compress(event + b"\n\nno event\n"), "broken.gz": b"broken", "03:12.jsonl": long_line}
    rows = [{"source": FILES, "place": f"file:{tmp_path}/nowhere.gz", "number": READ}]
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        rows.append({"source": FILES, "place": f"file:{tmp_path / name}", "number": READ})
    os.mkfifo(tmp_path / "pipe.jsonl")
    rows.append({"source": FILES, "place": f"file:{tmp_path}/pipe.jsonl", "number": CHECK})
    rows.append({"source": "events", "place": "plain.jsonl", "value": event})

    config = core_config(shards=4, max_event_bytes=1_000_000, raw_limit_bytes=10)
    packets = [packet for batch in combine(config)(iter([raw_rows(*rows)])) for packet in packets_of(batch).values()]
    places = sorted(carried.position.split("#")[0] for packet in packets for carried in packet.events)
    assert places == ["plain.jsonl", "sound.gz"]
    rejected = sorted((row for packet in packets for row in packet.rejected), key=lambda row: row.position)
    hashed = {text: hashlib.sha256(text).hexdigest() for text in (long_line, b"no event", b"broken", b"")}
    assert [(row.source, row.position, row.reason, row.raw, row.raw_length, row.raw_sha256) for row in rejected] == [
        ("events", f"03:12.jsonl#{hashed[long_line][:16]}", "oversized_event", "x" * 10, 3_000_000, hashed[long_line]),
        ("events", "broken.gz", "broken_compressed_file", "broken", 6, hashed[b"broken"]),
        ("events", "pipe.jsonl", "unreadable_file", "", 0, hashed[b""]),
        ("events", f"sound.gz#{hashed[b'no event'][:16]}", "not_json", "no event", 8, hashed[b"no event"]),
    ]


def test_positions_name_file_and_content_or_partition_and_offset() -> None:
    event = line(VALID["member_left"])
    batch = combine_batch(
        raw_rows(
            {"source": "events", "place": "day%201.json", "value": event},
            {"source": "topic", "place": "events-3", "number": 17, "value": with_field("reason", "x", "member_left")},
            {"source": "topic", "place": "events-3", "number": 18, "value": b"?"},
            {"source": "topic", "place": "events-3", "number": 19, "value": None},
        ),
        RULES,
    )
    packets = packets_of(batch).values()
    carried = {(event.source, event.position) for packet in packets for event in packet.events}
    assert carried == {("events", "day 1.json#" + hashlib.sha256(event).hexdigest()[:16]), ("topic", "events-3:17")}
    assert [(row.source, row.position) for packet in packets for row in packet.rejected] == [("topic", "events-3:18")]


def test_the_batch_s_own_timestamp_decides_what_is_ahead_of_the_clock() -> None:
    row = {"place": "a.json", "value": line(VALID["clock"])}
    early = packets_of(combine_batch(raw_rows(row | {"batch_ms": NOW - RULES.max_clock_skew_ms - 1}), RULES))
    timely = packets_of(combine_batch(raw_rows(row | {"batch_ms": NOW - RULES.max_clock_skew_ms}), RULES))
    assert {cluster for cluster, _ in early} == {""}
    assert {cluster for cluster, _ in timely} == {"c1"}


def test_marks_and_events_in_one_batch_are_distinguished_by_their_source() -> None:
    batch = raw_rows(
        {"source": "control", "place": "1.json", "value": b'{"control":"flush","cluster":"c1"}'},
        {"source": "events", "place": "a.json", "value": line(VALID["clock"])},
        {"source": "events", "place": "a.json", "value": b'{"control":"flush","cluster":"c2"}'},
    )
    packets = packets_of(combine_batch(batch, RULES))
    assert {cluster for cluster, _ in packets} == {"", "c1"}
    assert all(packets["c1", shard].flush and packets["c1", shard].newest_ms == NOW for shard in range(4))


def test_records_of_an_unnamed_cluster_stop_the_job() -> None:
    with pytest.raises(InvariantError):
        combine_batch(raw_rows({"source": None, "number": 1, "key": b""}), RULES)


def test_a_tombstone_of_a_group_becomes_its_deletion() -> None:
    record = {"source": None, "number": 49 * PARTITION_STEP + 5, "key": b"\x00\x02\x00\x02g1"}
    batch = raw_rows(record | {"timestamp_ms": NOW - 4}, record | {"number": 6})
    packets = packets_of(combine_batch(batch, RULES, FollowedCluster("live")))
    ((event,),) = [packet.events for packet in packets.values() if packet.events]
    assert (event.source, event.position, event.event_time) == ("offsets", "__consumer_offsets-49:5", NOW - 4)
    (row,) = [row for packet in packets.values() for row in packet.rejected]
    assert (row.position, row.reason) == ("__consumer_offsets-0:6", "kafka_record_without_time")


def test_records_of_groups_and_events_may_come_in_one_batch() -> None:
    record = {"source": None, "number": 5, "key": b"\x00\x02\x00\x02g1", "timestamp_ms": NOW - 4}
    clock = {"source": "collected", "place": "a.json", "value": line(VALID["clock"])}
    packets = packets_of(combine_batch(raw_rows(record, clock, record), RULES, FollowedCluster("live")))
    found = [event.source for packet in packets.values() for event in packet.events]
    assert sorted(found) == [*["collected"] * 4, *["offsets"] * 2]


def test_rejected_inputs_are_spread_over_all_shards() -> None:
    batch = raw_rows(*({"place": "a.json", "value": str(number).encode()} for number in range(200)))
    packets = packets_of(combine_batch(batch, RULES))
    counts = [len(packets["", shard].rejected) for shard in range(4)]
    assert sum(counts) == 200
    assert min(counts) > 20


def test_many_heartbeats_make_few_and_big_rows() -> None:
    lines = [with_field("member_id", f"m{number}") for number in range(5000)]
    batch = combine_batch(raw_rows(*({"place": "a.json", "value": value} for value in lines)), RULES)
    assert batch.num_rows == 4
    found = sum(
        len(packet.heartbeats.times()) for packet in packets_of(batch).values() if packet.heartbeats is not None
    )
    assert found == 5000
