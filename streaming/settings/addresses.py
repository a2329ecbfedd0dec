"""Shell: the addresses of clusters in users' notation."""

from __future__ import annotations

import re

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(:(?P<port>\d{1,5}))?")
_PROTOCOL = re.compile(r"\w+://")  # the protocol of a Kafka listener


def wrong_hosts(address: str, *, of_kafka: bool = False) -> list[str]:
    """Return the invalid hosts of an address.

    Args:
        address: ``host:port;host:port`` or ``host:port,host:port/root``; an empty text is not an address. of_kafka:
            Each host has its port, and maybe the protocol of its listener.

    Example:
        >>> wrong_hosts("zk1:2181,zk2/meta"), wrong_hosts("zk1:port"), wrong_hosts("broker", of_kafka=True)
        ([], ['zk1:port'], ['broker'])
    """
    if not address:
        return []
    hosts = address.split(",") if of_kafka else re.split(r"[;,]", address.partition("/")[0])
    return [host for host in map(str.strip, hosts) if not _is_host(host, of_kafka)]


def _is_host(text: str, of_kafka: bool) -> bool:
    found = _HOST.fullmatch(_PROTOCOL.sub("", text, count=1) if of_kafka else text)
    if found is None:
        return False
    return not of_kafka if found["port"] is None else 0 < int(found["port"]) < 65_536
