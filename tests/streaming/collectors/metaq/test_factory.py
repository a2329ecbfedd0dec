"""A MetaQ cluster as the settings name it."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.collectors.event_log import EventFiles
from streaming.collectors.metaq.factory import options_of, validated
from streaming.settings.model import load
from streaming.setup.errors import SetupError
from tests.kit.processes import free_port


def test_the_collector_reads_the_addresses_of_the_settings() -> None:
    settings = load(None, {"metaq.zookeeper": "z:1,y:2/old"})
    options = options_of(settings.metaq)
    assert (options.hosts, options.root, options.settle_ms) == ("z:1,y:2", "/old", settings.metaq.settle_ms)


def test_secrets_reach_the_collector_and_no_text(tmp_path: Path) -> None:
    file = tmp_path / "monitor.toml"
    file.write_text('[metaq.auth]\ndigest = "user:hush"\n')
    settings = load(file)
    assert options_of(settings.metaq).client_settings()["auth_data"] == [("digest", "user:hush")]
    assert "hush" not in repr([settings, options_of(settings.metaq)])


def test_servers_without_a_port_are_tried_at_that_of_zookeeper(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr(
        "streaming.collectors.metaq.factory.require_reachable", lambda servers, **_: tried.extend(servers)
    )
    settings = load(None, {"metaq.zookeeper": "z,y:1/old", "metaq.cluster": "m"}).metaq
    validated(settings, was_followed=False)
    assert tried == ["z:2181", "y:1"]


def test_a_cluster_observed_before_may_be_away_at_the_next_start(tmp_path: Path) -> None:
    settings = load(None, {"metaq.zookeeper": f"127.0.0.1:{free_port()}", "metaq.cluster": "m"}).metaq
    with pytest.raises(SetupError, match="no ZooKeeper of MetaQ can be reached"):
        validated(settings, was_followed=False)
    collector = validated(settings, was_followed=True)(EventFiles(tmp_path, "metaq"))
    assert collector.status().cluster == "m"
