"""Addresses of clusters as people write them."""

from __future__ import annotations

import pytest

from streaming.settings.addresses import wrong_hosts


@pytest.mark.parametrize(
    ("address", "wrong"),
    [
        ("", []),
        ("zk1:2181,zk2/meta,data", []),
        ("a:1;b:65535", []),
        ("a:0;b:65536;c:", ["a:0", "b:65536", "c:"]),
        ("a, b c ;;[::1]:9876", ["b c", ""]),
        ("[::1", ["[::1"]),
    ],
)
def test_hosts_that_are_none_are_returned_as_they_were_written(address: str, wrong: list[str]) -> None:
    assert wrong_hosts(address) == wrong


@pytest.mark.parametrize(
    ("address", "wrong"),
    [
        ("a:1, SASL_SSL://b:2", []),
        ("a", ["a"]),
        ("a:1;b:2", ["a:1;b:2"]),
        ("a:1/topic", ["a:1/topic"]),
        ("ssl://ssl://a:1", ["ssl://ssl://a:1"]),
    ],
)
def test_hosts_of_kafka_have_ports_and_may_have_a_protocol(address: str, wrong: list[str]) -> None:
    assert wrong_hosts(address, of_kafka=True) == wrong
