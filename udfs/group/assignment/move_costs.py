"""Core: the cost of giving a queue to another owner: messages read twice and messages that wait. No I/O.

A new owner begins at the committed offset. Messages that the former owner had read beyond it are read twice. The former
owner's position is known if it is reported (by RocketMQ's members and by consumers that report for themselves); it is
the final position if the queue had no more messages, or if the queue's end offset is unknown. Otherwise it is
estimated:

- If all commits are observed (Kafka): the owner read on at the rate between its last two commits, at most until its
  next commit was due, and at most up to the end offset. An owner that committed after the rebalance began did so when
  it gave the queue back, and read no further.
- If commits are polled (RocketMQ): the owner was as far ahead of its commit as when its position was last polled;
  without a position, by as many messages as it reads between two commits. An owner that is still alive, or that left in
  order, committed when it gave the queue up. Commits after its departure are its successor's. An offset that was
  committed before the first poll counts as long as no commit is observed.
- If offsets count bytes (MetaQ), there is no number of messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from udfs.group.assignment.client_timings import COMMIT_INTERVAL_MS
from udfs.group.state.assignment_diff import Changed
from udfs.group.state.group import Queue
from udfs.group.state.view import GroupView
from udfs.model.journal import Rebalance
from udfs.model.observations import Newest
from udfs.packets.packet import queue_keys


class MoveCost(NamedTuple):
    """The cost of one queue; a figure is None if unknown.

    Attributes:
        repeated: Messages that are read twice, by the former owner's position. repeated_estimated: An estimate if the
            position is unknown.
        waiting: Messages between the committed offset and the end offset when the queue got its new owner.
            waiting_estimated: An estimate if the end offset was observed earlier; it assumes that as many messages came
            as were read before.
    """

    repeated: int | None = None
    repeated_estimated: int | None = None
    waiting: int | None = None
    waiting_estimated: int | None = None


_NOTHING: Final = MoveCost()
_NOTHING_REPEATED: Final = MoveCost(repeated_estimated=0)


def move_costs(
    view: GroupView,
    changed: Sequence[Changed],
    at: int,
    began: int | None = None,
    taken_at: Mapping[Queue, int] | None = None,
) -> dict[Queue, MoveCost]:
    """Return the costs of the queues that get an owner at a given time, as far as offsets are known.

    Args:
        changed: The queues whose owners change, with the owners before and after. began: When the rebalance began.
        taken_at: When queues got their new owners, if earlier: later commits are the new owners'.
    """
    offsets = view.facts.offsets
    if not offsets:
        return {}
    taken = [(queue, old) for queue, old, new in changed if any(owner not in old for owner in new)]
    if not taken:
        return {}
    revoked = {*view.group.revoked_pending, *view.group.idle_queues}
    costs: dict[Queue, MoveCost] = {}
    for (queue, old), key in zip(taken, queue_keys([queue for queue, _ in taken]).tolist(), strict=True):
        newest = offsets.newest(key, at)
        has_owner = bool(old) or queue in revoked
        until = at if taken_at is None else taken_at.get(queue, at)
        if until < at and newest.commit is not None and newest.commit[0] >= until:
            newest = newest._replace(commit=_until(newest.former, until), former=None, end=None)
        if view.profile.commits_are_polled:
            cost = _polled_cost(view, queue, old, newest, at, has_owner=has_owner)
        elif newest.commit is None:
            continue
        else:
            cost = _repeated(newest, _stopped_at(view, old, until), began) if has_owner else _NOTHING
            cost = _with_waiting(cost, newest, newest.commit, at)
        if cost != _NOTHING:
            costs[queue] = cost
    return costs


def _until(commit: tuple[int, int] | None, until: int) -> tuple[int, int] | None:
    """Return a commit if it was made before a given time, else None."""
    return commit if commit is not None and commit[0] < until else None


def add_costs(row: Rebalance, costs: Mapping[Queue, MoveCost]) -> None:
    """Set the sums over all queues in a rebalance's row; the sums are left out if no figure is known."""
    values = costs.values()
    row.repeated_messages = _sum(cost.repeated for cost in values)
    row.repeated_estimated_messages = _sum(cost.repeated_estimated for cost in values)
    row.waiting_messages = _sum(cost.waiting for cost in values)
    row.waiting_estimated_messages = _sum(cost.waiting_estimated for cost in values)


def _sum(values: Iterable[int | None]) -> int | None:
    observed = [value for value in values if value is not None]
    return sum(observed) if observed else None


def _with_waiting(cost: MoveCost, newest: Newest, commit: tuple[int, int], at: int) -> MoveCost:
    """Return a cost with the number of messages waiting at a given time.

    Args:
        commit: The former owner's last commit.
    """
    end = newest.end
    if end is None:
        return cost
    waited = max(0, end[1] - commit[1])
    if end[0] == at:
        return cost._replace(waiting=waited)
    return cost._replace(waiting_estimated=waited + _came_since(newest, waited, commit, end[0], at))


def _came_since(newest: Newest, waited: int, commit: tuple[int, int], since: int, at: int) -> int:
    """Estimate how many messages came after an end offset was observed, as many as an owner keeping up would read."""
    if newest.former is None or newest.commit is None or since > at:
        return 0
    since = max(since, commit[0])
    came = _read_within(since - commit[0], newest.commit, newest.former)
    step = newest.commit[1] - newest.former[1]
    if came is None or waited > came + step:
        return 0  # it did not keep up, so its reading rate does not show how many messages came
    return _read_within(at - since, newest.commit, newest.former) or 0


def _is_last(position: tuple[int, int], end: tuple[int, int] | None) -> bool:
    """Return whether an owner cannot have read beyond its position, as far as is known."""
    return end is None or end[1] <= position[1]


def _read_within(duration_ms: int, commit: tuple[int, int], former: tuple[int, int]) -> int | None:
    """Return how many messages an owner reads in a given time, at the rate between its last two commits."""
    interval, step = commit[0] - former[0], commit[1] - former[1]
    return None if interval <= 0 or step < 0 else -(-step * duration_ms // interval)


# ---- commits that are all observed


def _stopped_at(view: GroupView, old: Sequence[str], at: int) -> int:
    """Return the latest time at which the former owner stopped reading."""
    departed = view.group.departed.get(old[0]) if len(old) == 1 and old[0] not in view.group.members else None
    return departed.left_at if departed is not None and departed.left_reason == "left" else at


def _repeated(newest: Newest, stopped_at: int, began: int | None) -> MoveCost:
    if newest.commit is None:
        return _NOTHING
    committed_at, committed = newest.commit
    position = newest.position if newest.position is not None and newest.position[0] >= committed_at else None
    if position is not None and _is_last(position, newest.end):
        return MoveCost(repeated=max(0, position[1] - committed))
    if began is not None and committed_at >= began:
        return _NOTHING_REPEATED
    read = 0 if position is None else max(0, position[1] - committed)
    if newest.former is None:
        return _NOTHING if position is None else MoveCost(repeated_estimated=read)
    # It read on at most until its next commit was due.
    read_for = max(0, min(committed_at - newest.former[0], stopped_at - committed_at))
    ahead = _read_within(read_for, newest.commit, newest.former)
    if ahead is None:
        return _NOTHING if position is None else MoveCost(repeated_estimated=read)
    estimated = max(read, ahead)
    if newest.end is not None and newest.end[0] >= committed_at:
        there = max(0, newest.end[1] - committed)
        came = _came_since(newest, there, newest.commit, newest.end[0], committed_at + read_for)
        estimated = max(read, min(estimated, there + came))
    return MoveCost(repeated_estimated=estimated)


# ---- commits that are polled


def _polled_cost(
    view: GroupView, queue: Queue, old: Sequence[str], newest: Newest, at: int, *, has_owner: bool
) -> MoveCost:
    left_at = _departed_at(view, queue, old)
    until = at if left_at is None else left_at
    commits = [commit for commit in (newest.commit, newest.former) if commit is not None and commit[0] <= until]
    # Brokers report 0 for a queue without any commit.
    if newest.undated is not None and newest.undated[0] <= until and newest.undated[1]:
        commits = [(0, newest.undated[1])]
    if not commits:
        return _NOTHING
    if view.profile.offsets_count_bytes:
        return _NOTHING_REPEATED if has_owner and left_at is None else _NOTHING
    cost = _NOTHING
    if has_owner and view.mode != "message":  # in message mode no member owns a queue alone
        cost = _NOTHING_REPEATED if left_at is None else _ahead(newest, commits, left_at)
    return _with_waiting(cost, newest, commits[0], at)


def _departed_at(view: GroupView, queue: Queue, old: Sequence[str]) -> int | None:
    """Return when the last owner departed without leaving in order; None if it is still alive or left in order."""
    departed = view.group.departed
    losses = [departed[owner] for owner in old if owner in departed and owner not in view.group.members]
    if not old:
        idle = view.group.idle_queues.get(queue)
        released_at = None if idle is None else idle.released_at
        losses = [
            departure for departure in departed.values() if released_at is not None and departure.left_at >= released_at
        ]
    return max((departure.left_at for departure in losses if departure.left_reason != "left"), default=None)


def _ahead(newest: Newest, commits: Sequence[tuple[int, int]], left_at: int) -> MoveCost:
    """Return how far a departed owner was ahead of its last commit.

    Args:
        commits: The last commits until then, newest first.
    """
    position = newest.position
    base = None if position is None else next((commit for commit in commits if commit[0] <= position[0]), None)
    if position is None or position[0] > left_at or base is None:
        return _by_rate(newest, commits)
    ahead = max(0, position[1] - base[1])
    if not _is_last(position, newest.end):
        return MoveCost(repeated_estimated=ahead)
    if base == commits[0]:
        return MoveCost(repeated=ahead)
    # Either the newer commit was its own, or its successor read the same messages again and committed.
    has_committed = commits[0][1] >= position[1] and left_at - position[0] > COMMIT_INTERVAL_MS
    return MoveCost(repeated_estimated=0 if has_committed else ahead)


def _by_rate(newest: Newest, commits: Sequence[tuple[int, int]]) -> MoveCost:
    if len(commits) < 2:
        return _NOTHING
    (committed_at, committed), former = commits
    estimated = _read_within(min(committed_at - former[0], COMMIT_INTERVAL_MS), commits[0], former)
    if estimated is None:
        return _NOTHING
    if newest.end is not None and newest.end[0] >= committed_at:
        estimated = min(estimated, max(0, newest.end[1] - committed))
    return MoveCost(repeated_estimated=estimated)
