"""Core: how long a reported generation paused its members, measured or estimated. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from udfs.group.kafka.inferred_departures import newest_commits
from udfs.group.state.group import Owners, Queue
from udfs.group.state.view import GroupView


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


def span_pauses(
    view: GroupView, before: Owners, told: Owners, pause: int | None, handed: Sequence[Queue], at: int
) -> dict[tuple[Queue, str], tuple[int | None, int | None]]:
    """Return for how long each queue that has another owner now had none: by queue and owner; measured, estimated.

    Args:
        handed: Queues that the cooperative generation before revoked: they had no owner since.
    """
    since, waited_long = view.group.last_rebalance_at, set(handed)
    found: dict[tuple[Queue, str], tuple[int | None, int | None]] = {}
    for queue, holders in told.items():
        waited = pause if queue in before and before[queue] != holders else None
        if queue in waited_long and since is not None:
            waited = at - since
        if waited is not None:
            kept = before.get(queue, ())
            found.update({(queue, one): (waited, None) for one in holders if one not in kept})
    return found


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
