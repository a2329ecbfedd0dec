"""Core: the commit of spans: each queue's owner over time, computed and reported. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from udfs.group.assignment.move_costs import MoveCost, move_costs
from udfs.group.assignment.outages import listed, replaced_outages
from udfs.group.assignment.queue_handover import Handover, hand_over
from udfs.group.assignment.span_runs import Pauses, SpanOutages, pack_reassignment
from udfs.group.batch.context import GroupContext
from udfs.group.members.static_members import ids_at
from udfs.group.state.assignment_diff import Changed, by_owner
from udfs.group.state.group import MAX_REPLACEMENTS, Awaited, Group, Owners, Queue, Replacement
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.view import GroupView
from udfs.group.state.writing import assign
from udfs.model.journal import MemberReplaced
from udfs.model.queue_outages import QueueOutage
from udfs.model.spans import Origin, QueuesReassigned


def commit_spans(
    context: GroupContext,
    origin: Origin,
    owners: Owners,
    at: int,
    *,
    guessed: Collection[str] = (),
    inferred: bool = False,
    pulled: Mapping[Queue, int] | None = None,
    costs: Mapping[Queue, MoveCost] | None = None,
    paused: Pauses | None = None,
    outages: SpanOutages | None = None,
) -> None:
    """Close and open spans so that the current assignment becomes this one.

    Args:
        guessed: Topics whose new spans are inferred. inferred: All new spans are inferred.
        pulled: When the reporting member last pulled each queue. paused: How long queues had no owner.
        costs: Costs of queues that get an owner; None to compute them by the offsets of that time. outages: Outages of
            these queues, as far as known; members' own reports replace them.
    """
    group = context.group
    current = group.computed if origin == "computed" else group.reported
    changed = context.changed_queues(current, owners)
    context.work += len(changed)
    if origin == "reported" and changed:
        at = max(at, group.reported_at or at)
        assign(group, reported_at=at)
    split_replaced(context, at)
    if costs is None:
        # the costs need the queues between two owners, which are forgotten below
        costs = move_costs(context, changed, at)
    handover: Handover | None = None
    if changed and origin == "reported" and context.kind is GroupKind.CLIENT_ASSIGNED:
        handover = hand_over(context, changed, pulled or {}, at)
        # The first report of a member shows what it may have had for long; a later one, what it has taken since.
        note_holdings(context, [queue for queue in changed if set(group.reporters).intersection(queue[2])], at)
        assign(group, idle_queues=handover.idle_queues, pulls=handover.pulls)
    pauses = (paused or {}) if handover is None else handover.pauses
    stopped = dict(outages or {}) | ({} if handover is None else handover.outages)

    def is_inferred(topic: str) -> bool:
        return inferred or topic in guessed

    body = _packed(group, origin, current, changed, at, is_inferred, pauses, costs, stopped)
    if body is not None:
        context.write(at, body)
    if origin == "computed":
        assign(group, computed=owners)
    else:
        assign(group, reported=owners)


def _packed(
    group: Group,
    origin: Origin,
    current: Owners,
    changed: Sequence[Changed],
    at: int,
    inferred: Callable[[str], bool],
    pauses: Pauses,
    costs: Mapping[Queue, MoveCost],
    outages: SpanOutages,
) -> QueuesReassigned | None:
    return pack_reassignment(
        current,
        changed,
        origin=origin,
        at=at,
        generation=group.current_generation,
        rebalance_id=group.last_rebalance_id or "",
        names=ids_at(group, at),
        instance_ids={
            name: member.instance_id for name, member in group.members.items() if member.instance_id is not None
        },
        inferred=inferred,
        pauses=pauses,
        costs=costs,
        outages=outages,
    )


def provisional_spans(view: GroupView, awaited: Awaited) -> list[QueuesReassigned]:
    """Return the changes of the current generation, as written while it waits for its topics."""
    group = view.group
    changed = view.changed_queues(awaited.before, group.computed)
    guessed = group.topics_without_metadata
    body = _packed(
        group, "computed", awaited.before, changed, awaited.since, lambda topic: topic in guessed, {}, {}, {}
    )
    return [] if body is None else [body]


def end_spans(context: GroupContext, at: int) -> None:
    """End all spans."""
    commit_spans(context, "computed", {}, at)
    commit_spans(context, "reported", {}, at)


def split_replaced(context: GroupContext, until: int | None) -> None:
    """Split the open spans of static members that were replaced up to a time; None for all of them."""
    for replacement in context.group.replaced:
        if not replacement.written and (until is None or replacement.at <= until):
            assign(replacement, written=True)
            context.write(replacement.at, split_by(replacement))


def split_by(replacement: Replacement) -> MemberReplaced:
    """Return the change that splits the open spans of a static member that was replaced."""
    return MemberReplaced(
        former_member_id=replacement.former_id,
        member_id=replacement.member_id,
        instance_id=replacement.instance_id,
        replaced_at=replacement.at,
        outages=list(replacement.outages),
    )


def replace_members(
    context: GroupContext,
    renamed: Mapping[str, str],
    at: int,
    *,
    splits: bool = True,
    decided_at: int | None = None,
) -> None:
    """End the sessions of old ids and replace them by the new ids; the caller opens the new sessions.

    Args:
        splits: Split their open spans, unless a rebalance is pending; otherwise the caller does it.
        decided_at: When this is decided; None with a rebalance, whose row has the outages of their queues.
    """
    group = context.group
    held: tuple[tuple[Origin, Owners], ...] = (("computed", group.computed), ("reported", group.reported))
    for origin, owners in held if renamed else ():
        kept = _without_shared(owners, renamed)
        if kept != owners:
            commit_spans(context, origin, kept, at, costs={})
    stopped = {} if decided_at is None else _outages_of_replaced(context, renamed, at, decided_at)
    names = {member_id: renamed.get(member_id, member_id) for member_id in group.members}
    assign(group, members={names[member_id]: member for member_id, member in group.members.items()})
    for former_id, member_id in sorted(renamed.items()):
        left_at = context.replace_session(former_id, member_id, at)
        context.rename_causes(former_id, member_id)
        instance_id = group.members[member_id].instance_id
        replacement = Replacement(former_id, member_id, instance_id, left_at, False, stopped.get(former_id, []))
        if len(group.replaced) >= MAX_REPLACEMENTS:
            split_replaced(context, group.replaced[0].at)
        assign(group, replaced=[*group.replaced, replacement][-MAX_REPLACEMENTS:])
    assign(
        group,
        computed=_renamed(group.computed, renamed),
        reported=_renamed(group.reported, renamed),
        reporters=sorted(renamed.get(reporter, reporter) for reporter in group.reporters),
        leader=None if group.leader is None else renamed.get(group.leader, group.leader),
    )
    if group.pending is None:
        if splits:
            settle_replaced(context)
    elif group.pending.reported is not None:
        assign(group.pending, reported=list(_renamed(dict(group.pending.reported), renamed).items()))


def _outages_of_replaced(
    view: GroupView, renamed: Mapping[str, str], at: int, now: int
) -> dict[str, list[QueueOutage]]:
    """Return how long nobody read the queues of returning static members, by their old ids."""
    group = view.group
    held = by_owner(group.reported if group.has_reported else group.computed) if renamed else {}
    return {
        former_id: listed(replaced_outages(view, former_id, held.get(former_id, ()), at, now)) for former_id in renamed
    }


def _without_shared(owners: Owners, renamed: Mapping[str, str]) -> Owners:
    """Return owners without former ids of queues that the new ids also hold: a member of that name departed since."""
    return {
        queue: tuple(holder for holder in holders if renamed.get(holder) not in holders)
        for queue, holders in owners.items()
    }


def settle_replaced(context: GroupContext) -> None:
    """Split the spans of all replaced static members; nothing from before waits for its commit."""
    split_replaced(context, None)
    if context.group.awaited is None:
        assign(context.group, replaced=[])


def _renamed(owners: Owners, renamed: Mapping[str, str]) -> Owners:
    return {
        queue: tuple(sorted({renamed.get(holder, holder) for holder in holders})) for queue, holders in owners.items()
    }


def note_holdings(context: GroupContext, changed: Iterable[Changed], at: int) -> None:
    """Record for each changed member the time since which it has owned exactly its current queues."""
    members: set[str] = set()
    for _, old, new in changed:
        members.update(set(old) ^ set(new) if len(old) > 1 or len(new) > 1 else old + new)
    for member_id in members & context.group.members.keys():
        member = context.group.members[member_id]
        if member.holds_since != at:
            assign(member, holds_since=at)
