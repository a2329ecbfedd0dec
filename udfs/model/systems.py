"""Core: what the core must know of each cluster system: one profile each. No I/O.

A strategy's qualified name begins with the name of its system. How a live cluster is followed is in
``streaming/collectors/registry.py``. Elsewhere names are compared only by what is made for one system alone, and by the
modules that ``tests/udfs/model/test_systems.py`` lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec


class SystemProfile(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster system.

    Attributes:
        name: In events, settings, options and tables; also the prefix of its strategies.
        title: As people write it.
        number: Its byte in a packet; never changes, never comes twice.
        default_strategy: Of a group that names none: the qualified name.
        counts_queues_per_broker: A queue is one of a broker. Else its number is enough: whichever broker leads it.
        members_vote: Members list strategies and the coordinator takes one of them; else each follows its own.
        makes_member_ids: The coordinator makes the members' ids: no two connections share one.
        has_static_members: A member may come back under another id, and keeps its instance id.
        coordinator_assigns: A coordinator hands all members of a generation their queues at once. Else members take
            queues over by themselves, some time after a change: handovers are timed.
        has_rebalance_loop: Clients learn of changes in a loop, and brokers scan for silent ones. Else they watch.
        owns_by_node: The reported owner of a queue reads it from that time on. Else its pulls are reported.
        commits_are_polled: A commit has the time of the poll that showed it, and others may have been made since the
            poll before. Else it has its own time, and all are observed.
        commits_on_release: A member commits a queue as it gives it up, or leaves in order.
        offsets_count_bytes: Differences of offsets are no numbers of messages.
        needs_equal_subscriptions: Members with different subscriptions are a mistake of the users.
        has_rooms_in_names: Some strategies read a machine room off names of brokers and members: ``ROOM@NAME``.
        retry_prefix: Of topics that the system makes for each group: assigned, but in no figure or finding.
    """

    name: str
    title: str
    number: int
    default_strategy: str
    counts_queues_per_broker: bool = True
    members_vote: bool = False
    makes_member_ids: bool = False
    has_static_members: bool = False
    coordinator_assigns: bool = False
    has_rebalance_loop: bool = False
    owns_by_node: bool = False
    commits_are_polled: bool = False
    commits_on_release: bool = False
    offsets_count_bytes: bool = False
    needs_equal_subscriptions: bool = False
    has_rooms_in_names: bool = False
    retry_prefix: str | None = None


KAFKA = SystemProfile(
    name="kafka",
    title="Kafka",
    number=0,
    default_strategy="kafka.range",
    counts_queues_per_broker=False,
    members_vote=True,
    makes_member_ids=True,
    has_static_members=True,
    coordinator_assigns=True,
)
ROCKETMQ = SystemProfile(
    name="rocketmq",
    title="RocketMQ",
    number=1,
    default_strategy="rocketmq.AVG",
    has_rebalance_loop=True,
    # RebalancePushImpl#removeUnnecessaryMessageQueue and DefaultMQPushConsumerImpl#shutdown persist offsets.
    commits_on_release=True,
    commits_are_polled=True,
    needs_equal_subscriptions=True,
    has_rooms_in_names=True,
    # Every clustering consumer subscribes to ``%RETRY%<its group>`` by itself, mostly one queue for each broker
    # (MixAll#RETRY_GROUP_TOPIC_PREFIX), so it is normal that most members hold none of them.
    retry_prefix="%RETRY%",
)
METAQ = SystemProfile(
    name="metaq",
    title="MetaQ",
    number=2,
    default_strategy="metaq.default",
    owns_by_node=True,
    commits_are_polled=True,
    commits_on_release=True,
    offsets_count_bytes=True,
)

# A checkpoint remembers clusters in this order, so new systems are only ever added at the end.
SYSTEMS: dict[str, SystemProfile] = {profile.name: profile for profile in (KAFKA, ROCKETMQ, METAQ)}
BY_NUMBER: dict[int, str] = {profile.number: name for name, profile in SYSTEMS.items()}

if TYPE_CHECKING:
    System: TypeAlias = str
else:
    System = Literal[tuple(SYSTEMS)]


def system_of(qualified: str) -> str | None:
    """Return the system whose prefix a strategy's qualified name has; None where it has none.

    Example:
        >>> system_of("kafka.server.range"), system_of("range")
        ('kafka', None)
    """
    prefix, dot, _ = qualified.partition(".")
    return prefix if dot and prefix in SYSTEMS else None


def is_server_side(qualified: str | None) -> bool:
    """Return whether Kafka's coordinator itself assigns by a strategy, as it does in groups of the newer protocols.

    Example:
        >>> is_server_side("kafka.server.uniform"), is_server_side("kafka.range"), is_server_side(None)
        (True, False, False)
    """
    return (qualified or "").startswith(f"{KAFKA.name}.server.")
