"""Core: the time up to which a queue's owner has read it, as the source shows it. No I/O.

A commit that advanced shows that its owner had read until then. So does a commit that did not advance when the queue
had no more messages: the owner of an idle queue is up to date until the next message comes. A commit shown by a poll is
older than the poll. A pull that a member reports is direct evidence of reading.
"""

from __future__ import annotations

from typing import NamedTuple

from udfs.group.assignment.client_timings import COMMIT_INTERVAL_MS
from udfs.group.state.group import Queue
from udfs.group.state.view import GroupView
from udfs.model.observations import Newest


class LastProgress(NamedTuple):
    """The last progress of a queue's owner.

    Attributes:
        read_at: When it had read at the latest progress; None if unknown.
        idle_until: The time until which there was nothing more to read, if later than ``read_at``.
        is_stuck: Whether it committed without reading anything although there were messages.
    """

    read_at: int | None = None
    idle_until: int | None = None
    is_stuck: bool = False


def last_progress(view: GroupView, queue: Queue, key: int, until: int, now: int) -> LastProgress:
    """Return the last progress in a queue up to a given time; only the last two commits are remembered.

    Args:
        key: The queue's key, see ``queue_keys``. now: The time of the decision; anything later does not count.
    """
    newest = view.facts.offsets.newest(key, now)
    if until < now and newest.commit is not None and newest.commit[0] > until:
        former = newest.former
        newest = Newest(commit=former if former is not None and former[0] <= until else None)
    if view.profile.commits_are_polled:
        return _polled(view, queue, newest, until)
    if newest.commit is None:
        # The commit has no offset.
        times = [time for time in view.facts.progress.get(key, ()) if time <= until] if until == now else []
        return LastProgress(max(view.facts.offsets.not_deleted(key, times, now), default=None))
    (committed_at, committed), former, end = newest.commit, newest.former, newest.end
    has_moved = former is None or former[1] != committed
    if end is not None and end[0] > committed_at:
        if end[1] <= committed:
            return LastProgress(committed_at, end[0])
        return LastProgress(committed_at) if has_moved else LastProgress(is_stuck=True)
    return LastProgress(committed_at)


def _polled(view: GroupView, queue: Queue, newest: Newest, until: int) -> LastProgress:
    """Return the last progress that polls show.

    If an offset moved, it was read after the commit of the previous poll.
    """
    commit, former, pulled = newest.commit, newest.former, view.group.pulls.get(queue)
    times = [pulled] if pulled is not None and pulled <= until else []
    if commit is not None and former is not None and commit[1] != former[1]:
        times.append(former[0] - COMMIT_INTERVAL_MS)
    return LastProgress(max(times, default=None))
