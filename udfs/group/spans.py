"""Core: the spans of one group: the owner of each queue over time, computed and reported. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from udfs.group.assignment_diff import Changed
from udfs.group.context import GroupContext
from udfs.group.queue_handover import is_timed, release, take_over
from udfs.group.span_runs import Pauses, pack_reassignment
from udfs.group.state import Group, Owners
from udfs.group.static_members import ids_at, split_spans
from udfs.model.journal import Origin


def write_spans(
    turn: GroupContext,
    origin: Origin,
    owners: Owners,
    at: int,
    *,
    guessed: Sequence[str] = (),
    inferred: bool = False,
) -> None:
    """Close and open spans so that the current assignment becomes this one.

    Args:
        guessed: Topics whose new spans are inferred; ``inferred``: all are.
    """
    group = turn.group
    current = group.computed if origin == "computed" else group.reported
    changed = turn.changed_queues(current, owners)
    turn.work += len(changed)
    if origin == "reported" and changed:
        at = group.reported_at = max(at, group.reported_at or at)
    split_spans(turn, at)
    timed = origin == "reported" and is_timed(turn)
    body = pack_reassignment(
        current,
        changed,
        origin=origin,
        at=at,
        generation=group.current_generation,
        rebalance_id=group.last_rebalance_id or "",
        names=ids_at(group, at),
        instance_ids={name: one.instance_id for name, one in group.members.items() if one.instance_id is not None},
        inferred=lambda topic: inferred or topic in guessed,
        pauses=_hand_over(turn, changed, at) if timed else {},
    )
    if body is not None:
        turn.write(at, body)
    if origin == "computed":
        group.computed = owners
    else:
        group.reported = owners


def _hand_over(turn: GroupContext, changed: Sequence[Changed], at: int) -> Pauses:
    """Record released and taken queues; return how long each taken queue had no owner."""
    for queue, old, new in changed:
        # Of several owners that all lose it, the last one's departure counts.
        if old and not set(old) & set(new):
            release(turn, queue, old[-1], at, seen_without=not new)
    return {
        (queue, member): take_over(turn, queue, member, at)
        for queue, old, new in changed
        for member in new
        if member not in old
    }


def note_holdings(group: Group, changed: Iterable[Changed], at: int) -> None:
    """Record for each changed member since when it owns exactly its current queues."""
    members: set[str] = set()
    for _, old, new in changed:
        members.update(set(old) ^ set(new) if len(old) > 1 or len(new) > 1 else old + new)
    for member_id in members & group.members.keys():
        group.members[member_id].holds_since = at
