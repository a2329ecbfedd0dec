"""Core: commits that expired, or were deleted one by one: where the group begins when it returns. No I/O.

They are evaluated some time after the deletion, because the metadata of a deleted topic comes after its commits are
deleted. The finding closes at the first evaluation at which all of its queues are committed again, or some time after
the first of them is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from udfs.group.batch.context import GroupContext
from udfs.group.batch.finding_texts import named, phrase, queues_text
from udfs.group.batch.findings import Found, of_queues
from udfs.group.state.group import Queue, queue_order
from udfs.group.state.queue_findings import ExpiredCommits, ExpiredQueue
from udfs.group.state.state_machine import GroupKind, GroupState, state_of
from udfs.group.state.view import GroupView
from udfs.model.events import CommitsDeleted
from udfs.model.finding_names import MAX_NAMED, NamedQueue
from udfs.model.stall_rule import StallRule
from udfs.model.timestamps import write_timestamp
from udfs.packets.packet import queue_keys

EXPIRED: Final = "commits_expired"
MAX_EXPIRED_QUEUES = 1_024  # those beyond it are not followed
# So long a cluster's metadata may take to show that a topic was deleted.
METADATA_MS = 60_000
# Queues without a commit for that long after the group has returned are not waited for.
RETURN_MS = 600_000
_ADVICE = (
    "When the group returns, its consumers read these queues from the start or skip what is there, by their"
    " auto.offset.reset, which is not known here. Set the offsets before it returns; raise offsets.retention.minutes if"
    " groups may be away for longer."
)


def next_expired_at(view: GroupView) -> int | None:
    """Return when deleted commits are to be evaluated next, or one of their queues is committed again."""
    expired = view.group.expired
    if expired is None:
        return None
    times = [at for queue, was in expired.queues.items() if (at := _first_commit(view, queue, was)[0]) is not None]
    first = min([*times, *([] if expired.evaluate_at is None else [expired.evaluate_at])], default=None)
    return None if first is None else max(first, view.reached_at)


def note_expired(context: GroupContext, event: CommitsDeleted, at: int) -> None:
    """Remember deleted commits, unless members subscribe to their topics: then they went with the topic."""
    if context.profile.commits_are_polled or context.kind is GroupKind.NOT_FOLLOWED or at != event.event_time:
        return
    if state_of(context.group) is GroupState.NEW:
        return
    subscribed = set(context.group.subscribed_topics())
    known = context.group.expired
    queues = {} if known is None else dict(known.queues)
    for ref in event.queues:
        queue = (ref.topic, ref.broker, ref.queue_id)
        commit = context.facts.offsets.newest(_key(queue), at - 1).commit
        if commit is None or ref.topic in subscribed or len(queues) >= MAX_EXPIRED_QUEUES:
            continue
        queues[queue] = ExpiredQueue(at, commit[1])
    if queues and (known is None or queues != known.queues):
        soon = StallRule.of(context.config).next_look(at + METADATA_MS)
        context.set_expired(ExpiredCommits(queues, soon if known is None else known.evaluate_at or soon))


def evaluate_expired(context: GroupContext, at: int) -> None:
    """Remember first commits; open, update or close the finding."""
    expired, rule = context.group.expired, StallRule.of(context.config)
    if expired is None:
        return
    queues = {}
    for queue, was in expired.queues.items():
        began_at, began = _first_commit(context, queue, was)
        if began_at is not None and began_at <= at:
            queues[queue] = msgspec.structs.replace(was, began_at=began_at, began=began)
        else:
            queues[queue] = was
    evaluate_at = expired.evaluate_at
    if evaluate_at is None or at < evaluate_at:
        if queues != expired.queues and evaluate_at is None:
            evaluate_at = rule.next_look(at + 1)
        context.set_expired(ExpiredCommits(queues, evaluate_at))
        return
    queues = {queue: was for queue, was in queues.items() if not _is_of_another_topic(context, queue, was, at)}
    if not queues:
        context.set_finding(EXPIRED, None, at)
        context.set_expired(None)
        return
    begun = [was.began_at for was in queues.values() if was.began_at is not None]
    ends_at = rule.next_look(min(begun) + RETURN_MS) if begun else None
    was_open = EXPIRED in context.group.findings
    if was_open and ends_at is not None and (len(begun) == len(queues) or ends_at <= at):
        context.set_finding(EXPIRED, _found(queues, _beginnings(queues)), at)
        context.set_finding(EXPIRED, None, at)
        context.set_expired(None)
        return
    context.set_finding(EXPIRED, _found(queues, ""), at)
    is_complete = len(begun) == len(queues)
    context.set_expired(ExpiredCommits(queues, rule.next_look(at + 1) if is_complete else ends_at))


def _key(queue: Queue) -> int:
    return int(queue_keys([queue]).tolist()[0])


def _first_commit(view: GroupView, queue: Queue, was: ExpiredQueue) -> tuple[int | None, int | None]:
    """Return when a queue was first committed since, and where, if that is news."""
    if was.began_at is None:
        for time, committed, _, _ in view.facts.offsets.get(_key(queue), ()):
            if time >= was.at and committed >= 0:
                return time, committed
    return None, None


def _is_of_another_topic(view: GroupView, queue: Queue, was: ExpiredQueue, at: int) -> bool:
    """Return whether the topic was deleted with the commit; metadata may show it some time before or after."""
    renewed = view.topics.renewed_at(queue[0], at)
    return view.topics.at(queue[0], at) == () or (renewed is not None and renewed >= was.at - METADATA_MS)


def _found(queues: Mapping[Queue, ExpiredQueue], how: str) -> Found:
    order = sorted(queues, key=queue_order)
    places = [f"{_named(queue)} at {queues[queue].offset}" for queue in order]
    first = write_timestamp(min(was.at for was in queues.values()))
    message = (
        f"Commits were deleted at {first}: {named(places)}."
        " They expired or were deleted; the group and its topics exist. Where it begins there depends on"
        " auto.offset.reset of its consumers, which is not known."
    )
    names = [NamedQueue(*queue) for queue in order[:MAX_NAMED]]
    return Found(severity="warning", message=message + how, advice=_ADVICE, **of_queues(names, len(order)))


def _named(queue: Queue) -> str:
    return queues_text([NamedQueue(*queue)])


def _beginnings(queues: Mapping[Queue, ExpiredQueue]) -> str:
    """Return where the group has begun, as sentences."""
    order = sorted(queues, key=queue_order)
    begun = [f"{_named(queue)} at {_compared(queues[queue])}" for queue in order if queues[queue].began is not None]
    begun[0] = begun[0].replace(" at ", " was first committed at ", 1)
    silent = [_named(queue) for queue in order if queues[queue].began is None]
    text = f" It has returned: {named(begun)}."
    return text + (f" {named(silent)} {phrase(len(silent), 'was', 'were')} not committed since." if silent else "")


def _compared(was: ExpiredQueue) -> str:
    moved = (was.began or 0) - was.offset
    if not moved:
        return f"{was.began}, where it had been"
    return f"{was.began}, {phrase(abs(moved), '{:,} message', '{:,} messages')} {'after' if moved > 0 else 'before'}"
