"""Core: what it costs that a queue gets another owner: messages that are read twice, messages that wait. No I/O.

A new owner begins at the committed offset. What the former owner had read beyond it is read twice. Its position is
known where somebody reports it (RocketMQ's members, consumers that report for themselves). Else it is estimated: it
read on as between its last two commits, at most until it should have committed again, and at most up to the end of the
queue. An owner that committed after the rebalance began did so as it gave the queue back, and read no further.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from udfs.group.state.assignment_diff import Changed
from udfs.group.state.group import Queue
from udfs.group.state.view import GroupView
from udfs.packets.packet import queue_keys
from udfs.packets.progress import NOT_NAMED, UNKNOWN


class MoveCost(NamedTuple):
    """What one queue costs; None where it is not known.

    Attributes:
        repeated: Messages that are read twice, by the former owner's position. repeated_estimated: An estimate where
            the position is not known.
        waiting: Messages between the committed offset and the end of the queue when it got its new owner.
    """

    repeated: int | None = None
    repeated_estimated: int | None = None
    waiting: int | None = None


_NOTHING = MoveCost()


class _Newest(NamedTuple):
    """The newest observations up to a time: (time, offset) each."""

    commit: tuple[int, int] | None
    former: tuple[int, int] | None
    end: tuple[int, int] | None
    position: tuple[int, int] | None


def move_costs(view: GroupView, changed: Sequence[Changed], at: int, began: int | None = None) -> dict[Queue, MoveCost]:
    """Return what the queues cost that get an owner at a time, as far as anything is known of them.

    Args:
        changed: The queues whose owners change, with the owners before and after. began: When the rebalance began.
    """
    offsets = view.facts.offsets
    if not offsets:
        return {}
    taken = [(queue, old) for queue, old, new in changed if any(one not in old for one in new)]
    if not taken:
        return {}
    revoked = {*view.group.revoked_pending, *view.group.idle_queues}
    costs: dict[Queue, MoveCost] = {}
    for (queue, old), key in zip(taken, queue_keys([queue for queue, _ in taken]).tolist(), strict=True):
        newest = _newest(offsets.get(key, ()), at)
        if newest.commit is None:
            continue
        waiting = None if newest.end is None else max(0, newest.end[1] - newest.commit[1])
        cost = MoveCost(waiting=waiting)
        if old or queue in revoked:
            cost = _repeated(newest, _stopped_at(view, old, at), began)._replace(waiting=waiting)
        if cost != _NOTHING:
            costs[queue] = cost
    return costs


def total_costs(costs: Mapping[Queue, MoveCost]) -> dict[str, int]:
    """Return the sums over all queues, by the names of the row's columns; a sum of nothing is missing."""
    found: dict[str, int] = {}
    for cost in costs.values():
        for name, value in zip(("repeated", "repeated_estimated", "waiting"), cost, strict=True):
            if value is not None:
                found[f"{name}_messages"] = found.get(f"{name}_messages", 0) + value
    return found


def _newest(observed: Iterable[tuple[int, int, int, int]], until: int) -> _Newest:
    commit = former = end = position = None
    for time, committed, end_offset, read in observed:
        if time > until:
            break
        if committed != UNKNOWN:
            commit, former = (time, committed), commit
        if end_offset != UNKNOWN:
            # Of two of one time the greater counts.
            end = (time, end_offset) if end is None else max(end, (time, end_offset))
        if read != UNKNOWN:
            position = (time, read)
    # Only the last two commits count, with an offset or without: more are not remembered.
    if commit is not None and commit[1] == NOT_NAMED:
        commit = None
    if former is not None and former[1] == NOT_NAMED:
        former = None
    return _Newest(commit, former, end, position)


def _stopped_at(view: GroupView, old: Sequence[str], at: int) -> int:
    """Return when the former owner had stopped to read, at the latest."""
    departed = view.group.departed.get(old[0]) if len(old) == 1 and old[0] not in view.group.members else None
    return departed.left_at if departed is not None and departed.left_reason == "left" else at


def _repeated(newest: _Newest, stopped_at: int, began: int | None) -> MoveCost:
    if newest.commit is None:
        return _NOTHING
    committed_at, committed = newest.commit
    if newest.position is not None and newest.position[0] >= committed_at:
        return MoveCost(repeated=max(0, newest.position[1] - committed))
    if began is not None and committed_at >= began:
        return MoveCost(repeated_estimated=0)
    if newest.former is None:
        return _NOTHING
    interval, step = committed_at - newest.former[0], committed - newest.former[1]
    if interval <= 0 or step < 0:
        return _NOTHING
    read_for = max(0, min(interval, stopped_at - committed_at))
    estimated = -(-step * read_for // interval)
    if newest.end is not None and newest.end[0] >= committed_at + read_for:
        estimated = min(estimated, max(0, newest.end[1] - committed))
    return MoveCost(repeated_estimated=estimated)
