"""What a live cluster is to the job, and what the settings make of it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from streaming.collectors.collector import CollectorCluster, CollectorStatus
from streaming.collectors.event_log import EventFiles
from streaming.collectors.metaq.factory import options_of as metaq_options
from streaming.collectors.registry import attached_clusters, cluster_sources
from streaming.collectors.rocketmq.factory import options_of as rocketmq_options
from streaming.job import source_names
from streaming.settings.model import load
from streaming.setup.errors import SetupError
from tests.kit.processes import free_port
from tests.streaming.collectors.event_log.clocks import clock, times_in


def test_collectors_read_the_addresses_of_the_settings() -> None:
    settings = load(None, {"rocketmq.name_servers": "a;b:1", "rocketmq.cluster": "r", "metaq.zookeeper": "z:1,y:2/old"})
    assert rocketmq_options(settings.rocketmq).addresses() == ("a:9876", "b:1")
    metaq = metaq_options(settings.metaq)
    assert (metaq.hosts, metaq.root, metaq.settle_ms) == ("z:1,y:2", "/old", settings.metaq.settle_ms)


def test_secrets_reach_the_collectors_and_no_text(tmp_path: Path) -> None:
    file = tmp_path / "monitor.toml"
    file.write_text('[rocketmq]\naccess_key = "user"\n[metaq.auth]\ndigest = "user:hush"\n')
    settings = load(file, {}, {"REBALANCE_MONITOR_ROCKETMQ__SECRET_KEY": "hush"})
    credentials = rocketmq_options(settings.rocketmq).credentials()
    assert credentials is not None
    assert credentials.secret_key == "hush"
    assert metaq_options(settings.metaq).client_settings()["auth_data"] == [("digest", "user:hush")]
    assert "hush" not in repr((settings, rocketmq_options(settings.rocketmq), metaq_options(settings.metaq)))


def test_a_checkpoint_remembers_clusters_in_one_order_whatever_was_given_first() -> None:
    given = {"metaq.zookeeper": "z", "metaq.cluster": "m", "rocketmq.name_servers": "n", "rocketmq.cluster": "r"}
    settings = load(None, {**given, "kafka.bootstrap_servers": "k:1", "kafka.cluster": "k", "kafka_events.topic": "t"})
    assert cluster_sources(settings) == ["kafka:k", "rocketmq:r", "metaq:m"]
    assert source_names(settings) == ["control", "kafka-events:t", "kafka:k", "rocketmq:r", "metaq:m"]


def test_a_cluster_that_cannot_be_reached_leaves_nothing_behind(tmp_path: Path) -> None:
    away = f"127.0.0.1:{free_port()};127.0.0.1:{free_port()}"
    settings = load(None, {"rocketmq.name_servers": away, "rocketmq.cluster": "r"})
    with pytest.raises(SetupError, match=r"no name server of RocketMQ can be reached: .*; .*refused"):
        attached_clusters(settings, tmp_path / "collected", dict)
    assert not list(tmp_path.iterdir())


def test_a_cluster_that_was_seen_before_may_be_away_at_the_next_start(tmp_path: Path) -> None:
    settings = load(None, {"rocketmq.name_servers": f"127.0.0.1:{free_port()}", "rocketmq.cluster": "r"})
    EventFiles(tmp_path, "rocketmq").keep_memory(b"")
    follower = attached_clusters(settings, tmp_path, dict)[0]
    assert not follower.poll()
    assert follower.status() == "r away"
    follower.stop()


class ScriptedCollector:
    """Writes one event at each look."""

    def __init__(self, log: EventFiles) -> None:
        self._log = log
        self.seen = CollectorStatus(cluster="orders", state="connected")

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def observe_once(self) -> bool:
        self._log.append([clock(1)])
        return True

    def status(self) -> CollectorStatus:
        return self.seen


def test_what_is_wrong_with_a_cluster_is_said_in_a_few_words(tmp_path: Path) -> None:
    log = EventFiles(tmp_path, "rocketmq")
    collector = ScriptedCollector(log)
    follower = CollectorCluster(collector, log)
    assert follower.poll()
    assert times_in(tmp_path) == [1]
    assert not follower.flush_clock()
    assert follower.status() is None
    for change, words in (
        ({"state": "away"}, "orders away"),
        ({"state": "refused"}, "orders refused"),
        ({"unpolled": 7}, "orders: 7 not polled in time"),
    ):
        collector.seen = msgspec.structs.replace(CollectorStatus(cluster="orders", state="connected"), **change)
        assert follower.status() == words


def test_a_log_that_cannot_be_written_is_the_collectors_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = EventFiles(tmp_path, "rocketmq")
    follower = CollectorCluster(ScriptedCollector(log), log)

    def full(path: Path, content: bytes, **more: int | None) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("streaming.collectors.event_log.file_log.write_atomically", full)
        follower.poll()
        assert follower.status() == "orders unwritable"
        assert follower.collector_status().detail == "[Errno 28] No space left on device"
    follower.stop()
    assert follower.status() is None
    assert times_in(tmp_path) == [1]
