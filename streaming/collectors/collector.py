"""Shell: the interface of every collector of a live cluster, for the job and for `collect`."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol, Self, TypeAlias, TypeVar

import msgspec

from streaming.collectors.event_log import EventLog
from streaming.machine.process import since_boot_ms
from streaming.tables.liveness import SourceStatus

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

State: TypeAlias = Literal["starting", "connected", "away", "refused", "unwritable"]


class CollectorStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a collector.

    Attributes:
        state: ``starting``; ``connected``; ``away`` if the cluster cannot be reached; ``refused`` if it refuses access;
            ``unwritable`` if the log of events cannot be written.
        detail: The problem, as text, if there is one.
        unpolled: How many groups of the last round were not polled in time.
        answered_at_ms: When the cluster answered last, since the machine's boot; None if it has not yet.
    """

    cluster: str
    state: State = "starting"
    since_ms: int = 0
    detail: str | None = None
    topics: int = 0
    groups: int = 0
    clock_ms: int | None = None
    unpolled: int = 0
    answered_at_ms: int | None = None


# A poll normally takes less; a hanging server makes it wait for its timeouts.
_ANSWERS_WITHIN_MS = 15_000
PROBLEMS: dict[State, str] = {
    "away": "the cluster does not answer",
    "refused": "the cluster refuses access",
    "unwritable": "collected events cannot be written",
}


AnyStatus = TypeVar("AnyStatus", bound=CollectorStatus)


def status_with_log(status: AnyStatus, log: EventLog) -> AnyStatus:
    """Return the status with the log's problem, if there is one, because observations are not reported then."""
    trouble = log.trouble()
    return status if trouble is None else msgspec.structs.replace(status, state="unwritable", detail=trouble)


def source_status_of(status: CollectorStatus, made_at_ms: int) -> SourceStatus:
    """Return why a cluster, or a part of it, is not known.

    Args:
        made_at_ms: When the collector was created, since the machine's boot.
    """
    waited_ms = since_boot_ms() - (status.answered_at_ms or made_at_ms)
    detail = status.detail or ""
    if status.state in ("away", "refused", "unwritable"):
        return SourceStatus(status.cluster, problem=f"{PROBLEMS[status.state]}{f' ({detail})' if detail else ''}")
    if waited_ms > _ANSWERS_WITHIN_MS:
        return SourceStatus(status.cluster, problem=f"{PROBLEMS['away']} (no answer for {waited_ms // 1_000} s)")
    return SourceStatus(status.cluster, partial=detail)


def with_part(status: SourceStatus, part: str | None) -> SourceStatus:
    """Return the status of a cluster of which one more part is not known, if it is known at all."""
    if not part or status.problem:
        return status
    return status._replace(partial="; ".join(filter(None, (status.partial, part))))


class Collector(Protocol):
    """Watches or polls one cluster from ``start`` to ``stop`` and appends events to an ``EventLog``.

    It only reads, survives an unavailable cluster, and resumes after a restart from the remembered state without
    reporting anything that did not happen. Changes of its state are logged.
    """

    def start(self) -> None:
        """Start, in its own threads."""

    def stop(self) -> None:
        """Stop, and wait for the end; observed events are written."""

    def observe_once(self) -> bool:
        """Read everything once, in this thread, and write it, the ``clock`` last; return if the cluster answered."""

    def status(self) -> CollectorStatus:
        """Return the current status, at any time, from any thread."""


class AttachedCluster(Protocol):
    """One live cluster followed alongside the job; created before Spark starts, once it has been checked.

    Its collector appends to the checkpoint's folder of collected events, which the query reads.

    Attributes:
        source_kind: Its kind in a checkpoint, if that is more than its system: sources are fixed for the life of a
            checkpoint.
        group_source: Its cluster, with the source of its groups and the reason, if there is a choice.
    """

    source_kind: str | None
    group_source: tuple[str, str] | None

    def source(self, spark: SparkSession, *, max_offsets_per_batch: int, is_tolerant: bool) -> DataFrame | None:
        """Return the raw rows that Spark reads itself; None if the collector reports everything.

        Args:
            is_tolerant: Records that were deleted before they were read are skipped; otherwise the query fails.
        """

    def start(self) -> None:
        """Start the collector in the job's process."""

    def stop(self) -> None:
        """Stop the collector; observed events are written."""

    def poll(self) -> bool:
        """Read everything once, for a job that reads once; return whether the cluster answered."""

    def flush_clock(self) -> bool:
        """Write the clock of that round if it waited for the query's reads; return whether one was written."""

    def status(self) -> str | None:
        """Return a short text about the cluster's problem; None if there is none."""

    def source_status(self) -> SourceStatus:
        """Return why the cluster, or a part of it, is not known, as far as the collector knows."""

    def connection_error(self, error: BaseException) -> str | None:
        """Return the cluster's error if it ended the query, which may then be restarted.

        None for any other error.
        """


class CollectorCluster:
    """Follows a cluster whose collector reports everything."""

    source_kind: str | None = None
    group_source: tuple[str, str] | None = None

    def __init__(self, collector: Collector, log: EventLog) -> None:
        self._collector = collector
        self._log = log
        self._made_at_ms = since_boot_ms()

    def source(
        self,
        spark: SparkSession,  # noqa: ARG002
        *,
        max_offsets_per_batch: int,  # noqa: ARG002
        is_tolerant: bool,  # noqa: ARG002
    ) -> DataFrame | None:
        """Return nothing, because all events are in the folder of collected events."""
        return None

    def start(self) -> None:
        """Start the collector in the job's process."""
        self._collector.start()

    def stop(self) -> None:
        """Stop the collector; observed events are written."""
        self._collector.stop()
        self._log.flush()

    def poll(self) -> bool:
        """Read everything once; return whether the cluster answered."""
        return self._collector.observe_once()

    def flush_clock(self) -> bool:
        """Return that no clock is pending, because it is written after the events that it covers."""
        return False

    def collector_status(self) -> CollectorStatus:
        """Return the collector's status."""
        return status_with_log(self._collector.status(), self._log)

    def status(self) -> str | None:
        """Return a short text of the problem, if there is one."""
        status = self.collector_status()
        if status.state in ("away", "refused", "unwritable"):
            return f"{status.cluster} {status.state}"
        if status.unpolled:
            return f"{status.cluster}: {status.unpolled} not polled in time"
        return None

    def source_status(self) -> SourceStatus:
        """Return why the cluster, or a part of it, is not known, as far as the collector knows."""
        return source_status_of(self.collector_status(), self._made_at_ms)

    def connection_error(self, error: BaseException) -> str | None:  # noqa: ARG002
        """Return None, because the query reads a folder."""
        return None


class CollectorThread:
    """The thread of a collector, and the state shared with its caller; also a context manager.

    Attributes:
        _stopping: Set once the end is requested. _turn: Held by the thread that is reading the cluster.
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
        """Start."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for the end."""
        raise NotImplementedError

    def _run(self) -> None:
        raise NotImplementedError

    def _joined(self, timeout_s: float | None = None) -> bool:
        """Wait for the end of the thread, if it was started; return whether it has ended."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()
