"""The one query: sources, combine, state, sink, in this order, in Spark itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import MagicMock, call

import pytest
from py4j.protocol import Py4JJavaError

from streaming.pipeline.query import decisions, packets, start_query, stop_query
from streaming.pipeline.sources import control_source, folder_source
from tests.core_config import core_config
from tests.streaming.pipeline.test_sources import LONG_AGO, drain, write
from tests.udfs.event_lines import VALID, line
from udfs.packets.packet import decode_packet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RULES = core_config(shards=2, allowed_lateness_ms=0)


@pytest.mark.spark
def test_combine_runs_inside_spark_over_a_union_of_sources(spark: SparkSession, tmp_path: Path) -> None:
    lines = [line({**event, "event_time": LONG_AGO}) for event in VALID.values()]
    write(tmp_path / "events" / "a.json", b"\n".join([*lines, b"not an event"]))
    write(tmp_path / "control" / "1-flush.json", b'{"control":"flush","cluster":"c1"}\n')
    sources = [
        folder_source(spark, tmp_path / "events", max_files_per_batch=10),
        control_source(spark, tmp_path / "control"),
    ]
    (rows,) = drain(packets(sources, RULES), tmp_path / "checkpoint")
    found = [(row.cluster, row.shard, decode_packet(bytes(row.payload))) for row in rows]
    rejected = [row for _, _, packet in found for row in packet.rejected]
    carried = {event.event_id for _, _, packet in found for event in packet.events}
    assert [row.reason for row in rejected] == ["not_json"]
    # Valid events are carried whole, except those that are packed as columns.
    assert len(carried) == len(VALID.keys() - {"heartbeat", "progress", "queue_ends", "annotation"})
    assert [change.subject for _, _, packet in found for change in packet.annotations] == ["release-42"]
    assert {shard for cluster, shard, packet in found if cluster == "c1" and packet.flush} == {0, 1}


@pytest.mark.spark
def test_a_query_decides_and_its_next_start_continues_from_its_state(spark: SparkSession, tmp_path: Path) -> None:
    decided: list[tuple[int, str, str, int]] = []

    def sink(batch: DataFrame, batch_id: int) -> None:
        for row in batch.collect():
            body = json.loads(row.body)
            if row.kind == "rebalance":
                decided.append((batch_id, row.cluster, body["group_id"], body["generation"]))

    def run(number: int, member: str) -> None:
        joined = {**VALID["member_joined"], "event_time": LONG_AGO + number, "member_id": member}
        joined |= {"event_id": f"join-{number}", "instance_id": f"instance of {member}"}
        clock = {**VALID["clock"], "event_time": LONG_AGO + number + 1, "event_id": f"clock-{number}"}
        write(tmp_path / "events" / f"{number}.json", b"\n".join(line(event) for event in (joined, clock)))
        (tmp_path / "control").mkdir(exist_ok=True)
        sources = [
            control_source(spark, tmp_path / "control"),
            folder_source(spark, tmp_path / "events", max_files_per_batch=10),
        ]
        start_query(
            decisions(packets(sources, RULES), RULES),
            sink,
            checkpoint=tmp_path / "query",
            once=True,
            trigger_interval_ms=0,
        ).awaitTermination()

    run(100, "a")
    run(200, "b")
    group = VALID["member_joined"]["group"]
    assert [(cluster, name, generation) for _, cluster, name, generation in decided] == [
        ("c1", group, 1),
        ("c1", group, 2),
    ]
    assert decided[0][0] < decided[1][0]


@pytest.mark.parametrize(
    ("once", "trigger"), [(True, {"availableNow": True}), (False, {"processingTime": "250 milliseconds"})]
)
def test_a_query_runs_once_or_in_its_interval(once: bool, trigger: dict[str, object]) -> None:
    frame = MagicMock()
    start_query(frame, print, checkpoint=Path("/c"), once=once, trigger_interval_ms=250)
    writer = call.writeStream.outputMode("append").option("checkpointLocation", "file:///c").foreachBatch(print)
    assert frame.mock_calls == writer.trigger(**trigger).start().call_list()


class JavaError(Py4JJavaError):  # type: ignore[misc]
    """An error of Spark's with a text of its own."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


@pytest.mark.parametrize(("cause", "closes"), [(None, True), ("java.util.concurrent.TimeoutException", False)])
def test_a_query_is_stopped_also_where_its_reader_waits_for_a_broker(cause: str | None, closes: bool) -> None:
    query = MagicMock()
    if cause is not None:
        query.stop.side_effect = JavaError(cause)
    assert stop_query(query) is closes
    query.stop.assert_called_once()


def test_another_error_of_a_stop_is_raised() -> None:
    query = MagicMock()
    query.stop.side_effect = JavaError("java.lang.IllegalStateException: no space left on device")
    with pytest.raises(Py4JJavaError):
        stop_query(query)
