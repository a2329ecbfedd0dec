"""Shell: a live RocketMQ cluster from the settings, checked before anything is started."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from streaming.collectors.rocketmq.options import RocketMqOptions
from streaming.machine.port_check import remedy_by, require_reachable

if TYPE_CHECKING:
    from streaming.collectors.event_log import EventLog
    from streaming.collectors.rocketmq.collector import RocketMqCollector
    from streaming.settings.clusters import RocketMq


def options_of(settings: RocketMq) -> RocketMqOptions:
    """Return the options of the cluster that the settings name."""
    return RocketMqOptions(**dict(settings))


def validated(settings: RocketMq, *, was_followed: bool) -> Callable[[EventLog], RocketMqCollector]:
    """Check that a name server can be reached, unless it was followed before; return the factory of the collector.

    Raises:
        SetupError: No name server can be reached, or a TLS file cannot be used.
    """
    options = options_of(settings)
    options.ssl_context()
    if not was_followed:
        option = "--rocketmq HOST:PORT[;HOST:PORT]"
        require_reachable(options.addresses(), what="name server of RocketMQ", remedy=remedy_by(option))
    from streaming.collectors.rocketmq.collector import RocketMqCollector

    return lambda log: RocketMqCollector(options, log)
