"""Shell: polls one RocketMQ cluster, round after round, and appends changes to the log of events.

Each round ends with its events appended at once, the ``clock`` last, then the state is stored for the next start. If no
broker answers, there is no evidence: no event and no clock is written, and the poll is retried later.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

import msgspec

from streaming.collectors.collector import CollectorStatus, CollectorThread, State, status_with_log
from streaming.collectors.event_log import EventLog
from streaming.collectors.rocketmq.diffing.cluster_diff import diff_cluster, is_news, missing_brokers
from streaming.collectors.rocketmq.diffing.member_diff import time_text
from streaming.collectors.rocketmq.diffing.remembered import RememberedState, VolatileState
from streaming.collectors.rocketmq.options import RocketMqOptions
from streaming.collectors.rocketmq.polling.survey import Survey
from streaming.collectors.rocketmq.polling.surveyor import Surveyor
from streaming.collectors.rocketmq.remoting.client import RocketMqClient
from streaming.machine.clock import now_ms
from streaming.machine.logs import logger
from streaming.machine.process import since_boot_ms

_LONGEST_PAUSE_S: Final = 30.0
_log = logger("rocketmq")
T = TypeVar("T")


class RocketMqCollector(CollectorThread):
    """Follows one cluster from ``start`` to ``stop``; also a context manager.

    Args:
        log: Receives the events, and has the memory of the previous process.

    Raises:
        SetupError: A TLS file cannot be used.
    """

    def __init__(self, options: RocketMqOptions, log: EventLog) -> None:
        self._options = options
        self._log = log
        self._tls = options.ssl_context()
        self._state = self._remembered()
        self._volatile = VolatileState()
        self._clock = _Clock(self._state.clock_ms)
        self._status = CollectorStatus(cluster=options.cluster, since_ms=self._clock())
        self._session: _PollSession | None = None
        super().__init__("rocketmq-collector")

    def stop(self) -> None:
        """Stop, and wait for the end."""
        self._stopping.set()
        session = self._session
        if session is not None:
            session.interrupt()
        self._joined()
        with self._turn:
            self._close_session()
        self._log.flush()

    def status(self) -> CollectorStatus:
        """Return the current status; callable at any time, from any thread."""
        return status_with_log(self._status, self._log)

    def observe_once(self) -> bool:
        """Read everything once, in this thread, including every member; return whether the cluster answered."""
        return self._round(complete=True)

    def poll(self) -> bool:
        """Poll once as the thread does, within the interval; return whether the cluster answered."""
        return self._round(complete=False)

    # ---- rounds

    def _run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            failures = 0 if self.poll() else failures + 1
            pause_s = self._options.poll_interval_ms / 1_000 - (time.monotonic() - began)
            if failures:
                pause_s = max(pause_s, min(_LONGEST_PAUSE_S, 0.5 * 2.0 ** min(failures, 10)))
            if pause_s > 0:
                # The loop keeps running in the pause, because silent members may still answer.
                self._idle(pause_s)

    def _round(self, *, complete: bool) -> bool:
        with self._turn:
            if self._stopping.is_set():
                return False
            session = self._open_session()
            self._clock.step()
            survey = session.poll(self._state, self._clock(), complete=complete)
            if survey is None:
                return False  # stopping
            return self._take(survey)

    def _take(self, survey: Survey) -> bool:
        """Report the result of a round; return whether there was one, and it could be written."""
        diff = diff_cluster(self._state, self._volatile, survey, self._options)
        if not diff.events:
            self._state = diff.state
            self._set(_state_of(survey), survey)
            return False
        try:
            self._log.append(diff.events)
            if is_news(self._state, diff.state):
                self._log.keep_memory(diff.state.encoded())
        except OSError as error:
            # Events that could not be written count as unreported, so the next round compares with the same state.
            self._set("unwritable", survey, str(error))
            return False
        self._state, self._volatile = diff.state, diff.volatile
        self._set("connected", survey, clock_ms=survey.ended_ms)
        return True

    def _idle(self, pause_s: float) -> None:
        with self._turn:
            if self._session is not None:
                self._session.idle(pause_s)

    def _open_session(self) -> _PollSession:
        if self._session is None:
            self._session = _PollSession(self._options, self._tls, self._clock)
            for name, group in self._state.groups.items():
                proxies = self._options.proxy_addresses
                ids = {member.client_id for member in group.members if not member.is_behind(proxies)}
                self._session.surveyor.schedule.remember(name, ids, group.sub_version)
        return self._session

    def _close_session(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    # ---- its status

    def _remembered(self) -> RememberedState:
        content = self._log.read_memory()
        if content is None:
            return RememberedState()
        try:
            return RememberedState.decoded(content)
        except msgspec.DecodeError:
            _log.warning(
                "the remembered state is unreadable; the whole cluster is reported again", cluster=self._options.cluster
            )
            return RememberedState()

    def _set(self, state: State, survey: Survey, detail: str | None = None, *, clock_ms: int | None = None) -> None:
        before = self._status
        detail = detail or _detail_of(survey, self._state)
        if state != before.state or (detail is None) != (before.detail is None):
            log_it = _log.info if state == "connected" and detail is None else _log.warning
            log_it(f"cluster {state}", cluster=self._options.cluster, detail=detail)
        self._status = CollectorStatus(
            cluster=self._options.cluster,
            state=state,
            since_ms=before.since_ms if state == before.state else survey.ended_ms,
            detail=detail,
            topics=len(self._state.topics),
            groups=len(self._state.groups),
            answered_at_ms=since_boot_ms() if state == "connected" else before.answered_at_ms,
            clock_ms=clock_ms or before.clock_ms,
            unpolled=survey.unpolled(),
        )


class _PollSession:
    """The client, and the loop in which it lives; used by one thread at a time."""

    def __init__(self, options: RocketMqOptions, tls: ssl.SSLContext | None, clock: _Clock) -> None:
        self._options = options
        # asyncio.run and Runner are not used, because they take over SIGINT in the main thread.
        self._loop = asyncio.new_event_loop()
        self._client = RocketMqClient(
            options.addresses(),
            proxies=options.proxy_addresses,
            credentials=options.credentials(),
            tls=tls,
            limits=options.limits(),
        )
        self.surveyor = Surveyor(self._client, options, clock)
        self._task: asyncio.Task[object] | None = None
        self._is_interrupted = False

    def poll(self, state: RememberedState, now_ms: int, *, complete: bool) -> Survey | None:
        """Poll once; return None if interrupted."""
        return self._loop.run_until_complete(
            self._until_interrupted(
                self.surveyor.poll(
                    {name: broker.addresses for name, broker in state.brokers.items()},
                    state.groups,
                    state.topics,
                    missing_brokers(state.brokers, now_ms, self._options),
                    complete=complete,
                )
            )
        )

    def idle(self, pause_s: float) -> None:
        """Run the loop for a while, because slow members may still answer."""
        self._loop.run_until_complete(self._until_interrupted(asyncio.sleep(pause_s)))

    def interrupt(self) -> None:
        """Stop the running poll or pause, and all later ones; callable from any thread."""
        self._is_interrupted = True
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._cancel)

    def close(self) -> None:
        """Close the connections."""
        self._loop.run_until_complete(self._hang_up())
        self._loop.close()

    async def _until_interrupted(self, work: Coroutine[Any, Any, T]) -> T | None:
        task = asyncio.ensure_future(work)
        self._task = task
        if self._is_interrupted:
            task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            if self._is_interrupted:
                return None
            raise

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _hang_up(self) -> None:
        await self.surveyor.close()
        await self._client.close()


class _Clock:
    """This machine's clock, made monotonic, also with respect to earlier reports."""

    def __init__(self, last_ms: int) -> None:
        self._last_ms = last_ms

    def __call__(self) -> int:
        """Return the time, epoch ms."""
        self._last_ms = max(self._last_ms, now_ms())
        return self._last_ms

    def step(self) -> None:
        """Make every later time greater than all earlier ones."""
        self._last_ms += 1


def _state_of(survey: Survey) -> State:
    return "refused" if any(broker.is_refusal for broker in survey.brokers.values()) else "away"


def _detail_of(survey: Survey, state: RememberedState) -> str | None:
    """Return the problem of a round, as text.

    Args:
        state: As of this round.
    """
    problems = [] if survey.name_server_problem is None else [f"no name server answers: {survey.name_server_problem}"]
    problems += [f"{broker.name}: {broker.problem}" for broker in survey.brokers.values() if broker.problem is not None]
    problems += [
        f"the proxy {address} {'refuses access' if proxy.is_refusal else 'does not answer'} since"
        f" {time_text(state.proxies[address].away_since_ms or survey.ended_ms)} ({proxy.problem})"
        for address, proxy in survey.proxies.items()
        if proxy.problem is not None
    ]
    if not survey.brokers and not problems:
        problems.append("the name server lists no broker")
    answering = {name for name, server in (survey.brokers | survey.proxies).items() if server.problem is None}
    late = sum(bool(group.unpolled & answering) for group in survey.groups.values())
    if late:
        problems.append(f"{late} of {len(survey.groups)} groups were not polled in time")
    if survey.unqueried:
        problems.append(f"{survey.unqueried} of {survey.queried} members were not queried in time")
    return "; ".join(problems) or None
