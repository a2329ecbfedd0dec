"""Outages in rows contain those that real consumers of Kafka note themselves."""

from __future__ import annotations

import pytest

from tests.live.outages import REGIMES, check, measure

pytestmark = [pytest.mark.broker, pytest.mark.timeout(900)]
NAMES = ("librdkafka, range", "librdkafka, cooperative-sticky", "librdkafka, new protocol", "aiokafka, roundrobin")


def test_of_kafka_by_every_way_in_which_an_owner_changes() -> None:
    found = measure([regime for regime in REGIMES if regime.name in NAMES], 4, at_once=4)
    for name in NAMES:
        check(found[name], 16)
        assert {outage.kind for outage in found[name]} >= {"kill", "hang", "leave", "join", "static restart"}, name
