"""Core: infers the strategy by which a MetaQ group shares its partitions from their owners. No I/O.

MetaQ's consumers do not publish their strategy (``ConsumerConfig#loadBalanceStrategyType``); they write the owners
into ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from udfs.model.events import QueueInfo, QueueRef
from udfs.model.systems import METAQ
from udfs.strategies.problem import Participant, Problem, Topic
from udfs.strategies.registry import strategy

# LoadBalanceStrategy.Type has no others.
CANDIDATES: Final = ("metaq.default", "metaq.consistent-hash")


def infer_strategy(
    subscriptions: Mapping[str, Sequence[str]],
    topics: Mapping[str, Sequence[QueueInfo]],
    owners: Mapping[QueueRef, str],
) -> str | None:
    """Return the only strategy that gives exactly these owners.

    Args:
        subscriptions: Subscriptions by member.
        topics: Queues by topic. A subscribed topic that is missing has none.
        owners: The owner of each queue. An owner that is not a member is ignored.

    Returns: None while a queue with a subscriber has no owner (members are still taking queues over), if neither
        strategy gives these owners, and if both do: a single member has everything under any strategy.
    """
    members = tuple(
        Participant(member_id=name, name=name, subscriptions=tuple(subscribed))
        for name, subscribed in sorted(subscriptions.items())
    )
    subscribed = {topic for member in members for topic in member.subscriptions}
    topics_with_queues = {
        name: Topic(name=name, queues=tuple(sorted(queues, key=lambda queue: (queue.broker or "", queue.queue_id))))
        for name, queues in topics.items()
        if name in subscribed and queues
    }
    found = {queue: owner for queue, owner in owners.items() if queue.topic in subscribed and owner in subscriptions}
    if not found:
        return None
    problem = Problem(group="", members=members, topics=topics_with_queues)
    fitting = [name for name in CANDIDATES if _owners(strategy(name, METAQ.name)(problem)) == found]
    return fitting[0] if len(fitting) == 1 else None


def _owners(assignment: Mapping[str, Sequence[QueueRef]]) -> dict[QueueRef, str]:
    return {queue: member for member, queues in assignment.items() for queue in queues}
