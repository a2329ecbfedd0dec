"""Core: the registry of allocation strategies: one explicit line each, with its guarantees. No I/O."""

from __future__ import annotations

import functools
from typing import Literal, TypeAlias

import msgspec

from udfs.model.errors import StrategyError
from udfs.model.systems import system_of
from udfs.strategies.kafka.range import kafka_range
from udfs.strategies.kafka.roundrobin import kafka_roundrobin
from udfs.strategies.kafka.server_range import kafka_server_range
from udfs.strategies.kafka.server_uniform import kafka_server_uniform
from udfs.strategies.kafka.sticky import kafka_cooperative_sticky, kafka_sticky
from udfs.strategies.metaq.consistent_hash import metaq_consistent_hash
from udfs.strategies.metaq.default import metaq_default
from udfs.strategies.problem import Assignment, Participant, Problem, Strategy, Topic
from udfs.strategies.rocketmq.averagely import rocketmq_avg, rocketmq_avg_by_circle
from udfs.strategies.rocketmq.config import rocketmq_config
from udfs.strategies.rocketmq.consistent_hash import rocketmq_consistent_hash
from udfs.strategies.rocketmq.machine_room import NEARBY_OF, rocketmq_machine_room, rocketmq_machine_room_nearby
from udfs.strategies.rocketmq.pinned import rocketmq_pinned

__all__ = [
    "Assignment",
    "Participant",
    "Problem",
    "Registered",
    "Strategy",
    "Topic",
    "built_in",
    "ignores_owned",
    "names",
    "qualified_name",
    "register",
    "registered",
    "strategy",
]

Spread: TypeAlias = Literal["topic", "group", "none"]


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """A strategy and its guarantees; the laws are tested against them.

    Attributes:
        answer: The strategy's function.
        uses_owned: The assignment depends on what members held before.
        spread: Where most − fewest queues is at most 1 if all members have the same subscriptions: within each topic,
            over the whole group, or nowhere.
        complete: Every queue with a subscriber has an owner if all members have the same subscriptions.
        any_order: The assignment does not depend on the order in which members joined.
        keeps: When one member leaves, the others keep every queue they held (with equal subscriptions).
    """

    answer: Strategy
    uses_owned: bool = False
    spread: Spread = "topic"
    complete: bool = True
    any_order: bool = True
    keeps: bool = False


@functools.wraps(rocketmq_machine_room_nearby)
def _machine_room_nearby(problem: Problem) -> Assignment:
    return rocketmq_machine_room_nearby(problem, lambda name: strategy(name, "rocketmq"))


_STRATEGIES: dict[str, Registered] = {
    "kafka.cooperative-sticky": Registered(
        answer=kafka_cooperative_sticky, uses_owned=True, spread="group", complete=False, any_order=False
    ),
    "kafka.range": Registered(answer=kafka_range),
    "kafka.roundrobin": Registered(answer=kafka_roundrobin, spread="group"),
    "kafka.server.range": Registered(answer=kafka_server_range),
    "kafka.server.uniform": Registered(
        answer=kafka_server_uniform, uses_owned=True, spread="group", any_order=False, keeps=True
    ),
    "kafka.sticky": Registered(answer=kafka_sticky, uses_owned=True, spread="group", any_order=False, keeps=True),
    "metaq.consistent-hash": Registered(answer=metaq_consistent_hash, spread="none", keeps=True),
    "metaq.default": Registered(answer=metaq_default),
    "rocketmq.AVG": Registered(answer=rocketmq_avg),
    "rocketmq.AVG_BY_CIRCLE": Registered(answer=rocketmq_avg_by_circle),
    "rocketmq.CONFIG": Registered(answer=rocketmq_config, spread="none", complete=False, keeps=True),
    "rocketmq.CONSISTENT_HASH": Registered(answer=rocketmq_consistent_hash, spread="none", keeps=True),
    "rocketmq.MACHINE_ROOM": Registered(answer=rocketmq_machine_room, complete=False),
    "rocketmq.MACHINE_ROOM_NEARBY": Registered(answer=_machine_room_nearby, spread="none"),
    "rocketmq.PINNED": Registered(answer=rocketmq_pinned, spread="none", complete=False),
}

_BUILT_IN = frozenset(_STRATEGIES)

# Names used by real clients, if they differ from the name after the system.
_WIRE_NAMES = {"metaq.DEFAULT": "metaq.default", "metaq.CONSIST": "metaq.consistent-hash"}


def names() -> list[str]:
    """Return the qualified names of all strategies, sorted."""
    return sorted(_STRATEGIES)


def built_in(system: str) -> list[str]:
    """Return the qualified names of a system's strategies that come with the product, sorted."""
    return sorted(name for name in _BUILT_IN if system_of(name) == system)


def qualified_name(name: str, system: str) -> str:
    """Return the name prefixed with its system, whether or not there is such a strategy.

    Example:
        >>> qualified_name("range", "kafka"), qualified_name("kafka.range", "kafka"), qualified_name("my.own", "kafka")
        ('kafka.range', 'kafka.range', 'kafka.my.own')
    """
    if name in _STRATEGIES:
        return name
    qualified = name if system_of(name) else f"{system}.{name}"
    return _WIRE_NAMES.get(qualified, qualified)


def registered(name: str, system: str) -> Registered:
    """Return a strategy with its guarantees.

    Args:
        name: ``range`` or ``kafka.range``.

    Raises:
        StrategyError: ``unknown_strategy``.
    """
    qualified = qualified_name(name, system)
    if qualified.startswith(NEARBY_OF):
        return _nearby(qualified.removeprefix(NEARBY_OF))
    if qualified not in _STRATEGIES:
        raise StrategyError("unknown_strategy", f"there is no strategy {qualified}")
    return _STRATEGIES[qualified]


def ignores_owned(name: str, system: str) -> bool:
    """Return whether the assignment certainly ignores members' previous queues; custom strategies may read them."""
    qualified = qualified_name(name, system)
    return qualified in _BUILT_IN and not _STRATEGIES[qualified].uses_owned


def _nearby(inner: str) -> Registered:
    nearby = _STRATEGIES["rocketmq.MACHINE_ROOM_NEARBY"]

    def answer(problem: Problem) -> Assignment:
        return nearby.answer(msgspec.structs.replace(problem, settings={**problem.settings, "inner": inner}))

    return msgspec.structs.replace(nearby, answer=answer)


def strategy(name: str, system: str) -> Strategy:
    """Return a strategy's function.

    Raises:
        StrategyError: ``unknown_strategy``.
    """
    return registered(name, system).answer


def register(name: str, entry: Registered) -> None:
    """Add a custom strategy under a qualified name.

    Raises:
        StrategyError: ``name_taken``: the product's own strategies cannot be replaced.
    """
    if name in _STRATEGIES:
        raise StrategyError("name_taken", f"there is already a strategy {name}")
    _STRATEGIES[name] = entry
