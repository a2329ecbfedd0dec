"""The sections of live clusters: which are followed, in one order, and patterns that are none."""

from __future__ import annotations

import pytest

from streaming.settings.errors import SettingsError
from streaming.settings.model import load

ADDRESSES = {"metaq.zookeeper": "z", "rocketmq.name_servers": "n", "kafka.bootstrap_servers": "k:1"}


def test_a_cluster_with_an_address_is_followed_in_an_order_of_its_own() -> None:
    names = {f"{system}.cluster": f"my-{system}" for system in ("metaq", "rocketmq", "kafka")}
    assert list(load(None, {**ADDRESSES, **names}).followed().items()) == [
        ("kafka", "my-kafka"),
        ("rocketmq", "my-rocketmq"),
        ("metaq", "my-metaq"),
    ]
    assert load(None, names).followed() == {}


@pytest.mark.parametrize("system", ["kafka", "rocketmq", "metaq"])
def test_each_system_has_its_section(system: str) -> None:
    settings = load(None, {f"{system}.cluster": "c", f"{system}.include_groups": "a.*"})
    section = settings.cluster(system)
    assert (section.cluster, section.include_groups) == ("c", ("a.*",))
    with pytest.raises(SettingsError, match=rf"{system}.exclude_groups: .*'\(' is not a regular expression"):
        load(None, {f"{system}.exclude_groups": ["("]})


def test_kafka_has_no_patterns_for_topics() -> None:
    assert load(None, {"metaq.include_topics": "a"}).metaq.include_topics == ("a",)
    with pytest.raises(SettingsError, match=r"kafka\.include_topics: there is no such setting"):
        load(None, {"kafka.include_topics": ["a"]})


@pytest.mark.parametrize("system", ["kafka", "rocketmq", "metaq"])
def test_a_cluster_is_not_polled_without_a_pause(system: str) -> None:
    with pytest.raises(SettingsError, match="greater than or equal to 100"):
        load(None, {f"{system}.poll_interval_ms": 99})
