"""Shell: which topics' routes a round requests: those with changes at brokers, doubtful ones, others in turn. Pure.

A name server answers for one topic at a time, each broker for all of its topics at once, so the brokers' own settings
show which routes must be requested again. Consumers share the route, not the settings.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from streaming.collectors.rocketmq.polling.survey import ObservedBroker
from streaming.collectors.rocketmq.remoting.messages import PERM_READ, TopicConfig, TopicRoute

# The brokers' settings of a topic when its route was requested.
_Basis: TypeAlias = tuple[tuple[str, int], ...]
_AWAY: Final = -1
_MISSING: Final = -2


@dataclass
class _LastPoll:
    at_ms: int
    basis: _Basis | None  # None if the route did not agree with it, and is requested again
    brokers: frozenset[str]


class RouteSchedule:
    """When each topic's route was polled, and which is next.

    Args:
        share: The share of unchanged topics that is requested in one round.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._polls: dict[str, _LastPoll] = {}

    def next_topics(
        self,
        topics: Iterable[str],
        doubted: Collection[str],
        brokers: Mapping[str, ObservedBroker],
        missing: Collection[str],
        *,
        everything: bool,
    ) -> list[str]:
        """Return the topics whose routes to request, the most urgent first.

        Args:
            topics: All followed ones, including reported ones. doubted: Topics to be read again in any case.
            missing: Brokers that were unavailable for longer than consumers take to refresh routes.
        """
        names = sorted(set(topics))
        self._polls = {name: self._polls[name] for name in names if name in self._polls}
        due: list[str] = []
        others: list[tuple[int, str]] = []
        for name in names:
            last = self._polls.get(name)
            if (
                last is None
                or name in doubted
                or last.basis is None
                or last.basis != self._basis(name, last, brokers, missing)
            ):
                due.append(name)
            else:
                others.append((last.at_ms, name))
        others.sort()
        between_generations = len(others) if everything else math.ceil(self._share * len(names))
        return [*due, *(name for _, name in others[:between_generations])]

    def never_polled(self, topics: Iterable[str]) -> set[str]:
        """Return the topics whose routes were not requested yet, or got no answer."""
        return {name for name in topics if name not in self._polls}

    def observe(
        self,
        topic: str,
        route: TopicRoute | None,
        brokers: Mapping[str, ObservedBroker],
        missing: Collection[str],
        now_ms: int,
    ) -> None:
        """Record a route."""
        on = frozenset(data.broker_name for data in route.queues) if route is not None else frozenset()
        before = self._polls.get(topic)
        if before is not None:
            on |= frozenset(name for name in before.brokers if name in brokers and brokers[name].problem is not None)
        last = _LastPoll(now_ms, None, on)
        if agrees(topic, route, brokers):
            last.basis = self._basis(topic, last, brokers, missing)
        self._polls[topic] = last

    def _basis(
        self, topic: str, last: _LastPoll, brokers: Mapping[str, ObservedBroker], missing: Collection[str]
    ) -> _Basis:
        basis: list[tuple[str, int]] = []
        for name in sorted(brokers):
            broker = brokers[name]
            if broker.topics is not None:
                config = broker.topics.get(topic)
                if config is not None:
                    basis.append((name, readable(config)))
            elif name in last.brokers:
                basis.append((name, _MISSING if name in missing else _AWAY))
        return tuple(basis)


def readable(config: TopicConfig) -> int:
    """Return the number of queues of a topic that consumers may read on the broker with this setting."""
    return config.read_queue_nums if config.perm & PERM_READ else 0


def agrees(topic: str, route: TopicRoute | None, brokers: Mapping[str, ObservedBroker]) -> bool:
    """Return whether a route agrees with the settings of the brokers that answer.

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
