"""Core: what the records of Kafka's coordinator report of a consumer, share or streams recorded. No I/O.

A fold: each record sets one thing, the newest time wins, and what records of one time make does not depend on the order
in which they were read. What follows from it is decided elsewhere: ``group_epochs``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final, TypeAlias

import msgspec

from udfs.model.events import Departure, GroupRecord, MemberInfo, MemberState, RecordProtocol, TopicPartitions

Partitions: TypeAlias = tuple[TopicPartitions, ...]
# Of each member what it has.
Held: TypeAlias = dict[str, Partitions]

# kafka-group-coordinator ``ModernGroupMember``: a static member that left, and may come back until its session ends.
AWAY: Final = -2
DEFAULT_ASSIGNOR: Final = "server.uniform"


class RecordedMember(msgspec.Struct, array_like=True):
    """One member.

    Attributes:
        joined_at: The time of its first record. described_at, target_at, current_at: Of those that count.
        event_id: Of its description.
        owned: What it may consume, or has yet to give up (``revoking``).
        standby, warmup: Tasks of a member of a streams recorded.
    """

    joined_at: int
    info: MemberInfo | None = None
    pattern: str | None = None
    classic_strategies: tuple[str, ...] | None = None
    event_id: str | None = None
    described_at: int | None = None
    target: Partitions = ()
    target_at: int | None = None
    epoch: int | None = None
    state: MemberState = "stable"
    owned: Partitions = ()
    revoking: Partitions = ()
    current_at: int | None = None
    standby: Partitions = ()
    warmup: Partitions = ()

    @property
    def is_present(self) -> bool:
        """Return whether some record of it is left."""
        return self.described_at is not None or self.current_at is not None


class EpochOutcome(msgspec.Struct, array_like=True):
    """What became of one group epoch, by the ids of topics.

    Attributes:
        at: When all members had converged; of an epoch that was overtaken: when the next one began.
        began_at: When the epoch began. assigned_at: When its target was computed; None: it was not.
        overtaken: The newer epoch that began before its members converged.
        members: Present then, with their subscriptions. described: These are known of all of them.
        owned: By member. steps: Who owned what from which times on since the outcome before, ascending.
        target: As published for this epoch. previous: The target before it.
        departures: Members that are gone since the outcome before. event_ids: Of descriptions, by member.
    """

    epoch: int
    at: int
    event_id: str
    began_at: int
    assigned_at: int | None
    overtaken: int | None
    strategy: str | None
    members: tuple[MemberInfo, ...]
    described: bool
    owned: Held
    steps: list[tuple[int, Held]]
    target: Held | None
    previous: Held
    departures: tuple[Departure, ...] = ()
    event_ids: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def size(self) -> int:
        """Return how many members and lists of partitions it names."""
        return len(self.members) + sum(len(held) for _, held in self.steps) + len(self.owned)

    def topic_ids(self) -> set[str]:
        """Return the ids of the topics that it names."""
        helds = [self.owned, self.target or {}, *(held for _, held in self.steps)]
        return {one.topic for held in helds for partitions in held.values() for one in partitions}


class RecordedGroup(msgspec.Struct, array_like=True, dict=True):
    """One recorded.

    Attributes:
        epoch: Of the recorded, as of ``epoch_at``. assignment_epoch: Of the target, as of ``assignment_at``.
        previous: The target before the current one.
        names: Of topics, by id. patterns: What each matches. subtopologies: The topics of each.
        began_at: When the oldest epoch began that is not decided; None: all are.
        steps, departures: As ``EpochOutcome`` has them, since the last one.
        waiting: Outcomes with topics whose names are not known yet.
        is_first: None of its epochs was decided.
        incomplete: Some members may not have had a record since the recorded is followed.
        is_deleted: The last record of the group itself was a tombstone.
        ids: By name, of the topics that decided targets have named.
    """

    protocol: RecordProtocol
    epoch: int | None = None
    epoch_at: int | None = None
    assignment_epoch: int | None = None
    assignment_at: int | None = None
    members: dict[str, RecordedMember] = msgspec.field(default_factory=dict)
    previous: Held = msgspec.field(default_factory=dict)
    names: dict[str, str] = msgspec.field(default_factory=dict)
    patterns: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    subtopologies: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    decided: int | None = None
    began_at: int | None = None
    steps: list[tuple[int, Held]] = msgspec.field(default_factory=list)
    departures: dict[str, Departure] = msgspec.field(default_factory=dict)
    waiting: list[EpochOutcome] = msgspec.field(default_factory=list)
    incomplete: bool = False
    is_first: bool = True
    is_deleted: bool = False
    ids: dict[str, str] = msgspec.field(default_factory=dict)

    @cached_property
    def present(self) -> dict[str, RecordedMember]:
        """Return the members in the order in which they joined; ``fold`` makes it anew."""
        there = [(one.joined_at, member_id) for member_id, one in self.members.items() if one.is_present]
        return {member_id: self.members[member_id] for _, member_id in sorted(there)}

    def owned(self, members: Collection[str | None] | None = None) -> Held:
        """Return what each of these members owns, what it has yet to give up included; without those with nothing."""
        some = self.present if members is None else {one: self.present[one] for one in self.present.keys() & members}
        held = {member_id: merged(one.owned, one.revoking) for member_id, one in some.items()}
        return {member_id: partitions for member_id, partitions in held.items() if partitions}

    def targets(self) -> Held:
        """Return what each member shall own."""
        return {member_id: one.target for member_id, one in self.present.items()}

    def subscriptions_of(self, member: RecordedMember) -> tuple[str, ...]:
        """Return the topics that a member subscribes to, those that its pattern matches included."""
        named = (member.info.subscriptions or ()) if member.info is not None else ()
        matched = self.patterns.get(member.pattern, ()) if member.pattern is not None else ()
        sources = [topic for topics in self.subtopologies.values() for topic in topics]
        return tuple(sorted({*named, *matched, *sources}))

    def topics(self) -> set[str]:
        """Return the topics that members subscribe to, and those of outcomes that wait for their names."""
        found = {topic for one in self.present.values() for topic in self.subscriptions_of(one)}
        waiting = (info for outcome in self.waiting for info in outcome.members)
        return found.union(*(info.subscriptions or () for info in waiting))

    def strategy(self) -> str | None:
        """Return the assignor that most members ask for, else Kafka's default.

        Source: kafka-group-coordinator 4.1 ``ConsumerGroup#preferredServerAssignor``,
        ``GroupCoordinatorConfig#CONSUMER_GROUP_ASSIGNORS_DEFAULT``.
        """
        if not self.present:
            return None
        infos = [one.info for one in self.present.values() if one.info is not None and one.classic_strategies is None]
        votes = Counter(info.strategies[0] for info in infos if info.strategies)
        return min(votes, key=lambda name: (-votes[name], name)) if votes else DEFAULT_ASSIGNOR

    @property
    def has_converged(self) -> bool:
        """Return whether every member has and knows what the target of the newest epoch gives it."""
        present = self.present.values()
        if self.epoch is None:
            return False
        return not present or (self.assignment_epoch == self.epoch and all(self._has_converged(one) for one in present))

    def _has_converged(self, member: RecordedMember) -> bool:
        if member.epoch == AWAY:
            return member.owned == member.target
        return member.epoch == self.epoch and member.state == "stable"

    @property
    def is_open(self) -> bool:
        """Return whether it is not decided yet what became of the newest epoch."""
        return self.epoch is not None and (self.decided is None or self.epoch > self.decided)

    def finish_epoch(self, outcome: EpochOutcome) -> None:
        """Have an outcome wait to be decided; what comes next belongs to the next epoch."""
        self.waiting.append(outcome)
        self.decided = outcome.epoch
        self.began_at, self.steps, self.departures = None, [], {}

    def note_ids(self, ids: Mapping[str, str]) -> None:
        """Note which topics a target names; those of topics that it leaves out stay as long as members want these."""
        wanted = self.topics()
        self.ids = {name: one for name, one in self.ids.items() if name in wanted} | dict(ids)

    def note_decided(self) -> None:
        """Note that one of its epochs was decided."""
        self.is_first = False

    def take_waiting(self, count: int) -> list[EpochOutcome]:
        """Return the oldest outcomes that wait, which wait no longer."""
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        return taken

    @property
    def state(self) -> str:
        """Return the state that Kafka shows.

        Source: kafka-group-coordinator 4.1 ``ConsumerGroup#maybeUpdateGroupState``.
        """
        present = self.present.values()
        if not present:
            return "empty"
        if (self.epoch or 0) > (self.assignment_epoch or 0):
            return "assigning"
        epoch = self.assignment_epoch
        return "stable" if all(one.epoch == epoch and one.state == "stable" for one in present) else "reconciling"


def merged(first: Partitions, second: Partitions) -> Partitions:
    """Return the partitions of both, by topic."""
    if not second:
        return first
    held: dict[str, set[int]] = {}
    for one in (*first, *second):
        held.setdefault(one.topic, set()).update(one.partitions)
    return tuple(TopicPartitions(topic, tuple(sorted(held[topic]))) for topic in sorted(held))


_KINDS: Final = {
    kind: place
    for place, kind in enumerate(
        ("group", "topics", "pattern", "topology", "target", "member", "member_target", "member_current")
    )
}
# A member that has nothing to wait for becomes stable; it is told to revoke when the target changes.
_STATES: Final = {"unreleased": 0, "stable": 1, "unrevoked": 2, None: 0}
_EPOCH_BITS, _STATE_BITS = 33, 2


def record_order(record: GroupRecord) -> int:
    """Return the place of a record among those of its time: by kind, then by epoch, tombstones last.

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
    """What the records of one time did.

    Attributes:
        arrived: Members that had no record before. gone: Members that have none any more, as they were.
        renamed: Static members that came back under another id: the former and the new id.
    """

    arrived: list[str] = msgspec.field(default_factory=list)
    gone: dict[str, RecordedMember] = msgspec.field(default_factory=dict)
    renamed: dict[str, str] = msgspec.field(default_factory=dict)


def new_epochs(recorded: RecordedGroup, records: Iterable[GroupRecord]) -> list[int]:
    """Return the group epochs that begin with records of one time, ascending."""
    told = {one.epoch for one in records if one.record == "group" and not one.deleted and one.epoch is not None}
    newest = max((recorded.epoch, recorded.decided), key=lambda epoch: -1 if epoch is None else epoch)
    return sorted(epoch for epoch in told if newest is None or epoch > newest)


def fold(recorded: RecordedGroup, records: Sequence[tuple[GroupRecord, str]]) -> Folded:
    """Apply the records of one time, each with the id of its event."""
    folded = Folded()
    touched = {record.member_id for record, _ in records}
    known = [(member_id, one) for member_id, one in recorded.present.items() if member_id in touched]
    before = {member_id: msgspec.structs.replace(one) for member_id, one in known}
    targets: dict[str, list[GroupRecord]] = {}
    for record, event_id in sorted(records, key=lambda one: (record_order(one[0]), one[1])):
        if record.record == "member_target" and record.member_id is not None:
            targets.setdefault(record.member_id, []).append(record)
        elif record.member_id is not None:
            _fold_member(recorded, record, record.member_id, event_id)
        else:
            _fold_group(recorded, record)
    for member_id, several in targets.items():
        _fold_target(recorded, member_id, several, _replaced(recorded, before, member_id))
    recorded.__dict__.pop("present", None)
    present = recorded.present
    folded.arrived = [member_id for member_id in present if member_id in touched and member_id not in before]
    folded.gone = {member_id: one for member_id, one in before.items() if member_id not in present}
    for member_id in recorded.members.keys() - present.keys():
        del recorded.members[member_id]
    folded.renamed = _renamed(recorded, folded)
    recorded.__dict__.pop("present", None)
    return folded


def _fold_group(recorded: RecordedGroup, record: GroupRecord) -> None:
    at = record.event_time
    match record.record:
        case "group" if at >= (recorded.epoch_at or at):
            recorded.is_deleted = record.deleted
            if not record.deleted and record.epoch is not None:
                recorded.epoch, recorded.epoch_at = record.epoch, at
        case "target" if at >= (recorded.assignment_at or at) and record.epoch is not None and not record.deleted:
            if record.epoch != recorded.assignment_epoch:
                recorded.previous = recorded.targets()
            recorded.assignment_epoch, recorded.assignment_at = record.epoch, at
        case "topics":
            recorded.names.update(record.topic_ids or {})
        case "pattern" if record.pattern is not None:
            if record.deleted:
                recorded.patterns.pop(record.pattern, None)
            else:
                recorded.patterns[record.pattern] = record.topics or ()
        case "topology":
            recorded.subtopologies = record.subtopologies or {}
        case _:
            pass


def _fold_member(recorded: RecordedGroup, record: GroupRecord, member_id: str, event_id: str) -> None:
    at = record.event_time
    member = recorded.members.setdefault(member_id, RecordedMember(at))
    if record.record == "member":
        if at < (member.described_at or at):
            return
        member.described_at = None if record.deleted else at
        member.info, member.pattern = record.member, record.pattern
        member.classic_strategies, member.event_id = record.classic_strategies, event_id
    elif at >= (member.current_at or at):
        member.current_at = None if record.deleted else at
        member.epoch, member.state = record.epoch, record.state or "stable"
        member.owned, member.revoking = record.partitions or (), record.revoking or ()
        member.standby, member.warmup = record.standby or (), record.warmup or ()


def _replaced(recorded: RecordedGroup, before: Mapping[str, RecordedMember], member_id: str) -> RecordedMember | None:
    """Return the static member, as it was before the records of one time, whose instance id a member has now."""
    info = recorded.members[member_id].info if member_id in recorded.members else None
    if info is None or info.instance_id is None or member_id in before:
        return None
    same = (one for one in before.values() if one.info is not None and one.info.instance_id == info.instance_id)
    return next(same, None)


def _fold_target(
    recorded: RecordedGroup, member_id: str, records: Sequence[GroupRecord], replaced: RecordedMember | None
) -> None:
    """Apply a member's new target.

    A target has no epoch. One time may have two, what the member has already, and what it shall have: where a group is
    taken over from the classic protocol, and where a static member comes back while a target is computed.

    Args:
        replaced: The static member whose place it takes: its target comes first.
    """
    newest = max(one.event_time for one in records)
    member = recorded.members.setdefault(member_id, RecordedMember(newest))
    if newest < (member.target_at or newest):
        return
    several = {one.partitions or (): one.deleted for one in records if one.event_time == newest}
    if any(several.values()):
        several = {(): True}
    for former in (*([] if replaced is None else [replaced.target]), member.target, member.owned):
        if len(several) > 1 and former in several:
            del several[former]
            recorded.previous[member_id] = former
    member.target, member.target_at = min(several), newest


def _renamed(recorded: RecordedGroup, folded: Folded) -> dict[str, str]:
    left = {one.info.instance_id: member_id for member_id, one in folded.gone.items() if one.info is not None}
    renamed: dict[str, str] = {}
    for member_id in folded.arrived:
        info = recorded.members[member_id].info
        if info is not None and info.instance_id is not None and info.instance_id in left:
            renamed[left.pop(info.instance_id)] = member_id
    for former, member_id in renamed.items():
        recorded.members[member_id].joined_at = folded.gone[former].joined_at
        if former in recorded.previous:
            recorded.previous[member_id] = recorded.previous.pop(former)
        for _, held in recorded.steps:
            if former in held:
                held[member_id] = held.pop(former)
    return renamed
