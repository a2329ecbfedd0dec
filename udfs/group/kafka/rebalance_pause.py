"""Core: how long a reported generation paused its members, measured or estimated. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from udfs.group.assignment.rebalance_plan import Pauses, as_estimates
from udfs.group.kafka.inferred_departures import newest_commits
from udfs.group.state.group import Owners, Queue
from udfs.group.state.view import GroupView


def pauses_of(
    view: GroupView,
    before: Owners,
    reported: Owners | None,
    pause: int | None,
    cooperative: bool,
    handing_over: list[Queue],
    handed: list[Queue],
    at: int,
) -> Pauses:
    """Return how long a generation stopped its members; as polls show it, that is estimated.

    Args:
        before, reported: The assignments of the previous and of this generation. pause: How long it was under way.
        handing_over, handed: Queues that it leaves without an owner, and that earlier generations did.
    """
    pauses = Pauses(
        pause_ms=pause,
        queue_pause_ms=_queue_pause(view, before, reported, pause, cooperative, handing_over, handed, at),
        **_estimated_pause(view, before, reported, pause, cooperative, at),
    )
    return as_estimates(pauses) if view.group.polled else pauses


def _queue_pause(
    view: GroupView,
    before: Owners,
    reported: Owners | None,
    pause: int | None,
    cooperative: bool,
    handing_over: list[Queue],
    handed: list[Queue],
    at: int,
) -> int | None:
    """Return the total time without an owner: of all owned queues (eager), otherwise of the queues that moved.

    Args:
        handed: Queues that earlier cooperative generations revoked; they have had no owner since.
    """
    if reported is None or (handing_over and not handed):
        return None  # not observed, or not over; the next generation shows it
    times = [view.group.revoked_at(queue) for queue in handed]
    if any(time is None for time in times):
        return None
    total = sum(at - time for time in times if time is not None)
    if not cooperative:
        return None if pause is None else total + pause * sum(queue in reported for queue in before)
    moved = sum(queue in before and before[queue] != holders for queue, holders in reported.items())
    if moved and pause is None:
        return None
    return total + moved * (pause or 0)


def span_pauses(
    view: GroupView, before: Owners, reported: Owners, pause: int | None, handed: Sequence[Queue], at: int
) -> dict[tuple[Queue, str], tuple[int | None, int | None]]:
    """Return how long each queue with a new owner had none, by queue and owner; measured and estimated.

    Args:
        handed: Queues that earlier cooperative generations revoked; they have had no owner since.
    """
    waited_long = set(handed)
    found: dict[tuple[Queue, str], tuple[int | None, int | None]] = {}
    for queue, holders in reported.items():
        waited = pause if queue in before and before[queue] != holders else None
        if queue in waited_long:
            since = view.group.revoked_at(queue)
            waited = None if since is None else at - since
        if waited is not None:
            kept = before.get(queue, ())
            found.update({(queue, holder): (waited, None) for holder in holders if holder not in kept})
    return found


def _estimated_pause(
    view: GroupView, before: Owners, reported: Owners | None, pause: int | None, cooperative: bool, at: int
) -> dict[str, int]:
    """Estimate a pause whose start was not observed: it began no later than the members' last commits."""
    since = view.group.last_rebalance_at
    if pause is not None or cooperative or reported is None or since is None:
        return {}
    commits = newest_commits(view, [queue for queue in before if queue in reported], since, at)
    if not commits:
        return {}
    return {
        "pause_estimated_ms": at - max(commits.values()),
        "queue_pause_estimated_ms": sum(at - commit for commit in commits.values()),
    }
