"""Core: a member's client, which stays the same when it comes back under another member id. No I/O."""

from __future__ import annotations

import re
from functools import lru_cache

# RocketMQ's clients add this to their address: the process id, since 4.9 with the time of their start
# (``ClientConfig#changeInstanceNameToPID``); and MetaQ's: process id, time and a counter
# (``ConsumerZooKeeper#getConsumerUUID``). Both are new in each process.
_OF_A_PROCESS = re.compile(r"@\d+(?:#\d+)?(?=@|$)|(?<=.)-\d+-\d{12,14}-\d+$")
_WITH_PORT = re.compile(r"([^:]+|\[.*\]):\d{1,5}")


@lru_cache(maxsize=16_384)  # a group's members are compared by it at each rebalance
def client_of(instance_id: str | None, client_id: str | None, host: str | None) -> str | None:
    """Return a member's client: its instance id, else its client id with its host, else its host; None if unknown.

    It is the same in each session of one process, and after a restart. Two processes on one host that set no client id
    of their own, or the same one, are one client: nothing permanent distinguishes them. Two hosts with the same
    instance id are one client, too, and a client whose address changes becomes another one. Ports, and the parts of ids
    that clients renew at each start, do not count.

    Args:
        client_id: The member's id if the system has no separate client id.

    Example:
        >>> client_of("worker-3", "rdkafka", "/10.0.0.7"), client_of(None, "rdkafka", "/10.0.0.7")
        ('worker-3', 'rdkafka@10.0.0.7')
        >>> client_of(None, "10.6.1.243@7#81923", "10.6.1.243:51234"), client_of(None, None, "10.6.1.243:51234")
        ('10.6.1.243', '10.6.1.243')
    """
    if instance_id:
        return instance_id
    address = host_of(host)
    name = None if not client_id else _OF_A_PROCESS.sub("", client_id) or client_id
    if name is None or address is None or name == address:
        return name or address
    return f"{name}@{address}"


def on_host(name: str, host: str | None) -> str:
    """Return a member's name with its host, unless the name has it or it is not known.

    Example:
        >>> on_host("worker-3", "/10.0.0.7"), on_host("rdkafka@10.0.0.7", "/10.0.0.7"), on_host("worker-3", None)
        ('worker-3 on 10.0.0.7', 'rdkafka@10.0.0.7', 'worker-3')
    """
    address = host_of(host)
    return name if address is None or address in name else f"{name} on {address}"


def host_of(host: str | None) -> str | None:
    """Return a host without the port of its connection and the slash that Java writes before an address.

    Example:
        >>> host_of("/10.0.0.7"), host_of("10.6.1.243:51234"), host_of("[::1]:9"), host_of("::1"), host_of("")
        ('10.0.0.7', '10.6.1.243', '[::1]', '::1', None)
    """
    if not host:
        return None
    address = host.rsplit("/", 1)[-1]
    with_port = _WITH_PORT.fullmatch(address)
    return (with_port[1] if with_port else address) or host
