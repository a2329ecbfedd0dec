"""Shell: a live RocketMQ cluster as the settings name it, checked before anything is started."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from streaming.collectors.rocketmq.options import RocketMqOptions, name_servers_of
from streaming.machine.port_check import remedy_by, require_reachable

if TYPE_CHECKING:
    from pydantic import SecretStr

    from streaming.collectors.event_log import EventLog
    from streaming.collectors.rocketmq.collector import RocketMqCollector
    from streaming.settings.model import RocketMq


def options_of(settings: RocketMq) -> RocketMqOptions:
    """Return the options of the cluster that the settings name."""
    return RocketMqOptions(
        name_servers=name_servers_of(settings.name_servers),
        cluster=settings.cluster,
        include_groups=settings.include_groups,
        exclude_groups=settings.exclude_groups,
        include_topics=settings.include_topics,
        exclude_topics=settings.exclude_topics,
        system_names=settings.system_names,
        poll_interval_ms=settings.poll_interval_ms,
        broker_timeout_ms=settings.broker_timeout_ms,
        client_timeout_ms=settings.client_timeout_ms,
        running_info_share=settings.running_info_share,
        access_key=settings.access_key or None,
        secret_key=_secret(settings.secret_key),
        security_token=_secret(settings.security_token),
        tls=settings.tls,
        tls_ca=_path(settings.tls_ca),
        tls_verify=settings.tls_verify,
        tls_certificate=_path(settings.tls_certificate),
        tls_key=_path(settings.tls_key),
        requests_in_flight=settings.requests_in_flight,
        relayed_in_flight=settings.relayed_in_flight,
        boot_grace_ms=settings.boot_grace_ms,
        route_grace_ms=settings.route_grace_ms,
        forget_broker_ms=settings.forget_broker_ms,
    )


def checked(settings: RocketMq, *, was_seen: bool) -> Callable[[EventLog], RocketMqCollector]:
    """Check that a name server can be reached, unless the cluster was seen before; return what makes the collector.

    Raises:
        SetupError: None can be, or a TLS file cannot be used.
    """
    options = options_of(settings)
    options.ssl_context()
    if not was_seen:
        option = "--rocketmq HOST:PORT[;HOST:PORT]"
        require_reachable(options.addresses(), what="name server of RocketMQ", remedy=remedy_by(option))
    from streaming.collectors.rocketmq.collector import RocketMqCollector

    return lambda log: RocketMqCollector(options, log)


def _secret(value: SecretStr) -> SecretStr | None:
    return value if value.get_secret_value() else None


def _path(text: str) -> Path | None:
    return Path(text) if text else None
