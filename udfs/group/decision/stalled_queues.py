"""Core: queues of living owners that stand although messages wait: one finding, the widest. No I/O.

A shard finds the queues (``udfs/shard/standstills.py``), and the group evaluates them at the end of each span of event
time, by its state then: who owns them, since when, whether those members are alive, whether a rebalance is under way.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from udfs.group.assignment.client_timings import COMMIT_INTERVAL_MS
from udfs.group.batch.context import GroupContext
from udfs.group.batch.findings import of_members, of_queues
from udfs.group.batch.standstill_texts import (
    GROUP_STALLED,
    MEMBER_STALLED,
    POLL_TIMEOUT,
    QUEUE_STALLED,
    Stalled,
    departure_text,
    ended,
    stalled_found,
    stalled_text,
)
from udfs.group.state.group import Member, Queue, queue_order
from udfs.group.state.queue_findings import Standstill, open_standstill
from udfs.group.state.view import GroupView
from udfs.model.clients import on_host
from udfs.model.finding_names import FindingNames, NamedQueue
from udfs.model.journal import UNDER_WAY, Rebalance
from udfs.model.observations import UNKNOWN, Newest, QueueWait
from udfs.model.stall_rule import NEVER, StallRule
from udfs.packets.packet import queue_keys

_AT_ONCE_MS = 1_000
_DEPARTURES = ("member_left", "session_expired", "member_gone")


class _Owned(NamedTuple):
    """A queue with its owner; ``standstill``: how long its messages have waited, if they do; ``stalled``: too long."""

    queue: Queue
    key: int
    member: Member
    standstill: QueueWait | None
    stalled: bool
    stands: bool


class _Scope(NamedTuple):
    """What stands: the kind of the finding, the queues, and their owners."""

    kind: str
    queues: Sequence[_Owned]
    owned: int


def next_look(view: GroupView) -> int | None:
    """Return when queues that stand are to be evaluated next; None if none stands."""
    group, current = view.group, open_standstill(view.group)
    if current is None and not (view.facts.standstills and group.members and view.topics_of_interest()):
        return None
    rule, reached = StallRule.of(view.config), max(view.reached_at, view.looked_at + 1)
    if current is not None:
        return rule.next_look(max(current.looked_at + 1, reached))
    stalled = [found for found in view.facts.standstills if found.stalled < NEVER]
    looks = [(rule.next_look(max(found.stalled, reached)), found.until) for found in stalled]
    return min((at for at, until in looks if at < min(until, view.facts.clock)), default=None)


def evaluate_standstill(context: GroupContext, at: int) -> None:
    """Open, update or close the finding that queues stand."""
    context.note_look(at)
    current = open_standstill(context.group)
    if current is None and (_is_rebalancing(context) or context.mode != "clustering"):
        return
    scope = _scope_of(context, at)
    if scope is None:
        if current is not None:
            end_standstill(context, current, at, _how_it_ended(context, current))
        return
    digest = zlib.crc32(repr([(owned.queue, owned.member.member_id) for owned in scope.queues]).encode())
    waiting = waiting_in(context, [owned.key for owned in scope.queues], at)
    counted_at = at
    if current is not None and (current.kind, current.digest) == (scope.kind, digest):
        # The message follows the growing number each time that it has doubled.
        if waiting is None or waiting < 2 * current.waiting:
            return
    elif current is not None and current.kind != scope.kind:
        end_standstill(context, current, at, f"it is {scope.kind} now")
    stalled = _stalled(context, scope, waiting, counted_at)
    shown, member = context.shown_names(), scope.queues[0].member
    if stalled.members == 1:
        shown[member.member_id] = on_host(shown[member.member_id], member.host)
    message = stalled_text(stalled, shown)
    found = stalled_found(scope.kind, message, stalled.names)
    if scope.kind == GROUP_STALLED:
        context.set_finding(GROUP_STALLED, found, at)
    elif scope.kind == MEMBER_STALLED:
        context.set_finding(MEMBER_STALLED, found, at)
    else:
        context.set_finding(QUEUE_STALLED, found, at)
    context.set_standstill(Standstill(scope.kind, at, waiting or 0, counted_at, digest, message, stalled.names))


def end_standstill(context: GroupContext, current: Standstill, at: int, how: str) -> None:
    """Close the finding; its last message says how it ended."""
    context.set_finding(current.kind, stalled_found(current.kind, ended(current.message, at, how), current.names), at)
    context.set_finding(current.kind, None, at)
    context.set_standstill(None)


def end_with_owners(context: GroupContext, row: Rebalance) -> None:
    """Close the finding with a rebalance after which none of its owners owns any of its queues."""
    current = open_standstill(context.group)
    if current is None or _is_still_owned(context, current):
        return
    departed = [named for named in current.names.members if named.member_id not in context.group.members]
    reasons = {
        trigger.member_id: (trigger.kind, trigger.detail) for trigger in row.triggers if trigger.kind in _DEPARTURES
    }
    how = "its queues have other owners"
    if departed:
        causes = [
            (trigger[0], trigger[1] or _poll_timeout(context, current, named.member_id, row.event_time))
            for named in departed
            if (trigger := reasons.get(named.member_id)) is not None
        ]
        how = departure_text([named.client for named in departed], causes if len(causes) == len(departed) else ())
    end_standstill(context, current, row.event_time, how)


def _poll_timeout(view: GroupView, current: Standstill, member_id: str, at: int) -> str | None:
    """Return that a standing member left because it no longer polled, if its source does not tell why it departed.

    It was silent for longer than its session lasts, so it was alive; and for as long as it may go without a poll.
    """
    member = view.member_of_id(member_id)
    poll_interval = None if member is None else member.rebalance_timeout_ms
    if member is None or poll_interval is None or poll_interval == member.session_timeout_ms:
        return None
    queues = [(each.topic, each.broker, each.queue_id) for each in current.names.queues if member_id in each.owners]
    commits = [view.facts.offsets.newest(key, at).commit for key in queue_keys(queues).tolist()] if queues else []
    silence = at - max((commit[0] for commit in commits if commit is not None), default=at)
    if silence < view.timeout_of(member) + _AT_ONCE_MS:
        return None
    return POLL_TIMEOUT if -COMMIT_INTERVAL_MS <= silence - poll_interval <= 2 * COMMIT_INTERVAL_MS else None


# ---- what stands


def _is_rebalancing(view: GroupView) -> bool:
    group = view.group
    return group.pending is not None or group.preparing_since is not None or view.shown_state in UNDER_WAY


def _scope_of(view: GroupView, at: int) -> _Scope | None:
    """Return what stands, as widely as it holds; None if nothing does."""
    by_member: dict[str, list[_Owned]] = {}
    for owned in _owned(view, at):
        by_member.setdefault(owned.member.member_id, []).append(owned)
    stalled = [owned for queues in by_member.values() for owned in queues if owned.stalled]
    if not stalled:
        return None
    standing = {member_id for member_id, queues in by_member.items() if _stands(view, queues, at)}
    hung = sorted(member_id for member_id in standing if any(owned.stalled for owned in by_member[member_id]))
    if hung and len(standing) == len(by_member):
        kind = GROUP_STALLED
        hung = sorted(standing)
    else:
        kind = MEMBER_STALLED if hung else QUEUE_STALLED
    shown = [
        owned
        for member_id, queues in by_member.items()
        for owned in queues
        if owned.stalled or (owned.stands and member_id in hung)
    ]
    if kind == MEMBER_STALLED:
        shown = [owned for owned in shown if owned.member.member_id in hung]
    shown.sort(key=lambda owned: queue_order(owned.queue))
    return _Scope(kind, shown, sum(len(by_member[member_id]) for member_id in hung))


def _owned(view: GroupView, at: int) -> Iterable[_Owned]:
    """Yield the queues with a single owner that is alive, as far as they count."""
    group, rule = view.group, StallRule.of(view.config)
    # Queues of one member that hang together begin to wait at different reads of their ends.
    least = rule.floor_ms - rule.every_ms
    standing = {found.queue: found for found in view.facts.standstills if found.since <= at < found.until}
    owners = group.reported if group.has_reported else group.computed
    queues = [queue for queue in owners if not view.is_quiet(queue[0])]
    gone = {evidence.member_id for evidence in group.evidence if evidence.kind in _DEPARTURES}
    for queue, key in zip(queues, queue_keys(queues).tolist() if queues else [], strict=True):
        member = group.members.get(owners[queue][0])
        if member is None or len(owners[queue]) > 1 or member.member_id in gone:
            continue
        found = standing.get(key)
        waited = 0 if found is None else at - max(found.since, held_since(member))
        stalled = found is not None and found.stalled <= at and waited >= found.limit_ms
        yield _Owned(queue, key, member, found, stalled and queue not in group.idle_queues, waited >= least)


def _stands(view: GroupView, queues: Sequence[_Owned], at: int) -> bool:
    """Return whether a member reads none of its queues: messages wait, and nothing of it has moved since."""
    standing = [
        owned.standstill for owned in queues if owned.standstill is not None and (owned.stands or owned.stalled)
    ]
    if len(standing) < min(2, len(queues)):
        return False
    since = max(found.since for found in standing)
    others = [owned for owned in queues if not (owned.stands or owned.stalled)]
    return not any(_has_moved(view, view.facts.offsets.newest(owned.key, at), since) for owned in others)


def _has_moved(view: GroupView, newest: Newest, since: int) -> bool:
    commit, former = newest.commit, newest.former
    if commit is None or commit[0] <= since:
        return False
    # A poll shows an offset again although nothing was committed.
    return not view.profile.commits_are_polled or former is None or former[1] != commit[1]


def held_since(member: Member) -> int:
    return member.joined_at if member.holds_since is None else member.holds_since


def waiting_in(view: GroupView, keys: Iterable[int], at: int) -> int | None:
    """Return how many messages wait in queues; None if the source does not show it for all of them.

    Args:
        keys: The result of ``packet.queue_keys``.
    """
    total = 0
    for key in keys:
        newest = view.facts.offsets.newest(key, at)
        committed = newest.commit or newest.undated
        if committed is None or newest.end is None:
            return None
        total += max(0, newest.end[1] - committed[1])
    return total


def _stalled(view: GroupView, scope: _Scope, waiting: int | None, counted_at: int) -> Stalled:
    members = {owned.member.member_id: owned.member for owned in scope.queues}
    found = [owned.standstill for owned in scope.queues if owned.standstill is not None]
    advanced = min(each.advanced for each in found)
    queues = [NamedQueue(*owned.queue, owners=(owned.member.member_id,)) for owned in scope.queues]
    names = FindingNames(
        **of_queues(queues, len(queues)),
        **of_members([view.named(members[member_id]) for member_id in sorted(members)]),
    )
    return Stalled(
        kind=scope.kind,
        names=names,
        queues=len(queues),
        members=len(members),
        owned=scope.owned,
        advanced=None if advanced == UNKNOWN else advanced,
        since=min(each.since for each in found),
        held_since=max(map(held_since, members.values())),
        last_rebalance_at=view.group.last_rebalance_at,
        waiting=waiting,
        counted_at=counted_at,
        unit="byte" if view.profile.offsets_count_bytes else "message",
    )


# ---- how it ends


def _named_owners(view: GroupView, current: Standstill) -> Mapping[Queue, str]:
    """Return which of the finding's queues are still owned by the members that it names."""
    owners = view.group.reported if view.group.has_reported else view.group.computed
    queues = {(named.topic, named.broker, named.queue_id): named.owners for named in current.names.queues}
    return {queue: holders[0] for queue, holders in queues.items() if owners.get(queue) == holders}


def _is_still_owned(view: GroupView, current: Standstill) -> bool:
    return any(member_id in view.group.members for member_id in _named_owners(view, current).values())


def _how_it_ended(view: GroupView, current: Standstill) -> str:
    if not _is_still_owned(view, current):
        return "its queues have other owners"
    return "it moves again" if len(current.names.queues) == 1 else "they move again"
