"""Replies of servers as values: queues, lags, properties."""

from __future__ import annotations

import json

import pytest

from streaming.collectors.rocketmq.remoting import bodies
from streaming.collectors.rocketmq.remoting.messages import (
    BrokerData,
    BrokerRuntime,
    MessageQueue,
    QueueData,
    QueueOffsets,
    RunningInfo,
    StaticMapping,
    TopicRoute,
)


@pytest.mark.parametrize(
    ("text", "expected"), [("", None), ("x", None), ("-5", None), ("²", None), ("9" * 30, None), ("17", 17)]
)
def test_odd_properties_have_no_value(text, expected):
    body = {"properties": {"PROP_CONSUMEORDERLY": text}, "mqTable": {}}
    info = bodies.running_info(json.dumps(body).encode())
    assert (info.is_ordered, info.strategy) == (None, None)
    assert BrokerRuntime({"bootTimestamp": text}).boot_timestamp_ms == expected


@pytest.mark.parametrize(
    ("offsets", "lag"), [(QueueOffsets(9, 4), 5), (QueueOffsets(9, -1), 9), (QueueOffsets(3, 9), 0)]
)
def test_lag_is_never_negative(offsets, lag):
    assert offsets.lag == lag


def test_only_readable_queues_are_shared():
    queues = (QueueData("b", 2, 4), QueueData("a", 1, 7), QueueData("c", 5, 2), QueueData("d", 0, 6))
    assert TopicRoute("t", (), queues).readable_queues() == (
        MessageQueue("t", "a", 0),
        MessageQueue("t", "b", 0),
        MessageQueue("t", "b", 1),
    )


def test_a_static_topic_has_the_queues_of_its_scopes():
    mappings = {
        "a": StaticMapping(2, "__global__"),
        "b": StaticMapping(3, "__global__"),
        "c": StaticMapping(1, "blue"),
        "d": StaticMapping(9, None),
    }
    route = TopicRoute("t", (), (QueueData("a", 8, 6),), mappings)
    assert route.is_static
    assert route.readable_queues() == (
        MessageQueue("t", "__syslo__blue", 0),
        *(MessageQueue("t", "__syslo__global__", number) for number in range(3)),
    )


def test_the_master_is_the_broker_with_id_zero_and_requests_go_to_a_replica_without_one():
    whole = BrokerData("b", "c", {1: "slave", 0: "master"})
    assert (whole.master, whole.address) == ("master", "master")
    headless = BrokerData("b", "c", {2: "second", 1: "first"})
    assert (headless.master, headless.address) == (None, "first")
    assert BrokerData("b").address is None


def test_a_member_describes_itself_in_its_properties():
    properties = {
        "PROP_CONSUMEORDERLY": "true",
        "PROP_CONSUME_TYPE": "CONSUME_POP",
        "PROP_CLIENT_VERSION": "V5_5_0",
        "messageModel": "BROADCASTING",
        "clientRebalance": "false",
        "allocateMessageQueueStrategy": "a.b.AllocateMessageQueueAveragely@1",
    }
    info = RunningInfo(properties, (), {})
    assert info.is_ordered is True
    assert info.is_client_rebalance is False
    assert (info.consume_type, info.message_model) == ("CONSUME_POP", "BROADCASTING")
    assert info.client_version == "V5_5_0"
    assert info.strategy == "a.b.AllocateMessageQueueAveragely@1"


def test_a_broker_reports_its_version_and_its_start():
    runtime = BrokerRuntime({"brokerVersionDesc": "V5_5_0", "bootTimestamp": "1790000000000"})
    assert (runtime.version, runtime.boot_timestamp_ms) == ("V5_5_0", 1_790_000_000_000)
    assert (BrokerRuntime({}).version, BrokerRuntime({}).boot_timestamp_ms) == (None, None)
