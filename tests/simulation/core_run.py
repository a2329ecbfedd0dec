"""Runs events through the core as the job would, batch by batch, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from streaming.pipeline.combine import combine_batch
from streaming.simulator.serializer import line
from streaming.simulator.timeline import Delivery
from streaming.tables.projections import PROJECTIONS, Entry, RowEdits
from tests.core_config import core_config
from udfs.group import coordinator
from udfs.model.config import CoreConfig
from udfs.model.journal import Change, Rebalance, Rejected
from udfs.model.queue_progress import QueueProgress
from udfs.packets.packet import STATELESS, Packet, decode_packet
from udfs.shard.savepoint import export_shard
from udfs.shard.shard import Shard

Row = Rebalance | Change | Rejected
# A batch takes in events that are older than it by this much: more than the allowed lateness.
_BEHIND_MS = 10_000


class CoreRun:
    """The core between its batches: state bytes by (cluster, shard), as a checkpoint holds them."""

    def __init__(self, config: CoreConfig) -> None:
        self._config = config
        self._states: dict[tuple[str, int], bytes] = {}
        self.rebalances: list[Rebalance] = []
        self.changes: list[Change] = []
        self.rejected: list[Rejected] = []
        self.progress: list[QueueProgress] = []

    def batch(self, batch_ms: int, texts: Sequence[bytes], marks: Sequence[bytes] = ()) -> None:
        """Take one batch in; its packets travel as bytes, each task's on its own."""
        packets: dict[tuple[str, int], list[Packet]] = {}
        half = len(texts) // 2
        for source, lines in (("events", texts[:half]), ("events", texts[half:]), ("control", marks)):
            if lines:
                combined = combine_batch(_raw_rows(source, lines, batch_ms), self._config)
                for row in combined.to_pylist():
                    packets.setdefault((row["cluster"], row["shard"]), []).append(decode_packet(row["payload"]))
        for key, mine in sorted(packets.items()):
            if key[0] == STATELESS:
                self.rejected += [rejected for packet in mine for rejected in packet.rejected]
                continue
            shard = Shard(*key, self._states.get(key), self._config, coordinator)
            for row in shard.advance(mine, batch_ms):
                self._take(row)
            self._states[key] = shard.encode()

    def move(self, shards: int, batch_ms: int) -> None:
        """Continue with another shard count from an export as lines: a batch of its own, which decides nothing."""
        exported = [
            msgspec.json.encode(event)
            for (cluster, number), state in sorted(self._states.items())
            for event in export_shard(cluster, number, state, self._config, coordinator)
        ]
        self._config, self._states = msgspec.structs.replace(self._config, shards=shards), {}
        decided = self.decided()
        self.batch(batch_ms, exported)
        if self.decided() != decided:
            raise AssertionError(f"restoring the export decided something: {self.rejected[decided[2] :]}")

    def decided(self) -> tuple[int, ...]:
        """Return how many rows of each kind there are."""
        return len(self.rebalances), len(self.changes), len(self.rejected), len(self.progress)

    def flush(self, batch_ms: int) -> None:
        """Move every cluster's clock past its newest event, as at the end of a recording."""
        clusters = sorted({cluster for cluster, _ in self._states})
        self.batch(
            batch_ms, [], [json.dumps({"control": "flush", "cluster": cluster}).encode() for cluster in clusters]
        )

    def _take(self, row: Row) -> None:
        if isinstance(row, Rebalance):
            self.rebalances.append(row)
        elif isinstance(row, Change):
            self.changes.append(row)
        elif isinstance(row, QueueProgress):
            self.progress.append(row)
        elif isinstance(row, Rejected):
            self.rejected.append(row)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of ``rebalances``."""
        found = [msgspec.to_builtins(rebalance) for rebalance in self.rebalances]
        for row, rebalance in zip(found, self.rebalances, strict=True):
            row["outages"] = [msgspec.structs.asdict(outage) for outage in rebalance.outages]
        return found


def _raw_rows(source: str, lines: Sequence[bytes], batch_ms: int) -> pa.RecordBatch:
    count = len(lines)
    return pa.record_batch(
        {
            "source": pa.array([source] * count, pa.string()),
            "place": pa.array(["file"] * count, pa.string()),
            "number": pa.nulls(count, pa.int64()),
            "key": pa.nulls(count, pa.binary()),
            "value": pa.array(lines, pa.binary()),
            "timestamp_ms": pa.nulls(count, pa.int64()),
            "batch_ms": pa.array([batch_ms] * count, pa.int64()),
        }
    )


def run_of(lines: Iterable[bytes], config: CoreConfig | None = None) -> CoreRun:
    """Run everything a collector wrote: one batch for each of its rounds, which end with a ``clock``."""
    run = CoreRun(config or core_config())
    batch: list[bytes] = []
    newest = 0
    for text in lines:
        event = json.loads(text)
        newest = max(newest, event["event_time"])
        batch.append(text)
        if event["type"] == "clock":
            run.batch(newest + _BEHIND_MS, batch)
            batch = []
    run.batch(newest + _BEHIND_MS, batch)
    run.flush(newest + _BEHIND_MS + 1)
    assert run.rejected == [], run.rejected
    return run


def run_core(deliveries: Iterable[Delivery], config: CoreConfig, span_ms: int | None) -> CoreRun:
    """Run a recording to its end.

    Args:
        span_ms: The time of delivery that one batch covers; None: everything in one batch.
    """
    run = CoreRun(config)
    batch: list[bytes] = []
    batch_ms = 0
    end = None
    for delivery in deliveries:
        if span_ms is not None and end is not None and delivery.deliver_at > end:
            run.batch(batch_ms, batch)
            batch = []
        if span_ms is not None and (end is None or delivery.deliver_at > end):
            end = delivery.deliver_at - delivery.deliver_at % span_ms + span_ms
        batch_ms = delivery.deliver_at + 1_000
        batch.append(line(delivery))
    run.batch(batch_ms, batch)
    run.flush(batch_ms + 1_000)
    return run


def rows_of(changes: Iterable[Change]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the tables that follow the journal: it is applied whole, in the order of its histories."""
    history = sorted(
        changes, key=lambda change: (change.cluster, change.group_id or "", change.subject or "", change.number)
    )
    found: dict[str, list[dict[str, Any]]] = {}
    for projection in PROJECTIONS:
        entries = [
            Entry(change.cluster, change.group_id, change.event_time, change.body)
            for change in history
            if projection.concerns(change.body.__struct_config__.tag, change.group_id)
        ]
        rows = RowEdits([])
        projection.apply_changes(entries, rows, {})
        found[projection.table.name] = [dict(edit.now) for edit in rows.edits if edit.now is not None]
    return found
