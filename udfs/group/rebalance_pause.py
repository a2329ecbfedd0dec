"""Core: how long a reported generation paused its members, measured or estimated. No I/O."""

from __future__ import annotations

from udfs.group.state import Owners, Queue
from udfs.group.triggers import Causes, newest_commits
from udfs.group.view import GroupView
from udfs.model.events import GroupSnapshot


def began_at(view: GroupView, snapshot: GroupSnapshot, causes: Causes, at: int) -> int | None:
    """Return the first evidence that the rebalance began."""
    since = view.group.last_rebalance_at
    for moment in (snapshot.joined_at, view.group.preparing_since):
        if moment is not None and moment <= at and (since is None or moment >= since):
            causes.began(moment)
    began = causes.began_at
    return began if began is None or since is None else max(began, since)


def queue_pause(
    view: GroupView,
    before: Owners,
    told: Owners | None,
    pause: int | None,
    cooperative: bool,
    handing_over: list[Queue],
    handed: list[Queue],
    at: int,
) -> int | None:
    """Return the total time without an owner: of all owned queues (eager), otherwise of those that moved."""
    if told is None or handing_over:
        return None  # not observed, or not over: the follow-up generation shows it
    if not cooperative:
        return None if pause is None else pause * sum(queue in told for queue in before)
    since = view.group.last_rebalance_at
    total = 0 if since is None else (at - since) * len(handed)
    moved = sum(queue in before and before[queue] != holders for queue, holders in told.items())
    if moved and pause is None:
        return None
    return total + moved * (pause or 0)


def estimated_pause(
    view: GroupView, before: Owners, told: Owners | None, pause: int | None, cooperative: bool, at: int
) -> dict[str, int]:
    """Estimate a pause whose start was not observed: it began no later than the members' last commits."""
    since = view.group.last_rebalance_at
    if pause is not None or cooperative or told is None or since is None:
        return {}
    commits = newest_commits(view, [queue for queue in before if queue in told], since, at)
    if not commits:
        return {}
    return {
        "pause_estimated_ms": at - max(commits.values()),
        "queue_pause_estimated_ms": sum(at - commit for commit in commits.values()),
    }
