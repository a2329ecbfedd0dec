"""Shell: the result of one round over a RocketMQ cluster, as plain values, not evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from streaming.collectors.rocketmq.remoting.messages import (
    ConsumerConnections,
    LogBounds,
    MessageQueue,
    MessageRequestMode,
    QueueOffsets,
    RunningInfo,
    TopicConfig,
    TopicRoute,
)

# Why a member did not report: `silent`, connected without an answer; `offline`, not connected to the queried broker;
# `unable`, it, or a server in between, does not support the request.
Failure: TypeAlias = Literal["silent", "offline", "unable"]


class ObservedBroker(msgspec.Struct, frozen=True, kw_only=True):
    """One broker.

    Attributes:
        addresses: By broker id, as a name server last reported.
        problem: Why it did not answer; None if it did. is_refusal: Whether it refuses access.
        is_listed: Whether a name server lists it.
        boot_ms: Its start time by its own clock; None if not reported.
        topics: Its topics; None if not received.
        groups: The groups that it has settings for; None if not received.
        modes: As set for groups and topics.
    """

    name: str
    addresses: Mapping[int, str]
    problem: str | None = None
    is_refusal: bool = False
    is_listed: bool = True
    boot_ms: int | None = None
    is_steady: bool = True  # the same process from the beginning of the round to its end
    version: str | None = None
    topics: Mapping[str, TopicConfig] | None = None
    groups: frozenset[str] | None = None
    modes: tuple[MessageRequestMode, ...] = ()

    @property
    def is_evidence(self) -> bool:
        """Return whether a member that it does not list is missing there."""
        return self.problem is None and self.is_steady


class ObservedProxy(msgspec.Struct, frozen=True, kw_only=True):
    """One proxy: why it did not answer, or None, and whether it refuses access."""

    problem: str | None = None
    is_refusal: bool = False


class ObservedMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member's own report, or why there is none."""

    client_id: str
    at_ms: int
    info: RunningInfo | None = None
    failure: Failure | None = None
    problem: str | None = None


class ObservedGroup(msgspec.Struct, kw_only=True):
    """One group.

    Attributes:
        lists: The list of each broker that answered, by name; None if no member is connected to it.
        at_ms: When the last list came.
        proxy_lists: The list of each proxy that answered, by address, without the versions of subscriptions: those of
            gRPC clients are the times of their heartbeats. Proxies share their lists, and each has all members.
        unpolled: Brokers and proxies that were not polled in time, or did not answer for this group.
        members: The queried members, by client id.
        offsets: The group's offsets on ``offset_brokers``, if requested. offsets_at_ms: When the last of them came.
        topic_modes: ``PULL`` or ``POP`` by topic, if brokers assign the queues.
    """

    lists: dict[str, ConsumerConnections | None] = msgspec.field(default_factory=dict)
    proxy_lists: dict[str, ConsumerConnections | None] = msgspec.field(default_factory=dict)
    at_ms: int = 0
    unpolled: set[str] = msgspec.field(default_factory=set)
    members: dict[str, ObservedMember] = msgspec.field(default_factory=dict)
    offsets: Mapping[MessageQueue, QueueOffsets] | None = None
    offset_brokers: frozenset[str] = frozenset()
    offsets_at_ms: int = 0
    topic_modes: dict[str, str] = msgspec.field(default_factory=dict)

    def client_ids(self) -> set[str]:
        """Return the client ids with a connection to any broker."""
        return {
            connection.client_id
            for listed in self.lists.values()
            if listed is not None
            for connection in listed.connections
        }

    def sub_version(self) -> int:
        """Return when a member last set its subscription or its queues changed, in ms of its clock."""
        return max(
            (
                subscription.sub_version
                for listed in self.lists.values()
                if listed is not None
                for subscription in listed.subscriptions.values()
            ),
            default=0,
        )


class ObservedRoute(msgspec.Struct, frozen=True, kw_only=True):
    """The route of a topic, as reported by a name server; None if it has no such topic."""

    at_ms: int
    route: TopicRoute | None


class ObservedBounds(msgspec.Struct, frozen=True, kw_only=True):
    """Where the queues of a topic begin and end, by the masters that answered."""

    at_ms: int
    bounds: Mapping[MessageQueue, LogBounds]


class Survey(msgspec.Struct, kw_only=True):
    """One round.

    Attributes:
        began_ms, ended_ms: By this machine's clock, monotonic here.
        proxies: Those that were queried, by address.
        topics: Topics that were read. unseen_topics: Topics not yet read in any round.
        groups: Followed groups that exist on any broker. bounds: Of topics that groups have read.
        queried, unqueried: The number of members to query, and of those not queried in time.
        name_server_problem: Why none of the name servers answered.
        is_complete: Whether all members were queried.
    """

    began_ms: int
    ended_ms: int = 0
    brokers: dict[str, ObservedBroker] = msgspec.field(default_factory=dict)
    proxies: dict[str, ObservedProxy] = msgspec.field(default_factory=dict)
    topics: dict[str, ObservedRoute] = msgspec.field(default_factory=dict)
    unseen_topics: set[str] = msgspec.field(default_factory=set)
    groups: dict[str, ObservedGroup] = msgspec.field(default_factory=dict)
    bounds: dict[str, ObservedBounds] = msgspec.field(default_factory=dict)
    queried: int = 0
    unqueried: int = 0
    name_server_problem: str | None = None
    is_complete: bool = False

    @property
    def is_evidence(self) -> bool:
        """Return whether at least one broker answered."""
        return any(broker.problem is None for broker in self.brokers.values())

    def unpolled(self) -> int:
        """Return the number of groups that were not read from every broker and proxy that answers."""
        return sum(bool(group.unpolled) for group in self.groups.values())


class RememberedTopic(msgspec.Struct, frozen=True, omit_defaults=True):
    """A reported topic: its number of queues on each broker, by the broker names that consumers see.

    Attributes:
        is_missing: Whether no name server and no broker had it in the previous read.
    """

    queues: dict[str, int]
    is_static: bool = False
    is_missing: bool = False
