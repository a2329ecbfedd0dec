"""Events on a real Kafka topic: every record once, with its partition and offset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streaming.pipeline.combine import PACKET_SCHEMA, combine
from streaming.pipeline.sources import RAW_COLUMNS, topic_source
from tests.core_config import core_config
from tests.kit.topics import create_topic, send
from tests.streaming.pipeline.test_sources import LONG_AGO, drain
from tests.udfs.event_lines import SOUND, line
from udfs.packets.packet import decode_packet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.kit.brokers import Broker

pytestmark = [pytest.mark.spark, pytest.mark.broker]


def test_every_record_of_a_topic_is_read_once_with_its_place(
    spark: SparkSession, kafka41: Broker, tmp_path: Path
) -> None:
    from pyspark.sql import functions

    create_topic(kafka41, "monitor-events", 2)
    source = topic_source(
        spark, "monitor-events", bootstrap_servers=kafka41.bootstrap, options={}, max_offsets_per_batch=1000
    )
    assert dict(source.dtypes) == RAW_COLUMNS
    packed = source.withColumn("batch_ms", functions.unix_millis(functions.current_timestamp())).mapInArrow(
        combine(core_config(shards=1)), PACKET_SCHEMA
    )
    joined = line({**SOUND["member_joined"], "event_time": LONG_AGO})
    left = line({**SOUND["member_left"], "event_time": LONG_AGO})
    positions = []
    for records in ([joined, b"\xff not an event", b""], [left, joined + b"\n" + left]):
        send(kafka41, "monitor-events", records, partition=1)
        packets = [decode_packet(bytes(row.payload)) for rows in drain(packed, tmp_path / "checkpoint") for row in rows]
        found = [(event.source, event.position) for packet in packets for event in packet.events]
        found += [(row.source, f"{row.position} {row.reason}") for packet in packets for row in packet.rejected]
        positions.append(found)
    assert positions == [
        [("topic", "monitor-events-1:0"), ("topic", "monitor-events-1:1 not_utf8")],
        [("topic", "monitor-events-1:3"), ("topic", "monitor-events-1:4 trailing_bytes")],
    ]
