"""Shell: where a MetaQ cluster's ZooKeeper is, how to log in there, what is followed, and how often it is read."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

from streaming.settings.clusters import Metaq
from udfs.kafka.consumer_offsets import GroupPatterns

DEFAULT_ROOT: Final = "/meta"  # metamorphosis ``ZkUtils.ZKConfig#zkRoot``


class MetaqOptions(Metaq):
    """One cluster as its section of the settings names it, and as the monitor follows it.

    Attributes:
        settle_ms: Owners must be unchanged this long before a strategy is inferred from them, and queues missing this
            long before it is reported: a broker with new settings deletes its topics and writes them again.
        session_timeout_ms: The timeout of our own session, not of the consumers'.
    """

    @property
    def hosts(self) -> str:
        """``host:port,host:port``, as ZooKeeper's clients take it."""
        return split_address(self.zookeeper)[0]

    @property
    def root(self) -> str:
        """``zk.zkRoot`` of the brokers and clients, with ZooKeeper's chroot, if any, in front."""
        return split_address(self.zookeeper)[1]

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
            "sasl_options": {name: value.get_secret_value() for name, value in self.sasl.items()} or None,
        }
        if self.tls:
            settings |= {
                "use_ssl": True,
                "verify_certs": self.tls_verify,
                "check_hostname": self.tls_verify,
                "ca": self.tls_ca or None,
                "certfile": self.tls_certificate or None,
                "keyfile": self.tls_key or None,
                "keyfile_password": self.tls_key_password.get_secret_value() or None,
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
