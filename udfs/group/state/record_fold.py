"""Core: the records with one timestamp, folded into the state of a consumer, share or streams group. No I/O.

Each record sets one thing, and the newest wins: by time, then by offset. If records with the same timestamp have no
offsets, the result does not depend on the order in which they were read: of two records of one kind, the one with the
earlier state comes first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from udfs.group.state.epoch_outcome import EpochOutcome, Held, Partitions
from udfs.group.state.group import MAX_REPLACEMENTS
from udfs.group.state.recorded_group import RecordedGroup, RecordedMember
from udfs.group.state.writing import assign, elements, entries
from udfs.model.events import Departure, GroupRecord
from udfs.model.group_api import DueEvent
from udfs.model.queues import ascending

_KINDS: Final = {
    kind: place
    for place, kind in enumerate(
        ("group", "topics", "pattern", "topology", "target", "member", "member_target", "member_current")
    )
}
_LEADING: Final = frozenset(("member", "pattern", "topics", "topology"))
_VOTED: Final = ("group", "target")  # what members name by then decides an epoch's assignor
MAX_STEPS: Final = 1_024  # ownership changes of an epoch; beyond that the newest are merged into one
MAX_NAMES: Final = 10_000  # topics of a group, including former ones; beyond that the oldest is forgotten
# A member that waits for nothing becomes stable; it has to revoke when the target changes.
_STATES: Final = {"unreleased": 0, "stable": 1, "unrevoked": 2, None: 0}
_EPOCH_BITS, _STATE_BITS = 33, 2


def record_order(record: GroupRecord) -> int:
    """Return the sort key of a record among those with its timestamp: by kind, then by epoch, tombstones last.

    -2 follows every other epoch of a member: it is away then, and comes back under another id.
    """
    epoch = record.epoch
    if record.deleted:
        epoch = (1 << _EPOCH_BITS) - 1
    elif epoch is None:
        epoch = 0
    elif epoch < 0:
        epoch = 1 << (_EPOCH_BITS - 1)
    return (_KINDS[record.record] << _EPOCH_BITS | epoch) << _STATE_BITS | _STATES[record.state]


class Folded(msgspec.Struct):
    """The changes made by the records with one timestamp.

    Attributes:
        arrived: Members that had no record before. departed: Former states of members that no longer have one.
        renamed: Static members that came back under another id: former id and new id.
    """

    arrived: list[str] = msgspec.field(default_factory=list)
    departed: dict[str, RecordedMember] = msgspec.field(default_factory=dict)
    renamed: dict[str, str] = msgspec.field(default_factory=dict)


def by_group(records: Sequence[DueEvent]) -> list[list[DueEvent]]:
    """Return the records of a name with one timestamp, one part for each of its groups; a single part without offsets.

    A group that is deleted may be made again within that time.
    """
    placed = [(due.event, due.event_id, due) for due in records if isinstance(due.event, GroupRecord)]
    if any(record.offset is None for record, _, _ in placed):
        return [list(records)]
    parts: list[list[DueEvent]] = [[]]
    for record, _, due in sorted(placed, key=lambda place: (place[0].offset or 0, place[1])):
        parts[-1].append(due)
        if record.record == "group" and record.deleted:
            parts.append([])
    return [part for part in parts if part]


def by_epoch(records: Sequence[tuple[GroupRecord, str]]) -> list[list[tuple[GroupRecord, str]]]:
    """Return records with one timestamp in order, one part for each new group epoch; a single part without offsets.

    The coordinator writes the records that lead to a new epoch before it: descriptions, topics that a pattern matches,
    tombstones. Records that result from it come after it.
    """
    if any(record.offset is None for record, _ in records):
        return [list(records)]
    ordered = sorted(records, key=lambda record_and_id: (record_and_id[0].offset or 0, record_and_id[1]))
    parts: list[list[tuple[GroupRecord, str]]] = [[]]
    leading = 0  # the number of records at the end of the last part that may lead to the next epoch
    for record_and_id in ordered:
        record = record_and_id[0]
        if record.record == "group" and not record.deleted:
            begin = len(parts[-1]) - leading
            if begin:
                parts.append(parts[-1][begin:])
                del parts[-2][begin:]
        parts[-1].append(record_and_id)
        leading = leading + 1 if record.deleted or record.record in _LEADING else 0
    return parts


def new_epochs(recorded: RecordedGroup, records: Iterable[GroupRecord]) -> list[int]:
    """Return the group epochs that begin with these records of one timestamp, ascending."""
    epochs = {
        record.epoch
        for record in records
        if record.record == "group" and not record.deleted and record.epoch is not None
    }
    newest = max((recorded.epoch, recorded.decided), key=lambda epoch: -1 if epoch is None else epoch)
    return sorted(epoch for epoch in epochs if newest is None or epoch > newest)


def fold(recorded: RecordedGroup, records: Sequence[tuple[GroupRecord, str]]) -> Folded:
    """Apply records with one timestamp, each with the id of its event."""
    folded, assigned = Folded(), recorded.assignment_epoch
    touched = {record.member_id for record, _ in records}
    changing = [(member_id, member) for member_id, member in recorded.present.items() if member_id in touched]
    before = {member_id: msgspec.structs.replace(member) for member_id, member in changing}
    targets: dict[str, list[GroupRecord]] = {}
    instances = {member.info.instance_id: member for member in before.values() if member.info is not None}

    def is_news(record: GroupRecord) -> bool:
        """Return whether a description differs from the previous one of its member, or of the member it replaces."""
        if record.record != "member" or record.member is None:
            return True
        former = before.get(record.member_id or "") or instances.get(record.member.instance_id or "")
        described = None if former is None or former.info is None else (former.info.subscriptions, former.pattern)
        return described != (record.member.subscriptions, record.pattern)

    is_ordered = all(record.offset is not None for record, _ in records)
    if not is_ordered:
        records = sorted(
            records,
            key=lambda record_and_id: (record_order(record_and_id[0]), is_news(record_and_id[0]), record_and_id[1]),
        )
    for record, event_id in records:
        if record.record == "member_target" and record.member_id is not None:
            targets.setdefault(record.member_id, []).append(record)
        elif record.member_id is not None:
            _fold_member(recorded, record, record.member_id, event_id)
        else:
            _fold_group(recorded, record)
            if is_ordered and record.record in _VOTED and not record.deleted:
                recorded.__dict__.pop("present", None)
                recorded.note_votes()
    if recorded.assignment_epoch != assigned:
        newer = {
            group_record.epoch
            for group_record, _ in records
            if group_record.record == "target" and (group_record.epoch or 0) > (assigned or 0)
        }
        assign(recorded, follows_unrecorded=len(newer) > 1)
    for member_id, several in targets.items():
        if is_ordered:
            _fold_targets(recorded, member_id, several)
            continue
        _fold_target(recorded, member_id, several, _replaced(recorded, before, member_id))
    recorded.__dict__.pop("present", None)
    present = recorded.present
    folded.arrived = [member_id for member_id in present if member_id in touched and member_id not in before]
    folded.departed = {member_id: member for member_id, member in before.items() if member_id not in present}
    for member_id in recorded.members.keys() - present.keys():
        del entries(recorded.members)[member_id]
    computed = [record.offset for record, _ in records if record.record == "target"]
    at = records[0][0].event_time
    folded.renamed = _renamed(recorded, folded, computed if recorded.assignment_epoch != assigned else [], at)
    recorded.__dict__.pop("present", None)
    if not is_ordered and any(record.record in _VOTED and not record.deleted for record, _ in records):
        recorded.note_votes()
    return folded


def _fold_group(recorded: RecordedGroup, record: GroupRecord) -> None:
    at = record.event_time
    match record.record:
        case "group" if at >= (recorded.epoch_at or at):
            assign(recorded, is_deleted=record.deleted)
            if not record.deleted and record.epoch is not None:
                assign(recorded, epoch=record.epoch, epoch_at=at)
        case "target" if at >= (recorded.assignment_at or at) and record.epoch is not None and not record.deleted:
            if record.epoch != recorded.assignment_epoch:
                assign(recorded, previous=recorded.targets(), former={})
            assign(recorded, assignment_epoch=record.epoch, assignment_at=at)
        case "topics":
            entries(recorded.names).update(record.topic_ids or {})
        case "pattern" if record.pattern is not None:
            if record.deleted:
                entries(recorded.patterns).pop(record.pattern, None)
            else:
                entries(recorded.patterns)[record.pattern] = record.topics or ()
        case "topology":
            assign(recorded, subtopologies=record.subtopologies or {})
        case _:
            pass


def _fold_member(recorded: RecordedGroup, record: GroupRecord, member_id: str, event_id: str) -> None:
    at = record.event_time
    member = entries(recorded.members).setdefault(member_id, RecordedMember(at, joined_offset=record.offset or 0))
    if record.record == "member":
        if at < (member.described_at or at):
            return
        assign(
            member,
            described_at=None if record.deleted else at,
            info=record.member,
            pattern=record.pattern,
            classic_strategies=record.classic_strategies,
            event_id=event_id,
        )
    elif at >= (member.current_at or at):
        assign(
            member,
            current_at=None if record.deleted else at,
            epoch=record.epoch,
            state=record.state or "stable",
            owned=record.partitions or (),
            revoking=record.revoking or (),
            standby=record.standby or (),
            warmup=record.warmup or (),
        )


def _replaced(recorded: RecordedGroup, before: Mapping[str, RecordedMember], member_id: str) -> RecordedMember | None:
    """Return the static member, in its state before these records, whose instance id a member has now."""
    info = recorded.members[member_id].info if member_id in recorded.members else None
    if info is None or info.instance_id is None or member_id in before:
        return None
    same = (
        member for member in before.values() if member.info is not None and member.info.instance_id == info.instance_id
    )
    return next(same, None)


def _fold_targets(recorded: RecordedGroup, member_id: str, records: Sequence[GroupRecord]) -> None:
    """Apply a member's new targets of one epoch in order; the earlier ones may be of the member it replaces.

    Tombstones do not count: a static member that comes back at once takes the newest target with it.
    """
    newest = records[-1]
    given = [record for record in records if not record.deleted]
    first = RecordedMember(records[0].event_time, joined_offset=records[0].offset or 0)
    member = entries(recorded.members).setdefault(member_id, first)
    if newest.event_time < (member.target_at or newest.event_time):
        return
    if len(given) > 1:
        entries(recorded.previous)[member_id] = given[-2].partitions or ()
    assign(member, target=newest.partitions or (), target_at=newest.event_time)


def _fold_target(
    recorded: RecordedGroup, member_id: str, records: Sequence[GroupRecord], replaced: RecordedMember | None
) -> None:
    """Apply a member's new target.

    A target has no epoch. There may be two with the same timestamp, the member's current and its future one: when a
    group is converted from the classic protocol, and when a static member comes back while a target is computed. They
    may also belong to two epochs: the partitions that the member already owns then belong to the newer one.

    Args:
        replaced: The static member whose place it takes; that member's target comes first.
    """
    newest = max(record.event_time for record in records)
    member = entries(recorded.members).setdefault(member_id, RecordedMember(newest))
    if newest < (member.target_at or newest):
        return
    given = [record for record in records if record.event_time == newest]
    # The uniform assignor goes on from a target in the order of its record.
    several = {ascending(record.partitions or ()): record.partitions or () for record in given}
    if any(record.deleted for record in given):
        several = {(): ()}
    has_all = member.epoch == recorded.assignment_epoch and member.state == "stable"
    of_replaced = [] if replaced is None else [ascending(replaced.target)]
    for former in (*of_replaced, ascending(member.target), member.owned):
        if len(several) > 1 and former in several and not (has_all and former == member.owned):
            entries(recorded.previous)[member_id] = several.pop(former)
    chosen = member.owned if has_all and member.owned in several else min(several)
    assign(member, target=several[chosen], target_at=newest)


def _renamed(recorded: RecordedGroup, folded: Folded, computed: Sequence[int | None], at: int) -> dict[str, str]:
    """Give static members that came back under another id their former state.

    Args:
        computed: The offsets of targets with that same timestamp.
    """
    left = {
        member.info.instance_id: member_id for member_id, member in folded.departed.items() if member.info is not None
    }
    renamed: dict[str, str] = {}
    for member_id in folded.arrived:
        info = recorded.members[member_id].info
        if info is not None and info.instance_id is not None and info.instance_id in left:
            renamed[left.pop(info.instance_id)] = member_id
    for former, member_id in renamed.items():
        # Beyond the limit the oldest are replaced at the epoch's end.
        assign(recorded, renamed=[*recorded.renamed, (at, former, member_id)][-MAX_REPLACEMENTS:])
        described = {former: folded.departed[former].info, **recorded.described_as}
        kept = {former_id: described.get(former_id) for _, former_id, _ in recorded.renamed}
        assign(recorded, described_as={former_id: info for former_id, info in kept.items() if info is not None})
        assign(recorded.members[member_id], joined_at=folded.departed[former].joined_at)
        back_at = recorded.members[member_id].joined_offset
        # otherwise the target is that of the new id
        if not any(offset is None or offset > back_at for offset in computed):
            entries(recorded.former)[member_id] = entries(recorded.former).pop(former, former)
        if former in recorded.previous:
            entries(recorded.previous)[member_id] = entries(recorded.previous).pop(former)
        for _, held in recorded.steps:
            if former in held:
                entries(held)[member_id] = entries(held).pop(former)
    return renamed


# ---- what ``group_epochs`` and ``topic_names`` learn of the records


def note_converted(recorded: RecordedGroup, generation: int) -> None:
    """Record that the group's epochs continue the generations of a classic group."""
    assign(recorded, decided=generation)


def begin_epoch(recorded: RecordedGroup, at: int) -> None:
    """Record when the oldest epoch that is not decided began."""
    assign(recorded, began_at=at)


def note_whole(recorded: RecordedGroup) -> None:
    """Record that every member has had a record since the group has been followed."""
    assign(recorded, incomplete=False)


def note_overtaken(recorded: RecordedGroup, outcome: EpochOutcome) -> None:
    """Queue the outcome of an epoch that another one of its millisecond overtook."""
    assign(recorded, waiting=[*recorded.waiting, outcome])


def note_departures(recorded: RecordedGroup, arrived: Collection[str], departures: Mapping[str, Departure]) -> None:
    """Record how members departed; those that arrived have not."""
    left = {member_id: recorded.departures[member_id] for member_id in recorded.departures.keys() - set(arrived)}
    assign(recorded, departures={**left, **departures})


def note_names(recorded: RecordedGroup, names: Mapping[str, str]) -> None:
    """Record the names of topics, by id."""
    kept = entries(recorded.names)
    kept.update(names)
    while len(kept) > MAX_NAMES:
        del kept[next(iter(kept))]


def note_step(recorded: RecordedGroup, folded: Folded, before: Held, now: Held, at: int) -> None:
    """Record which members own different partitions from now on and, if a topic may be a new one, also those before."""
    renamed = {folded.renamed.get(member_id, member_id): held for member_id, held in before.items()}
    changed = {
        member_id: now.get(member_id, ())
        for member_id in sorted({*renamed, *now})
        if renamed.get(member_id, ()) != now.get(member_id, ())
    }
    if not changed:
        return
    steps = elements(recorded.steps)
    noted = {member_id for _, held in steps for member_id in held}
    former = {
        member_id: renamed[member_id]
        for member_id in changed
        if member_id in renamed and member_id not in noted and _swaps(renamed[member_id], now.get(member_id, ()))
    }
    if former:
        steps.append((at, former))
    if len(steps) >= MAX_STEPS:
        steps[-1] = (at, {**steps[-1][1], **changed})
    else:
        steps.append((at, changed))


def _swaps(before: Partitions, now: Partitions) -> bool:
    """Return whether a member gives up a partition and gets the partition of another topic with the same number."""
    was, is_now = (
        {(topic_partitions.topic, number) for topic_partitions in held for number in topic_partitions.partitions}
        for held in (before, now)
    )
    return bool({number for _, number in was - is_now} & {number for _, number in is_now - was})
