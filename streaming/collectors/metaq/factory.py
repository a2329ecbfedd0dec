"""Shell: a live MetaQ cluster as the settings name it, checked before anything is started."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from streaming.collectors.metaq.options import MetaqOptions, split_address
from streaming.machine.port_check import remedy_by, require_reachable

if TYPE_CHECKING:
    from streaming.collectors.event_log import EventLog
    from streaming.collectors.metaq.collector import MetaqCollector
    from streaming.settings.model import Metaq

_DEFAULT_PORT = 2181  # ZooKeeper's clientPort


def options_of(settings: Metaq) -> MetaqOptions:
    """Return the options of the cluster that the settings name."""
    hosts, root = split_address(settings.zookeeper)
    return MetaqOptions(
        hosts=hosts,
        cluster=settings.cluster,
        root=root,
        include_groups=settings.include_groups,
        exclude_groups=settings.exclude_groups,
        include_topics=settings.include_topics,
        exclude_topics=settings.exclude_topics,
        poll_interval_ms=settings.poll_interval_ms,
        progress_interval_ms=settings.progress_interval_ms,
        settle_ms=settings.settle_ms,
        session_timeout_ms=settings.session_timeout_ms,
        connect_timeout_ms=settings.connect_timeout_ms,
        requests_in_flight=settings.requests_in_flight,
        auth=settings.auth,
        sasl=settings.sasl,
        tls=settings.tls,
        tls_ca=_path(settings.tls_ca),
        tls_verify=settings.tls_verify,
        tls_certificate=_path(settings.tls_certificate),
        tls_key=_path(settings.tls_key),
        tls_key_password=settings.tls_key_password if settings.tls_key_password.get_secret_value() else None,
    )


def checked(settings: Metaq, *, was_seen: bool) -> Callable[[EventLog], MetaqCollector]:
    """Check that ZooKeeper can be reached, unless the cluster was seen before; return what makes the collector.

    Raises:
        SetupError: None of its servers can be.
    """
    options = options_of(settings)
    servers = [host if ":" in host else f"{host}:{_DEFAULT_PORT}" for host in options.hosts.split(",")]
    if not was_seen:
        remedy = remedy_by("--metaq HOST:PORT[,HOST:PORT][/root]")
        require_reachable(servers, what="ZooKeeper of MetaQ", remedy=remedy)
    from streaming.collectors.metaq.collector import MetaqCollector

    return lambda log: MetaqCollector(options, log)


def _path(text: str) -> Path | None:
    return Path(text) if text else None
