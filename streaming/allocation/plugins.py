"""Shell: finds custom strategies by their entry points and tests each before it is used."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final, TypeVar

import msgspec

from udfs.model.errors import StrategyError
from udfs.model.events import QueueInfo, QueueRef
from udfs.model.systems import SYSTEMS, system_of
from udfs.strategies.laws import guarded
from udfs.strategies.problem import Assignment, Participant, Problem, Strategy, Topic
from udfs.strategies.registry import Registered, register

GROUP = "rebalance_monitor.strategies"

# The first limit is for the import and all trials, the second for one answer. Built-in strategies take milliseconds.
LOAD_LIMIT_S: Final = 30.0
ANSWER_LIMIT_S: Final = 10.0
# A strategy that times out repeatedly would delay every group behind it.
LATE_ANSWERS: Final = 3

# Errors of the guard, as opposed to those that the custom function raises itself.
_GUARDS_CODES = ("strategy_failed", "breaks_law")

_T = TypeVar("_T")

_log = logging.getLogger(__name__)
_loaded: set[tuple[str, str]] = set()


@cache
def installed_user_strategies() -> tuple[str, ...]:
    """Register the installed strategies, once for each process; return a sentence for each rejected one."""
    return tuple(load_user_strategies())


def load_user_strategies(found: Iterable[EntryPoint] | None = None) -> list[str]:
    """Register the strategies that installed packages provide.

    An entry point's name is the qualified name (``rocketmq.MINE``); its object is a function from a ``Problem`` to an
    ``Assignment``, or a ``Registered`` with its guarantees. A strategy that cannot be loaded, breaks a law, does not
    return in time or uses an existing name is rejected and logged; it never stops the job.

    Returns: a sentence for each rejected strategy.
    """
    refused = []
    for point in entry_points(group=GROUP) if found is None else found:
        if (point.name, point.value) in _loaded:
            continue
        try:
            entry = _within(LOAD_LIMIT_S, partial(_tried, point))
            register(point.name, msgspec.structs.replace(entry, answer=_timely(point.name, entry.answer)))
            _loaded.add((point.name, point.value))
        except Exception as error:  # noqa: BLE001 - custom code may fail in any way
            refused.append(f"the strategy {point.name} ({point.value}) is not loaded: {_reason(error)}")
            _log.error("%s", refused[-1])
    return refused


def _reason(error: Exception) -> str:
    return error.message if isinstance(error, StrategyError) else f"{type(error).__name__}: {error}"


def _within(limit_s: float, work: Callable[[], _T]) -> _T:
    """Run custom code in its own thread, and wait for it no longer than the limit.

    After a timeout the call is abandoned: its thread continues, and ends with the process at the latest. A call that
    never releases Python's lock blocks the process.

    Raises:
        TimeoutError: It took too long. RuntimeError: It raised something that is no ``Exception``, e.g. ``SystemExit``.
    """
    results: SimpleQueue[tuple[_T, None] | tuple[None, BaseException]] = SimpleQueue()

    def run() -> None:
        try:
            results.put((work(), None))
        except BaseException as error:  # noqa: BLE001 - a sys.exit of custom code must not end the job
            results.put((None, error))

    Thread(target=run, name="user-strategy", daemon=True).start()
    try:
        answer, error = results.get(timeout=limit_s)
    except Empty:
        raise TimeoutError(f"it did not return within {limit_s:g} s") from None
    if isinstance(error, Exception):
        raise error
    if error is not None:
        raise RuntimeError(f"{type(error).__name__}: {error}")
    return answer  # type: ignore[return-value]


def _timely(name: str, answer: Strategy) -> Strategy:
    """Return a guarded strategy that fails when it is late; after some timeouts it is not called again."""
    late = 0

    def call(problem: Problem) -> Assignment:
        nonlocal late
        if late >= LATE_ANSWERS:
            raise StrategyError("strategy_failed", f"{name} timed out {late} times; this process no longer calls it")
        try:
            return _within(ANSWER_LIMIT_S, partial(answer, problem))
        except StrategyError:
            raise
        except Exception as error:
            late += isinstance(error, TimeoutError)
            raise StrategyError("strategy_failed", f"{name}: {error}") from error

    return call


def _tried(point: EntryPoint) -> Registered:
    """Load a strategy and return it, guarded, if it keeps the laws in every trial."""
    if system_of(point.name) is None:
        raise StrategyError("illegal_name", f"its name must start with one of {', '.join(SYSTEMS)} and a dot")
    loaded = point.load()
    entry = (
        loaded
        if isinstance(loaded, Registered)
        else Registered(answer=loaded, spread="none", complete=False, any_order=False)
    )
    entry = msgspec.structs.replace(entry, answer=guarded(point.name, entry.answer))
    for problem in _trials():
        try:
            answer = entry.answer(problem)
            again = entry.answer(problem)
        except StrategyError as error:
            if error.code in _GUARDS_CODES:
                raise
            # An error that the strategy raises itself, for example for a missing setting, is a valid result as well.
            continue
        if again != answer:
            raise StrategyError("breaks_law", "it is not deterministic: the same input gave another result")
        broken = _broken_promise(problem, entry, [len(queues) for queues in answer.values()])
        if broken:
            raise StrategyError("breaks_law", broken)
    return entry


def _broken_promise(problem: Problem, entry: Registered, counts: list[int]) -> str | None:
    """Return a declared guarantee that the strategy breaks; only checked with equal subscriptions."""
    kinds = {frozenset(member.subscriptions) for member in problem.members}
    if len(kinds) != 1:
        return None
    topics = [problem.topics[name] for name in next(iter(kinds)) if name in problem.topics]
    if entry.complete and sum(counts) < sum(len(topic.queues) for topic in topics):
        return "it leaves queues unassigned, but declares itself complete"
    bound = {"group": 1, "topic": len(topics), "none": None}[entry.spread]
    if bound is not None and max(counts) - min(counts) > bound:
        return f"it spreads by more than {bound}, and it declares an even spread"
    return None


def _trials() -> list[Problem]:
    """Return problems that expose the usual mistakes: none, one, more members than queues, unknown topics, owners."""
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
