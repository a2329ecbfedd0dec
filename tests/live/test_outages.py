"""Outages in rows contain those that real consumers of Kafka note themselves."""

from __future__ import annotations

import pytest

from tests.live.outages import REGIMES, check, measure

pytestmark = [pytest.mark.broker, pytest.mark.timeout(900)]
NAMES = ("librdkafka, range", "librdkafka, cooperative-sticky", "librdkafka, new protocol", "aiokafka, roundrobin")


def test_outages_contain_the_truth_for_every_way_to_change_an_owner() -> None:
    found = measure([regime for regime in REGIMES if regime.name in NAMES], 4, at_once=4)
    for name in NAMES:
        check(found[name], 16)
        assert {outage.kind for outage in found[name]} >= {"kill", "hang", "leave", "join", "static restart"}, name
