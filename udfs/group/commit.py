"""Core: the commit of what was decided: the only place where a decision changes a group. No I/O.

``context`` changes a group as events come; this module as rebalances, spans and generations are decided. No other
module assigns a field of a group, but for those that make one: ``state_format`` and ``restore``.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from udfs.group.assignment_diff import Changed, by_owner, owners_of
from udfs.group.context import GroupContext
from udfs.group.queue_handover import Handover, hand_over, latest_pulls, resumed
from udfs.group.rebalance import RebalanceResult
from udfs.group.span_runs import pack_reassignment
from udfs.group.state import (
    MAX_REPLACEMENTS,
    MAX_WAITING_REPORTS,
    Awaited,
    Group,
    Owners,
    Queue,
    Replacement,
    WaitingReport,
)
from udfs.group.state_machine import GroupKind
from udfs.group.static_members import ids_at
from udfs.group.target_assignment import NOT_RECOMPUTABLE
from udfs.model.events import HeldQueue, QueueInfo
from udfs.model.journal import GroupChanged, GroupRemoved, MemberReplaced, Origin, Rebalance, SpansWithdrawn
from udfs.model.queues import shortened

# ---- a rebalance


def commit(context: GroupContext, result: RebalanceResult) -> None:
    """Apply a rebalance: write its row, the spans that change, the group as it is now, what is wrong with it."""
    group, plan, row = context.group, result.plan, result.row
    at = row.event_time
    context.work += row.members_after + row.queues_after
    context.output.rebalances.append(row)
    context.applied(at)
    group.pending = None
    if row.generation_source == "counted":
        group.counted = row.generation
    else:
        group.preparing_since = None
    note_holdings(group, result.moves, at)
    group.last_rebalance_at, group.last_rebalance_id = at, row.rebalance_id
    group.rebalance_ordinals = result.ordinals
    group.idle_queues, group.pulls = plan.idle_queues, plan.pulls
    commit_spans(context, "computed", plan.target.owners, at, guessed=plan.guessed)
    if result.reported is not None:
        commit_spans(context, "reported", result.reported, at)
        group.has_reported = True
    split_replaced(context, None)
    group.replaced = []
    group.exists = True
    if plan.awaited is None:
        _forget_owned(group)
    group.members_decided = row.members_after
    group.counts = {topic: len(infos) for topic, infos in plan.known.items()}
    group.topics_without_metadata, group.awaited = list(plan.guessed), plan.awaited
    group.revoked_pending = list(plan.revoked_pending)
    group.last_strategy = row.strategy
    group.recomputable = row.error != NOT_RECOMPUTABLE
    group.reporters, group.compare_at = result.reporters, result.compare_at
    group.recent = result.recent
    context.write_row(at, result.group_row)
    context.write(at, result.rebalanced)
    for kind, found in result.findings:
        context.set_finding(kind, found, at)


def commit_overtaken(context: GroupContext, row: Rebalance, ordinals: dict[str, int]) -> None:
    """Write the row of a generation that newer ones overtook; the current state stays as it is."""
    group = context.group
    context.output.rebalances.append(row)
    group.rebalance_ordinals = ordinals
    group.last_rebalance_at = max(row.event_time, group.last_rebalance_at or row.event_time)


def _forget_owned(group: Group) -> None:
    """Drop the owned queues that members reported before a rebalance: they are out of date."""
    for member in group.members.values():
        member.forget_owned()


def note_holdings(group: Group, changed: Iterable[Changed], at: int) -> None:
    """Record for each changed member since when it owns exactly its current queues."""
    members: set[str] = set()
    for _, old, new in changed:
        members.update(set(old) ^ set(new) if len(old) > 1 or len(new) > 1 else old + new)
    for member_id in members & group.members.keys():
        group.members[member_id].holds_since = at


# ---- spans


def commit_spans(
    context: GroupContext,
    origin: Origin,
    owners: Owners,
    at: int,
    *,
    guessed: Collection[str] = (),
    inferred: bool = False,
    pulled: Mapping[Queue, int] | None = None,
) -> None:
    """Close and open spans so that the current assignment becomes this one.

    Args:
        guessed: Topics whose new spans are inferred; ``inferred``: all are.
        pulled: When the reporting member last pulled each queue.
    """
    group = context.group
    current = group.computed if origin == "computed" else group.reported
    changed = context.changed_queues(current, owners)
    context.work += len(changed)
    if origin == "reported" and changed:
        at = group.reported_at = max(at, group.reported_at or at)
    split_replaced(context, at)
    handover: Handover | None = None
    if changed and origin == "reported" and context.kind is GroupKind.CLIENT_ASSIGNED:
        handover = hand_over(context, changed, pulled or {}, at)
        group.idle_queues, group.pulls = handover.idle_queues, handover.pulls
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
        pauses={} if handover is None else handover.pauses,
    )
    if body is not None:
        context.write(at, body)
    if origin == "computed":
        group.computed = owners
    else:
        group.reported = owners


def end_spans(context: GroupContext, at: int) -> None:
    """End all spans."""
    commit_spans(context, "computed", {}, at)
    commit_spans(context, "reported", {}, at)


def split_replaced(context: GroupContext, until: int | None) -> None:
    """Split the open spans of static members that were replaced up to a time; None: of all."""
    for one in context.group.replaced:
        if not one.written and (until is None or one.at <= until):
            one.written = True
            split_span_of(context, one)


def split_span_of(context: GroupContext, one: Replacement) -> None:
    """Split the open spans of one static member that was replaced."""
    body = MemberReplaced(
        former_member_id=one.former_id, member_id=one.member_id, instance_id=one.instance_id, replaced_at=one.at
    )
    context.write(one.at, body)


def replace_members(context: GroupContext, renamed: Mapping[str, str], at: int) -> None:
    """End the sessions of old ids and replace them by the new ids; the caller opens the new sessions."""
    group = context.group
    names = {member_id: renamed.get(member_id, member_id) for member_id in group.members}
    group.members = {names[member_id]: member for member_id, member in group.members.items()}
    for former_id, member_id in sorted(renamed.items()):
        left_at = context.replace_session(former_id, member_id, at)
        instance_id = group.members[member_id].instance_id
        replacement = Replacement(former_id, member_id, instance_id, left_at, written=False)
        group.replaced = [*group.replaced, replacement][-MAX_REPLACEMENTS:]
    group.computed = _renamed(group.computed, renamed)
    group.reported = _renamed(group.reported, renamed)
    group.reporters = sorted(renamed.get(one, one) for one in group.reporters)
    if group.leader is not None:
        group.leader = renamed.get(group.leader, group.leader)
    if group.pending is None:
        split_replaced(context, None)
    elif group.pending.reported is not None:
        group.pending.reported = list(_renamed(dict(group.pending.reported), renamed).items())
    if group.pending is None and group.awaited is None:
        group.replaced = []


def _renamed(owners: Owners, renamed: Mapping[str, str]) -> Owners:
    return {queue: tuple(sorted(renamed.get(one, one) for one in holders)) for queue, holders in owners.items()}


# ---- reported generations


def overtake_awaited(context: GroupContext) -> None:
    """Forget what the current generation still needs: another one takes its place, under the present ids."""
    split_replaced(context, None)
    context.group.awaited, context.group.replaced = None, []


def begin_generation(context: GroupContext, generation: int, leader: str | None, member_ids: Iterable[str]) -> None:
    """Note the generation that a coordinator reports; its members are in place, in this order."""
    group = context.group
    group.members = {member_id: group.members[member_id] for member_id in member_ids}
    group.generation, group.leader = generation, leader


def commit_generation_zero(context: GroupContext, at: int) -> None:
    """Apply generation 0, a new group without members: no rebalance."""
    group = context.group
    for member_id in sorted(group.members):
        context.close_session(member_id, at, at, "absent_from_snapshot")
    end_spans(context, at)
    group.generation, group.members_decided = 0, 0
    group.counts, group.revoked_pending, group.topics_without_metadata, group.awaited = {}, [], [], None
    row = GroupChanged(
        system=context.system, state="empty", generation=0, generation_source="reported", mode=context.mode
    )
    row.last_rebalance_at, row.last_rebalance_id = group.last_rebalance_at, group.last_rebalance_id
    context.write_row(at, row)


def commit_topic(context: GroupContext, topic: str, queues: Sequence[QueueInfo]) -> None:
    """Note the queues of a topic of the current generation that became known only now."""
    group = context.group
    group.topics_without_metadata = [other for other in group.topics_without_metadata if other != topic]
    if not queues:
        return
    group.counts[topic] = len(queues)
    if group.awaited is not None:
        group.awaited.known[topic] = shortened(tuple(queues))


def commit_awaited(context: GroupContext, awaited: Awaited, owners: Owners | None) -> None:
    """Write the spans of the current generation as computed from all of its topics; None: as they are."""
    group = context.group
    _forget_owned(group)
    if owners is not None and owners != group.computed:
        _correct_spans(context, awaited, owners)
    group.awaited, group.replaced = None, []


def _correct_spans(context: GroupContext, awaited: Awaited, owners: Owners) -> None:
    group, since = context.group, awaited.since
    before = group.computed
    if awaited.before is not None and (awaited.before or before):
        context.write(since, SpansWithdrawn(since=since))
        for body in awaited.again:
            context.write(since, body)
        now = {then: member for member, then in ids_at(group, since).items()}
        before = {
            queue: tuple(sorted(now.get(one, one) for one in holders)) for queue, holders in awaited.before.items()
        }
        group.computed = before
    commit_spans(context, "computed", owners, since, inferred=True)
    if not group.has_reported:
        note_holdings(group, context.changed_queues(before, owners), since)
    for one in group.replaced:
        split_span_of(context, one)


# ---- what members report to hold


def keep_waiting_report(context: GroupContext, report: WaitingReport) -> None:
    """Keep a report until the generation that it names is there; beyond the limit the oldest is forgotten."""
    waiting = context.group.waiting_reports
    if report not in waiting:
        bisect.insort(waiting, report, key=lambda one: one.time)
        del waiting[:-MAX_WAITING_REPORTS]


def take_out_waiting_reports(context: GroupContext) -> list[WaitingReport]:
    """Return the reports of the current generation; later ones go on waiting, older ones are dropped."""
    group, now = context.group, context.group.current_generation
    waiting = group.waiting_reports
    group.waiting_reports = [one for one in waiting if one.generation > now]
    return [one for one in waiting if one.generation == now]


def newest_reports(context: GroupContext, told: Owners, own: int) -> Owners:
    """Return a whole assignment that was reported at a time, with what members have reported since in its place."""
    group = context.group
    group.assigned_at = own
    newer: list[str] = []
    for member_id, member in group.members.items():
        if member.reported_at is not None and member.reported_at > own:
            newer.append(member_id)
        else:
            member.reported_at = None
    if not newer:
        return told
    held, current = by_owner(told), by_owner(group.reported)
    return owners_of({**held, **{member_id: current.get(member_id, []) for member_id in newer}})


def commit_reports(context: GroupContext, reporters: Iterable[str], compare_at: int | None) -> None:
    """Note which members have reported their queues, and when these should be the target."""
    group = context.group
    group.has_reported, group.compare_at = True, compare_at
    group.reporters = sorted(reporters)


def commit_pulls(
    context: GroupContext, member_id: str, pulled: Mapping[Queue, int], queues: Iterable[HeldQueue], at: int
) -> None:
    """Write of queues that a member took over before and now has pulled, and remember its newest pulls."""
    for body in resumed(context, member_id, pulled):
        del context.group.idle_queues[body.topic, body.broker, body.queue_id]
        context.write(at, body)
    context.group.pulls.update(latest_pulls(context, queues))


def end_comparison(context: GroupContext) -> None:
    """Note that the time is over in which members may still own other queues than computed."""
    context.group.compare_at = None


# ---- the ends of a group


def stop_following(context: GroupContext, at: int) -> None:
    """End what was followed of a group of a kind that is not recomputed."""
    group = context.group
    for member_id in sorted(group.members):
        context.close_session(member_id, at, at, "absent_from_snapshot")
    end_spans(context, at)
    for kind in sorted(group.findings):
        context.set_finding(kind, None, at)
    group.followed, group.pending, group.generation = False, None, None
    group.compare_at, group.idle_queues, group.pulls = None, {}, {}
    group.members_decided, group.counts, group.revoked_pending = 0, {}, []
    group.topics_without_metadata, group.awaited = [], None


def end_group(context: GroupContext, at: int) -> None:
    """End a group without members: what comes next under this name is a new one, but for its counters."""
    group = context.group
    end_spans(context, at)
    for kind in sorted(group.findings):
        context.set_finding(kind, None, at)
    if group.row is not None:
        context.write(at, GroupRemoved())
    new = Group(
        number=group.number,
        counted=group.counted,
        last_rebalance_at=group.last_rebalance_at,
        rebalance_ordinals=group.rebalance_ordinals,
        last_applied=group.last_applied,
    )
    for field in msgspec.structs.fields(new):
        setattr(group, field.name, getattr(new, field.name))
