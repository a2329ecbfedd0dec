"""Core: the laws that every assignment obeys, and the guard around custom strategies. No I/O."""

from __future__ import annotations

from copy import deepcopy
from itertools import islice

import msgspec

from udfs.model.errors import StrategyError
from udfs.model.events import QueueRef
from udfs.strategies.problem import Assignment, Problem, Strategy


def broken_law(problem: Problem, assignment: Assignment) -> str | None:
    """Return the law that an assignment breaks, as a sentence; None if it breaks none.

    The laws: the keys are the members; each queue exists, is assigned to a subscriber, and only once.
    """
    if set(assignment) != {member.member_id for member in problem.members}:
        return "the members of its result are not those of the group"
    queues_of = {
        name: {(queue.broker, queue.queue_id) for queue in topic.queues} for name, topic in problem.topics.items()
    }
    holders: dict[QueueRef, str] = {}
    for member in problem.members:
        subscribed = set(member.subscriptions)
        for queue in assignment[member.member_id]:
            if not isinstance(queue, QueueRef) or type(queue.queue_id) is not int:
                return f"it assigns {member.member_id} a value that is not a queue: {queue!r}"
            if (queue.broker, queue.queue_id) not in queues_of.get(queue.topic, ()):
                return f"it assigns {member.member_id} a queue that does not exist: {queue!r}"
            if queue.topic not in subscribed:
                return f"it assigns {member.member_id} a queue of {queue.topic}, to which it does not subscribe"
            if queue in holders:
                return f"it assigns one queue to {holders[queue]} and to {member.member_id}"
            holders[queue] = member.member_id
    return None


def guarded(name: str, function: Strategy) -> Strategy:
    """Wrap a custom function as a strategy that raises only strategy errors, which fail the group's rebalance.

    It gets copies of the maps, so that it cannot damage anything; an endless assignment is read only until it breaks a
    law.

    Raises (the strategy, when called): StrategyError: Its own; ``strategy_failed`` for any other exception;
        ``breaks_law``.
    """

    def compute(problem: Problem) -> Assignment:
        try:
            most = sum(len(topic.queues) for topic in problem.topics.values())
            held = {member: list(islice(queues, most + 1)) for member, queues in function(_copy(problem)).items()}
            broken = broken_law(problem, held)
        except StrategyError:
            raise
        except Exception as error:
            raise StrategyError("strategy_failed", f"{name}: {type(error).__name__}: {error}") from error
        if broken is not None:
            raise StrategyError("breaks_law", f"{name}: {broken}")
        return held

    return compute


def _copy(problem: Problem) -> Problem:
    return msgspec.structs.replace(
        problem,
        topics=dict(problem.topics),
        settings=deepcopy(dict(problem.settings)),
        previous=None if problem.previous is None else dict(problem.previous),
    )
