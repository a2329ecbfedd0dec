"""Core: group epochs of the new protocols, from the coordinator's records to rebalances. No I/O.

A rebalance lasts from the record with its group epoch until the last member has converged on the target of that epoch.
If a newer epoch overtakes it, it ends then. An epoch after which members, subscriptions, topics and queues are as
before is not a rebalance, and overtakes none; its target shows that. Records name topics by their ids, so an epoch
waits for a while until metadata has shown their names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Final

import msgspec

from udfs.group.batch.context import GroupContext
from udfs.group.batch.recorded_row import without_epochs
from udfs.group.decision.commit_spans import commit_spans
from udfs.group.events.lifecycle import show_unfollowed
from udfs.group.kafka.epoch_rebalance import describe, take_epoch
from udfs.group.kafka.inferred_departures import infer_recorded_departure
from udfs.group.kafka.reported_generations import rename_static_members, update_existing
from udfs.group.kafka.topic_names import (
    has_names,
    is_overdue,
    learn_names,
    name_the_rest,
    next_check,
    topics_without_metadata,
)
from udfs.group.state.epoch_outcome import EpochOutcome, Held
from udfs.group.state.group import Evidence
from udfs.group.state.record_fold import (
    Folded,
    begin_epoch,
    by_epoch,
    fold,
    new_epochs,
    note_converted,
    note_departures,
    note_overtaken,
    note_step,
    note_whole,
    record_order,
)
from udfs.group.state.recorded_group import AWAY, RecordedGroup, RecordedMember
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.view import GroupView
from udfs.model.events import Departure, DepartureKind, GroupRecord, GroupSnapshot, MemberInfo
from udfs.model.group_api import DueEvent
from udfs.model.journal import GroupChanged, TriggerKind

# Waiting outcomes may have this many members and assignments in total; beyond that the oldest names topics by their
# ids.
MAX_WAITING = 100_000
_EVIDENCE: Final[dict[str, TriggerKind]] = {"left": "member_left", "expired": "session_expired"}


def apply_records(context: GroupContext, records: Sequence[DueEvent], at: int) -> bool:
    """Apply all records with the same timestamp and decide the result; return whether they delete the group."""
    identified = [(due.event, due.event_id) for due in records if isinstance(due.event, GroupRecord)]
    for part in by_epoch(identified):
        _apply_records(context, part, at)
    is_deleted = context.group.recorded is not None and context.group.recorded.is_deleted
    if is_deleted:
        _end_records(context, at)
    return is_deleted


def _apply_records(context: GroupContext, records: Sequence[tuple[GroupRecord, str]], at: int) -> None:
    recorded = context.group.recorded
    if recorded is None:
        # If a group was only listed, the records of some of its members may be missing.
        is_listed = context.group.row is not None and context.kind is GroupKind.NOT_FOLLOWED
        recorded = RecordedGroup(records[0][0].protocol, incomplete=is_listed)
        context.follow_records(recorded)
    context.work += len(records)
    context.applied(at)
    if recorded.protocol != "consumer":
        fold(recorded, records)
        decide_waiting(context, at)
        return
    event_id = min(event_id for _, event_id in records)
    epochs = new_epochs(recorded, [record for record, _ in records])
    if recorded.epoch is None and context.group.generation in epochs and context.group.exists:
        # The group was converted from the classic protocol with its members, and its generations continue.
        decided = context.group.generation
        note_converted(recorded, decided)
        epochs = [epoch for epoch in epochs if epoch > decided]
    last = _last_descriptions(records)
    if epochs and recorded.is_open:
        _resume(context, recorded, at)
        _finish(context, recorded, event_id, at, epochs[0], last)
    touched = {record.member_id for record, _ in records}
    owned = recorded.owned(touched if len(epochs) <= 1 else None)
    infos = _infos(recorded) if len(epochs) > 1 else ()
    assigned = recorded.assignment_epoch
    folded = fold(recorded, records)
    if assigned != recorded.assignment_epoch == recorded.epoch:
        _resume(context, recorded, at)
    _describe(context, recorded, at, at)
    describe(context, [last[member_id] for member_id in sorted(last)], at)
    _note_departures(context, recorded, folded, at)
    if epochs and recorded.continued is None:
        begin_epoch(recorded, at)
    for place, epochs_left in enumerate(pairwise(epochs)):
        _finish_at_once(recorded, infos, folded, owned, epochs_left, place, event_id, at)
    note_step(recorded, folded, owned, recorded.owned(touched if len(epochs) <= 1 else None), at)
    if (recorded.is_open and recorded.has_converged) or (folded.renamed and not recorded.is_open):
        _finish(context, recorded, event_id, at)
    decide_waiting(context, at)


def decide_waiting(context: GroupContext, at: int) -> None:
    """Decide the epochs whose topics now have names, in order; epochs before them will never get names.

    A share or streams group is shown in its current state.
    """
    recorded = context.group.recorded
    if recorded is None:
        return
    if recorded.protocol != "consumer":
        learn_names(context, recorded, at)
        show_unfollowed(context, at)
        return
    if recorded.metadata_since is None and context.topics.has_any(at):
        recorded.note_metadata(at)
    if recorded.waiting or recorded.has_unnamed:
        _learn_names(context, recorded, at)
        ready = recorded.waiting[:-1] if recorded.awaits_effect else recorded.waiting
        last = _last_with_names(context, recorded, ready, at)
        while sum(later.size for later in recorded.waiting[last + 1 :]) > MAX_WAITING:
            last += 1
        decided = recorded.take_waiting(last + 1)
        for outcome in decided:
            if is_overdue(recorded, outcome, at):
                name_the_rest(context, recorded, outcome, at)
            take_epoch(context, outcome, recorded.names, topics_without_metadata(context, recorded, outcome, at))
        if decided and decided[0].at < at:
            _describe(context, recorded, decided[0].at, at)
        recorded.note_wait(next_check(recorded, ready[last + 1 :], at))
    row = context.group.row
    context.write_row(at, row or GroupChanged(system=context.system, state="new", mode=context.mode))


def _describe(context: GroupContext, recorded: RecordedGroup, since: int, at: int) -> None:
    """Show the descriptions recorded since a time, of members that an epoch has shown."""
    news = [member_id for member_id, member in recorded.present.items() if (member.described_at or 0) >= since]
    describe(context, [_info(recorded, member_id, recorded.present[member_id]) for member_id in news], at)


def _last_descriptions(records: Sequence[tuple[GroupRecord, str]]) -> dict[str, MemberInfo]:
    """Return how dynamic members were described anew in the millisecond in which they departed."""
    last: dict[str, tuple[MemberInfo | None, bool]] = {}
    for record, _ in sorted(records, key=lambda pair: (pair[0].offset or 0, record_order(pair[0]), pair[1])):
        if record.record == "member" and record.member_id is not None:
            described = last.get(record.member_id, (None, False))[0] if record.deleted else record.member
            last[record.member_id] = described, record.deleted
    return {
        member_id: info for member_id, (info, is_gone) in last.items() if is_gone and info and info.instance_id is None
    }


def _last_with_names(view: GroupView, recorded: RecordedGroup, outcomes: Sequence[EpochOutcome], at: int) -> int:
    """Return the index of the last outcome that can be decided, or -1.

    An outcome without topics does not prove that metadata has arrived.
    """
    overdue = [is_overdue(recorded, outcome, at) for outcome in outcomes]
    named = [late or has_names(view, recorded, outcome, at) for outcome, late in zip(outcomes, overdue, strict=True)]
    shown = [
        place for place, outcome in enumerate(outcomes) if overdue[place] or (named[place] and outcome.topic_ids())
    ]
    last = max(shown, default=-1)
    while last + 1 < len(outcomes) and named[last + 1]:
        last += 1
    return last


def _learn_names(context: GroupContext, recorded: RecordedGroup, at: int) -> None:
    """Learn the names of topics; spans that used ids as names continue under the names."""
    names = learn_names(context, recorded, at)
    if names:
        reported = context.group.reported
        owners = {
            (names.get(topic, topic), broker, number): holders for (topic, broker, number), holders in reported.items()
        }
        commit_spans(context, "reported", owners, at, costs={})


def _end_records(context: GroupContext, at: int) -> None:
    """Decide all waiting epochs, because the group ends or continues without such records."""
    recorded = context.group.recorded
    if recorded is not None:
        _learn_names(context, recorded, at)
        for outcome in recorded.take_waiting(len(recorded.waiting)):
            take_epoch(context, outcome, recorded.names, topics_without_metadata(context, recorded, outcome, at))
    context.follow_records(None)


def has_record_of_group(records: Sequence[DueEvent], *, deleted: bool) -> bool:
    """Return whether the record of the group itself, or its tombstone, is among these."""
    found = [due_event.event for due_event in records if isinstance(due_event.event, GroupRecord)]
    return any(record.record == "group" and record.deleted == deleted for record in found)


def described_in(records: Sequence[DueEvent]) -> set[str]:
    """Return the members that these records describe."""
    found = [due.event for due in records if isinstance(due.event, GroupRecord)]
    return {record.member_id for record in found if record.record == "member" and record.member and record.member_id}


def to_classic(context: GroupContext, records: Sequence[DueEvent], snapshot: GroupSnapshot, at: int) -> bool:
    """Convert a group to a classic group as of the record that replaces its others; its history continues.

    If its generation is the last epoch, this is not a rebalance: the next generation shows the departure of a member
    that speaks only the other protocol.

    Returns: whether the record is applied.
    """
    _end_records(context, at)
    if snapshot.generation != context.group.generation or not snapshot.members:
        return False
    # The last member of the newer protocol may be a static member that comes back with the classic one.
    rename_static_members(context, snapshot, at, decided_at=at)
    staying = {info.member_id for info in snapshot.members}
    for due in records:
        record = due.event
        if not isinstance(record, GroupRecord) or record.record != "member" or record.member_id is None:
            continue
        if record.member_id not in staying and record.member_id in context.group.members:
            kind, _ = _departure(context, record.member_id, None, at, staying)
            if kind in _EVIDENCE:
                context.learn(Evidence(_EVIDENCE[kind], at, record.member_id, None, due.event_id))
    update_existing(context, snapshot, at)
    if context.group.row is not None:
        context.write_row(at, without_epochs(context.group.row))
    return True


# ---- the outcome of an epoch


def _resume(context: GroupContext, recorded: RecordedGroup, at: int) -> None:
    """Resume the previous epoch if the newest one has no effect, as far as that is known."""
    group = context.group
    if recorded.is_overtaking:
        _learn_names(context, recorded, at)
        counts = {topic: group.counts.get(topic, 0) for topic in group.subscribed_topics()}
        recorded.resume_epoch(_infos(recorded), counts)


def _finish(
    view: GroupView,
    recorded: RecordedGroup,
    event_id: str,
    at: int,
    overtaken: int | None = None,
    last: Mapping[str, MemberInfo] = MappingProxyType({}),
) -> None:
    """Record the outcome of the newest epoch."""
    if recorded.incomplete:
        if overtaken is not None:
            return
        learn_names(view, recorded, at)
        if not _is_whole(view, recorded, at):
            return
        note_whole(recorded)
    has_target = recorded.assignment_epoch == recorded.epoch
    outcome = EpochOutcome(
        epoch=recorded.epoch or 0,
        at=at,
        event_id=event_id,
        began_at=at if recorded.began_at is None else recorded.began_at,
        assigned_at=recorded.assignment_at if has_target and recorded.began_at is not None else None,
        overtaken=overtaken,
        strategy=recorded.strategy(),
        members=_infos(recorded, last),
        described=all(member.info is not None for member in recorded.present.values()),
        owned=recorded.owned(),
        steps=list(recorded.steps),
        target=recorded.targets() if has_target else None,
        previous=dict(recorded.previous),
        departures=tuple(recorded.departures[member_id] for member_id in sorted(recorded.departures)),
        event_ids={
            member_id: member.event_id for member_id, member in recorded.present.items() if member.event_id is not None
        },
        former=dict(recorded.former) if has_target else {},
        follows_unrecorded=has_target and recorded.follows_unrecorded,
        patterns={
            member_id: member.pattern for member_id, member in recorded.present.items() if member.pattern is not None
        },
        added=recorded.added(),
        renamed=list(recorded.renamed),
        assignors=recorded.assignors(),
        names_assignor=recorded.names_assignor(),
        described_as=dict(recorded.described_as),
    )
    recorded.finish_epoch(outcome)


def _finish_at_once(
    recorded: RecordedGroup,
    infos: Sequence[MemberInfo],
    folded: Folded,
    owned: Held,
    epochs: tuple[int, int],
    place: int,
    event_id: str,
    at: int,
) -> None:
    """Record an epoch that another epoch of the same millisecond overtook.

    The records do not show which member came with which epoch; one member is attributed to each epoch, in the order of
    the epochs that the members have by then, and the rest to the last epoch.
    """
    if recorded.incomplete:
        return
    epoch, overtaken = epochs
    arrived = sorted(folded.arrived, key=lambda member_id: (recorded.members[member_id].epoch or epoch, member_id))
    changes = [*sorted(folded.departed.keys() - folded.renamed.keys()), *arrived][: place + 1]
    departed, present = {member_id for member_id in changes if member_id in folded.departed}, recorded.present
    members = [info for info in infos if info.member_id not in departed]
    members += [_info(recorded, member_id, present[member_id]) for member_id in changes if member_id in present]
    departures = tuple(
        recorded.departures[member_id] for member_id in sorted(departed) if member_id in recorded.departures
    )
    outcome = EpochOutcome(
        epoch=epoch,
        at=at,
        event_id=event_id,
        began_at=at,
        assigned_at=None,
        overtaken=overtaken,
        strategy=recorded.strategy(),
        members=tuple(members),
        described=True,
        owned={member_id: held for member_id, held in owned.items() if member_id not in departed},
        steps=[],
        target=None,
        previous={},
        departures=departures,
        event_ids={member_id: present[member_id].event_id or event_id for member_id in changes if member_id in present},
    )
    note_overtaken(recorded, outcome)


def _infos(recorded: RecordedGroup, last: Mapping[str, MemberInfo] = MappingProxyType({})) -> tuple[MemberInfo, ...]:
    return tuple(_info(recorded, name, member, last.get(name)) for name, member in recorded.present.items())


def _info(
    recorded: RecordedGroup, member_id: str, member: RecordedMember, last: MemberInfo | None = None
) -> MemberInfo:
    """Return a member as a snapshot describes it; ``last``: how it was described as it departed."""
    info = last or member.info
    if info is None:
        # It has had no description since the group has been followed.
        return MemberInfo(member_id=member_id, joined_at=member.joined_at)
    return msgspec.structs.replace(
        info,
        joined_at=member.joined_at,
        subscriptions=recorded.subscriptions_of(member),
        strategies=info.strategies if member.classic_strategies is None else member.classic_strategies,
    )


def _is_whole(view: GroupView, recorded: RecordedGroup, at: int) -> bool:
    """Return whether the members with an assignment together own every queue of each topic of which they own any."""
    held: dict[str, set[int]] = {}
    for partitions in recorded.owned().values():
        for topic_partitions in partitions:
            held.setdefault(topic_partitions.topic, set()).update(topic_partitions.partitions)
    names = recorded.names
    counts = {topic: view.queues_at(names[topic], at) for topic in held if topic in names}
    return bool(held) and all(len(counts.get(topic) or ()) == len(numbers) for topic, numbers in held.items())


# ---- departures


def _note_departures(view: GroupView, recorded: RecordedGroup, folded: Folded, at: int) -> None:
    """Record how members departed, as far as their commits show it; records do not."""
    departures = {}
    for member_id, member in folded.departed.items():
        if member_id not in folded.renamed:
            kind, evidence = _departure(view, member_id, member, at, recorded.present.keys())
            departures[member_id] = Departure(member_id=member_id, kind=kind, at=at, evidence=evidence)
    note_departures(recorded, folded.arrived, departures)


def _departure(
    view: GroupView, member_id: str, member: RecordedMember | None, at: int, staying: Collection[str]
) -> tuple[DepartureKind, str | None]:
    """Return how a member departed and the evidence; ``staying``: the remaining members."""
    if member is not None and member.epoch == AWAY:
        return "expired", "a static member that did not come back"
    return infer_recorded_departure(view, member_id, at, staying)
