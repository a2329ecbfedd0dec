"""Core: queues only for named machines, the strategy that many RocketMQ users write for themselves. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from udfs.events import QueueRef
from udfs.strategies.problem import Assignment, Problem
from udfs.strategies.rocketmq_averagely import averagely
from udfs.strategies.rocketmq_clients import Allocation, deal_each_topic
from udfs.strategies.setting_values import texts


def rocketmq_pinned(problem: Problem) -> Assignment:
    """Deal each topic by ``AVG`` over the ids whose machine is named in ``machines``; the others get nothing.

    An id's machine is what stands before its first ``@`` (the client's address); a whole id may be named as well.
    When no named machine is there, nobody gets anything: every queue is unassigned until one comes back, and messages
    wait. The same holds when no machine is named at all.

    Among the named machines each topic is even to one queue. Known imbalance: the other machines are idle.

    Rolling restart: restarts of other machines move nothing; a named one's restart moves what ``AVG`` moves.

    Source: no shipped class; the usual form of users' own ``AllocateMessageQueueStrategy``.

    Example: 4 queues, machines ["10.0.0.1"], ids 10.0.0.1@1, 10.0.0.1@2, 10.0.0.9@1: 0–1, 2–3, nothing.
    """
    return deal_each_topic(problem, pinned(problem.settings))


def pinned(settings: Mapping[str, object]) -> Allocation:
    """Answer the allocation of one topic under these settings.

    Raises:
        StrategyError: ``illegal_setting``.
    """
    machines = set(texts(settings, "machines") or ())

    def allocate(queues: Sequence[QueueRef], ids: Sequence[str]) -> Mapping[str, Sequence[QueueRef]]:
        named = [name for name in ids if name in machines or name.split("@", 1)[0] in machines]
        return averagely(queues, named) if named else {}

    return allocate
