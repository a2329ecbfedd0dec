"""Shell: what one round saw of a RocketMQ cluster, as plain values. Nothing here judges it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from streaming.rocketmq.model import (
    ConsumerConnections,
    MessageQueue,
    MessageRequestMode,
    QueueOffsets,
    RunningInfo,
    TopicConfig,
    TopicRoute,
)

# Why a member told nothing of itself. `silent`: connected, and no answer; `offline`: not connected to the broker that
# was asked; `unable`: it, or what stands between, does not know the question.
Failure: TypeAlias = Literal["silent", "offline", "unable"]


class SeenBroker(msgspec.Struct, frozen=True, kw_only=True):
    """One broker.

    Attributes:
        addresses: By broker id, as a name server told last.
        problem: Why it did not answer; None: it did. is_refusal: It does not let us in.
        is_listed: A name server lists it.
        boot_ms: When it was started, by its own clock; None: it did not tell.
        topics: Its topics; None where they were not had.
        groups: The groups that it has settings of; None where they were not had.
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
        """Whether what it did not list can be taken to be missing there."""
        return self.problem is None and self.is_steady


class SeenMember(msgspec.Struct, frozen=True, kw_only=True):
    """What a member told of itself, or why it did not."""

    client_id: str
    at_ms: int
    info: RunningInfo | None = None
    failure: Failure | None = None
    problem: str | None = None


class SeenGroup(msgspec.Struct, kw_only=True):
    """One group.

    Attributes:
        lists: By the name of a broker that answered: its list; None: nobody is connected to it.
        at_ms: When the last of them came.
        unpolled: Names of brokers that were not asked in time, or did not answer for this group.
        members: By client id, of those who were asked.
        offsets: How far the group has come, where that was asked for: on ``offset_brokers``. offsets_at_ms: When the
            last of it came.
        dealt: What brokers that deal themselves do for this group: ``PULL`` or ``POP``, by topic.
    """

    lists: dict[str, ConsumerConnections | None] = msgspec.field(default_factory=dict)
    at_ms: int = 0
    unpolled: set[str] = msgspec.field(default_factory=set)
    members: dict[str, SeenMember] = msgspec.field(default_factory=dict)
    offsets: Mapping[MessageQueue, QueueOffsets] | None = None
    offset_brokers: frozenset[str] = frozenset()
    offsets_at_ms: int = 0
    dealt: dict[str, str] = msgspec.field(default_factory=dict)

    def client_ids(self) -> set[str]:
        """Answer who is connected to any broker."""
        return {one.client_id for listed in self.lists.values() if listed is not None for one in listed.connections}

    def sub_version(self) -> int:
        """Answer when a member last set its subscription, or held other queues than before: ms of its clock."""
        return max(
            (
                subscription.sub_version
                for listed in self.lists.values()
                if listed is not None
                for subscription in listed.subscriptions.values()
            ),
            default=0,
        )


class SeenTopic(msgspec.Struct, frozen=True, kw_only=True):
    """Where a topic lies, as a name server told; None: it knows no such topic."""

    at_ms: int
    route: TopicRoute | None


class Survey(msgspec.Struct, kw_only=True):
    """One round.

    Attributes:
        began_ms, ended_ms: By this machine's clock, which never goes back here.
        topics: Those that were looked at. unseen_topics: Those that were not yet, in no round.
        groups: Those that are followed and exist, at any broker.
        asked, unasked: How many members were to be asked, and how many of these were not in time.
        name_server_problem: Why none of them answered.
        is_complete: Everybody was asked.
    """

    began_ms: int
    ended_ms: int = 0
    brokers: dict[str, SeenBroker] = msgspec.field(default_factory=dict)
    topics: dict[str, SeenTopic] = msgspec.field(default_factory=dict)
    unseen_topics: set[str] = msgspec.field(default_factory=set)
    groups: dict[str, SeenGroup] = msgspec.field(default_factory=dict)
    asked: int = 0
    unasked: int = 0
    name_server_problem: str | None = None
    is_complete: bool = False

    @property
    def is_evidence(self) -> bool:
        """Whether anything was seen at all: at least one broker answered."""
        return any(broker.problem is None for broker in self.brokers.values())

    def unpolled(self) -> int:
        """Answer how many groups were not seen at every broker that answers."""
        return sum(bool(group.unpolled) for group in self.groups.values())
