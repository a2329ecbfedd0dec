"""Shell: which topics' routes a round asks for: what brokers say changed, what is in doubt, the others in turn. Pure.

A name server answers for one topic at a time, each broker for all of its topics at once: so the brokers' own settings
say whose route must be asked for again. What consumers share is the route, not the settings.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from streaming.rocketmq.model import PERM_READ, TopicConfig, TopicRoute
from streaming.rocketmq.seen import SeenBroker

# What brokers said of a topic when its route was asked for.
_Basis: TypeAlias = tuple[tuple[str, int], ...]
_AWAY: Final = -1
_GONE: Final = -2


@dataclass
class _Looked:
    at_ms: int
    basis: _Basis | None  # None: the route did not agree with it, and is asked for again
    brokers: frozenset[str]


class RouteSchedule:
    """Whose route was asked for when, and who is next.

    Args:
        share: Of the topics about which nothing changed, so much is asked for in one round.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._looked: dict[str, _Looked] = {}

    def next_topics(
        self,
        topics: Iterable[str],
        doubted: Collection[str],
        brokers: Mapping[str, SeenBroker],
        gone: Collection[str],
        *,
        everything: bool,
    ) -> list[str]:
        """Answer whose routes to ask for, the most urgent first.

        Args:
            topics: All that are followed, those that were told of, too. doubted: To be looked at again in any case.
            gone: Brokers that have been away for longer than consumers take to read routes anew.
        """
        names = sorted(set(topics))
        self._looked = {name: self._looked[name] for name in names if name in self._looked}
        due: list[str] = []
        others: list[tuple[int, str]] = []
        for name in names:
            looked = self._looked.get(name)
            if (
                looked is None
                or name in doubted
                or looked.basis is None
                or looked.basis != self._basis(name, looked, brokers, gone)
            ):
                due.append(name)
            else:
                others.append((looked.at_ms, name))
        others.sort()
        in_turn = len(others) if everything else math.ceil(self._share * len(names))
        return [*due, *(name for _, name in others[:in_turn])]

    def never_seen(self, topics: Iterable[str]) -> set[str]:
        """Answer the topics for whose routes nobody asked yet, or got no answer."""
        return {name for name in topics if name not in self._looked}

    def saw(
        self,
        topic: str,
        route: TopicRoute | None,
        brokers: Mapping[str, SeenBroker],
        gone: Collection[str],
        now_ms: int,
    ) -> None:
        """Take in a route."""
        on = frozenset(data.broker_name for data in route.queues) if route is not None else frozenset()
        before = self._looked.get(topic)
        if before is not None:
            on |= frozenset(name for name in before.brokers if name in brokers and brokers[name].problem is not None)
        looked = _Looked(now_ms, None, on)
        if agrees(topic, route, brokers):
            looked.basis = self._basis(topic, looked, brokers, gone)
        self._looked[topic] = looked

    def _basis(self, topic: str, looked: _Looked, brokers: Mapping[str, SeenBroker], gone: Collection[str]) -> _Basis:
        basis: list[tuple[str, int]] = []
        for name in sorted(brokers):
            broker = brokers[name]
            if broker.topics is not None:
                config = broker.topics.get(topic)
                if config is not None:
                    basis.append((name, readable(config)))
            elif name in looked.brokers:
                basis.append((name, _GONE if name in gone else _AWAY))
        return tuple(basis)


def readable(config: TopicConfig) -> int:
    """Answer how many queues of a topic consumers may read on the broker whose setting this is."""
    return config.read_queue_nums if config.perm & PERM_READ else 0


def agrees(topic: str, route: TopicRoute | None, brokers: Mapping[str, SeenBroker]) -> bool:
    """Answer whether a route says of the brokers that answer what these say themselves.

    A static topic's queues are not those of its brokers.
    """
    if route is not None and route.is_static:
        return True
    routed = {data.broker_name: data for data in route.queues} if route is not None else {}
    for name, broker in brokers.items():
        if broker.topics is None:
            continue
        config, data = broker.topics.get(topic), routed.get(name)
        by_route = data.read_queue_nums if data is not None and data.is_readable else 0
        if by_route != (readable(config) if config is not None else 0):
            return False
    return True
