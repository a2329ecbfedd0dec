"""Shell: queries members through their brokers, without waiting for silent ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from streaming.collectors.rocketmq.options import RETRY_PREFIX, RocketMqOptions
from streaming.collectors.rocketmq.polling.member_schedule import MemberSchedule, PollRequest
from streaming.collectors.rocketmq.polling.survey import Failure, ObservedGroup, ObservedMember
from streaming.collectors.rocketmq.remoting.client import RocketMqClient
from streaming.collectors.rocketmq.remoting.codes import ResponseCode
from streaming.collectors.rocketmq.remoting.errors import Refused, RemotingError, TimedOut, Unreachable
from streaming.collectors.rocketmq.remoting.messages import RunningInfo
from udfs.strategies.rocketmq.java_classes import strategy_of

# At most this many formerly silent members are queried at a time through one broker, because each occupies one of its
# 16 threads for ten seconds (BrokerConfig#adminBrokerThreadPoolNums, Broker2Client#callClient).
SILENT_AT_A_TIME: Final = 2
# A round waits this long for the last answers; later answers are used in a later round.
_PATIENCE_S: Final = 1.0
_OFFLINE: Final = frozenset({ResponseCode.SYSTEM_ERROR, ResponseCode.CONSUMER_NOT_ONLINE})
_ALLOCATED_BY_BROKER: Final = frozenset({"AVG", "AVG_BY_CIRCLE"})


class MemberPoller:
    """Sends requests, and keeps answers that came too late for their round."""

    def __init__(
        self, client: RocketMqClient, options: RocketMqOptions, schedule: MemberSchedule, now_ms: Callable[[], int]
    ) -> None:
        self._client = client
        self._options = options
        self._schedule = schedule
        self._now_ms = now_ms
        self._running: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._received: list[tuple[str, ObservedMember]] = []
        self._silent: dict[str, int] = {}  # by broker address: silent members with a request in flight
        self._rotation = 0
        self._broken: BaseException | None = None

    async def poll(
        self,
        requests: list[PollRequest],
        groups: Mapping[str, ObservedGroup],
        addresses: Mapping[str, str],
        *,
        until: float | None,
    ) -> int:
        """Query members and add their reports to their groups, with late answers to earlier requests.

        Args:
            addresses: Addresses of the brokers, by name. until: The loop's time of the last request; None to query all
                members and wait for them.
        Returns: How many were not queried in time.
        """
        loop = asyncio.get_running_loop()
        room = asyncio.Semaphore(max(1, len(addresses)) * self._options.relayed_in_flight)
        unqueried = 0
        for place, request in enumerate(requests):
            if until is not None and loop.time() >= until:
                unqueried = sum(not unsent.is_silent for unsent in requests[place:])
                break
            address = self._address(request, groups, addresses)
            key = (request.group, request.client_id)
            if address is None or key in self._running:
                continue
            if request.is_silent and self._silent.get(address, 0) >= SILENT_AT_A_TIME and until is not None:
                continue
            if not await _acquire(room, until):
                unqueried = sum(not unsent.is_silent for unsent in requests[place:])
                break
            if request.is_silent:
                self._silent[address] = self._silent.get(address, 0) + 1
            task = loop.create_task(self._poll_member(request, address, groups[request.group]))
            self._running[key] = task
            task.add_done_callback(partial(self._done, request, address, room))
        await self._wait(requests, until)
        if self._broken is not None:
            raise self._broken
        self._deliver(groups)
        return unqueried

    async def close(self) -> None:
        """Send no further requests."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _done(self, request: PollRequest, address: str, room: asyncio.Semaphore, task: asyncio.Task[None]) -> None:
        self._running.pop((request.group, request.client_id), None)
        room.release()
        if request.is_silent:
            self._silent[address] -= 1
        if not task.cancelled() and self._broken is None:
            self._broken = task.exception()

    async def _wait(self, requests: list[PollRequest], until: float | None) -> None:
        """Wait briefly for the members that are likely to answer."""
        silent = {(request.group, request.client_id) for request in requests if request.is_silent}
        waited = [task for key, task in self._running.items() if until is None or key not in silent]
        if waited:
            await asyncio.wait(waited, timeout=None if until is None else _PATIENCE_S)

    def _deliver(self, groups: Mapping[str, ObservedGroup]) -> None:
        received, self._received = self._received, []
        for group, member in received:
            if group in groups:
                groups[group].members[member.client_id] = member

    def _address(
        self, request: PollRequest, groups: Mapping[str, ObservedGroup], addresses: Mapping[str, str]
    ) -> str | None:
        """Choose a broker to which the member is connected, another one each time."""
        group = groups.get(request.group)
        if group is None:
            return None
        listing = [
            name
            for name, listed in group.lists.items()
            if listed is not None
            and name in addresses
            and any(connection.client_id == request.client_id for connection in listed.connections)
        ]
        if not listing:
            return None
        self._rotation += 1
        return addresses[sorted(listing)[self._rotation % len(listing)]]

    async def _poll_member(self, request: PollRequest, address: str, group: ObservedGroup) -> None:
        failure: Failure
        problem: str
        try:
            info = await self._client.running_info(address, request.group, request.client_id)
        except Unreachable:
            return  # the failure shows nothing about the member
        except TimedOut as error:
            failure, problem = "silent", error.problem
        except Refused as error:
            problem = f"code {error.code}: {error.remark or 'no remark'}"
            if error.code == ResponseCode.CONSUME_MSG_TIMEOUT:
                failure = "silent"
            else:
                failure = "offline" if error.code in _OFFLINE else "unable"
        except RemotingError as error:
            failure, problem = "unable", error.problem
        else:
            await self._request_allocation(request, address, info, group)
            self._receive(request, ObservedMember(client_id=request.client_id, at_ms=self._now_ms(), info=info))
            return
        now_ms = self._now_ms()
        self._receive(
            request, ObservedMember(client_id=request.client_id, at_ms=now_ms, failure=failure, problem=problem)
        )

    def _receive(self, request: PollRequest, member: ObservedMember) -> None:
        if member.failure == "silent":
            self._schedule.was_silent(request.group, request.client_id, member.at_ms)
        else:
            self._schedule.answered(request.group, request.client_id, member.at_ms)
        self._received.append((request.group, member))

    async def _request_allocation(
        self, request: PollRequest, address: str, info: RunningInfo, group: ObservedGroup
    ) -> None:
        """Request the assignment of a member that leaves it to the broker; only this shows the default mode."""
        if info.is_client_rebalance is not False:
            return
        strategy = strategy_of(info.strategy or "") or "AVG"
        if strategy not in _ALLOCATED_BY_BROKER:
            return
        for subscription in info.subscriptions:
            topic = subscription.topic
            if topic in group.topic_modes or topic.startswith(RETRY_PREFIX) or not self._options.follows_topic(topic):
                continue
            try:
                assigned = await self._client.query_assignment(
                    address, request.group, topic, request.client_id, strategy=strategy
                )
            except RemotingError:
                continue
            if assigned:
                group.topic_modes[topic] = assigned[0].mode


async def _acquire(room: asyncio.Semaphore, until: float | None) -> bool:
    """Wait for room; return whether there was any in time."""
    if until is None or not room.locked():
        await room.acquire()
        return True
    try:
        async with asyncio.timeout_at(until):
            await room.acquire()
    except TimeoutError:
        return False
    return True
