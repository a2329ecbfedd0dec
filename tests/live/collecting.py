"""The collector alone beside a real broker, and the events that it wrote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streaming.collectors.event_log import EventFiles
from streaming.collectors.kafka.options import KafkaOptions
from streaming.collectors.kafka.standalone_kafka_collector import StandaloneKafkaCollector
from tests.kit.brokers import Broker
from tests.simulation.core_run import CoreRun, run_of
from udfs.model.config import CoreConfig

CLUSTER = "live"
_POLL_MS = 500


@contextmanager
def collecting(
    broker: Broker,
    folder: Path,
    poll_ms: int = _POLL_MS,
    partitions: int = 1,
    ends_interval_ms: int = 0,
    unread_groups: int = 0,
) -> Iterator[None]:
    """Write events into a folder until the block is left, and then all that happened in the block.

    Args:
        partitions: How many ``__consumer_offsets`` has. ends_interval_ms, unread_groups: See ``KafkaOptions``.
    """
    folder.mkdir(exist_ok=True)
    collector = _collector(broker, folder, poll_ms, partitions, ends_interval_ms, unread_groups)
    collector.start()
    try:
        yield
    finally:
        collector.stop()
    # The next one continues where its predecessor has stopped.
    collector = _collector(broker, folder, poll_ms, partitions, ends_interval_ms, unread_groups)
    try:
        assert collector.observe_once()
    finally:
        collector.stop()


def _collector(
    broker: Broker, folder: Path, poll_ms: int, partitions: int, ends_interval_ms: int, unread_groups: int
) -> StandaloneKafkaCollector:
    return StandaloneKafkaCollector(
        KafkaOptions(broker.bootstrap, CLUSTER, ends_interval_ms=ends_interval_ms, unread_groups=unread_groups),
        *(EventFiles(folder, name) for name in ("topics", "groups")),
        partitions=partitions,
        poll_interval_ms=poll_ms,
    )


def run_of_folder(folder: Path, config: CoreConfig | None = None) -> CoreRun:
    """Run what a collector wrote through the core."""
    return run_of((line for file in sorted(folder.glob("*.jsonl")) for line in file.read_bytes().splitlines()), config)
