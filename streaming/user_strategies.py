"""Shell: finds users' own strategies by their entry points and tries each before it is let in."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points

import msgspec

from udfs.errors import StrategyError
from udfs.events import QueueInfo, QueueRef
from udfs.strategies import SYSTEMS, Participant, Problem, Registered, Topic, register
from udfs.strategies.laws import guarded

GROUP = "rebalance_monitor.strategies"

_log = logging.getLogger(__name__)
_loaded: set[str] = set()


@cache
def installed_user_strategies() -> tuple[str, ...]:
    """Register what is installed, once for each process; answer a sentence for each one that was left out."""
    return tuple(load_user_strategies())


def load_user_strategies(found: Iterable[EntryPoint] | None = None) -> list[str]:
    """Register the strategies that installed packages offer.

    An entry point's name is the qualified name (``rocketmq.MINE``), its object a function of a ``Problem`` that
    answers an ``Assignment``, or a ``Registered`` with its promises. One that cannot be loaded, breaks a law or takes
    a name that is taken is left out and logged; it never stops the job.

    Returns: a sentence for each one that was left out.
    """
    refused = []
    for point in entry_points(group=GROUP) if found is None else found:
        if point.name in _loaded:
            continue
        try:
            _register(point)
            _loaded.add(point.name)
        except Exception as error:  # noqa: BLE001 - somebody else's code may fail in any way
            refused.append(f"the strategy {point.name} ({point.value}) is left out: {_reason(error)}")
            _log.error("%s", refused[-1])
    return refused


def _reason(error: Exception) -> str:
    return error.message if isinstance(error, StrategyError) else f"{type(error).__name__}: {error}"


def _register(point: EntryPoint) -> None:
    if point.name.split(".", 1)[0] not in SYSTEMS or "." not in point.name:
        raise StrategyError("illegal_name", f"its name must start with one of {', '.join(SYSTEMS)} and a dot")
    loaded = point.load()
    entry = (
        loaded
        if isinstance(loaded, Registered)
        else Registered(answer=loaded, spread="none", complete=False, any_order=False)
    )
    entry = msgspec.structs.replace(entry, answer=guarded(point.name, entry.answer))
    for problem in _trials():
        answer = entry.answer(problem)
        if entry.answer(problem) != answer:
            raise StrategyError("breaks_law", "it answers the same question differently")
        broken = _broken_promise(problem, entry, [len(queues) for queues in answer.values()])
        if broken:
            raise StrategyError("breaks_law", broken)
    register(point.name, entry)


def _broken_promise(problem: Problem, entry: Registered, counts: list[int]) -> str | None:
    """Answer what the strategy declares of itself and does not keep; only where all subscribe to the same."""
    kinds = {frozenset(member.subscriptions) for member in problem.members}
    if len(kinds) != 1:
        return None
    known = [problem.topics[name] for name in next(iter(kinds)) if name in problem.topics]
    if entry.complete and sum(counts) < sum(len(topic.queues) for topic in known):
        return "it leaves queues unassigned, and it declares itself complete"
    bound = {"group": 1, "topic": len(known), "none": None}[entry.spread]
    if bound is not None and max(counts) - min(counts) > bound:
        return f"it spreads by more than {bound}, and it declares an even spread"
    return None


def _trials() -> list[Problem]:
    """Answer questions that show the usual mistakes: none, one, more members than queues, unknown topics, owners."""
    problems = []
    for members in (1, 2, 3, 7):
        for queues in (0, 1, 5, 8):
            for mixed in (False, True):
                topics = {
                    name: Topic(name=name, queues=tuple(QueueInfo(queue_id=number) for number in range(queues + extra)))
                    for extra, name in enumerate(("t0", "t1"))
                }
                problems.append(
                    Problem(
                        group="trial",
                        members=tuple(
                            Participant(
                                member_id=f"10.0.0.{number}@{number}",
                                name=f"10.0.0.{number}@{number}",
                                subscriptions=("t0", "missing") if mixed and number % 2 else ("t0", "t1", "missing"),
                                owned=(QueueRef(topic="t0", queue_id=0),) if number == 1 else None,
                                generation=1 if number == 1 else None,
                            )
                            for number in range(members)
                        ),
                        topics=topics,
                    )
                )
    return problems
