"""The order of the query's sources, as a checkpoint remembers it."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.pipeline.source_order import names_of, query_sources, rows_of
from streaming.settings.model import load
from streaming.spark.checkpoint import Checkpoint

CLUSTERS = {
    "metaq.zookeeper": "z",
    "metaq.cluster": "m",
    "rocketmq.name_servers": "n",
    "rocketmq.cluster": "r",
    "kafka.bootstrap_servers": "k:1",
    "kafka.cluster": "k",
}


class Rows:
    """A cluster whose rows Spark reads itself."""

    source_kind: str | None = None

    def __init__(self, rows: object, kind: str | None = None) -> None:
        self._rows, self.source_kind = rows, kind

    def source(self, spark: object, *, max_offsets_per_batch: int, is_tolerant: bool) -> object:
        return self._rows and (self._rows, spark, max_offsets_per_batch, is_tolerant)


def test_a_checkpoint_remembers_sources_in_one_order_whatever_was_given_first(tmp_path: Path) -> None:
    settings = load(None, {**CLUSTERS, "kafka_events.topic": "t", "events.folder": "/in"})
    found = list(query_sources(settings, Checkpoint(tmp_path), [Rows(None)] * 3))  # type: ignore[list-item]
    named = ["control", "events:/in", "files:/in", "kafka-events:t", "kafka:k", "rocketmq:r", "metaq:m"]
    assert names_of(found) == named
    assert [source.names for source in found][-1] == (), "the collected events have no name of their own"


def test_groups_by_admin_calls_are_another_source_than_records(tmp_path: Path) -> None:
    settings = load(None, {"kafka.bootstrap_servers": "k:1", "kafka.cluster": "k"})
    polled = Rows(None, "kafka-admin")
    assert names_of(list(query_sources(settings, Checkpoint(tmp_path), [polled]))) == ["control", "kafka-admin:k"]  # type: ignore[list-item]


def test_without_a_cluster_nothing_collected_is_read(tmp_path: Path) -> None:
    assert names_of(list(query_sources(load(), Checkpoint(tmp_path), []))) == ["control"]


def test_a_cluster_with_a_collector_for_everything_has_no_rows(tmp_path: Path) -> None:
    settings = load(None, CLUSTERS | {"job.max_offsets_per_batch": 7})
    found = list(query_sources(settings, Checkpoint(tmp_path), [Rows("kafka"), Rows(None), Rows(None)]))  # type: ignore[list-item]
    assert rows_of(found[1:-1], "spark", is_tolerant=True) == [("kafka", "spark", 7, True)]  # type: ignore[arg-type]


def test_each_cluster_has_what_follows_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="zip"):
        list(query_sources(load(None, CLUSTERS), Checkpoint(tmp_path), []))
