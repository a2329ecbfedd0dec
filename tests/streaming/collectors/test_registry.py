"""Which live clusters the settings name, and under which names a checkpoint remembers them."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.collectors.event_log import EventFiles
from streaming.collectors.metaq.collector import MetaqCollector
from streaming.collectors.registry import attached_clusters, check_events_topic, cluster_sources, validated_collector
from streaming.collectors.rocketmq.collector import RocketMqCollector
from streaming.job import source_names
from streaming.settings.model import load
from streaming.setup.errors import SetupError
from tests.kit.processes import free_port


def test_a_checkpoint_remembers_clusters_in_one_order_whatever_was_given_first() -> None:
    given = {"metaq.zookeeper": "z", "metaq.cluster": "m", "rocketmq.name_servers": "n", "rocketmq.cluster": "r"}
    settings = load(None, {**given, "kafka.bootstrap_servers": "k:1", "kafka.cluster": "k", "kafka_events.topic": "t"})
    assert cluster_sources(settings) == ["kafka:k", "rocketmq:r", "metaq:m"]
    assert source_names(settings) == ["control", "kafka-events:t", "kafka:k", "rocketmq:r", "metaq:m"]


def test_each_system_has_its_collector(tmp_path: Path) -> None:
    given = {"metaq.zookeeper": "z", "metaq.cluster": "m", "rocketmq.name_servers": "n", "rocketmq.cluster": "r"}
    settings = load(None, given)
    made = [
        validated_collector(system, settings, was_seen=True)(EventFiles(tmp_path, system))
        for system in ("rocketmq", "metaq")
    ]
    assert [(type(one), one.status().cluster) for one in made] == [(RocketMqCollector, "r"), (MetaqCollector, "m")]


def test_without_clusters_nothing_is_attached_and_no_folder_is_made(tmp_path: Path) -> None:
    assert attached_clusters(load(), tmp_path / "collected", dict) == []
    assert list(tmp_path.iterdir()) == []


def test_a_topic_of_events_is_checked_before_its_first_start_only() -> None:
    away = f"127.0.0.1:{free_port()}"
    settings = load(None, {"kafka_events.topic": "t", "kafka.bootstrap_servers": away})
    with pytest.raises(SetupError, match=f"{away}: Connection refused"):
        check_events_topic(settings, was_read=False)
    check_events_topic(settings, was_read=True)
    check_events_topic(load(), was_read=False)
