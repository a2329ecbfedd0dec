"""Core: a group's timers, each with a name. No I/O.

The end of a session is not a timer: it depends on heartbeats that come after the deadline was set. ``event_queue`` has
the deadlines and ``heartbeats.apply_expiry`` decides.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from udfs.group.batch.context import GroupContext
from udfs.group.batch.findings import STUCK
from udfs.group.decision.episode_step import end_episodes
from udfs.group.decision.expiries import evaluate_expired, next_expired_at
from udfs.group.decision.lost_messages import evaluate_retention, next_retention_look
from udfs.group.decision.stalled_queues import evaluate_standstill, next_look
from udfs.group.decision.unread import evaluate_unread, next_unread_at
from udfs.group.decision.went_back import evaluate_commits_back, next_back_at
from udfs.group.events.lifecycle import note_stuck
from udfs.group.events.memberless_groups import first_commit, forget_or_wait, register_committing_group
from udfs.group.events.reported_assignment import awaits_comparison, compare_with_reports
from udfs.group.events.topic_growth import growth_outlasts_metadata_at, show_unfollowed_growth
from udfs.group.state.view import GroupView


class TimerKind(enum.IntEnum):
    """The timers of a group; those that end at the same time run in this order."""

    SETTLE = 1
    FINDING = 2
    FORGET = 3
    COMPARE = 4
    COMMIT = 5
    NAMES = 6
    STUCK = 7
    GROWTH = 8
    STALL = 9
    UNREAD = 10
    RETENTION = 11
    BACK = 12
    EXPIRED = 13
    EPISODE = 14

    @property
    def meaning(self) -> str:
        """Return the timer's description in the documentation."""
        return _MEANINGS[self]


_MEANINGS: Final = {
    TimerKind.SETTLE: "The settling time of pending changes is over: one rebalance takes them in.",
    TimerKind.FINDING: "A finding closes by itself.",
    TimerKind.FORGET: "A group has been empty for `forget_after`, and has not committed: it is forgotten.",
    TimerKind.COMPARE: "Members have had the time to take over what the last rebalance gave them: what they report is"
    " compared with it.",
    TimerKind.COMMIT: "A group commits of which nothing else is known: it is listed as empty.",
    TimerKind.NAMES: "An epoch has waited for metadata of its topics: it is decided without, where others have any.",
    TimerKind.STUCK: "A group has been rebalancing for `stuck_after`: a finding opens.",
    TimerKind.GROWTH: "A topic grew, and no generation has followed within the age of the clients' metadata: its new"
    " queues are a finding.",
    TimerKind.STALL: "Queues stand although messages wait, or did at the last evaluation: it is time for the next.",
    TimerKind.UNREAD: "Nobody has read a queue for longer than clients may need to learn of it: a finding opens.",
    TimerKind.RETENTION: "A commit is near the start of its log, or before it, or was: it is time to evaluate that.",
    TimerKind.BACK: "A commit is lower than the one before, or was, and it is time to see whether all is read again.",
    TimerKind.EXPIRED: "Commits were deleted, or such a queue is committed again: a finding opens or closes.",
    TimerKind.EPISODE: "Nothing of an episode came for twice its longest gap, ten minutes at least: it is over.",
}


class Timer(NamedTuple):
    """A running timer and when it ends; ``finding``: the key of the finding that it closes."""

    at: int
    kind: TimerKind
    finding: str = ""


def next_timer(view: GroupView) -> Timer | None:
    """Return the timer that ends first; None if no timer runs."""
    group = view.group
    timers = [
        Timer(finding.closes_at, TimerKind.FINDING, key)
        for key, finding in group.findings.items()
        if finding.closes_at is not None
    ]
    if group.pending is not None:
        timers.append(Timer(group.pending.opened_at + view.config.settle_ms, TimerKind.SETTLE))
    elif group.touched_at is not None and group.followed and not group.members:
        timers.append(Timer(group.touched_at + view.config.forget_after_ms, TimerKind.FORGET))
    if group.compare_at is not None and awaits_comparison(view):
        timers.append(Timer(group.compare_at, TimerKind.COMPARE))
    committed_at = first_commit(view)
    if committed_at is not None:
        timers.append(Timer(committed_at, TimerKind.COMMIT))
    if group.recorded is not None and group.recorded.waits_until is not None:
        timers.append(Timer(group.recorded.waits_until, TimerKind.NAMES))
    if group.under_way_since is not None and STUCK not in group.findings:
        timers.append(Timer(group.under_way_since + view.config.stuck_after_ms, TimerKind.STUCK))
    outlasted_at = growth_outlasts_metadata_at(view)
    if outlasted_at is not None:
        timers.append(Timer(outlasted_at, TimerKind.GROWTH))
    others = {
        TimerKind.STALL: next_look(view),
        TimerKind.UNREAD: next_unread_at(view),
        TimerKind.RETENTION: next_retention_look(view),
        TimerKind.BACK: next_back_at(view),
        TimerKind.EXPIRED: next_expired_at(view),
    }
    for kind, at in others.items():
        if at is not None:
            timers.append(Timer(at, kind))
    timers += [Timer(episode.closes_at, TimerKind.EPISODE) for episode in group.episodes]
    return min(timers, default=None)


# What the end of each timer does, but for those of decisions.
ON_TIMER: Mapping[TimerKind, Callable[[GroupContext, int], object]] = {
    TimerKind.FORGET: forget_or_wait,
    TimerKind.COMMIT: register_committing_group,
    TimerKind.COMPARE: compare_with_reports,
    TimerKind.STUCK: note_stuck,
    TimerKind.GROWTH: show_unfollowed_growth,
    TimerKind.STALL: evaluate_standstill,
    TimerKind.UNREAD: evaluate_unread,
    TimerKind.RETENTION: evaluate_retention,
    TimerKind.BACK: evaluate_commits_back,
    TimerKind.EXPIRED: evaluate_expired,
    TimerKind.EPISODE: end_episodes,
}
