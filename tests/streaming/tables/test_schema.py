"""The tables' contract: names, types, comments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from streaming.tables import delta_rs_table
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.delta_schema import PROPERTIES, delta_fields
from streaming.tables.location import WRITER_PROPERTY
from streaming.tables.replay_tables import EVERY_TABLE
from streaming.tables.schema import TIME
from streaming.tables.spark_sql import ddl
from udfs.model.journal import Rebalance, Rejected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Columns that users may rely on; others may be added.
CONTRACT = {
    "rebalances": "rebalance_id cluster system group_id generation generation_source event_time detected_at trigger"
    " triggers strategy leader mode status error members_before members_after queues_before queues_after queues_kept"
    " queues_assigned queues_revoked queues_moved generations_missed idle_members unassigned_queues spread agrees"
    " queues_differing pause_ms queue_pause_ms pause_estimated_ms queue_pause_estimated_ms library agrees_reason"
    " logical_id began_at joined_at completed_at outage_min_ms outage_max_ms queue_outage_min_ms queue_outage_max_ms"
    " outage_queues outage_unknown_queues outage_evidence outages",
    "assignments": "cluster group_id topic broker queue_id member_id origin generation rebalance_id valid_from"
    " valid_to outage_min_ms outage_max_ms",
    "members": "cluster group_id member_id client_id host instance_id rack subscriptions strategies joined_at"
    " last_heartbeat_at left_at left_reason",
    "groups": "cluster system group_id state mode strategy generation members queues idle_members unassigned_queues"
    " spread last_rebalance_at",
    "topics": "cluster topic queue_count queues valid_from valid_to",
    "findings": "finding_id cluster group_id kind severity message advice evidence opened_at closed_at",
    "rejected_events": "source position raw reason detail seen_at",
    "changes": "batch cluster group_id kind event_time",
    "audits": "rebalance_id cluster system group_id generation event_time audited_at strategy library verdict reason"
    " detail members queues queues_differing missing duplicate unexpected_owner differing",
    "group_minutes": "cluster group_id minute members rebalances queues_moved queue_pause_ms idle_members"
    " unassigned_queues spread outage_min_ms outage_max_ms",
    "annotations": "annotation_id kind text url cluster groups client_ids hosts began_at ended_at written_at",
    "episodes": "episode_id cluster group_id kind began_at last_at closed_at text client host instance_id prefix topic"
    " period_ms period_of rebalances queues_moved pause_ms queue_pause_ms repeated_messages earlier_rebalance_ids",
    "replays": "replay_id cluster request policies covers_from covers_to table_versions code_version started_at"
    " finished_at groups sums",
    "replay_groups": "replay_id cluster system group_id policy started_at covers_from covers_to rebalances queues_moved"
    " queue_pause_ms repeated_messages queue_outage_max_ms idle_members spread gone_rebalances gone_rebalance_ids"
    " unknown",
    "queue_progress": "cluster group_id topic broker queue_id event_time committed_offset committed_at end_offset"
    " end_at start_offset lag",
}

_PLAIN = {"appendOnly", "changeDataFeed", "checkConstraints", "generatedColumns", "invariants"}


@pytest.mark.parametrize("name", sorted(CONTRACT))
def test_every_promised_column_is_there(name: str) -> None:
    assert set(CONTRACT[name].split()) <= set(EVERY_TABLE[name].names)


def test_there_is_no_table_beside_the_promised_ones() -> None:
    assert set(EVERY_TABLE) == set(CONTRACT)


@pytest.mark.parametrize("name", sorted(EVERY_TABLE))
def test_times_are_timestamps_and_durations_are_whole_milliseconds(name: str) -> None:
    for column in EVERY_TABLE[name].columns:
        is_time = column.name.endswith(("_at", "_from", "_to")) or column.name in ("event_time", "minute")
        assert (column.type == TIME) == is_time, column
        if column.name.endswith("_ms"):
            assert str(column.type) == "int64", column


@pytest.mark.spark
def test_spark_reads_the_same_tables_whichever_engine_made_them(spark: SparkSession, tmp_path: Path) -> None:
    for name, table in EVERY_TABLE.items():
        DeltaRsTable(tmp_path / "ours", table)
        spark.sql(ddl(table, f"delta.`{tmp_path / 'sql' / name}`"))
        ours, sql = (
            spark.sql(f"describe detail delta.`{tmp_path / root / name}`").collect()[0].asDict()
            for root in ("ours", "sql")
        )
        assert ours["properties"].pop(WRITER_PROPERTY) == delta_rs_table.NAME
        assert ours["properties"].pop("delta.targetFileSize") == str(table.file_bytes)
        for field in ("description", "clusteringColumns", "properties", "minReaderVersion"):
            assert ours[field] == sql[field], (name, field)
        # Features of plain writer version 4, which readers need not know.
        assert set(sql["tableFeatures"]) <= set(ours["tableFeatures"]) <= _PLAIN
        assert ours["description"] == table.comment
        schemas = [
            json.loads(spark.read.format("delta").load(str(tmp_path / root / name)).schema.json())
            for root in ("ours", "sql")
        ]
        assert schemas[0] == schemas[1] == {"type": "struct", "fields": delta_fields(table)}
        assert all(field["metadata"]["comment"] for field in schemas[0]["fields"])
        assert ours["properties"].items() >= PROPERTIES.items()


@pytest.mark.parametrize(("kind", "name"), [(Rebalance, "rebalances"), (Rejected, "rejected_events")])
def test_a_field_of_the_journal_and_its_column_go_together(kind: type[msgspec.Struct], name: str) -> None:
    assert set(kind.__struct_fields__) == set(EVERY_TABLE[name].names)
