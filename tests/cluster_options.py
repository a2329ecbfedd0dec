"""The options of a live cluster for tests: users' defaults, with the values that a test sets."""

from __future__ import annotations

from typing import Any

from streaming.collectors.metaq.options import MetaqOptions
from streaming.collectors.rocketmq.options import RocketMqOptions
from streaming.settings.model import load

_SETTINGS = load()


def rocketmq_options(*name_servers: str, cluster: str, **changed: Any) -> RocketMqOptions:
    """Return the options of a cluster behind these name servers."""
    return RocketMqOptions(
        **(dict(_SETTINGS.rocketmq) | {"name_servers": ";".join(name_servers), "cluster": cluster} | changed)
    )


def metaq_options(zookeeper: str, *, cluster: str, **changed: Any) -> MetaqOptions:
    """Return the options of a cluster behind these servers."""
    return MetaqOptions(**(dict(_SETTINGS.metaq) | {"zookeeper": zookeeper, "cluster": cluster} | changed))
