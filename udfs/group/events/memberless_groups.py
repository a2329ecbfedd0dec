"""Core: groups that commit and have no members, so that only their commits show them. No I/O.

Kafka and its tools list every client that commits as a group: consumers that assign their own partitions, and other
systems that keep their offsets in Kafka. Such a group is empty as long as one of its commits exists.
"""

from __future__ import annotations

from udfs.group.batch.context import GroupContext
from udfs.group.decision.commit import end_group
from udfs.group.state.state_machine import GroupState, state_of
from udfs.group.state.view import GroupView
from udfs.model.journal import GroupChanged


def first_commit(view: GroupView) -> int | None:
    """Return the first commit of a group that only commits show; None if it has none, or if more was observed."""
    group = view.group
    if state_of(group) is not GroupState.NEW or group.members or group.recorded is not None or not view.facts.progress:
        return None
    # Anything older was forgotten with the group.
    since = (view.facts.clock_before or 0) - view.config.forget_after_ms
    times = (time for of_queue in view.facts.progress.values() for time in of_queue if time >= since)
    first = min(times, default=None)
    return None if first is None else max(first, group.last_applied or first)


def register_committing_group(context: GroupContext, at: int) -> None:
    """Register a group that only commits show, as an empty group."""
    context.touch(at)
    row = GroupChanged(system=context.system, state="empty", mode=context.mode, strategy=context.named_strategy)
    context.write_row(at, row)


def forget_or_wait(context: GroupContext, at: int) -> None:
    """Forget a group that has been empty for long, with the state of its queues, but not while it commits."""
    times = [time for of_queue in context.facts.progress.values() for time in of_queue if time <= at]
    newest = max(times, default=None)
    if newest is not None and newest > (context.group.touched_at or 0):
        context.touch(newest)
    else:
        _end(context, at)


def end_without_commits(context: GroupContext, at: int) -> None:
    """End a group that only commits showed, when its last commit is deleted."""
    group, offsets = context.group, context.facts.offsets
    is_of_commits = group.row is not None and not group.exists and group.generation is None
    if not is_of_commits or state_of(group) is not GroupState.EMPTY or group.last_snapshot_at is not None:
        return
    if all(offsets.newest(queue, at).commit is None for queue in offsets):
        _end(context, at)


def _end(context: GroupContext, at: int) -> None:
    context.forget_observations(at)
    end_group(context, at)
