"""RocketMQ's strategies by the names of their classes."""

from __future__ import annotations

import pytest

from udfs.strategies.registry import names, qualified_name
from udfs.strategies.rocketmq.java_classes import strategy_of

PACKAGE = "org.apache.rocketmq.client.consumer.rebalance"
SHIPPED = {
    "AllocateMessageQueueAveragely": "AVG",
    "AllocateMessageQueueAveragelyByCircle": "AVG_BY_CIRCLE",
    "AllocateMessageQueueByConfig": "CONFIG",
    "AllocateMessageQueueByMachineRoom": "MACHINE_ROOM",
    "AllocateMessageQueueConsistentHash": "CONSISTENT_HASH",
    "AllocateMachineRoomNearby": "MACHINE_ROOM_NEARBY",
}


@pytest.mark.parametrize(("own", "name"), SHIPPED.items())
@pytest.mark.parametrize(
    "form",
    [
        "{own}",
        "{own}@1b2c3d",
        f"{PACKAGE}.{{own}}",
        f" {PACKAGE}.{{own}}@0 ",
        "com.alibaba.rocketmq.client.consumer.rebalance.{own}@ff",
        f"com.example.shaded.{PACKAGE}.{{own}}@1",
    ],
)
def test_a_class_that_is_shipped_has_its_wire_name(own: str, name: str, form: str) -> None:
    assert strategy_of(form.format(own=own)) == name
    assert qualified_name(name, "rocketmq") in names()


@pytest.mark.parametrize(
    "own",
    [
        "com.example.Nearest",
        "com.example.AllocateMessageQueueAveragely",  # a copy, perhaps changed
        f"{PACKAGE}.AbstractAllocateMessageQueueStrategy",
        f"x{PACKAGE}.AllocateMessageQueueAveragely",
        "com.example.Main$1",
        "com.example.Main$$Lambda/0x00007f1c",
        "com.example.AVG",
    ],
)
def test_a_class_of_somebody_else_keeps_its_own_name(own: str) -> None:
    assert strategy_of(f"{own}@77f03bb1") == own
    assert qualified_name(own, "rocketmq") not in names()


@pytest.mark.parametrize("text", ["", " ", "null", "@1b2c3d"])
def test_no_class_is_no_strategy(text: str) -> None:
    assert strategy_of(text) is None
