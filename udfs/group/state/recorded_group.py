"""Core: what the records of Kafka's coordinator report of a consumer, share or streams group. No I/O.

``record_fold`` applies them. What follows from it is decided elsewhere: ``group_epochs``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Final

import msgspec

from udfs.group.state.epoch_outcome import EpochOutcome, Held, Partitions, continued, under_new_ids
from udfs.model.events import Departure, MemberInfo, MemberState, RecordProtocol, TopicPartitions
from udfs.model.journal import (
    MAX_MEMBER_EPOCHS,
    MAX_RECONCILING_MEMBERS,
    MAX_RECONCILING_QUEUES,
    AssignedQueues,
    MemberEpoch,
    ReconcilingMember,
)
from udfs.model.queues import ascending
from udfs.strategies.kafka.server_vote import preferred_assignors

# kafka-group-coordinator ``ModernGroupMember``: a static member that left, and may come back until its session ends.
AWAY: Final = -2
DEFAULT_ASSIGNOR: Final = "server.uniform"
# Kafka's own assignors assign every partition. A broker's default is the first of ``group.consumer.assignors``.
BUILT_IN_ASSIGNORS: Final = (DEFAULT_ASSIGNOR, "server.range")
SERVER_ASSIGNORS: Final = frozenset(BUILT_IN_ASSIGNORS)
_SERVER_SIDE: Final = "server."


class RecordedMember(msgspec.Struct, array_like=True):
    """One member.

    Attributes:
        joined_at: The time of its first record. joined_offset: Its offset; 0: unknown.
        described_at, target_at, current_at: Of the records that count.
        event_id: Of its description.
        owned: What it may consume, or has yet to give up (``revoking``).
        standby, warmup: Tasks of a member of a streams group.
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
    joined_offset: int = 0

    @property
    def is_present(self) -> bool:
        """Return whether some record of it is left."""
        return self.described_at is not None or self.current_at is not None


class RecordedGroup(msgspec.Struct, array_like=True, dict=True):
    """What the records show of one group.

    Attributes:
        epoch: Of the group, as of ``epoch_at``. assignment_epoch: Of the target, as of ``assignment_at``.
        previous: The target before the current one.
        names: Of topics, by id. patterns: What each matches. subtopologies: The topics of each.
        began_at: When the oldest epoch began that is not decided; None: all are.
        steps, departures: As ``EpochOutcome`` has them, since the last one.
        waiting: Outcomes with topics whose names are missing so far.
        is_first: None of its epochs was decided.
        incomplete: Some members may not have had a record since the group is followed.
        is_deleted: The last record of the group itself was a tombstone.
        ids: By name, of the topics that decided targets have named.
        former, follows_unrecorded: As ``EpochOutcome`` has them, of the current target.
        renamed: As ``EpochOutcome`` has it, since the last one.
        continued: The epoch that continues after newer ones without effect, as it was when the newest one began.
        default_assignor: The broker's, as targets of members that name none have shown; None: they show nothing.
        metadata_since: When metadata of the cluster's topics was first observed to be there.
        waits_until: When outcomes that wait are looked at again; None: nothing but news has them looked at.
        release: The coordinator's, of ``RELEASES``, as the last target has shown that only older ones give; None: none
            has.
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
    former: dict[str, str] = msgspec.field(default_factory=dict)
    follows_unrecorded: bool = False
    renamed: list[tuple[int, str, str]] = msgspec.field(default_factory=list)
    continued: EpochOutcome | None = None
    default_assignor: str | None = None
    metadata_since: int | None = None
    waits_until: int | None = None
    release: str | None = None

    @cached_property
    def present(self) -> dict[str, RecordedMember]:
        """Return the members in the order in which they joined; ``fold`` makes it anew."""
        there = [
            (member.joined_at, member.joined_offset, member_id)
            for member_id, member in self.members.items()
            if member.is_present
        ]
        return {member_id: self.members[member_id] for _, _, member_id in sorted(there)}

    def added(self) -> tuple[str, ...]:
        """Return the members in the order in which the coordinator added them to its map."""
        return tuple(sorted(self.present, key=lambda member_id: self.present[member_id].joined_offset))

    def owned(self, members: Collection[str | None] | None = None) -> Held:
        """Return what each of these members owns, what it has yet to give up included; without those with nothing."""
        some = (
            self.present
            if members is None
            else {member_id: self.present[member_id] for member_id in self.present.keys() & members}
        )
        held = {member_id: merged(member.owned, member.revoking) for member_id, member in some.items()}
        return {member_id: partitions for member_id, partitions in held.items() if partitions}

    def targets(self) -> Held:
        """Return what the target gives each member."""
        return {member_id: member.target for member_id, member in self.present.items()}

    def subscriptions_of(self, member: RecordedMember) -> tuple[str, ...]:
        """Return the topics that a member subscribes to, those that its pattern matches included."""
        named = (member.info.subscriptions or ()) if member.info is not None else ()
        matched = self.patterns.get(member.pattern, ()) if member.pattern is not None else ()
        sources = [topic for topics in self.subtopologies.values() for topic in topics]
        return tuple(sorted({*named, *matched, *sources}))

    def topics(self) -> set[str]:
        """Return the topics that members subscribe to, and those of outcomes that wait for their names."""
        found = {topic for member in self.present.values() for topic in self.subscriptions_of(member)}
        waiting = (info for outcome in self.waiting for info in outcome.members)
        return found.union(*(info.subscriptions or () for info in waiting))

    @property
    def is_without_tasks(self) -> bool:
        """Return whether a streams group has members, and its newest target gives none of them a task.

        Source: kafka-group-coordinator 4.1 ``StreamsGroup#maybeUpdateGroupState``: its topology is not ready.
        """
        if self.protocol != "streams" or not self.present or self.assignment_epoch != self.epoch:
            return False
        return not any(member.target for member in self.present.values())

    def assignors(self) -> tuple[str, ...]:
        """Return the assignors of which one is the group's, the likeliest first.

        It is the one that most members request, else the broker's default: that is not recorded, and is Kafka's default
        unless targets have shown another one.

        Source: kafka-group-coordinator 4.1 ``ConsumerGroup#computePreferredServerAssignor``,
        ``GroupCoordinatorConfig#CONSUMER_GROUP_ASSIGNORS_DEFAULT``.
        """
        if not self.present:
            return ()
        votes = self._votes()
        if not votes:
            return tuple(dict.fromkeys((self.default_assignor or DEFAULT_ASSIGNOR, *BUILT_IN_ASSIGNORS)))
        found = preferred_assignors(Counter(votes), votes[-1])
        return tuple(_SERVER_SIDE + name for name in found)

    def names_assignor(self) -> bool:
        """Return whether some member names an assignor."""
        return bool(self._votes())

    def _votes(self) -> list[str]:
        infos = [
            member.info
            for member in self.present.values()
            if member.info is not None and member.classic_strategies is None
        ]
        return [info.strategies[0].removeprefix(_SERVER_SIDE) for info in infos if info.strategies]

    def strategy(self) -> str | None:
        """Return the assignor that is most likely the group's; None: it has no members."""
        return next(iter(self.assignors()), None)

    def note_default_assignor(self, name: str) -> None:
        """Note the assignor that the broker takes where no member names one."""
        self.default_assignor = name

    def note_release(self, release: str) -> None:
        """Note the release of Kafka whose coordinator gives the newest target."""
        self.release = release

    @property
    def has_unnamed(self) -> bool:
        """Return whether the id of some topic is its name so far."""
        return any(topic_id == name for topic_id, name in self.names.items())

    def note_metadata(self, at: int) -> None:
        """Note that metadata of the cluster's topics is there."""
        self.metadata_since = at

    def note_wait(self, until: int | None) -> None:
        """Note when outcomes that wait are looked at again."""
        self.waits_until = until

    @property
    def has_converged(self) -> bool:
        """Return whether every member has and knows what the target of the newest epoch gives it."""
        present = self.present.values()
        if self.epoch is None:
            return False
        return not present or (
            self.assignment_epoch == self.epoch and all(self._has_converged(member) for member in present)
        )

    def _has_converged(self, member: RecordedMember) -> bool:
        if member.epoch == AWAY:
            return member.owned == ascending(member.target)
        return member.epoch == self.epoch and member.state == "stable"

    def member_epochs(self, sessions: Collection[str]) -> list[MemberEpoch] | None:
        """Return the members that are not at the epoch of the group's target; None: they are too many.

        Args:
            sessions: Members whose sessions are open; until an epoch is decided, some may have no record any more.
        """
        others = {
            member_id: member.epoch
            for member_id, member in self.present.items()
            if member.epoch != self.assignment_epoch
        }
        others |= dict.fromkeys(member_id for member_id in sessions if member_id not in self.present)
        if len(others) > MAX_MEMBER_EPOCHS:
            return None
        return [MemberEpoch(member_id, epoch) for member_id, epoch in sorted(others.items())]

    def reconciling(self) -> list[ReconcilingMember] | None:
        """Return all members while the group assigns or reconciles; None: it does not, or there are too many.

        Share groups do neither.
        """
        if self.protocol == "share" or self.incomplete or len(self.present) > MAX_RECONCILING_MEMBERS:
            return None
        if self.state not in ("assigning", "reconciling"):
            return None
        found = []
        left = MAX_RECONCILING_QUEUES
        for member_id, member in sorted(self.present.items()):
            assigned, revoking, target = map(self._named, (member.owned, member.revoking, ascending(member.target)))
            has, shall_have = (
                sum(len(partitions.queue_ids) for partitions in held) for held in ((*assigned, *revoking), target)
            )
            left -= max(has, shall_have)
            if left < 0:
                return None
            info = member.info or MemberInfo(member_id=member_id)
            described = (member_id, info.instance_id, info.client_id, info.host)
            found.append(ReconcilingMember(*described, member.epoch, member.state, assigned, revoking, target))
        return found

    def _named(self, held: Partitions) -> tuple[AssignedQueues, ...]:
        """Return partitions by their topics' names, several ids may have one, or tasks by their subtopologies."""
        has_tasks = self.protocol == "streams"
        by_name: dict[str, set[int]] = {}
        for topic_partitions in held:
            name = (
                f"subtopology {topic_partitions.topic}"
                if has_tasks
                else self.names.get(topic_partitions.topic, topic_partitions.topic)
            )
            by_name.setdefault(name, set()).update(topic_partitions.partitions)
        return tuple(AssignedQueues(name, tuple(sorted(by_name[name]))) for name in sorted(by_name))

    @property
    def is_open(self) -> bool:
        """Return whether it is not decided yet what became of the newest epoch."""
        return self.epoch is not None and (self.decided is None or self.epoch > self.decided)

    def finish_epoch(self, outcome: EpochOutcome) -> None:
        """Have an outcome wait to be decided; what comes next belongs to the next epoch."""
        if self.continued is not None:
            since = self.former if self.assignment_epoch == outcome.epoch else None
            outcome = continued(self.continued, outcome, since)
        self.waiting.append(outcome)
        self.decided = outcome.epoch if outcome.until is None else outcome.until
        self.began_at, self.steps, self.departures, self.renamed, self.continued = None, [], {}, [], None

    @property
    def awaits_effect(self) -> bool:
        """Return whether the newest epoch may be without effect, and the one before go on: no target shows it yet."""
        return self._is_overtaken and bool(self.present) and self.assignment_epoch != self.epoch

    @property
    def _is_overtaken(self) -> bool:
        """Return whether the newest outcome that waits is of an epoch that the newest one overtook."""
        return bool(self.waiting) and self.waiting[-1].overtaken == self.epoch

    def resume_epoch(self, members: Collection[MemberInfo], counts: Mapping[str, int]) -> None:
        """Have the epoch before the newest one go on, if that is without effect: by its target, if it ever gets one.

        Args:
            members: As they are now. counts: How many queues each topic had.
        """
        if not self._is_overtaken:
            return
        last = under_new_ids(self.waiting[-1], self.renamed)
        subscribed = [{info.member_id: info.subscriptions for info in infos} for infos in (last.members, members)]
        if subscribed[0] != subscribed[1] or last.strategy != self.strategy():
            return
        if self.assignment_epoch == self.epoch:
            targets = self.targets()
            if (
                self._has_grown(targets, counts)
                if last.target is None
                else _in_order(last.target) != _in_order(targets)
            ):
                return
        self.continued, self.waiting = last, self.waiting[:-1]
        self.began_at, self.steps = last.began_at, [*last.steps, *self.steps]
        self.renamed = [*last.renamed, *self.renamed]
        self.departures = {departure.member_id: departure for departure in last.departures} | self.departures

    def _has_grown(self, targets: Held, counts: Mapping[str, int]) -> bool:
        """Return whether a target has queues of a topic that it had not before, or whose name is not known.

        Where the group had no topics, all are those of its first target.
        """
        if not counts and all(outcome.target is None for outcome in self.waiting):
            return False
        named = {topic_partitions for partitions in targets.values() for topic_partitions in partitions}
        return any(
            max(topic_partitions.partitions, default=-1) >= counts.get(self.names.get(topic_partitions.topic, ""), 0)
            for topic_partitions in named
        )

    def note_ids(self, ids: Mapping[str, str]) -> None:
        """Note which topics a target names; those of topics that it leaves out stay as long as members want these."""
        wanted = self.topics()
        self.ids = {name: topic_id for name, topic_id in self.ids.items() if name in wanted} | dict(ids)

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
        return (
            "stable" if all(member.epoch == epoch and member.state == "stable" for member in present) else "reconciling"
        )


def _in_order(held: Held) -> Held:
    return {member_id: ascending(partitions) for member_id, partitions in held.items()}


def merged(first: Partitions, second: Partitions) -> Partitions:
    """Return the partitions of both, by topic."""
    if not second:
        return first
    held: dict[str, set[int]] = {}
    for topic_partitions in (*first, *second):
        held.setdefault(topic_partitions.topic, set()).update(topic_partitions.partitions)
    return tuple(TopicPartitions(topic, tuple(sorted(held[topic]))) for topic in sorted(held))
