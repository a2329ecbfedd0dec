"""Shell: the thread that follows a MetaQ cluster through its ZooKeeper and appends events to a log.

Watches fire at each change; the changes are then read and reported. Every few seconds a round reads the offsets and
writes the ``clock``. After each lost connection everything is read again. While ZooKeeper is unavailable nothing is
reported and the cluster's clock does not advance; the end of the monitor's own session is no evidence about others. It
only reads.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator

import msgspec
from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, KazooException, NoAuthError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState

from streaming.collectors.collector import CollectorStatus, CollectorThread, State
from streaming.collectors.event_log import EventLog
from streaming.collectors.metaq.cluster_diff import MetaqClusterDiff, PendingEvents
from streaming.collectors.metaq.options import MetaqOptions
from streaming.collectors.metaq.watch_queue import FiredWatches, WatchQueue
from streaming.collectors.metaq.zk_reader import ZkReader
from streaming.collectors.metaq.znodes import Paths
from streaming.machine.clock import now_ms
from streaming.machine.logs import logger
from streaming.machine.process import since_boot_ms

_LONGEST_PAUSE_S = 30.0
_FIRST_PAUSE_S = 0.5
_log = logger("metaq")
# The client's log of each connection attempt is dropped, because the collector reports its state.
_CLIENT_LOG = logging.getLogger("metaq.zookeeper")
_CLIENT_LOG.setLevel(logging.ERROR)


class MetaqCollector(CollectorThread):
    """Follows one cluster, from ``start`` to ``stop``; also a context manager.

    Args:
        log: Receives the events. Its memory is the reported state, from which the collector continues after a restart.
    """

    def __init__(self, options: MetaqOptions, log: EventLog) -> None:
        self._options = options
        self._log = log
        self._differ = _differ_of(options, log)
        self._queue = WatchQueue(Paths(options.root))
        self._client: KazooClient | None = None
        self._reader: ZkReader | None = None
        self._unkept = False
        self._status = CollectorStatus(cluster=options.cluster, since_ms=now_ms())
        super().__init__("metaq-collector")

    def stop(self) -> None:
        """Stop, and wait for the end."""
        self._stopping.set()
        self._queue.wake()
        self._joined()
        with self._turn:
            self._hang_up()
            try:
                self._keep_memory()
            except _Unwritable as error:
                self._set("unwritable", _text(error))

    def status(self) -> CollectorStatus:
        """Return the current status; callable at any time, from any thread."""
        return self._status

    def observe_once(self) -> bool:
        """Read everything once, in this thread, and write it, the ``clock`` last; return if the cluster answered."""
        with self._turn:
            return self._attempt(self._everything)

    # ---- the thread

    def _run(self) -> None:
        round_at = 0.0
        failures = 0
        while not self._stopping.is_set():
            with self._turn:
                now = time.monotonic()
                is_due = now >= round_at
                done = self._attempt(self._with_round if is_due else self._between_rounds)
            if done and is_due:
                round_at = max(round_at + self._options.poll_interval_ms / 1_000, now)
            failures = 0 if done else failures + 1
            if failures:
                self._pause(min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** (failures - 1)))
                continue
            pause_s = round_at - time.monotonic()
            if self._differ.is_waiting:
                pause_s = min(pause_s, self._options.settle_ms / 4_000)
            self._queue.wait(pause_s)

    def _pause(self, pause_s: float) -> None:
        if self._queue.state == KazooState.CONNECTED:
            self._stopping.wait(pause_s)  # not a problem of the connection
        else:
            self._queue.wait(pause_s)

    def _everything(self, reader: ZkReader) -> None:
        self._queue.drain()
        self._read(reader, FiredWatches(everything=True))
        self._with_round(reader)
        while self._differ.is_waiting and not self._stopping.is_set():
            self._queue.wait(self._options.settle_ms / 4_000)
            self._with_round(reader)

    def _with_round(self, reader: ZkReader) -> None:
        began = now_ms()
        reader.touch()
        self._between_rounds(reader)
        self._round(reader, began)

    def _between_rounds(self, reader: ZkReader) -> None:
        while fired := self._queue.drain():
            self._read(reader, fired)
        if self._differ.is_waiting:
            self._read_again(reader)

    # ---- one action at a time

    def _read(self, reader: ZkReader, fired: FiredWatches) -> None:
        try:
            self._append(self._differ.diff(reader, fired))
        except BaseException:
            self._queue.give_back(fired)
            raise

    def _read_again(self, reader: ZkReader) -> None:
        self._append(self._differ.diff_again(reader))

    def _round(self, reader: ZkReader, began: int) -> None:
        pending = self._differ.round(reader, began)
        self._append(pending)
        self._keep_memory()
        self._set("connected", clock_ms=pending.events[-1].event_time)

    def _append(self, pending: PendingEvents) -> None:
        if pending.events:
            with _writing():
                self._log.append(pending.events)
        for node in self._differ.new_violations(pending):
            _log.warning(
                "a node cannot be read",
                cluster=self._options.cluster,
                path=node.path,
                reason=node.reason,
                data=node.raw,
            )
        self._differ.keep(pending)
        self._unkept = self._unkept or bool(pending.groups or pending.topics)
        self._set("connected", unpolled=len(pending.unread))

    def _attempt(self, task: Callable[[ZkReader], None]) -> bool:
        """Use the connection; return whether it succeeded, and log why not."""
        try:
            if self._client is None:
                self._connect()
            if self._queue.state != KazooState.CONNECTED:
                self._set("away", "the connection to ZooKeeper is lost")
                return False
            assert self._reader is not None
            task(self._reader)
        except (NoAuthError, AuthFailedError) as error:
            self._set("refused", f"ZooKeeper denies reading: {_text(error)}")
            self._hang_up()
            return False
        except _Unwritable as error:
            self._set("unwritable", _text(error))
            return False
        except (KazooException, KazooTimeoutError, OSError) as error:
            self._set("away", f"ZooKeeper does not answer: {_text(error)}")
            if not isinstance(error, KazooException):
                self._hang_up()
            return False
        return True

    def _connect(self) -> None:
        client = KazooClient(**self._options.client_settings(), logger=_CLIENT_LOG)
        client.add_listener(self._queue.see_state)
        self._client = client
        self._reader = ZkReader(client, self._options, self._queue.see_event)
        client.start(timeout=self._options.connect_timeout_ms / 1_000)

    def _hang_up(self) -> None:
        client, self._client, self._reader = self._client, None, None
        if client is not None:
            client.remove_listener(self._queue.see_state)
            client.stop()
            client.close()
            self._queue.see_state(KazooState.LOST)

    # ---- memory, status

    def _keep_memory(self) -> None:
        if self._unkept:
            with _writing():
                self._log.keep_memory(self._differ.memory())
            self._unkept = False

    def _set(
        self, state: State, detail: str | None = None, *, clock_ms: int | None = None, unpolled: int | None = None
    ) -> None:
        before = self._status
        if state != before.state:
            emit = _log.info if state == "connected" else _log.warning
            emit(f"cluster {state}", cluster=self._options.cluster, detail=detail)
        self._status = CollectorStatus(
            cluster=self._options.cluster,
            state=state,
            since_ms=before.since_ms if state == before.state else now_ms(),
            detail=detail,
            topics=self._differ.topics,
            groups=self._differ.groups,
            answered_at_ms=since_boot_ms() if state == "connected" else before.answered_at_ms,
            clock_ms=clock_ms or before.clock_ms,
            unpolled=before.unpolled if unpolled is None else unpolled,
        )


class _Unwritable(Exception):  # noqa: N818 - it is the log that is
    """The log of events cannot be written."""


@contextlib.contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _Unwritable(str(error)) from error


def _differ_of(options: MetaqOptions, log: EventLog) -> MetaqClusterDiff:
    """Continue from the memory in the log, or without one if it cannot be read."""
    try:
        return MetaqClusterDiff(options, log.read_memory())
    except msgspec.DecodeError:
        _log.warning("the remembered state is unreadable; the whole cluster is reported again", cluster=options.cluster)
        return MetaqClusterDiff(options)


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
