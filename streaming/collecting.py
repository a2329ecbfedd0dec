"""Shell: what every collector of a live cluster is to the job and to `collect`."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Literal, Protocol, Self, TypeAlias, TypeVar

import msgspec

from streaming.event_log import EventLog

State: TypeAlias = Literal["starting", "connected", "away", "refused", "unwritable"]


class CollectorStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How it goes.

    Attributes:
        cluster: Its name in the events.
        state: ``starting``; ``connected``; ``away``: it cannot be reached; ``refused``: it does not let us in;
            ``unwritable``: the log of events cannot be written.
        since_ms: When that began.
        detail: What is wrong, in words, when something is.
        clock_ms: The last ``clock`` that was written.
        unpolled: How much of the last round was not seen in time (groups).
    """

    cluster: str
    state: State = "starting"
    since_ms: int = 0
    detail: str | None = None
    topics: int = 0
    groups: int = 0
    clock_ms: int | None = None
    unpolled: int = 0


AnyStatus = TypeVar("AnyStatus", bound=CollectorStatus)


def seen_with_log(status: AnyStatus, log: EventLog) -> AnyStatus:
    """Answer the status with the trouble of the log, if it has any: what is seen is not told then."""
    trouble = log.trouble()
    return status if trouble is None else msgspec.structs.replace(status, state="unwritable", detail=trouble)


class Collector(Protocol):
    """Watches or polls one cluster from ``start`` to ``stop`` and appends events to an ``EventLog``.

    It reads only, survives the cluster's being away, and goes on after a restart from the log's memory without
    telling anything that did not happen. A change of its state is told in the program's own log.
    """

    def start(self) -> None:
        """Begin, in threads of its own."""

    def stop(self) -> None:
        """End, and wait for the end; what was seen is written."""

    def observe_once(self) -> bool:
        """Look at everything once, in this thread, and write it, its ``clock`` last; answer whether it answered."""

    def status(self) -> CollectorStatus:
        """Answer how it goes, at any time, from any thread."""


class CollectorThread:
    """The thread of a collector, and what it shares with who stops it; also as a context manager.

    Attributes:
        _stopping: Set once the end is asked for. _turn: Held by whoever looks at the cluster just then.
    """

    def __init__(self, name: str) -> None:
        self._stopping = threading.Event()
        self._turn = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for the end."""
        raise NotImplementedError

    def _run(self) -> None:
        raise NotImplementedError

    def _joined(self, timeout_s: float | None = None) -> bool:
        """Wait for the end of the thread, if it was started; answer whether it has ended."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()
