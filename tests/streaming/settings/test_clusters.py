"""The sections of live clusters."""

from __future__ import annotations

import pytest

from streaming.settings.clusters import SECTIONS, LiveCluster
from streaming.settings.errors import SettingsError
from streaming.settings.model import load


@pytest.mark.parametrize("system", SECTIONS)
def test_a_cluster_is_followed_when_it_has_an_address(system: str) -> None:
    section = load().cluster(system)
    assert isinstance(section, LiveCluster)
    assert getattr(section, section.address) == ""
    given = {f"{system}.{section.address}": "host:1", f"{system}.cluster": "mine"}
    assert load().followed() == {}
    assert load(None, given).followed() == {system: "mine"}
    assert load(None, given).cluster(system).mistakes() == []


def test_a_key_without_its_secret_is_a_mistake() -> None:
    (mistake,) = load(None, {"rocketmq.access_key": "user"}).rocketmq.mistakes()
    assert "secret_key" in mistake
    assert load(None, {"rocketmq.access_key": "user", "rocketmq.secret_key": "s"}).rocketmq.mistakes() == []


@pytest.mark.parametrize("system", SECTIONS)
def test_a_pattern_that_is_none_is_named(system: str) -> None:
    with pytest.raises(SettingsError, match="regular expression"):
        load(None, {f"{system}.include_groups": ["("]})


def test_one_pattern_needs_no_list() -> None:
    assert load(env={"REBALANCE_MONITOR_KAFKA__INCLUDE_GROUPS": "a.*"}).kafka.include_groups == ("a.*",)


def test_proxies_are_hosts_with_ports() -> None:
    assert load().rocketmq.proxies == ()
    assert load(None, {"rocketmq.proxies": ["a:1", "[::1]"]}).rocketmq.proxies == ("a:1", "[::1]")
    assert load(env={"REBALANCE_MONITOR_ROCKETMQ__PROXIES": "a:1; b,"}).rocketmq.proxies == ("a:1", "b")
    with pytest.raises(SettingsError, match=r"rocketmq\.proxies.*'a:port' is not HOST:PORT"):
        load(None, {"rocketmq.proxies": ["b", "a:port"]})
    with pytest.raises(SettingsError, match="'' is not HOST:PORT"):
        load(None, {"rocketmq.proxies": [""]})


@pytest.mark.parametrize("system", SECTIONS)
def test_a_cluster_is_not_polled_without_a_pause(system: str) -> None:
    with pytest.raises(SettingsError, match="greater than or equal to 100"):
        load(None, {f"{system}.poll_interval_ms": 99})
