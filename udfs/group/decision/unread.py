"""Core: queues of subscribed topics that nobody reads: no generation, member or report names them. No I/O.

Clients may not have learned of new queues yet, so queues are unread only after the age that metadata may have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from udfs.group.assignment.metadata_age import METADATA_MAX_AGE_MS, metadata_age_ms
from udfs.group.assignment.target_assignment import topics_with_metadata
from udfs.group.batch.context import GroupContext
from udfs.group.batch.finding_texts import phrase, queues_text
from udfs.group.batch.findings import Found, of_queues
from udfs.group.decision.stalled_queues import waiting_in
from udfs.group.state.group import Queue, keys_of, queue_order
from udfs.group.state.queue_findings import UnreadQueues
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.view import GroupView
from udfs.model.finding_names import MAX_NAMED, NOT_OWNED, FindingNames, NamedQueue
from udfs.model.timestamps import write_timestamp
from udfs.packets.packet import queue_keys

UNREAD = "queues_unread"
MAX_UNREAD_QUEUES = 4_096  # of those beyond it is not remembered since when nobody reads them
_ADVICE = (
    "Check the metadata refresh of the clients (metadata.max.age.ms), whether members subscribe to the topic, and for a"
    " member that has not taken its queues: a lock of another one, an old route. A restart of one member makes all of"
    " them read the metadata."
)


def next_unread_at(view: GroupView) -> int | None:
    """Return when queues will have been unread for too long; None if there are none."""
    unread = view.group.unread
    if unread is None or not view.group.members:
        return None
    limit, evaluated = _limit_ms(view), unread.evaluated_at
    times = (since + limit for since in unread.since.values())
    first = min((at for at in times if evaluated is None or at > evaluated), default=None)
    return None if first is None else max(first, view.reached_at)


def note_unread(context: GroupContext, at: int) -> None:
    """Remember since when nobody reads which queues; update and close the finding."""
    free, unread, limit = _free(context, at), context.group.unread, _limit_ms(context)
    if free is None or (unread is None and not free):
        return
    known = {} if unread is None else unread.since
    if known.keys() == free.keys():
        return
    is_open = UNREAD in context.group.findings
    since: dict[Queue, int] = {}
    for queue in sorted(free, key=queue_order)[:MAX_UNREAD_QUEUES]:
        first = known.get(queue, at)
        since[queue] = first if is_open or first + limit > at else at
    if unread is None or not is_open:
        context.set_unread(UnreadQueues(since) if since else None)
    elif not any(first + limit <= at for first in since.values()):
        context.set_finding(UNREAD, _ended(context, unread, at), at)
        context.set_finding(UNREAD, None, at)
        context.set_unread(UnreadQueues(since) if since else None)
    else:
        context.set_unread(msgspec.structs.replace(unread, since=since))
        evaluate_unread(context, at)


def evaluate_unread(context: GroupContext, at: int) -> None:
    """Open or update the finding of queues that have been unread for too long."""
    unread = context.group.unread
    if unread is None:
        return
    queues = _overdue(context, unread, at)
    holders = context.group.computed
    named = [
        NamedQueue(*queue, holders[queue][0], NOT_OWNED) if queue in holders else NamedQueue(*queue)
        for queue in queues[:MAX_NAMED]
    ]
    names = FindingNames(**of_queues(named, len(queues)))
    first = min((unread.since[queue] for queue in queues), default=at)
    reads = phrase(len(queues), "is read by nobody", "are read by nobody")
    message = (
        f"{queues_text(named, len(queues))} {reads} since {write_timestamp(first)}: no generation, member or report"
        f" names {phrase(len(queues), 'it', 'them')}."
    )
    if queues:
        context.set_finding(UNREAD, _found(message + _waiting(context, queues, at), names), at)
    context.set_unread(UnreadQueues(unread.since, at, message, names))


def _ended(view: GroupView, unread: UnreadQueues, at: int) -> Found:
    """Return the finding as it says how it ended."""
    queues = _overdue(view, unread, at)
    span = at - min((unread.since[queue] for queue in queues), default=at)
    readers = phrase(len(queues), "It has a reader", "They have readers")
    message = f"{unread.message} {readers} since {write_timestamp(at)}, after {span // 1_000:,} s unread."
    return _found(message + _waiting(view, queues, at), unread.names)


def _overdue(view: GroupView, unread: UnreadQueues, at: int) -> list[Queue]:
    limit = _limit_ms(view)
    return [queue for queue, since in unread.since.items() if since + limit <= at]


def _found(message: str, names: FindingNames) -> Found:
    fields = {name: getattr(names, name) for name in FindingNames.__struct_fields__}
    return Found(severity="warning", message=message, advice=_ADVICE, **fields)


def _limit_ms(view: GroupView) -> int:
    age = metadata_age_ms(view.group.members.values())
    limit = view.config.unread_after_ms[view.system]
    return limit if age == METADATA_MAX_AGE_MS else max(limit, age)


def _free(view: GroupView, at: int) -> Mapping[Queue, None] | None:
    """Return the queues that nobody reads; None while that is not known."""
    group = view.group
    if not group.members or view.mode != "clustering" or view.kind is GroupKind.NOT_FOLLOWED:
        return {}
    if not (group.has_reported or group.recomputable) or group.pending is not None or group.revoked_pending:
        return None
    owners = group.reported if group.has_reported else group.computed
    free: dict[Queue, None] = {}
    for topic, infos in topics_with_metadata(view, at).items():
        if not view.is_quiet(topic):
            free |= dict.fromkeys(queue for queue in keys_of(infos, view.system, topic) if queue not in owners)
    if group.has_reported and view.kind is not GroupKind.REPORTED:
        # A member that does not report may well have its queues.
        silent = group.members.keys() - set(group.reporters)
        free = {queue: None for queue in free if not silent.intersection(group.computed.get(queue, ()))}
    return free


def _waiting(view: GroupView, queues: Sequence[Queue], at: int) -> str:
    """Return how many messages wait in queues, as a sentence, or that the source does not show it."""
    total = waiting_in(view, queue_keys(queues).tolist() if queues else [], at)
    if total is None:
        return " How many messages wait there is not known."
    unit = "byte" if view.profile.offsets_count_bytes else "message"
    return " " + phrase(total, f"{{:,}} {unit} waits there.", f"{{:,}} {unit}s wait there.")
