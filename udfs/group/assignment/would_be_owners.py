"""Core: queues without an owner, and the members that would own them by the group's strategy. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from udfs.group.assignment.target_assignment import QueuesByTopic, compute_target_assignment
from udfs.group.state.group import Owners, Queue, queue_order
from udfs.group.state.view import GroupView
from udfs.model.finding_names import MAX_NAMED, NOT_OWNED, NOT_SUBSCRIBED, NamedQueue, QueueReason
from udfs.strategies.problem import Problem


def ownerless(view: GroupView, queues: Sequence[Queue], owners: Owners) -> list[Queue]:
    """Return the queues without an owner, in order, not counting retry topics."""
    free = [queue for queue in queues if queue not in owners and not view.is_quiet(queue[0])]
    return sorted(free, key=queue_order)


def with_would_be_owners(
    view: GroupView, free: Sequence[Queue], computed: Owners, topic_queues: QueuesByTopic, at: int, generation: int
) -> list[NamedQueue]:
    """Return the first queues without an owner, each with the member that the group's strategy would assign it to.

    Args:
        free: The queues without an owner, in order. computed: The strategy's assignment; members may not follow it.
    """
    shown = list(free[:MAX_NAMED])
    intended: Owners = {}
    topics = {queue[0] for queue in shown if queue not in computed}
    if topics and view.profile.needs_equal_subscriptions and view.mode == "clustering":
        of_topics = {topic: topic_queues[topic] for topic in sorted(topics) if topic in topic_queues}
        target = compute_target_assignment(view, of_topics, None, at, generation, altered=_as_if_all_subscribed)
        intended = {} if target.failed else target.owners
    named = []
    for queue in shown:
        holders = computed.get(queue, ())
        if holders:
            named.append(NamedQueue(*queue, holders[0], NOT_OWNED))
        else:
            named.append(NamedQueue(*queue, *_without_subscription(view, queue[0], intended.get(queue, ()))))
    return named


def _without_subscription(view: GroupView, topic: str, holders: Sequence[str]) -> tuple[str | None, QueueReason | None]:
    for holder in holders:
        if topic not in (view.group.members[holder].subscriptions or ()):
            return holder, NOT_SUBSCRIBED
    return None, None


def _as_if_all_subscribed(problem: Problem) -> Problem:
    topics = tuple(sorted(problem.topics))
    members = tuple(msgspec.structs.replace(member, subscriptions=topics) for member in problem.members)
    return msgspec.structs.replace(problem, members=members)
