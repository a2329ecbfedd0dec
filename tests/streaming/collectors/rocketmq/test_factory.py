"""A RocketMQ cluster as the settings name it."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.collectors.event_log import EventFiles
from streaming.collectors.registry import attached_clusters
from streaming.collectors.rocketmq.factory import options_of
from streaming.settings.model import load
from streaming.setup.errors import SetupError
from tests.kit.processes import free_port


def test_the_collector_reads_the_addresses_of_the_settings() -> None:
    settings = load(None, {"rocketmq.name_servers": "a;b:1", "rocketmq.cluster": "r"})
    options = options_of(settings.rocketmq)
    assert (options.addresses(), options.cluster) == (("a:9876", "b:1"), "r")
    assert options.poll_interval_ms == settings.rocketmq.poll_interval_ms


def test_secrets_reach_the_collector_and_no_text(tmp_path: Path) -> None:
    file = tmp_path / "monitor.toml"
    file.write_text('[rocketmq]\naccess_key = "user"\n')
    settings = load(file, {}, {"REBALANCE_MONITOR_ROCKETMQ__SECRET_KEY": "hush"})
    credentials = options_of(settings.rocketmq).credentials()
    assert credentials is not None
    assert credentials.secret_key == "hush"
    assert "hush" not in repr([settings, options_of(settings.rocketmq)])


def test_a_cluster_that_cannot_be_reached_leaves_nothing_behind(tmp_path: Path) -> None:
    away = f"127.0.0.1:{free_port()};127.0.0.1:{free_port()}"
    settings = load(None, {"rocketmq.name_servers": away, "rocketmq.cluster": "r"})
    with pytest.raises(SetupError, match=r"no name server of RocketMQ can be reached: .*; .*refused"):
        attached_clusters(settings, tmp_path / "collected", dict)
    assert not list(tmp_path.iterdir())


def test_a_cluster_observed_before_may_be_away_at_the_next_start(tmp_path: Path) -> None:
    settings = load(None, {"rocketmq.name_servers": f"127.0.0.1:{free_port()}", "rocketmq.cluster": "r"})
    EventFiles(tmp_path, "rocketmq").keep_memory(b"")
    cluster = attached_clusters(settings, tmp_path, dict)[0]
    assert not cluster.poll()
    assert cluster.status() == "r away"
    cluster.stop()
