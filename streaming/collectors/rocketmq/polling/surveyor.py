"""Shell: one round over a RocketMQ cluster: brokers, topics, groups, members of every broker and proxy, offsets.

A round ends in time: missing answers are reported as missing and come first in the next round. A server that does not
answer costs only its own timeout.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final, TypeVar

import msgspec

from streaming.collectors.rocketmq.options import RocketMqOptions
from streaming.collectors.rocketmq.polling.member_poller import MemberPoller
from streaming.collectors.rocketmq.polling.member_schedule import MemberSchedule
from streaming.collectors.rocketmq.polling.proxy_poller import ProxyPoller
from streaming.collectors.rocketmq.polling.route_schedule import RouteSchedule
from streaming.collectors.rocketmq.polling.survey import (
    ObservedBounds,
    ObservedBroker,
    ObservedGroup,
    ObservedRoute,
    RememberedTopic,
    Survey,
)
from streaming.collectors.rocketmq.polling.workers import PROBE_S, TIMEOUTS_IN_A_ROW, work
from streaming.collectors.rocketmq.remoting.client import RocketMqClient
from streaming.collectors.rocketmq.remoting.codes import RequestCode
from streaming.collectors.rocketmq.remoting.errors import Refused, RemotingError, TimedOut, Unreachable
from streaming.collectors.rocketmq.remoting.messages import BrokerRuntime, LogBounds, MessageQueue, QueueOffsets

# Lists and routes are requested up to the first share of the interval, members and offsets up to the second.
_LISTS_SHARE: Final = 0.6
_QUERIES_SHARE: Final = 0.75
# Each phase has at least this long: if brokers, or this machine, are slow for the interval, rounds last longer than it.
# Otherwise no round would ever get to the members.
_LEAST_S: Final = 1.0
# A topic's brokers are asked this often where its queues begin: whole files of a broker's log are deleted, few in an
# hour, and each request makes the broker read a message of every queue.
_BOUNDS_EVERY_MS: Final = 300_000
_T = TypeVar("_T")


class Surveyor:
    """Reads a cluster again and again.

    Args:
        now_ms: The clock; it is monotonic.
    """

    def __init__(self, client: RocketMqClient, options: RocketMqOptions, now_ms: Callable[[], int]) -> None:
        self._client = client
        self._options = options
        self._now_ms = now_ms
        self.schedule = MemberSchedule(options.running_info_share)
        self._routes = RouteSchedule(options.running_info_share)
        self._member_poller = MemberPoller(client, options, self.schedule, now_ms)
        self._proxy_poller = ProxyPoller(client, options.proxy_addresses, now_ms)
        self._away: set[str] = set()
        self._probes: dict[str, asyncio.Task[BrokerRuntime]] = {}  # by address
        self._unpolled: set[str] = set()
        # Topics that groups have read, with the time of the last request where they begin. Followed ones, no others.
        self._bounds_requested: dict[str, int] = {}

    async def close(self) -> None:
        """Send no further requests."""
        for probe in self._probes.values():
            probe.cancel()
        await asyncio.gather(*self._probes.values(), return_exceptions=True)
        await self._member_poller.close()

    async def poll(
        self,
        addresses: Mapping[str, Mapping[int, str]],
        groups: Collection[str],
        topics: Mapping[str, RememberedTopic],
        missing: Collection[str],
        *,
        complete: bool = False,
    ) -> Survey:
        """Poll once.

        Args:
            addresses: Addresses of the remembered brokers, by name and broker id. groups, topics: The reported ones.
            missing: Brokers that were unavailable for longer than consumers take to refresh routes.
            complete: Query all members, without a time limit.
        """
        loop = asyncio.get_running_loop()
        start = loop.time()

        def until(share: float) -> float | None:
            limit = start + self._options.poll_interval_ms / 1_000 * share
            return None if complete else max(limit, loop.time() + _LEAST_S)

        survey = Survey(began_ms=self._now_ms(), is_complete=complete)
        listed = await self._listed_brokers(survey)
        own_names = _own_names(listed)
        located = {**addresses, **{name: addrs for name, (addrs, _) in listed.items()}}
        answers = await asyncio.gather(
            *(
                self._poll_broker(name, addrs, not listed or name in listed)
                for name, addrs in sorted(located.items())
                if addrs
            )
        )
        at = {broker.name: address for broker, address in answers if address is not None}
        survey.brokers = {broker.name: broker for broker, _ in answers}
        self._away = {broker.name for broker, address in answers if address is None}
        if at:
            names = self._followed_groups(survey, groups)
            followed = self._followed_topics(survey, topics, own_names)
            lists_until = until(_LISTS_SHARE)
            survey.groups = {name: ObservedGroup(unpolled=set(at)) for name in names}
            await asyncio.gather(
                self._list_groups(survey, names, at, lists_until),
                self._proxy_poller.poll(survey, names, lists_until),
                self._poll_routes(survey, followed, topics, missing, lists_until),
            )
            self._unpolled = {name for name, group in survey.groups.items() if group.unpolled}
            survey.unseen_topics = self._routes.never_polled(name for name in followed if name not in topics)
            queries_until = until(_QUERIES_SHARE)
            await self._poll_members(survey, at, queries_until)
            await self._request_bounds(survey, at, topics, queries_until)
            await asyncio.gather(*(self._check_steady(survey, name, address) for name, address in at.items()))
        survey.ended_ms = self._now_ms()
        return survey

    # ---- brokers

    async def _listed_brokers(self, survey: Survey) -> dict[str, tuple[dict[int, str], str]]:
        """Return the brokers listed by a name server: their addresses, and the cluster of each."""
        try:
            info = await self._client.cluster_info()
        except RemotingError as error:
            survey.name_server_problem = str(error)
            return {}
        return {name: (dict(data.broker_addrs), data.cluster) for name, data in info.brokers.items()}

    async def _poll_broker(
        self, name: str, addresses: Mapping[int, str], is_listed: bool
    ) -> tuple[ObservedBroker, str | None]:
        """Return a broker's own report and the address that answers, preferably its master's."""
        problem, is_refusal = "it has no address", False
        for _, address in sorted(addresses.items()):
            try:
                runtime = await self._runtime(address, is_probe=name in self._away)
            except RemotingError as error:
                problem, is_refusal = str(error), isinstance(error, Refused)
                continue
            topics, groups, modes = await asyncio.gather(
                _or_none(self._client.topic_configs(address)),
                _or_none(self._client.groups(address)),
                _or_none(self._client.message_request_modes(address)),
            )
            broker = ObservedBroker(
                name=name,
                addresses=addresses,
                is_listed=is_listed,
                boot_ms=runtime.boot_timestamp_ms,
                version=runtime.version,
                topics=topics,
                groups=frozenset(groups) if groups is not None else None,
                modes=modes or (),
            )
            return broker, address
        away = ObservedBroker(
            name=name, addresses=addresses, is_listed=is_listed, problem=problem, is_refusal=is_refusal
        )
        return away, None

    async def _runtime(self, address: str, *, is_probe: bool) -> BrokerRuntime:
        """Request a broker's own report, or use the answer to an earlier request."""
        if not is_probe and address not in self._probes:
            return await self._client.broker_runtime(address)
        if address not in self._probes:
            self._probes[address] = asyncio.ensure_future(self._client.broker_runtime(address))
        probe = self._probes[address]
        await asyncio.wait([probe], timeout=PROBE_S)
        if not probe.done():
            raise TimedOut(address, RequestCode.GET_BROKER_RUNTIME_INFO, PROBE_S)
        del self._probes[address]
        return await probe

    async def _check_steady(self, survey: Survey, name: str, address: str) -> None:
        """Return whether a broker is the same process as when the round began; a starting one lists no member."""
        broker = survey.brokers[name]
        runtime = await _or_none(self._client.broker_runtime(address))
        if runtime is None or runtime.boot_timestamp_ms != broker.boot_ms:
            survey.brokers[name] = msgspec.structs.replace(broker, is_steady=False)

    # ---- groups and topics

    def _followed_groups(self, survey: Survey, reported: Collection[str]) -> list[str]:
        names = set(reported)
        for broker in survey.brokers.values():
            names |= broker.groups or frozenset()
        followed = [name for name in names if self._options.follows_group(name)]
        # Groups that were left out in the previous round come first.
        return sorted(followed, key=lambda name: (name not in self._unpolled, name))

    def _followed_topics(self, survey: Survey, reported: Collection[str], own_names: set[str]) -> list[str]:
        names = set(reported)
        for broker in survey.brokers.values():
            names |= (broker.topics or {}).keys()
        return sorted(name for name in names - own_names if self._options.follows_topic(name))

    async def _list_groups(self, survey: Survey, names: list[str], at: Mapping[str, str], until: float | None) -> None:
        """Request the members of every group from every broker."""
        timeouts = dict.fromkeys(at, 0)

        async def request(name: str, broker: str) -> None:
            if timeouts[broker] >= TIMEOUTS_IN_A_ROW:
                return
            try:
                listed = await self._client.connections(at[broker], name)
            except Refused:
                return
            except RemotingError as error:
                timeouts[broker] += TIMEOUTS_IN_A_ROW if isinstance(error, Unreachable) else 1
                return
            timeouts[broker] = 0
            group = survey.groups[name]
            group.lists[broker] = listed
            group.at_ms = self._now_ms()
            group.unpolled.discard(broker)

        await work((request(name, broker) for name in names for broker in at), until)

    async def _poll_routes(
        self,
        survey: Survey,
        followed: list[str],
        reported: Mapping[str, RememberedTopic],
        missing: Collection[str],
        until: float | None,
    ) -> None:
        """Request the routes of topics from a name server."""
        if survey.name_server_problem is not None:
            return
        doubted = {name for name, topic in reported.items() if topic.is_missing}
        due = self._routes.next_topics(followed, doubted, survey.brokers, missing, everything=survey.is_complete)
        is_away = False

        async def request(topic: str) -> None:
            nonlocal is_away
            if is_away:
                return
            try:
                route = await self._client.topic_route(topic)
            except Refused:
                return
            except RemotingError:
                is_away = True
                return
            now_ms = self._now_ms()
            survey.topics[topic] = ObservedRoute(at_ms=now_ms, route=route)
            self._routes.observe(topic, route, survey.brokers, missing, now_ms)

        await work((request(topic) for topic in due), until)

    # ---- expensive requests

    async def _poll_members(self, survey: Survey, at: Mapping[str, str], until: float | None) -> None:
        """Request members' own reports, and groups' offsets from brokers."""
        now_ms = self._now_ms()
        for name, group in survey.groups.items():
            if group.lists:
                self.schedule.observe(name, group.client_ids(), group.sub_version(), now_ms)
        self.schedule.keep_only(survey.groups)
        requests = self.schedule.next_members(now_ms, everybody=survey.is_complete)
        survey.queried = len(requests)
        _, survey.unqueried = await asyncio.gather(
            self._request_offsets(survey, at, {request.group for request in requests}, until),
            self._member_poller.poll(requests, survey.groups, at, until=until),
        )

    async def _request_offsets(
        self, survey: Survey, at: Mapping[str, str], queried: Collection[str], until: float | None
    ) -> None:
        async def request(name: str) -> None:
            offsets: dict[MessageQueue, QueueOffsets] = {}
            answered = set()
            for broker, address in at.items():
                stats = await _or_none(self._client.consume_stats(address, name))
                if stats is not None:
                    offsets |= stats.offsets
                    answered.add(broker)
            if answered:
                group = survey.groups[name]
                group.offsets, group.offset_brokers = offsets, frozenset(answered)
                group.offsets_at_ms = self._now_ms()

        names = self.schedule.next_offsets(self._now_ms(), queried, everybody=survey.is_complete)
        await work((request(name) for name in names), until)

    async def _request_bounds(
        self, survey: Survey, at: Mapping[str, str], topics: Mapping[str, RememberedTopic], until: float | None
    ) -> None:
        """Request from masters where the queues begin that groups have read, some topics at a time.

        The offsets of a static topic are not those of its brokers. Slaves delete by themselves.
        """
        masters = [address for name, address in at.items() if address == survey.brokers[name].addresses.get(0)]
        read = {queue.topic for group in survey.groups.values() for queue in group.offsets or ()}
        routed = {name: found.route for name, found in survey.topics.items() if found.route is not None}
        static = {name for name, topic in topics.items() if topic.is_static}
        static |= {name for name, route in routed.items() if route.is_static}
        known = {name for name in read | self._bounds_requested.keys() if name in topics or name in routed} - static
        requested = {name: self._bounds_requested.get(name, -_BOUNDS_EVERY_MS) for name in known}
        self._bounds_requested = requested
        now_ms = self._now_ms()
        oldest = sorted((at_ms, name) for name, at_ms in requested.items())
        due = [name for at_ms, name in oldest if survey.is_complete or now_ms - at_ms >= _BOUNDS_EVERY_MS]
        limit = len(due) if survey.is_complete else math.ceil(self._options.running_info_share * len(known))

        async def request(name: str) -> None:
            requested[name] = now_ms
            found: dict[MessageQueue, LogBounds] = {}
            for address in masters:
                found |= await _or_none(self._client.topic_stats(address, name)) or {}
            survey.bounds[name] = ObservedBounds(at_ms=self._now_ms(), bounds=found)

        await work((request(name) for name in due[:limit]), until)


def _own_names(listed: Mapping[str, tuple[Mapping[int, str], str]]) -> set[str]:
    """Return the names of topics that brokers derive from their own names and those of their clusters."""
    clusters = {cluster for _, cluster in listed.values()}
    return {*listed, *clusters, *(f"{cluster}_REPLY_TOPIC" for cluster in clusters)}


async def _or_none(request: Awaitable[_T]) -> _T | None:
    try:
        return await request
    except RemotingError:
        return None
