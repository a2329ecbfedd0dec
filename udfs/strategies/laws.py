"""Core: the laws that every answer of a strategy keeps, and the guard around strategies that users write. No I/O."""

from __future__ import annotations

from copy import deepcopy
from itertools import islice

import msgspec

from udfs.errors import StrategyError
from udfs.events import QueueRef
from udfs.strategies.problem import Assignment, Problem, Strategy


def broken_law(problem: Problem, answer: Assignment) -> str | None:
    """Answer which law an assignment breaks, as a sentence; None if it keeps them.

    The laws: every member is a key and nobody else; each queue exists, goes to a subscriber, and goes once.
    """
    if set(answer) != {member.member_id for member in problem.members}:
        return "the members in its answer are not those of the group"
    queues_of = {
        name: {(queue.broker, queue.queue_id) for queue in topic.queues} for name, topic in problem.topics.items()
    }
    holders: dict[QueueRef, str] = {}
    for member in problem.members:
        subscribed = set(member.subscriptions)
        for queue in answer[member.member_id]:
            if not isinstance(queue, QueueRef) or type(queue.queue_id) is not int:
                return f"it gives {member.member_id} what is no queue: {queue!r}"
            if (queue.broker, queue.queue_id) not in queues_of.get(queue.topic, ()):
                return f"it gives {member.member_id} a queue that does not exist: {queue!r}"
            if queue.topic not in subscribed:
                return f"it gives {member.member_id} a queue of {queue.topic}, to which it does not subscribe"
            if queue in holders:
                return f"it gives one queue to {holders[queue]} and to {member.member_id}"
            holders[queue] = member.member_id
    return None


def guarded(name: str, answer: Strategy) -> Strategy:
    """Make of a user's function a strategy that fails only in words: what it raises fails the group's rebalance.

    It is asked with maps of its own, so that it can spoil nothing, and of an answer without end only as much is read
    as shows that it breaks a law.

    Raises (the strategy, when asked):
        StrategyError: Its own; ``strategy_failed`` for whatever else it raises; ``breaks_law``.
    """

    def ask(problem: Problem) -> Assignment:
        try:
            most = sum(len(topic.queues) for topic in problem.topics.values())
            held = {member: list(islice(queues, most + 1)) for member, queues in answer(_copy(problem)).items()}
            broken = broken_law(problem, held)
        except StrategyError:
            raise
        except Exception as error:
            raise StrategyError("strategy_failed", f"{name}: {type(error).__name__}: {error}") from error
        if broken is not None:
            raise StrategyError("breaks_law", f"{name}: {broken}")
        return held

    return ask


def _copy(problem: Problem) -> Problem:
    return msgspec.structs.replace(
        problem,
        topics=dict(problem.topics),
        settings=deepcopy(dict(problem.settings)),
        previous=None if problem.previous is None else dict(problem.previous),
    )
