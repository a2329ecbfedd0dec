"""Core: what it costs that a queue gets another owner: messages that are read twice, messages that wait. No I/O.

A new owner begins at the committed offset. What the former owner had read beyond it is read twice. Its position is
known where it is reported (RocketMQ's members, consumers that report for themselves), and it is the last one if
the queue had no more, or as long as nothing shows where the queue ends. Else there is an estimate:

- Commits that are all observed (Kafka): the owner read on as between its last two commits, at most until it should
  have committed again, and at most up to the end of the queue. One that committed after the rebalance began did so as
  it gave the queue back, and read no further.
- Commits that are polled (RocketMQ): as much as the owner was ahead of its commit when its position was last polled;
  without a position, as much as it reads between two commits. An owner that lives on has committed as it gave the queue
  up, and so has one that left in order. Commits after it departed are its successor's.
  An offset that was committed before the first poll counts as long as no commit is observed.
- Offsets that count bytes (MetaQ) give no number of messages.
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
    """What one queue costs; None where it is not known.

    Attributes:
        repeated: Messages that are read twice, by the former owner's position. repeated_estimated: An estimate where
            the position is not known.
        waiting: Messages between the committed offset and the end of the queue when it got its new owner.
            waiting_estimated: An estimate where that end was observed before: as many more came as were read before.
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
    """Return what the queues cost that get an owner at a time, as far as offsets are known.

    Args:
        changed: The queues whose owners change, with the owners before and after. began: When the rebalance began.
        taken_at: When queues got their new owners, where that was earlier: later commits are the new owners'.
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
    """Return a commit that was made before a time; None: it was not."""
    return commit if commit is not None and commit[0] < until else None


def add_costs(row: Rebalance, costs: Mapping[Queue, MoveCost]) -> None:
    """Set the sums over all queues in a rebalance's row; without any figure there is no sum."""
    values = costs.values()
    row.repeated_messages = _sum(cost.repeated for cost in values)
    row.repeated_estimated_messages = _sum(cost.repeated_estimated for cost in values)
    row.waiting_messages = _sum(cost.waiting for cost in values)
    row.waiting_estimated_messages = _sum(cost.waiting_estimated for cost in values)


def _sum(values: Iterable[int | None]) -> int | None:
    observed = [value for value in values if value is not None]
    return sum(observed) if observed else None


def _with_waiting(cost: MoveCost, newest: Newest, commit: tuple[int, int], at: int) -> MoveCost:
    """Return a cost with the messages that waited until a time.

    Args:
        commit: The last one of the former owner.
    """
    end = newest.end
    if end is None:
        return cost
    waited = max(0, end[1] - commit[1])
    if end[0] == at:
        return cost._replace(waiting=waited)
    return cost._replace(waiting_estimated=waited + _came_since(newest, waited, commit, end[0], at))


def _came_since(newest: Newest, waited: int, commit: tuple[int, int], since: int, at: int) -> int:
    """Estimate how many messages came after an end was observed: as many as an owner read that kept up with them."""
    if newest.former is None or newest.commit is None or since > at:
        return 0
    since = max(since, commit[0])
    came = _read_within(since - commit[0], newest.commit, newest.former)
    step = newest.commit[1] - newest.former[1]
    if came is None or waited > came + step:
        return 0  # it did not keep up: how much it read does not show how much came
    return _read_within(at - since, newest.commit, newest.former) or 0


def _is_last(position: tuple[int, int], end: tuple[int, int] | None) -> bool:
    """Return whether an owner cannot have read beyond its position, as far as is known."""
    return end is None or end[1] <= position[1]


def _read_within(duration_ms: int, commit: tuple[int, int], former: tuple[int, int]) -> int | None:
    """Return how many messages an owner reads in a time, as between its last two commits."""
    interval, step = commit[0] - former[0], commit[1] - former[1]
    return None if interval <= 0 or step < 0 else -(-step * duration_ms // interval)


# ---- commits that are all observed


def _stopped_at(view: GroupView, old: Sequence[str], at: int) -> int:
    """Return when the former owner had stopped to read, at the latest."""
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
    # It read on for at most as long as it took until it had to commit again.
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
    """Return when the last owner departed without leaving in order; None: it lives on, or it left in order."""
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
    """Return how far an owner that departed was ahead of its last commit.

    Args:
        commits: The last ones until then, the newest first.
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
    # The newer commit was its own, or it is its successor's, which has read the same again.
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
