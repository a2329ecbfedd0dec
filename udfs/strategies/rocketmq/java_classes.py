"""Core: RocketMQ's strategies under the names of their Java classes, as a client reports them. No I/O."""

from __future__ import annotations

# AllocateMessageQueueStrategy#getName of each class that rocketmq-client 4.x and 5.x ship.
_NAMES = {
    "AllocateMessageQueueAveragely": "AVG",
    "AllocateMessageQueueAveragelyByCircle": "AVG_BY_CIRCLE",
    "AllocateMessageQueueByConfig": "CONFIG",
    "AllocateMessageQueueByMachineRoom": "MACHINE_ROOM",
    "AllocateMessageQueueConsistentHash": "CONSISTENT_HASH",
    "AllocateMachineRoomNearby": "MACHINE_ROOM_NEARBY",
}
# Before 4.0 the package was Alibaba's. A client shaded into another jar may have a prefix before it.
_PACKAGES = ("org.apache.rocketmq.client.consumer.rebalance", "com.alibaba.rocketmq.client.consumer.rebalance")


def strategy_of(text: str) -> str | None:
    """Return the wire name of a running client's strategy.

    A custom class keeps its whole name, because its allocation cannot be recomputed, whatever it is called. The
    strategy's arguments (virtual nodes, rooms, the inner strategy of ``MACHINE_ROOM_NEARBY``) are not in the text.

    Args:
        text: Java's ``Object#toString`` of the strategy, with or without package and hash.

    Returns: None if no class is named.

    Source: rocketmq-client 5.5 ``DefaultMQPushConsumerImpl#consumerRunningInfo``, property
        ``allocateMessageQueueStrategy``.

    Example:
        >>> strategy_of("org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely@1b2c3d")
        'AVG'
        >>> strategy_of("com.example.Nearest@7f")
        'com.example.Nearest'
    """
    name = text.strip().partition("@")[0].strip()
    if not name or name == "null":
        return None
    package, _, own = name.rpartition(".")
    is_own_package = not package or any(
        package == own_package or package.endswith(f".{own_package}") for own_package in _PACKAGES
    )
    return _NAMES.get(own, name) if is_own_package else name
