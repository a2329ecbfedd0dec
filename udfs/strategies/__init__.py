"""Core: the registry of allocation strategies: one explicit line each, with what it promises. No I/O."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from udfs.errors import StrategyError
from udfs.strategies.kafka_range import kafka_range
from udfs.strategies.kafka_roundrobin import kafka_roundrobin
from udfs.strategies.metaq_default import metaq_default
from udfs.strategies.problem import Assignment, Participant, Problem, Strategy, Topic
from udfs.strategies.rocketmq_averagely import rocketmq_avg, rocketmq_avg_by_circle

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
    "kafka.range": Registered(answer=kafka_range),
    "kafka.roundrobin": Registered(answer=kafka_roundrobin, spread="group"),
    "metaq.default": Registered(answer=metaq_default),
    "rocketmq.AVG": Registered(answer=rocketmq_avg),
    "rocketmq.AVG_BY_CIRCLE": Registered(answer=rocketmq_avg_by_circle),
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
    if qualified not in _STRATEGIES:
        raise StrategyError("unknown_strategy", f"no strategy is called {qualified}")
    return _STRATEGIES[qualified]


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
