"""Core: observations of a queue over time: commits, end offset, and the owner's position. No I/O."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

UNKNOWN: Final = -1  # an offset missing from an observation
NOT_NAMED: Final = -2  # the offset of a commit without one
DELETED: Final = -3  # the offset where a commit was deleted
_UNDATED: Final = -4
_LOG_START: Final = -2  # in the place of a position
# Of the commits before the last two, the newest in each of the two preceding seconds with a commit is remembered.
SECOND_MS: Final = 1_000

# (time, committed, end, position) of one queue at one time: ``UNKNOWN`` for a value that is missing, ``NOT_NAMED`` for
# the offset of a commit without one, ``undated`` for an offset that was committed at an unknown time. The place of
# the position may have where a queue's log begins, see ``log_start``.
Observation: TypeAlias = tuple[int, int, int, int]


def undated(offset: int) -> int:
    """Return the code of an offset that a poll found already committed, at an unknown time."""
    return _UNDATED - offset


def undated_offset(committed: int) -> int | None:
    """Return the offset of an ``undated`` code; None if it is not such a code."""
    return _UNDATED - committed if committed <= _UNDATED else None


def log_start(offset: int) -> int:
    """Return the code of the offset at which a queue's log begins."""
    return _LOG_START - offset


class NearQueue(NamedTuple):
    """A queue whose commit may be near the start of its log, or before it, from a time on until another.

    Attributes:
        key: The result of ``packet.queue_key``; the next three are its name. since: 0 if it was so before this batch.
    """

    key: int
    topic: str
    broker: str | None
    queue_id: int
    since: int
    until: int


class Newest(NamedTuple):
    """The newest observations of a queue up to a time: (time, offset) each.

    Attributes:
        commit, former: The last two commits; None also for a commit without an offset.
        undated: The offset committed at an unknown time; only if no commit is known.
        end: The end offset. position: The owner's position.
        earlier: Times of the last commits in the two seconds with a commit before the newest commit's second, newest
            first. They show whether commits continued.
        starts: The last three offsets at which the queue's log began, newest first, each with the time at which it was
            first observed; fewer if fewer are known.
    """

    commit: tuple[int, int] | None = None
    former: tuple[int, int] | None = None
    undated: tuple[int, int] | None = None
    end: tuple[int, int] | None = None
    position: tuple[int, int] | None = None
    earlier: tuple[int, ...] = ()
    starts: tuple[tuple[int, int], ...] = ()


def newest_of(observed: Iterable[Observation], until: int) -> Newest:
    """Return the newest of observations that are in the order of time."""
    commit = former = undated = end = position = None
    earlier: tuple[int, ...] = ()
    starts: tuple[tuple[int, int], ...] = ()
    # Where the log began before a queue is committed anew is forgotten with the commits that were deleted.
    is_ended, start_then = False, (UNKNOWN, UNKNOWN)
    for time, committed, end_offset, read in observed:
        if time > until:
            break
        if (offset := undated_offset(committed)) is not None:
            undated = (time, offset)
        elif committed != UNKNOWN:
            if committed == DELETED:
                # So is it where the deletion came in an earlier batch.
                is_ended, starts, earlier = True, (), ()
                commit = former = undated = None
                continue
            if is_ended:
                is_ended, starts = False, (start_then,) if start_then[0] == time else ()
            if commit is not None and commit[0] // SECOND_MS < time // SECOND_MS:
                earlier = (commit[0], *earlier[:1])
            commit, former = (time, committed), commit
        if end_offset != UNKNOWN:
            # Of two observations with the same timestamp the greater counts.
            end = (time, end_offset) if end is None else max(end, (time, end_offset))
        if read <= _LOG_START and is_ended:
            start_then = (time, _LOG_START - read)
        elif read <= _LOG_START:
            starts = _with_start(starts, time, _LOG_START - read)
        elif read != UNKNOWN:
            position = (time, read)
    if commit is not None:
        undated = None
    # Only the last two commits are remembered, with or without an offset.
    if commit is not None and commit[1] == NOT_NAMED:
        commit = None
    if former is not None and former[1] == NOT_NAMED:
        former = None
    return Newest(commit, former, undated, end, position, earlier, starts)


def _with_start(starts: tuple[tuple[int, int], ...], time: int, start: int) -> tuple[tuple[int, int], ...]:
    """Return the last three starts with another one; a smaller one is that of a new log."""
    if not starts:
        return ((time, start),)
    last_time, last = starts[0]
    if start == last or (time == last_time and start < last):
        return starts
    if time == last_time:
        return ((time, start), *starts[1:])
    return ((time, start), *starts[:2]) if start > last else ((time, start),)


class QueueWait(NamedTuple):
    """A span in which messages of a queue waited behind a commit that stood while the queue's end grew.

    Attributes:
        queue: The result of ``packet.queue_key``. advanced: When the commit was made; ``UNKNOWN`` if that was not
            observed. since: Since when messages waited. limit_ms: For how long they may. stalled: When the end grew
            after that. until: When the commit changed. ``stalled`` and ``until`` are beyond all times if there is none.
    """

    queue: int
    advanced: int
    since: int
    limit_ms: int
    stalled: int
    until: int


class QueueFall(NamedTuple):
    """A commit that is lower than the one before.

    Attributes:
        queue: Topic, broker, number. before_at, before: Time and offset of the higher commit. at, after: Those of the
            lower one.
    """

    queue: tuple[str, str | None, int]
    before_at: int
    before: int
    at: int
    after: int


class Offsets(Mapping[int, Sequence[Observation]]):
    """Observations of a group's queues, by ``packet.queue_key``, each in the order of time."""

    @abstractmethod
    def newest(self, queue: int, until: int) -> Newest:
        """Return the newest observations of a queue up to a given time; nothing for an unknown queue."""

    def deletions(self, queue: int) -> Sequence[int]:
        """Return when the commit of a queue was deleted, as far as older commits are still among its observations."""
        return [time for time, committed, _, _ in self.get(queue, ()) if committed == DELETED]

    def not_deleted(self, queue: int, commits: Iterable[int], until: int) -> list[int]:
        """Return which of the times of commits of a queue show something at a time: older ones may be forgotten."""
        since = max((time for time in self.deletions(queue) if time <= until), default=UNKNOWN)
        return [time for time in commits if time >= since]


class ReadOffsets(Offsets):
    """Observations held in memory.

    Args:
        by_queue: See ``Offsets``.
    """

    def __init__(self, by_queue: Mapping[int, Sequence[Observation]] | None = None) -> None:
        self._by_queue = {} if by_queue is None else by_queue

    def newest(self, queue: int, until: int) -> Newest:
        """Return the newest observations of a queue up to a given time; nothing for an unknown queue."""
        return newest_of(self._by_queue.get(queue, ()), until)

    def __getitem__(self, queue: int) -> Sequence[Observation]:
        return self._by_queue[queue]

    def __iter__(self) -> Iterator[int]:
        return iter(self._by_queue)

    def __len__(self) -> int:
        return len(self._by_queue)
