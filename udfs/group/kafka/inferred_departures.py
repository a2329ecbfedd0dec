"""Core: how members departed, concluded from commits, where neither an event nor a log reports it. No I/O.

A member that leaves commits until then, and the rebalance begins at once. One that dies stops committing, the others go
on for a whole session timeout, and only then the rebalance begins. So the time from a member's last commit to the
beginning of the rebalance distinguishes the two. The beginning shows in the commits of the members that stay: each
stops when it rejoins, the first of them at its next heartbeat. The record's own time is later: the coordinator waits
for the slowest. One that dies may be the slowest itself, in a rebalance that began for another reason: then its session
ends while the others wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from udfs.group.state.assignment_diff import by_owner
from udfs.group.state.group import Member, Queue
from udfs.group.state.view import GroupView
from udfs.model.journal import TriggerKind
from udfs.packets.packet import queue_keys

# Kafka clients send at least three heartbeats per session timeout (heartbeat.interval.ms): a member's last heartbeat
# before it died is at most a third of the timeout older than its last commit.
_HEARTBEATS_IN_A_TIMEOUT = 3
# A member commits just before it leaves, and the rebalance begins with that.
_AT_ONCE_MS = 1_000
# A poll has the time at which it was sent: what it shows may have begun until the coordinator replied.
_REPLY_MS = 500


class Inferred(NamedTuple):
    """A conclusion and what it follows from."""

    kind: TriggerKind
    evidence: str


def infer_departures(
    view: GroupView, departed: Sequence[str], at: int, *, has_other_cause: bool = False
) -> dict[str, Inferred]:
    """Infer from commits how members departed, where they suffice.

    Commits that are older than the assignment are not of its owner.

    Args:
        departed: Members that a generation lacks. at: When it applies.
        has_other_cause: The rebalance may have begun for another reason than the departure of any of them.
    """
    group = view.group
    if not departed or not view.facts.progress:
        return {}
    held = by_owner(group.reported if group.has_reported else group.computed)
    earliest = min(_holds_since(member) for member in group.members.values())
    queues = [queue for member_id in group.members for queue in held.get(member_id, ())]
    commits = newest_commits(view, queues, earliest, at)
    newest: dict[str, int] = {}
    for member_id, member in group.members.items():
        mine = [commits[queue] for queue in held.get(member_id, ()) if queue in commits]
        if mine and max(mine) >= _holds_since(member):
            newest[member_id] = max(mine)
    # A rebalance that polls or a log have shown to be under way had begun by then.
    began = at if group.preparing_since is None else min(at, group.preparing_since)
    staying = [member_id for member_id in group.members if member_id not in departed]
    inferred: dict[str, Inferred] = {}
    for member_id in departed:
        if member_id in newest:
            others = [newest[one] for one in staying if one in newest]
            timeout = view.timeout_of(group.members[member_id])
            ended = at if has_other_cause else began
            found = _infer(newest[member_id], others, timeout, began, ended, _REPLY_MS if began < at else 0)
            if found is not None:
                inferred[member_id] = found
    return inferred


def _infer(last: int, others: Sequence[int], timeout: int, began: int, ended: int, inaccuracy: int) -> Inferred | None:
    """Return how a member departed.

    Args:
        last: Its last commit. others: Those of members that stay. began: When the rebalance had begun at the latest.
        ended: Until when it may have waited for a member that was silent already.
        inaccuracy: By how much it may have begun later.
    """
    silence, share = began - last, timeout // _HEARTBEATS_IN_A_TIMEOUT
    evidence = f"last commit {silence} ms before the rebalance, session timeout {timeout} ms"
    if silence < timeout - share:
        may_be_waited_for = ended - last >= timeout - share and abs(silence) >= _AT_ONCE_MS
        return None if may_be_waited_for else Inferred("member_left", evidence)
    if silence < timeout - inaccuracy:
        return None
    active = [one for one in others if one >= last - share]
    if others and not active:
        return None  # theirs stopped before: the group is idle, and silence proves nothing
    if active and min(active) < last + share:
        return Inferred("member_left", f"{evidence}; others stopped {max(0, min(active) - last)} ms after it")
    return Inferred("session_expired", evidence)


def _holds_since(member: Member) -> int:
    return member.joined_at if member.holds_since is None else member.holds_since


def newest_commits(view: GroupView, queues: Sequence[Queue], since: int, until: int) -> dict[Queue, int]:
    """Return the newest commit of each queue from ``since`` on and before ``until``, where there is one."""
    progress = view.facts.progress
    if not queues or not progress:
        return {}
    found: dict[Queue, int] = {}
    for queue, key in zip(queues, queue_keys(queues).tolist(), strict=True):
        commits = [time for time in progress.get(key, ()) if since <= time < until]
        if commits:
            found[queue] = max(commits)
    return found
