"""Shell: a live MetaQ cluster from the settings, checked before anything is started."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from streaming.collectors.metaq.options import MetaqOptions
from streaming.machine.port_check import remedy_by, require_reachable

if TYPE_CHECKING:
    from streaming.collectors.event_log import EventLog
    from streaming.collectors.metaq.collector import MetaqCollector
    from streaming.settings.clusters import Metaq

_DEFAULT_PORT = 2181  # ZooKeeper's clientPort


def options_of(settings: Metaq) -> MetaqOptions:
    """Return the options of the cluster that the settings name."""
    return MetaqOptions(**dict(settings))


def validated(settings: Metaq, *, was_followed: bool) -> Callable[[EventLog], MetaqCollector]:
    """Check that ZooKeeper can be reached, unless it was followed before; return the factory of the collector.

    Raises:
        SetupError: None of its servers can be reached.
    """
    options = options_of(settings)
    servers = [host if ":" in host else f"{host}:{_DEFAULT_PORT}" for host in options.hosts.split(",")]
    if not was_followed:
        remedy = remedy_by("--metaq HOST:PORT[,HOST:PORT][/root]")
        require_reachable(servers, what="ZooKeeper of MetaQ", remedy=remedy)
    from streaming.collectors.metaq.collector import MetaqCollector

    return lambda log: MetaqCollector(options, log)
