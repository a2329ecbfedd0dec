"""Core: the input and output of every allocation strategy. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from typing import TypeAlias

import msgspec

from udfs.jvm.collections import string_order
from udfs.model.events import QueueInfo, QueueRef


class Participant(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One member as input of a strategy.

    ``name`` is the id that the client itself uses; it differs from ``member_id`` only if two live connections share one
    id (``id``, ``id#2``). ``pattern`` is the member's subscription pattern, if its coordinator resolves patterns.
    """

    member_id: str
    name: str
    instance_id: str | None = None
    rack: str | None = None
    client_library: str | None = None
    subscriptions: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    owned: tuple[QueueRef, ...] | None = None
    generation: int | None = None
    settings: Mapping[str, object] | None = None  # its own ``strategy_settings``, which precede the group's
    pattern: str | None = None


class Topic(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One topic with its queues, ordered by (broker, queue_id).

    The names of its queues are created once and shared by all callers, because creating them is most of the work of the
    arithmetic strategies.
    """

    name: str
    queues: tuple[QueueInfo, ...]
    topic_id: str | None = None

    @cached_property
    def by_queue_id(self) -> tuple[QueueRef, ...]:
        """Return the queues in the order in which Kafka's clients sort partitions."""
        numbers = [queue.queue_id for queue in self.queues]
        if numbers == sorted(numbers):
            return self._named(self.queues)
        return self._named(sorted(self.queues, key=lambda queue: queue.queue_id))

    @cached_property
    def by_broker(self) -> tuple[QueueRef, ...]:
        """Return the queues in the order of RocketMQ's ``MessageQueue#compareTo``."""
        brokers = {queue.broker for queue in self.queues}
        if len(brokers) <= 1:
            return self.by_queue_id
        keys = {broker: string_order(broker or "") for broker in brokers}
        return self._named(sorted(self.queues, key=lambda queue: (keys[queue.broker], queue.queue_id)))

    def _named(self, queues: Sequence[QueueInfo]) -> tuple[QueueRef, ...]:
        # Topics are built by position and without a loop, because there are many queues.
        numbers, brokers = [queue.queue_id for queue in queues], [queue.broker for queue in queues]
        return tuple(map(QueueRef, repeat(self.name), numbers, brokers))


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A group and its topics, the input from which a strategy makes an assignment.

    Attributes:
        group: The group's name.
        members: In the order in which they joined (it matters in Java's HashMaps).
        topics: Existing topics; a subscribed topic that is missing or empty assigns nothing.
        settings: The strategy's settings, e.g. ``virtual_nodes``.
        leader: The leader's member id, if reported.
        previous: The previous target assignment, for server-side strategies.
        member_slots: For server-side strategies, the slots of the map of members, if it has more than they need.
    """

    group: str
    members: tuple[Participant, ...]
    topics: Mapping[str, Topic]
    settings: Mapping[str, object] = msgspec.field(default_factory=dict)
    leader: str | None = None
    previous: Mapping[str, tuple[QueueRef, ...]] | None = None
    member_slots: int | None = None


# member_id -> its queues; every member of the problem is a key. Two members may hold one queue only if the real clients
# would (duplicate ids, members with different strategies, broadcasting).
Assignment: TypeAlias = dict[str, list[QueueRef]]
Strategy: TypeAlias = Callable[[Problem], Assignment]
