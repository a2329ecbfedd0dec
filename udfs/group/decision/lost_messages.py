"""Core: messages that retention deleted before a group read them, and those that it is about to delete. No I/O.

A queue lost messages when its log begins beyond the group's commit: only that counts, so neither a gap that compaction
left nor a group whose commit was never seen. It is at risk when little of its log precedes the commit, the start of the
log moves, and the commit does not move faster. A shard finds the queues that may be so
(``udfs/shard/near_queues.py``), and the group evaluates them at the end of each span of event time, as standstills.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from udfs.group.assignment.client_timings import COMMIT_INTERVAL_MS
from udfs.group.batch.context import GroupContext
from udfs.group.batch.finding_texts import members_text
from udfs.group.batch.findings import Found, of_members, of_queues
from udfs.group.batch.retention_texts import (
    MESSAGES_LOST,
    RETENTION_RISK,
    LostMessages,
    MessagesAtRisk,
    lost_text,
    retention_found,
    risk_text,
)
from udfs.group.batch.standstill_texts import ended
from udfs.group.state.group import queue_order
from udfs.group.state.queue_findings import Standstill
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.view import GroupView
from udfs.model.clients import on_host
from udfs.model.finding_names import FindingNames, NamedQueue
from udfs.model.log_pace import STARTS_OF_PACE, LogPace
from udfs.model.observations import NearQueue, Newest
from udfs.model.stall_rule import StallRule


def next_retention_look(view: GroupView) -> int | None:
    """Return when queues near the starts of their logs are to be evaluated next; None if there are none."""
    if not view.facts.near and not view.group.retention:
        return None
    rule, current = StallRule.of(view.config), open_retention(view)
    reached = max(view.reached_at, view.retention_looked_at + 1)
    if current:
        return rule.next_look(max(reached, *(found.looked_at + 1 for found in current.values())))
    if view.group.row is None or view.kind is GroupKind.NOT_FOLLOWED:
        return None
    looks = ((rule.next_look(max(queue.since, reached)), queue.until) for queue in view.facts.near)
    return min((at for at, until in looks if at < min(until, view.facts.clock)), default=None)


def open_retention(view: GroupView) -> dict[str, Standstill]:
    """Return the open findings of this kind; those that were closed with all of the group's findings are left out."""
    return {kind: found for kind, found in view.group.retention.items() if kind in view.group.findings}


def evaluate_retention(context: GroupContext, at: int) -> None:
    """Open, update or close the findings that messages were lost, or are at risk."""
    context.retention_looked_at = at
    queues = {queue.key: queue for queue in context.facts.near}
    lost: list[LostMessages] = []
    risky: list[MessagesAtRisk] = []
    is_passed, is_open = False, MESSAGES_LOST in open_retention(context)
    for queue in sorted(queues.values(), key=lambda queue: queue_order(queue[1:4])):
        newest = context.facts.offsets.newest(queue.key, at)
        is_passed |= _is_passed(context, newest)
        if (deleted := _lost(context, queue, newest, at, is_open=is_open)) is not None:
            lost.append(deleted)
        elif (waiting := _at_risk(context, queue, newest, at)) is not None:
            risky.append(waiting)
    unit = "byte" if context.profile.offsets_count_bytes else "message"
    found: list[_Finding] = []
    if risky:
        names, owners = _names(context, [each.queue for each in risky])
        least = min(each.left_ms for each in risky)
        found.append(_Finding(RETENTION_RISK, risk_text(names, risky, at, unit, owners), names, least))
    if lost:
        names, owners = _names(context, [each.queue for each in lost])
        number = sum(each.number for each in lost)
        # Starts of then are forgotten while it is open.
        first = min(each.since for each in lost)
        if is_open:
            first = min(first, context.group.findings[MESSAGES_LOST].opened_at)
        found.append(_Finding(MESSAGES_LOST, lost_text(names, lost, first, unit, owners), names, number))
    changes, kept = _followed(open_retention(context), {now.kind: now for now in found}, at, is_passed=is_passed)
    context.set_findings(changes, at)
    context.set_retention(kept)


class _Finding(NamedTuple):
    """What an evaluation found; ``number``: how many messages were lost, or the time left in ms."""

    kind: str
    message: str
    names: FindingNames
    number: int

    @property
    def digest(self) -> int:
        return zlib.crc32(repr((self.names.queues, self.names.queues_left_out, self.names.members)).encode())


def _followed(
    current: Mapping[str, Standstill], found: Mapping[str, _Finding], at: int, *, is_passed: bool
) -> tuple[list[tuple[str, Found | None]], dict[str, Standstill]]:
    """Return what an evaluation writes of the open findings and of those that it found, and the findings then open."""
    changes: list[tuple[str, Found | None]] = []
    kept: dict[str, Standstill] = {}
    for kind in (RETENTION_RISK, MESSAGES_LOST):
        before, now = current.get(kind), found.get(kind)
        if now is not None:
            shown = before.waiting if before is not None and not _is_news(before, now) else None
            if shown is None:
                changes.append((kind, retention_found(kind, now.message, now.names)))
            number = now.number if shown is None else shown
            kept[kind] = Standstill(kind, at, number, at, now.digest, now.message, now.names)
        elif before is not None:
            has_come = kind == RETENTION_RISK and is_passed
            how = "the start of the log has passed a commit" if has_come else _HOW_IT_ENDED[kind]
            changes += [(kind, retention_found(kind, ended(before.message, at, how), before.names)), (kind, None)]
    return changes, kept


def _is_news(before: Standstill, now: _Finding) -> bool:
    """Return whether a message is written again: its number has doubled, or the time left has halved."""
    was, number = before.waiting, now.number
    if before.digest != now.digest:
        return True
    return number >= 2 * was if now.kind == MESSAGES_LOST else 2 * number <= was and number != was


_HOW_IT_ENDED = {
    MESSAGES_LOST: "no commit is before the start of its log any more",
    RETENTION_RISK: "the start of the log is no longer about to reach a commit",
}


def _read_up_to(view: GroupView, newest: Newest) -> tuple[int, int] | None:
    """Return when a queue was last committed, and the offset of the next unread message; None if no commit is known."""
    committed = newest.commit or newest.undated
    # RocketMQ's brokers report 0 for a queue without any commit, and for one whose commit they have lost.
    if committed is None or (committed[1] == 0 and view.profile.commits_are_polled):
        return None
    # A reported position beyond the commit was read, though not committed; but a commit that went back since then is
    # where reading begins again.
    position, former = newest.position, newest.former
    went_back = position is not None and former is not None and position[0] < committed[0] and committed[1] < former[1]
    return committed[0], committed[1] if position is None or went_back else max(committed[1], position[1])


def _is_passed(view: GroupView, newest: Newest) -> bool:
    read = _read_up_to(view, newest)
    return read is not None and bool(newest.starts) and newest.starts[0][1] > read[1]


def _lost(view: GroupView, queue: NearQueue, newest: Newest, at: int, *, is_open: bool) -> LostMessages | None:
    """Return what a queue lost; unless the finding is open, only once a consumer could have committed what it had."""
    read = _read_up_to(view, newest)
    if read is None or not _is_passed(view, newest):
        return None
    since = min(time for time, start in newest.starts if start > read[1])
    has_older = any(start <= read[1] for _, start in newest.starts) or len(newest.starts) < STARTS_OF_PACE
    # Where all remembered starts are beyond it, older ones may be, too: then the commit must have stood for as long.
    if not is_open and at < (since if has_older else min(since, _moved_at(newest, read[0]))) + COMMIT_INTERVAL_MS:
        return None
    start = newest.starts[0][1]
    return LostMessages(_named(view, queue), start - read[1], read[1], start, since)


def _moved_at(newest: Newest, committed_at: int) -> int:
    """Return when the commit moved last; a commit of the same offset again is no progress."""
    commit, former = newest.commit, newest.former
    return former[0] if commit is not None and former is not None and former[1] == commit[1] else committed_at


def _at_risk(view: GroupView, queue: NearQueue, newest: Newest, at: int) -> MessagesAtRisk | None:
    read, pace = _read_up_to(view, newest), LogPace.of(newest.starts, at)
    if read is None or newest.end is None or pace is None:
        return None
    waiting, kept = newest.end[1] - read[1], newest.end[1] - pace.start
    if waiting <= 0 or not 0 <= read[1] - pace.start < view.config.retention_risk_share * kept:
        return None
    if _is_faster(newest, pace.offsets / pace.span_ms, at):
        return None
    return MessagesAtRisk(_named(view, queue), waiting, read[1], pace.start, pace.left_ms(read[1], at))


def _is_faster(newest: Newest, pace: float, at: int) -> bool:
    """Return whether the commit moves faster than the start of the log, in offsets per ms."""
    commit, former = newest.commit, newest.former
    if commit is None or former is None or at <= former[0]:
        return False
    return (commit[1] - former[1]) / (at - former[0]) > pace


def _named(view: GroupView, queue: NearQueue) -> NamedQueue:
    group, place = view.group, queue[1:4]
    owners = (group.reported if group.has_reported else group.computed).get(place, ())
    return NamedQueue(*place, owners=tuple(owner for owner in owners if owner in group.members))


def _names(view: GroupView, queues: Sequence[NamedQueue]) -> tuple[FindingNames, str]:
    """Return what a finding names, and its owners in words."""
    owners = sorted({owner for queue in queues for owner in queue.owners})
    members = [view.group.members[owner] for owner in owners]
    names = FindingNames(**of_queues(queues, len(queues)), **of_members([view.named(member) for member in members]))
    if not members:
        return names, " Nobody owns them now."
    shown = view.shown_names()
    shown |= {member.member_id: on_host(shown[member.member_id], member.host) for member in members}
    verb = "owns" if len(members) == 1 else "own"
    return (
        names,
        f" {members_text(names.members, len(members), shown)} {verb} {'it' if len(queues) == 1 else 'them'} now.",
    )
