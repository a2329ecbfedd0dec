"""Shell: requests the members of groups from proxies, the only servers that know the clients connected to them.

A proxy answers the request for a group's members on its remoting port, like a broker, and none about a member or about
itself. Each proxy is queried on its own, so that one that hangs delays neither brokers nor other proxies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from streaming.collectors.rocketmq.polling.survey import ObservedGroup, ObservedProxy, Survey
from streaming.collectors.rocketmq.polling.workers import PROBE_S, TIMEOUTS_IN_A_ROW, work
from streaming.collectors.rocketmq.remoting.client import RocketMqClient
from streaming.collectors.rocketmq.remoting.codes import RequestCode
from streaming.collectors.rocketmq.remoting.errors import Refused, RemotingError, TimedOut, Unreachable
from streaming.collectors.rocketmq.remoting.messages import ConsumerConnections


class ProxyPoller:
    """Queries the same proxies in each round.

    Args:
        addresses: ``host:port`` of their remoting ports. now_ms: The clock; it is monotonic.
    """

    def __init__(self, client: RocketMqClient, addresses: Sequence[str], now_ms: Callable[[], int]) -> None:
        self._client = client
        self._addresses: Final = addresses
        self._now_ms = now_ms
        self._away: set[str] = set()

    async def poll(self, survey: Survey, names: Sequence[str], until: float | None) -> None:
        """Add the lists of all proxies to the groups of a round.

        Args:
            until: The loop's time of the last request; None for no limit.
        """
        if names:
            await asyncio.gather(*(self._poll_proxy(address, survey, names, until) for address in self._addresses))
            self._away = {address for address, proxy in survey.proxies.items() if proxy.problem is not None}

    async def _poll_proxy(self, address: str, survey: Survey, names: Sequence[str], until: float | None) -> None:
        answers = _Answers()

        async def request(name: str) -> None:
            if not answers.is_away:
                try:
                    self._add(survey.groups[name], address, await self._client.connections(address, name))
                    answers.came()
                except RemotingError as error:
                    answers.failed(error)

        # The first request is alone: a proxy that hangs gets no others, and a round waits less for it the next time.
        try:
            async with asyncio.timeout(PROBE_S if address in self._away else None):
                await request(names[0])
        except TimeoutError:
            answers.failed(TimedOut(address, RequestCode.GET_CONSUMER_CONNECTION_LIST, PROBE_S))
        if answers.has_answered or answers.refusal is not None:
            await work((request(name) for name in names[1:]), until)
        problem = answers.problem
        survey.proxies[address] = ObservedProxy(
            problem=problem.problem if problem is not None else None, is_refusal=isinstance(problem, Refused)
        )
        if problem is None:
            for name in names:
                if address not in survey.groups[name].proxy_lists:
                    survey.groups[name].unpolled.add(address)

    def _add(self, group: ObservedGroup, address: str, listed: ConsumerConnections | None) -> None:
        if listed is not None:
            subscriptions = {
                topic: msgspec.structs.replace(subscription, sub_version=0)
                for topic, subscription in listed.subscriptions.items()
            }
            listed = msgspec.structs.replace(listed, subscriptions=subscriptions)
        group.proxy_lists[address] = listed
        group.at_ms = self._now_ms()


@dataclass
class _Answers:
    """What a proxy answered in a round."""

    has_answered: bool = False
    refusal: Refused | None = None
    _failures: int = 0  # in a row
    _failure: RemotingError | None = None

    @property
    def is_away(self) -> bool:
        """Return whether it gets no further request in this round."""
        return self._failures >= TIMEOUTS_IN_A_ROW

    @property
    def problem(self) -> RemotingError | None:
        """Return why it counts as a proxy that does not answer; None if it answered."""
        if self.is_away or not self.has_answered:
            return self._failure or self.refusal
        return None

    def came(self) -> None:
        self.has_answered, self._failures = True, 0

    def failed(self, error: RemotingError) -> None:
        if isinstance(error, Refused):
            self.refusal = error
            return
        self._failures += TIMEOUTS_IN_A_ROW if isinstance(error, Unreachable) else 1
        self._failure = error
