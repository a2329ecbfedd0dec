"""Core: queues only for named machines, a common custom strategy of RocketMQ's users. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from udfs.model.events import QueueRef
from udfs.strategies.problem import Assignment, Problem
from udfs.strategies.rocketmq.all_members import TopicAllocation, allocate_each_topic
from udfs.strategies.rocketmq.averagely import averagely
from udfs.strategies.settings import texts


def rocketmq_pinned(problem: Problem) -> Assignment:
    """Return each topic by ``AVG`` over the ids whose machine is named in ``machines``; the others get no queues.

    An id's machine is the part before its first ``@`` (the client's address); a whole id may be named as well.
    When no named machine is a member, no id gets anything: every queue is unassigned until one rejoins, and messages
    wait. The same holds when no machine is named at all.

    Among the named machines each topic is even to within one queue. Known imbalance: the other machines are idle.

    Rolling restart: restarts of other machines move nothing; a named one's restart moves what ``AVG`` moves.

    Source: no shipped class; the usual form of a custom ``AllocateMessageQueueStrategy``.

    Example: 4 queues, machines ["10.0.0.1"], ids 10.0.0.1@1, 10.0.0.1@2, 10.0.0.9@1: 0–1, 2–3, nothing.
    """
    return allocate_each_topic(problem, pinned(problem.settings))


def pinned(settings: Mapping[str, object]) -> TopicAllocation:
    """Return the allocation of one topic under these settings.

    Raises:
        StrategyError: ``illegal_setting``.
    """
    machines = set(texts(settings, "machines") or ())

    def allocate(queues: Sequence[QueueRef], ids: Sequence[str]) -> Mapping[str, Sequence[QueueRef]]:
        named = [name for name in ids if name in machines or name.split("@", 1)[0] in machines]
        return averagely(queues, named) if named else {}

    return allocate
