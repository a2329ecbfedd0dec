"""Shell: the answers of RocketMQ servers, as frozen values. Names on the wire are these in camel case.

Fields with a default are those that some versions or client languages omit. Fields that are not listed here are
ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

MASTER_ID: Final = 0
PERM_READ: Final = 4  # org.apache.rocketmq.common.constant.PermName#PERM_READ
# Consumers of a static topic see this broker name (org.apache.rocketmq.common.MixAll).
_STATIC_PREFIX: Final = "__syslo__"
_GLOBAL_SCOPE: Final = "__global__"


class MessageQueue(msgspec.Struct, frozen=True, order=True, rename="camel"):
    """One queue of one topic on one broker."""

    topic: str
    broker_name: str
    queue_id: int


class BrokerData(msgspec.Struct, frozen=True, rename="camel"):
    """A broker and its replicas."""

    broker_name: str
    cluster: str = ""
    broker_addrs: Mapping[int, str] = {}  # by broker id; 0 is the master

    @property
    def master(self) -> str | None:
        """Return the master's address, or None."""
        return self.broker_addrs.get(MASTER_ID)

    @property
    def address(self) -> str | None:
        """Return the address for requests: the master, else the replica with the lowest id; consumers use all."""
        return self.broker_addrs[min(self.broker_addrs)] if self.broker_addrs else None


class ClusterInfo(msgspec.Struct, frozen=True):
    """The brokers known to a name server (request 106), by name."""

    brokers: Mapping[str, BrokerData]


class QueueData(msgspec.Struct, frozen=True, rename="camel"):
    """A broker's numbers of queues of a topic, and their permissions."""

    broker_name: str
    read_queue_nums: int
    perm: int  # bits: 4 read, 2 write, 1 inherit, 8 priority

    @property
    def is_readable(self) -> bool:
        """Return whether consumers may read from the queues."""
        return bool(self.perm & PERM_READ)


class StaticMapping(msgspec.Struct, frozen=True, rename="camel"):
    """A broker's part of a static topic, whose queues keep their numbers when they move between brokers (5.x)."""

    total_queues: int = 0
    scope: str | None = None


class TopicRoute(msgspec.Struct, frozen=True):
    """The route of a topic (request 105)."""

    topic: str
    brokers: tuple[BrokerData, ...]
    queues: tuple[QueueData, ...]
    mappings: Mapping[str, StaticMapping] = {}  # by broker name

    @property
    def is_static(self) -> bool:
        """Return whether its queues are logical ones, under broker names that no broker has."""
        return bool(self.mappings)

    def readable_queues(self) -> tuple[MessageQueue, ...]:
        """Return the queues that consumers share, sorted and distinct.

        Neither write queues nor the presence of a master count. A static topic's queues use the broker name of their
        scope.

        Source: RocketMQ 5.5.0, ``MQClientInstance#topicRouteData2TopicSubscribeInfo``.
        """
        if self.mappings:
            return self._static_queues()
        queues = {
            MessageQueue(self.topic, data.broker_name, queue_id)
            for data in self.queues
            if data.is_readable
            for queue_id in range(data.read_queue_nums)
        }
        return tuple(sorted(queues))

    def _static_queues(self) -> tuple[MessageQueue, ...]:
        totals: dict[str, int] = {}
        for mapping in self.mappings.values():
            if mapping.scope is not None:
                totals[mapping.scope] = max(totals.get(mapping.scope, 0), mapping.total_queues)
        queues = [
            MessageQueue(self.topic, _static_broker_name(scope), queue_id)
            for scope, total in totals.items()
            for queue_id in range(total)
        ]
        return tuple(sorted(queues))


class TopicConfig(msgspec.Struct, frozen=True, rename="camel"):
    """A topic's settings on one broker (request 21)."""

    read_queue_nums: int
    perm: int


class SubscriptionGroupConfig(msgspec.Struct, frozen=True, rename="camel"):
    """A consumer group's settings on one broker (request 201). Their existence is no evidence of members."""

    group_name: str


class Subscription(msgspec.Struct, frozen=True, rename="camel"):
    """A subscription to one topic.

    Attributes:
        sub_version: When it was last set, in ms of the client's clock; clients set it again after each rebalance that
            changed their queues.
    """

    topic: str
    sub_string: str | None = None
    sub_version: int = 0


class MemberConnection(msgspec.Struct, frozen=True, rename="camel"):
    """One member's connection to one broker. Two connections may carry the same client id."""

    client_id: str
    client_addr: str
    language: str | None = None  # JAVA, CPP, GO, PYTHON ...
    version: int = 0  # ordinal of MQVersion


class ConsumerConnections(msgspec.Struct, frozen=True):
    """The members of a group, as one broker sees them (request 203).

    Attributes:
        connections: In no particular order; duplicate client ids are kept.
        consume_type: ``CONSUME_ACTIVELY`` (pull), ``CONSUME_PASSIVELY`` (push), ``CONSUME_POP``.
        message_model: ``CLUSTERING``, ``BROADCASTING``, ``LITE_SELECTIVE``.
        subscriptions: By topic. There is one table for the whole group, in which the last heartbeat of any member wins.
    """

    connections: tuple[MemberConnection, ...]
    subscriptions: Mapping[str, Subscription]
    consume_type: str | None = None
    message_model: str | None = None


class ProcessQueue(msgspec.Struct, frozen=True, rename="camel"):
    """A member's report on a queue that it owns. Times are in ms of the member's own clock.

    Attributes:
        dropped: It is being given up; ``droped`` on the wire.
        locked: True also for members that do not consume in order.
        last_pull_timestamp: Until the first pull, the time at which it took the queue. The same for the other time.
        commit_offset: The offset up to which it has consumed everything, committed at the broker or not.
        cached_msg_count: Number of messages that it has fetched and not consumed.
    """

    dropped: bool = msgspec.field(default=False, name="droped")
    locked: bool | None = None
    last_pull_timestamp: int | None = None
    last_consume_timestamp: int | None = None
    commit_offset: int | None = None
    cached_msg_count: int | None = None


class PopProcessQueue(msgspec.Struct, frozen=True, rename="camel"):
    """A member's report on a queue from which it pops (5.x)."""

    dropped: bool = msgspec.field(default=False, name="droped")


class RunningInfo(msgspec.Struct, frozen=True):
    """A member's own report (request 307, relayed by the broker).

    Attributes:
        properties: As sent. In Java they include every property of the consumer.
        queues: The queues that it holds.
        pop_queues: The queues from which it pops; the queue id −1 is all queues of a broker.
    """

    properties: Mapping[str, str]
    subscriptions: tuple[Subscription, ...]
    queues: Mapping[MessageQueue, ProcessQueue]
    pop_queues: Mapping[MessageQueue, PopProcessQueue] = {}

    @property
    def strategy(self) -> str | None:
        """Return class name, ``@`` and a hash, the only trace of a member's strategy; None if not reported."""
        return self.properties.get("allocateMessageQueueStrategy") or None

    @property
    def client_version(self) -> str | None:
        """Return the client's version, such as ``V5_5_0``."""
        return self.properties.get("PROP_CLIENT_VERSION") or None

    @property
    def is_ordered(self) -> bool | None:
        """Return whether it consumes in order, with locks; None if not reported."""
        return _flag(self.properties.get("PROP_CONSUMEORDERLY"))

    @property
    def consume_type(self) -> str | None:
        """Return ``CONSUME_ACTIVELY``, ``CONSUME_PASSIVELY`` or ``CONSUME_POP``."""
        return self.properties.get("PROP_CONSUME_TYPE") or None

    @property
    def message_model(self) -> str | None:
        """Return ``CLUSTERING`` or ``BROADCASTING``: this member's own, not that of the group's last heartbeat."""
        return self.properties.get("messageModel") or None

    @property
    def is_client_rebalance(self) -> bool | None:
        """Return False if it requests its queues from the broker (5.x); None if not reported."""
        return _flag(self.properties.get("clientRebalance"))


class QueueOffsets(msgspec.Struct, frozen=True, rename="camel"):
    """A group's offsets in one queue. A group that never committed there has ``consumer_offset`` −1."""

    broker_offset: int
    consumer_offset: int
    pull_offset: int | None = None  # 5.x: the offset from which its member pulls next
    # When the broker stored the message before ``consumer_offset``; 0 if it has none (``AdminBrokerProcessor``).
    last_timestamp: int = 0

    @property
    def lag(self) -> int:
        """Return the number of waiting messages, never negative."""
        return max(0, self.broker_offset - max(0, self.consumer_offset))


class ConsumeStats(msgspec.Struct, frozen=True):
    """A group's offsets in the queues of one broker (request 208)."""

    offsets: Mapping[MessageQueue, QueueOffsets]


class LogBounds(msgspec.Struct, frozen=True, rename="camel"):
    """Where a queue begins and ends on its broker (request 202): the offsets of its first message, and of the next."""

    min_offset: int
    max_offset: int


class MessageRequestMode(msgspec.Struct, frozen=True, rename="camel"):
    """How the members of a group get the messages of a topic if the broker assigns them (request 402, 5.x)."""

    topic: str
    consumer_group: str
    mode: str  # PULL or POP
    pop_share_queue_num: int = 0


class Assignment(msgspec.Struct, frozen=True, rename="camel"):
    """One queue that the broker assigns to a member (request 400, 5.x).

    The queue id −1 means all queues of a broker.
    """

    message_queue: MessageQueue
    mode: str = "PULL"  # or POP


class BrokerRuntime(msgspec.Struct, frozen=True):
    """A broker's own report (request 28)."""

    table: Mapping[str, str]

    @property
    def version(self) -> str | None:
        """Return the broker's version, such as ``V5_5_0``."""
        return self.table.get("brokerVersionDesc") or None

    @property
    def boot_timestamp_ms(self) -> int | None:
        """Return its start time by its own clock."""
        text = self.table.get("bootTimestamp", "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _static_broker_name(scope: str) -> str:
    return _STATIC_PREFIX + (scope[2:] if scope == _GLOBAL_SCOPE else scope)


def _flag(text: Any) -> bool | None:
    return {"true": True, "false": False}.get(text) if isinstance(text, str) else None
