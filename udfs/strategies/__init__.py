"""Core: the registry of allocation strategies: one explicit line each, with what it promises. No I/O."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from udfs.errors import StrategyError
from udfs.strategies.kafka_range import kafka_range
from udfs.strategies.kafka_roundrobin import kafka_roundrobin
from udfs.strategies.kafka_server_range import kafka_server_range
from udfs.strategies.kafka_server_uniform import kafka_server_uniform
from udfs.strategies.kafka_sticky import kafka_cooperative_sticky, kafka_sticky
from udfs.strategies.metaq_consistent_hash import metaq_consistent_hash
from udfs.strategies.metaq_default import metaq_default
from udfs.strategies.problem import Assignment, Participant, Problem, Strategy, Topic
from udfs.strategies.rocketmq_averagely import rocketmq_avg, rocketmq_avg_by_circle
from udfs.strategies.rocketmq_config import rocketmq_config
from udfs.strategies.rocketmq_consistent_hash import rocketmq_consistent_hash
from udfs.strategies.rocketmq_machine_room import NEARBY_OF, rocketmq_machine_room, rocketmq_machine_room_nearby
from udfs.strategies.rocketmq_pinned import rocketmq_pinned

__all__ = [
    "Assignment",
    "Participant",
    "Problem",
    "Registered",
    "Strategy",
    "Topic",
    "names",
    "qualified_name",
    "register",
    "registered",
    "strategy",
]

Spread: TypeAlias = Literal["topic", "group", "none"]
SYSTEMS = ("kafka", "rocketmq", "metaq")


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """A strategy and what it promises; laws are tested against these words.

    Attributes:
        answer: The strategy itself.
        uses_owned: The answer depends on what members held before.
        spread: Where, when everybody subscribes to the same, most − fewest queues is at most 1: within each topic,
            over the whole group, or nowhere.
        complete: Every queue with a subscriber has an owner when everybody subscribes to the same.
        any_order: The answer does not depend on the order in which members joined.
        keeps: When one member leaves, the others keep every queue they held (with equal subscriptions).
    """

    answer: Strategy
    uses_owned: bool = False
    spread: Spread = "topic"
    complete: bool = True
    any_order: bool = True
    keeps: bool = False


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
    "rocketmq.MACHINE_ROOM_NEARBY": Registered(answer=rocketmq_machine_room_nearby, spread="none"),
    "rocketmq.PINNED": Registered(answer=rocketmq_pinned, spread="none", complete=False),
}

# What real clients call themselves, where it is not the name after the system.
_WIRE_NAMES = {"metaq.DEFAULT": "metaq.default", "metaq.CONSIST": "metaq.consistent-hash"}

# The strategy of a group that names none (kafka: nobody lists one).
DEFAULTS = {"kafka": "kafka.range", "rocketmq": "rocketmq.AVG", "metaq": "metaq.default"}


def names() -> list[str]:
    """Answer the qualified names of all strategies, sorted."""
    return sorted(_STRATEGIES)


def qualified_name(name: str, system: str) -> str:
    """Answer the name with its system in front, whether or not it is known.

    Example:
        >>> qualified_name("range", "kafka"), qualified_name("kafka.range", "kafka"), qualified_name("my.own", "kafka")
        ('kafka.range', 'kafka.range', 'kafka.my.own')
    """
    if name in _STRATEGIES:
        return name
    qualified = name if name.startswith(tuple(f"{known}." for known in SYSTEMS)) else f"{system}.{name}"
    return _WIRE_NAMES.get(qualified, qualified)


def registered(name: str, system: str) -> Registered:
    """Answer a strategy with its promises.

    Args:
        name: ``range`` or ``kafka.range`` alike.

    Raises:
        StrategyError: ``unknown_strategy``.
    """
    qualified = qualified_name(name, system)
    if qualified.startswith(NEARBY_OF):
        return _nearby(qualified.removeprefix(NEARBY_OF))
    if qualified not in _STRATEGIES:
        raise StrategyError("unknown_strategy", f"no strategy is called {qualified}")
    return _STRATEGIES[qualified]


def _nearby(inner: str) -> Registered:
    nearby = _STRATEGIES["rocketmq.MACHINE_ROOM_NEARBY"]

    def answer(problem: Problem) -> Assignment:
        return nearby.answer(msgspec.structs.replace(problem, settings={**problem.settings, "inner": inner}))

    return msgspec.structs.replace(nearby, answer=answer)


def strategy(name: str, system: str) -> Strategy:
    """Answer the function of a strategy.

    Raises:
        StrategyError: ``unknown_strategy``.
    """
    return registered(name, system).answer


def register(name: str, entry: Registered) -> None:
    """Add a user's own strategy under a qualified name.

    Raises:
        StrategyError: ``name_taken``: the product's own strategies stay what they are.
    """
    if name in _STRATEGIES:
        raise StrategyError("name_taken", f"there is a strategy {name} already")
    _STRATEGIES[name] = entry
