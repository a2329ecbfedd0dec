"""Shell: the options of a MetaQ cluster: its ZooKeeper, the login, what is followed, and how often it is read."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

from streaming.settings.clusters import Metaq
from udfs.kafka.consumer_offsets import GroupPatterns

DEFAULT_ROOT: Final = "/meta"  # metamorphosis ``ZkUtils.ZKConfig#zkRoot``


class MetaqOptions(Metaq):
    """One cluster's section of the settings.

    Attributes:
        settle_ms: Owners must be unchanged this long before a strategy is inferred from them, and queues missing this
            long before it is reported: a broker with new settings deletes its topics and writes them again.
        session_timeout_ms: The timeout of the monitor's own session, not of the consumers'.
    """

    @property
    def hosts(self) -> str:
        """Return ``host:port,host:port``, the format of ZooKeeper's clients."""
        return split_address(self.zookeeper)[0]

    @property
    def root(self) -> str:
        """Return ``zk.zkRoot`` of the brokers and clients, prefixed with ZooKeeper's chroot, if any."""
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
        """Return the arguments for a ``KazooClient``."""
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
