"""Core: RocketMQ's configured allocation. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from udfs.model.events import QueueRef
from udfs.strategies.problem import Assignment, Problem
from udfs.strategies.rocketmq.all_members import TopicAllocation
from udfs.strategies.settings import queue_lists
from udfs.strategies.subscriptions import distinct_queues, kinds_of


def rocketmq_config(problem: Problem) -> Assignment:
    """Return each member's list of queues from its configuration, unchecked.

    ``queues`` is a list for all members or an object of lists by member. The client allocates each subscribed topic
    that has queues and takes the whole list each time: a member without such a topic gets nothing; a list may
    name queues that do not exist, and two members may take the same queue.

    Known imbalance: as configured; a queue in no list never has an owner.

    Rolling restart: nothing moves; while a member is away, its queues have no owner.

    Source: rocketmq-client 4.9 and 5.5 ``AllocateMessageQueueByConfig``.

    Example: 4 queues, two members, {a: 0, 1; b: 1}: a has 0 and 1, b has 1, too, and 2 and 3 have no owner.
    """
    lists = configured(problem.settings)((), [member.name for member in problem.members])
    topics = problem.topics
    kinds, places = kinds_of(problem.members)
    subscribes = [any(name in topics and topics[name].queues for name in names) for names in kinds]
    return {
        member.member_id: distinct_queues(lists[member.name]) if subscribes[place] and lists.get(member.name) else []
        for member, place in zip(problem.members, places, strict=True)
    }


def configured(settings: Mapping[str, object]) -> TopicAllocation:
    """Return the allocation of one topic under these settings.

    Raises:
        StrategyError: ``illegal_setting``.
    """
    lists = queue_lists(settings, "queues")

    def allocate(_queues: Sequence[QueueRef], ids: Sequence[str]) -> dict[str, list[QueueRef]]:
        if lists is None:
            return {}
        if isinstance(lists, dict):
            return {name: lists[name] for name in ids if name in lists}
        return dict.fromkeys(ids, lists)

    return allocate
