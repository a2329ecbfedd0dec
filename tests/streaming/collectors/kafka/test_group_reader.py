"""Groups of a real broker by admin calls."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streaming.collectors.kafka.group_reader import GroupReader
from streaming.collectors.kafka.options import KafkaOptions
from tests.kit.brokers import Broker
from tests.kit.members import Member
from tests.kit.topics import create_topic
from udfs.kafka.consumer_protocol import read_assignment, read_subscription
from udfs.model.events import QueueRef

pytestmark = pytest.mark.broker


def test_a_classic_group_shows_subscriptions_and_a_new_one_its_queues(
    kafka41: Broker, new_member: Callable[..., Member]
) -> None:
    create_topic(kafka41, "read", 2)
    queues = tuple(QueueRef("read", number) for number in range(2))
    classic = new_member(kafka41, "read-classic", ["read"], client_id="a", instance_id="i")
    new = new_member(kafka41, "read-new", ["read"], client_id="b", settings={"group.protocol": "consumer"})
    for member in (classic, new):
        member.wait_until(lambda member=member: len(member.owned) == 2)
    with GroupReader(KafkaOptions(kafka41.bootstrap, "c")) as reader:
        polled = reader.groups()
        described = reader.described(["read-classic"])
    assert polled.is_whole
    found = polled.groups["read-classic"]
    assert (found.state, found.protocol, found.protocol_type, found.strategy) == (
        "Stable",
        "classic",
        "consumer",
        "range",
    )
    (member,) = found.members
    assert read_subscription(member.metadata, "range").topics == ("read",)
    assert read_assignment(member.assignment) == queues
    assert [shown.instance_id for shown in described["read-classic"].members] == ["i"]
    other = polled.groups["read-new"]
    assert (other.protocol, other.strategy, [shown.queues for shown in other.members]) == (
        "consumer",
        "uniform",
        [queues],
    )
