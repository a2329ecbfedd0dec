"""Core: the differences between the cluster systems, one profile each. No I/O.

A strategy's qualified name begins with the name of its system. ``streaming/collectors/registry.py`` defines how a live
cluster is followed. Elsewhere, only code for a single system compares names, and the modules that
``tests/udfs/model/test_systems.py`` lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec


class SystemProfile(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster system.

    Attributes:
        name: The name in events, settings, options and tables; also the prefix of its strategies.
        title: The name as people write it.
        number: Its byte in a packet; it never changes and is never reused.
        default_strategy: The qualified name of the strategy of a group that names none.
        counts_queues_per_broker: A queue belongs to a broker. Otherwise its number identifies it, whichever broker
            leads it.
        members_vote: Members list strategies and the coordinator selects one; otherwise each member uses its own.
        makes_member_ids: The coordinator generates the members' ids, so no two connections share one.
        has_static_members: A member may come back under another id with the same instance id.
        coordinator_assigns: A coordinator assigns all members of a generation their queues at once. Otherwise members
            take queues over by themselves, some time after a change, and handovers are timed.
        has_rebalance_loop: Clients learn of changes in a loop, and brokers scan for silent clients. Otherwise clients
            watch.
        owns_by_node: The reported owner of a queue reads it from that time on. Otherwise its pulls are reported.
        commits_are_polled: A commit has the time of the poll that showed it, and there may have been others since the
            previous poll. Otherwise it has its own time, and all commits are observed.
        commits_on_release: A member commits a queue when it gives it up or leaves in order.
        offsets_count_bytes: Differences of offsets are not numbers of messages.
        needs_equal_subscriptions: Different subscriptions of members are a user error.
        has_rooms_in_names: Some strategies parse a machine room from names of brokers and members: ``ROOM@NAME``.
        periods: Settings and timers of clients at whose period groups may rebalance: the name, the default in ms, and
            the main causes that such rebalances have; none for any.
        retry_prefix: The prefix of topics that the system creates for each group; they are assigned, but left out of
            figures and findings.
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
    periods: tuple[tuple[str, int, tuple[str, ...]], ...] = ()


POLL_INTERVAL = "max.poll.interval.ms"
_ANY_MEMBER = ("member_joined", "unexplained", "settings_changed", "coordinator_changed")

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
    periods=(
        ("metadata.max.age.ms", 300_000, ("subscription_changed", "queue_count_changed", *_ANY_MEMBER)),
        (POLL_INTERVAL, 300_000, ("member_left", "member_gone", *_ANY_MEMBER)),
        ("probing.rebalance.interval.ms", 600_000, _ANY_MEMBER),  # Kafka Streams
    ),
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
    # Every clustering consumer subscribes to ``%RETRY%<its group>`` by itself, mostly one queue per broker
    # (MixAll#RETRY_GROUP_TOPIC_PREFIX), so it is normal that most members hold none of them.
    retry_prefix="%RETRY%",
    # RebalanceService#waitInterval, and MQClientInstance's timers of routes and heartbeats.
    periods=(("the rebalance tick of clients", 20_000, ()), ("the route and heartbeat timers of clients", 30_000, ())),
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

# A checkpoint stores clusters in this order, so new systems are only ever added at the end.
SYSTEMS: dict[str, SystemProfile] = {profile.name: profile for profile in (KAFKA, ROCKETMQ, METAQ)}
BY_NUMBER: dict[int, str] = {profile.number: name for name, profile in SYSTEMS.items()}

if TYPE_CHECKING:
    System: TypeAlias = str
else:
    System = Literal[tuple(SYSTEMS)]


def system_of(qualified: str) -> str | None:
    """Return the system whose prefix a strategy's qualified name has, or None.

    Example:
        >>> system_of("kafka.server.range"), system_of("range")
        ('kafka', None)
    """
    prefix, dot, _ = qualified.partition(".")
    return prefix if dot and prefix in SYSTEMS else None


def is_server_side(qualified: str | None) -> bool:
    """Return whether a strategy is one by which Kafka's coordinator itself assigns in groups of the newer protocols.

    Example:
        >>> is_server_side("kafka.server.uniform"), is_server_side("kafka.range"), is_server_side(None)
        (True, False, False)
    """
    return (qualified or "").startswith(f"{KAFKA.name}.server.")
