"""Core: what the end of each of a group's timers does, but for those of decisions. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from udfs.group.batch.context import GroupContext
from udfs.group.decision.episode_step import end_episodes
from udfs.group.decision.expiries import evaluate_expired
from udfs.group.decision.lost_messages import evaluate_retention
from udfs.group.decision.stalled_queues import evaluate_standstill
from udfs.group.decision.unread import evaluate_unread
from udfs.group.decision.went_back import evaluate_commits_back
from udfs.group.events.lifecycle import note_stuck
from udfs.group.events.memberless_groups import forget_or_wait, register_committing_group
from udfs.group.events.reported_assignment import compare_with_reports
from udfs.group.events.timers import TimerKind
from udfs.group.events.topic_growth import show_unfollowed_growth

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
