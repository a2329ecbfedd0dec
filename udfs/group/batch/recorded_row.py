"""Core: a group's row as its coordinator's records show it: epochs, state, members waited for. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from udfs.group.state.epoch_outcome import merged
from udfs.group.state.recorded_group import RecordedGroup
from udfs.model.first_few import first_few
from udfs.model.journal import TOPOLOGY_NOT_READY, GroupChanged

_OF_RECORDS = ("protocol", "epoch", "assignment_epoch", "waits", "member_epochs", "reconciling")
MAX_SHOWN = 20  # a row lists at most this many waiting members; beyond that only their number


def with_epochs(recorded: RecordedGroup, row: GroupChanged, sessions: Collection[str] = ()) -> GroupChanged:
    """Return a group's row with what its records show in addition to its last rebalance.

    Args:
        sessions: Members with open sessions.
    """
    state = recorded.state
    if recorded.protocol != "consumer" or recorded.incomplete:
        state = "not_followed"
    elif row.state == "failed" and state == "stable":
        state = "failed"
    return msgspec.structs.replace(
        row,
        state=state,
        members=len(recorded.present),
        protocol=recorded.protocol,
        epoch=recorded.epoch,
        assignment_epoch=recorded.assignment_epoch,
        member_epochs=recorded.member_epochs(sessions),
        reconciling=recorded.reconciling(),
        waits=_waits(recorded) or None,
    )


def without_epochs(row: GroupChanged) -> GroupChanged:
    """Return the row of a group that is now a classic group and keeps its last rebalance from before."""
    state = "failed" if row.state == "failed" else "stable"
    return msgspec.structs.replace(row, state=state, **dict.fromkeys(_OF_RECORDS))


def _waits(recorded: RecordedGroup) -> str:
    """Return what members have yet to revoke, and whose partitions or tasks others wait for.

    It begins with the topics missing from the oldest undecided epoch.
    """
    if recorded.protocol == "share":
        return ""
    if recorded.is_without_tasks:
        return TOPOLOGY_NOT_READY
    unnamed = sorted(
        {topic_id for outcome in recorded.waiting for topic_id in outcome.topic_ids()} - recorded.names.keys()
    )
    if unnamed:
        first = recorded.waiting[0].epoch
        return f"epoch {first} waits for metadata of topic {first_few(unnamed, MAX_SHOWN)}"
    has_target = recorded.assignment_epoch == recorded.epoch
    waiting = [
        member_id
        for member_id, member in recorded.present.items()
        if member.state != "stable" or (has_target and member.epoch != recorded.assignment_epoch)
    ]
    more = f"; {len(waiting) - MAX_SHOWN} more" if len(waiting) > MAX_SHOWN else ""
    return "; ".join(_sentences(recorded, sorted(waiting)[:MAX_SHOWN])) + more


def _sentences(recorded: RecordedGroup, waiting: Sequence[str]) -> Iterator[str]:
    if not waiting:
        return
    present = recorded.present
    holders = {
        (topic_partitions.topic, number): member_id
        for member_id, member in present.items()
        for topic_partitions in merged(member.owned, member.revoking)
        for number in topic_partitions.partitions
    }
    for member_id in waiting:
        member = present[member_id]
        if member.state == "unrevoked":
            revoking = [
                (topic_partitions.topic, number)
                for topic_partitions in member.revoking
                for number in topic_partitions.partitions
            ]
            yield f"{member_id} has yet to revoke {_named(recorded, revoking)}"
        elif member.state == "unreleased":
            owned = {
                (topic_partitions.topic, number)
                for topic_partitions in member.owned
                for number in topic_partitions.partitions
            }
            missing = [
                (topic_partitions.topic, number)
                for topic_partitions in member.target
                for number in topic_partitions.partitions
            ]
            missing = [queue for queue in missing if queue not in owned]
            others = sorted({holders[queue] for queue in missing if queue in holders})
            # In a streams group these may be only standby or warm-up tasks.
            queues = _named(recorded, missing) or "tasks"
            yield f"{member_id} waits for {queues}" + (f" of {', '.join(others)}" if others else "")
        else:
            yield f"{member_id} has not taken epoch {recorded.epoch} over"


def _named(recorded: RecordedGroup, queues: Sequence[tuple[str, int]]) -> str:
    """Return partitions, or a streams group's tasks, as text."""
    kind = "subtopology " if recorded.protocol == "streams" else ""
    return ", ".join(f"{kind}{recorded.names.get(topic, topic)}-{number}" for topic, number in queues)
