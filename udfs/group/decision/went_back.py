"""Core: commits of a group that are lower than those before: messages are read again. No I/O.

A shard finds them (``udfs/shard/offset_falls.py``), and the group sees each at its own time, by its state then: who
owns the queue, or whether the group had no members. What closes the finding is evaluated at the end of each span of
event time. Sources that poll commits are left out: a broker of RocketMQ may answer an older offset after a restart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from udfs.group.batch.context import GroupContext
from udfs.group.batch.finding_texts import NAMED_AT_MOST, named, phrase, queues_text
from udfs.group.batch.findings import Found, of_members, of_queues
from udfs.group.decision.stalled_queues import held_since
from udfs.group.state.group import Queue, queue_order
from udfs.group.state.queue_findings import BackQueue, CommitsBack, Committer
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.view import GroupView
from udfs.model.clients import on_host
from udfs.model.finding_names import MAX_NAMED, NamedQueue
from udfs.model.observations import Newest, QueueFall
from udfs.model.stall_rule import StallRule
from udfs.model.timestamps import write_timestamp
from udfs.packets.packet import queue_keys

WENT_BACK: Final = "commits_went_back"
MAX_BACK_QUEUES = 1_024  # those beyond it are not followed
_ADVICE = (
    "Ask who reset the offsets, or look for a second consumer of the same group id, a seek, or a consumer that began"
    " from a state of its own. Messages are handled a second time: check that their effects may repeat."
)


def next_back_at(view: GroupView) -> int | None:
    """Return when a commit goes back, or when those that did are to be evaluated next; None if there is none."""
    back = _open(view)
    if back is None and not view.facts.falls:
        return None
    falls = [fall.at for fall in view.facts.falls[:1]]
    looks = [] if back is None else [StallRule.of(view.config).next_look(back.evaluated_at + 1)]
    first = min(falls + looks, default=None)
    return None if first is None else max(first, view.reached_at)


def evaluate_commits_back(context: GroupContext, at: int) -> None:
    """Open, update or close the finding that commits went back."""
    falls = [fall for fall in context.take_falls(at) if _counts(context, fall, at)]
    back = _open(context)
    if back is None and not falls:
        context.set_commits_back(None)
        return
    queues = {} if back is None else dict(back.queues)
    for fall in falls:
        if fall.queue in queues or len(queues) < MAX_BACK_QUEUES:
            queues[fall.queue] = _merged(context, queues.get(fall.queue), fall)
    is_look = back is not None and at >= StallRule.of(context.config).next_look(back.evaluated_at + 1)
    if is_look and back is not None:
        left = {queue: of_queue for queue, of_queue in queues.items() if not _is_over(context, queue, of_queue, at)}
        if not left and not any(of_queue.last_at > back.evaluated_at for of_queue in queues.values()):
            context.set_finding(WENT_BACK, _found(context, queues, _how_it_ended(context, queues, at), at), at)
            context.set_finding(WENT_BACK, None, at)
            context.set_commits_back(None)
            return
    if back is None or is_look:
        # Between two evaluations others are only remembered, so that a failover is not told queue by queue.
        context.set_finding(WENT_BACK, _found(context, queues, "", at), at)
    context.set_commits_back(CommitsBack(queues, at if back is None or is_look else back.evaluated_at))


def _open(view: GroupView) -> CommitsBack | None:
    return view.group.went_back if WENT_BACK in view.group.findings else None


def _counts(view: GroupView, fall: QueueFall, at: int) -> bool:
    """Return whether the group reads messages again, as far as is known: its topic is not another one."""
    if view.profile.commits_are_polled or view.kind is GroupKind.NOT_FOLLOWED:
        return False
    return not _is_another_topic(view, fall.queue, fall.before_at, fall.before, at)


def _is_another_topic(view: GroupView, queue: Queue, before_at: int, before: int, at: int) -> bool:
    renewed = view.topics.renewed_at(queue[0], at)
    if renewed is not None and renewed > before_at:
        return True
    end = _newest(view, queue, at).end
    return end is not None and end[0] >= before_at and end[1] < before


def _newest(view: GroupView, queue: Queue, at: int) -> Newest:
    return view.facts.offsets.newest(queue_keys([queue]).tolist()[0], at)


def _is_over(view: GroupView, queue: Queue, back: BackQueue, at: int) -> bool:
    commit = _newest(view, queue, at).commit
    return commit is None or commit[1] >= back.before or _is_another_topic(view, queue, back.before_at, back.before, at)


def _merged(view: GroupView, known: BackQueue | None, fall: QueueFall) -> BackQueue:
    if known is None:
        by = _committed_by(view, fall.queue)
        return BackQueue(fall.before_at, fall.before, fall.at, fall.after, fall.at, 1, by)
    if fall.before > known.before:
        known = msgspec.structs.replace(known, before_at=fall.before_at, before=fall.before)
    after = min(known.after, fall.after)
    return msgspec.structs.replace(known, after=after, last_at=fall.at, times=known.times + 1)


def _committed_by(view: GroupView, queue: Queue) -> Committer:
    group = view.group
    if not group.members:
        is_known = group.exists or group.generation is not None
        return Committer(False, since=group.last_rebalance_at) if is_known else Committer(None)
    owners = group.reported if group.has_reported else group.computed
    held = [group.members[member_id] for member_id in owners.get(queue, ()) if member_id in group.members]
    if len(held) != 1:
        return Committer(True)
    member = held[0]
    name = on_host(view.shown_names()[member.member_id], member.host)
    return Committer(True, member.member_id, name, held_since(member))


def _how_it_ended(view: GroupView, queues: Mapping[Queue, BackQueue], at: int) -> str:
    first = min(back.at for back in queues.values())
    read = [q for q, back in queues.items() if (newest := _newest(view, q, at).commit) and newest[1] >= back.before]
    if len(read) == len(queues):
        return f" They were read again by {write_timestamp(at)}, within {(at - first) // 1_000:,} s."
    if read:
        return f" By {write_timestamp(at)} those of {len(read):,} of {len(queues):,} queues were read again."
    return f" It ended at {write_timestamp(at)}: their topic was made again, or has lost its messages."


def _found(view: GroupView, queues: Mapping[Queue, BackQueue], how: str, at: int) -> Found:
    order = sorted(queues, key=queue_order)
    backs = [queues[queue] for queue in order]
    moves = [f"{_named([queue])} from {queues[queue].before} to {queues[queue].after}" for queue in order]
    again = sum(back.before - back.after for back in backs)
    times = max(back.times for back in backs)
    message = (
        f"Commits went back at {write_timestamp(min(back.at for back in backs))}: {named(moves)}, "
        + phrase(again, "at most {:,} message is read again.", "at most {:,} messages are read again.")
        + (f" It happened {times:,} times: two consumers may commit in turn." if times > 1 else "")
    )
    owners = sorted({back.by.owner for back in backs if back.by.owner is not None})
    members = [view.named(member) for owner in owners if (member := view.member_of_id(owner)) is not None]
    names = [NamedQueue(*queue, owners=tuple(filter(None, [queues[queue].by.owner]))) for queue in order[:MAX_NAMED]]
    return Found(
        severity="warning",
        message=f"{message} {_committers(view, queues, order, at)}{how}",
        advice=_ADVICE,
        **of_queues(names, len(order)),
        **of_members(members),
    )


def _named(queues: Sequence[Queue]) -> str:
    return queues_text([NamedQueue(*queue) for queue in queues])


def _committers(view: GroupView, queues: Mapping[Queue, BackQueue], order: Sequence[Queue], at: int) -> str:
    """Return who may have committed the queues, as sentences."""
    by: dict[Committer, list[Queue]] = {}
    for queue in order:
        by.setdefault(queues[queue].by, []).append(queue)
    texts = [
        _committer_text(committer, some, len(by) == 1, _is_committed_since(view, queues, some, at))
        for committer, some in list(by.items())[:NAMED_AT_MOST]
    ]
    more = len(by) - len(texts)
    return " ".join(texts) + (f" Others had {more:,} more owners." if more > 0 else "")


def _committer_text(by: Committer, queues: Sequence[Queue], is_only: bool, committed_since: bool) -> str:
    since = "" if by.since is None else f" since {write_timestamp(by.since)}"
    which = ("it" if len(queues) == 1 else "them") if is_only else _named(queues)
    if by.had_members is None:
        return "No members of the group are known: a reset, or a consumer that assigns its own queues."
    if not by.had_members and committed_since:
        return (
            f"The group has no members{since}, and was committed again:"
            " a consumer that assigns its own queues, or one more reset."
        )
    if not by.had_members:
        return f"The group had no members{since}: a reset, unless a consumer assigns its own queues."
    return f"{by.name} owned {which}, and held its queues{since}." if by.owner else f"Who owned {which} is not known."


def _is_committed_since(view: GroupView, queues: Mapping[Queue, BackQueue], some: Sequence[Queue], at: int) -> bool:
    """Return whether queues were committed again while the group still has no members."""
    newest = [(_newest(view, queue, at).commit, queues[queue].last_at) for queue in some]
    return not view.group.members and any(commit is not None and commit[0] > last_at for commit, last_at in newest)
