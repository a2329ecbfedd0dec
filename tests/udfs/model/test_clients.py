"""Which client a member is, under whichever member id."""

from __future__ import annotations

import pytest

from udfs.model.clients import client_of, host_of


@pytest.mark.parametrize(
    ("instance_id", "client_id", "host", "client", "why"),
    [
        ("i-1", "rdkafka", "/10.0.0.1", "i-1", "a static member says who it is"),
        (None, "consumer-g-1", "/10.0.0.1", "consumer-g-1@10.0.0.1", "the same id on two hosts is two clients"),
        (None, "consumer-g-1", None, "consumer-g-1", "a source may not show hosts"),
        (None, None, "/10.0.0.1", "10.0.0.1", "else the host is all there is"),
        (None, None, None, None, "nothing is known"),
        ("", "", "", None, "empty is not known either"),
        (None, "10.0.0.1@4711#98127", "10.0.0.1:50001", "10.0.0.1", "RocketMQ's process id and time are no identity"),
        (None, "10.0.0.1@4711", "10.0.0.1:50001", "10.0.0.1", "nor were they in 4.8"),
        (None, "10.0.0.1@worker-7", "10.0.0.1:1", "10.0.0.1@worker-7@10.0.0.1", "an instance name is"),
        (None, "10.0.0.1@4711#98127@unit", "10.0.0.1:1", "10.0.0.1@unit@10.0.0.1", "a unit's name stays"),
        (None, "h-4711-1700000000000-3", "h", "h", "MetaQ's process, time and counter are no identity"),
        (None, "@4711", None, "@4711", "an id of nothing else is kept"),
        (None, "worker-12", "h", "worker-12@h", "a number at the end is somebody's choice"),
    ],
)
def test_a_client_is_what_stays(
    instance_id: str | None, client_id: str | None, host: str | None, client: str | None, why: str
) -> None:
    assert client_of(instance_id, client_id, host) == client, why


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("node-1/10.0.0.1:9092", "10.0.0.1"),
        ("fe80::1:2", "fe80::1:2"),
        ("[fe80::1]:9092", "[fe80::1]"),
        ("host", "host"),
        ("/", "/"),
    ],
)
def test_a_host_has_no_port(address: str, host: str) -> None:
    assert host_of(address) == host
