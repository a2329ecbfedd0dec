"""Core: the phases of a reported rebalance: its start, the end of its join phase, its completion. No I/O.

A coordinator's record contains the end of the join phase; its own time is the completion. A rebalance in progress shows
as snapshots in the states ``PreparingRebalance`` and ``CompletingRebalance``, from polls or a broker's log.
"""

from __future__ import annotations

import msgspec

from udfs.group.state.group import Group
from udfs.group.state.view import GroupView
from udfs.model.events import GroupSnapshot
from udfs.model.snapshot_meaning import has_joined


class Phases(msgspec.Struct, frozen=True, kw_only=True):
    """When a reported rebalance began, ended its join phase and was complete; None if not reported."""

    began_at: int | None = None
    joined_at: int | None = None
    completed_at: int | None = None


def under_way(group: Group, snapshot: GroupSnapshot) -> tuple[int | None, str | None, int | None]:
    """Return since when and why a rebalance is in progress, and the end of its join phase, as of one more snapshot.

    A snapshot of a rebalance that is already over adds nothing.
    """
    since, reason, joined = group.preparing_since, group.preparing_reason, group.join_ended_at
    at = snapshot.event_time
    if is_over(group, snapshot):
        return since, reason, joined
    return (
        at if since is None else since,
        snapshot.reason if reason is None else reason,
        joined if snapshot.joined_at is None else snapshot.joined_at,
    )


def is_over(group: Group, snapshot: GroupSnapshot) -> bool:
    """Return whether the rebalance of this snapshot has already produced its generation.

    While the members join, the group has its old generation; after that, the new one.
    """
    if group.last_rebalance_at is not None and snapshot.event_time < group.last_rebalance_at:
        return True
    if snapshot.generation is None:  # a poll shows the rebalance that completed in the same millisecond
        return snapshot.event_time == group.last_rebalance_at
    return group.generation is not None and snapshot.generation < group.generation + has_joined(snapshot)


def phases_of(view: GroupView, snapshot: GroupSnapshot, evidence_at: int | None, at: int) -> Phases:
    """Return the phases of the rebalance that a generation completes.

    Args:
        evidence_at: The first evidence of one of its causes.
    """
    group, since = view.group, view.group.last_rebalance_at

    def within(time: int | None) -> bool:
        return time is not None and time <= at and (since is None or time >= since)

    joined_at = next(filter(within, (snapshot.joined_at, group.join_ended_at)), None)
    starts = [time for time in (joined_at, group.preparing_since) if time is not None and within(time)]
    if evidence_at is not None:
        starts.append(evidence_at if since is None else max(evidence_at, since))
    completed_at = None if group.polled else min(snapshot.event_time, at)  # a poll does not show it
    return Phases(began_at=min(starts, default=None), joined_at=joined_at, completed_at=completed_at)
