"""Shell: where a MetaQ cluster's ZooKeeper is, how to log in there, what is followed, and how often it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr

from udfs.kafka.consumer_offsets import GroupPatterns

DEFAULT_ROOT: Final = "/meta"  # metamorphosis ``ZkUtils.ZKConfig#zkRoot``


@dataclass(frozen=True)
class MetaqOptions:
    """One cluster, as the monitor follows it.

    Attributes:
        hosts: ``host:port,host:port``, as ZooKeeper's clients take it.
        cluster: Its name in the events.
        root: ``zk.zkRoot`` of the brokers and clients, with ZooKeeper's chroot, if any, in front.
        include_groups, exclude_groups, include_topics, exclude_topics: Patterns for whole names.
        poll_interval_ms: From one ``clock`` to the next. Changes are reported as they happen, by watches.
        progress_interval_ms: How often each group's offsets are read.
        settle_ms: Owners must be unchanged this long before a strategy is inferred from them, and queues missing this
            long before it is reported: a broker with new settings deletes its topics and writes them again.
        session_timeout_ms: Of our own session, not of the consumers'.
        connect_timeout_ms: How long the first connection may take.
        requests_in_flight: At most so many at a time.
        auth: ``scheme -> credential``, e.g. ``digest -> user:password``.
        sasl: ``mechanism``, ``username``, ``password``, as kazoo takes them.
        tls: Encrypted. tls_ca: A PEM file with the CAs of the servers' certificates. tls_verify: False trusts any.
            tls_certificate, tls_key, tls_key_password: Our own, where the servers require one.
    """

    hosts: str
    cluster: str
    root: str = DEFAULT_ROOT
    include_groups: tuple[str, ...] = (".*",)
    exclude_groups: tuple[str, ...] = ()
    include_topics: tuple[str, ...] = (".*",)
    exclude_topics: tuple[str, ...] = ()
    poll_interval_ms: int = 5_000
    progress_interval_ms: int = 30_000
    settle_ms: int = 1_000
    session_timeout_ms: int = 10_000
    connect_timeout_ms: int = 10_000
    requests_in_flight: int = 256
    auth: Mapping[str, SecretStr] = field(default_factory=dict)
    sasl: Mapping[str, str | SecretStr] = field(default_factory=dict)
    tls: bool = False
    tls_ca: Path | None = None
    tls_verify: bool = True
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_key_password: SecretStr | None = None

    @cached_property
    def _groups(self) -> GroupPatterns:
        return GroupPatterns(self.include_groups, self.exclude_groups)

    @cached_property
    def _topics(self) -> GroupPatterns:
        return GroupPatterns(self.include_topics, self.exclude_topics)

    def follows_group(self, group: str) -> bool:
        """Return whether a group is followed."""
        return self._groups.follow(group)

    def follows_topic(self, topic: str) -> bool:
        """Return whether a topic is followed."""
        return self._topics.follow(topic)

    def client_settings(self) -> dict[str, Any]:
        """Return what a ``KazooClient`` is made with."""
        settings: dict[str, Any] = {
            "hosts": self.hosts,
            "timeout": self.session_timeout_ms / 1_000,
            "read_only": False,
            "auth_data": [(scheme, secret.get_secret_value()) for scheme, secret in sorted(self.auth.items())] or None,
            "sasl_options": {name: _plain(value) for name, value in self.sasl.items()} or None,
        }
        if self.tls:
            settings |= {
                "use_ssl": True,
                "verify_certs": self.tls_verify,
                "check_hostname": self.tls_verify,
                "ca": _text(self.tls_ca),
                "certfile": _text(self.tls_certificate),
                "keyfile": _text(self.tls_key),
                "keyfile_password": _plain(self.tls_key_password),
            }
        return settings


def split_address(text: str) -> tuple[str, str]:
    """Return hosts and root of ``ZK[/root]``.

    Example:
        >>> split_address("zk1:2181,zk2:2181"), split_address("zk1:2181/old/meta/")
        (('zk1:2181,zk2:2181', '/meta'), ('zk1:2181', '/old/meta'))
    """
    hosts, _, root = text.strip().partition("/")
    root = root.strip("/")
    return hosts, f"/{root}" if root else DEFAULT_ROOT


def _plain(value: str | SecretStr | None) -> str | None:
    return value.get_secret_value() if isinstance(value, SecretStr) else value


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
