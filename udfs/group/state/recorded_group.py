"""Core: the recorded state of a consumer, share or streams group of Kafka's coordinator. No I/O.

``record_fold`` applies records to it. ``group_epochs`` decides the results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec

from udfs.group.state.epoch_outcome import EpochOutcome, Held, Partitions, continued, merged, under_new_ids
from udfs.group.state.writing import assign
from udfs.model.events import Departure, MemberInfo, MemberState, RecordProtocol
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


class RecordedMember(msgspec.Struct, frozen=True, array_like=True):
    """One member.

    Attributes:
        joined_at: The time of its first record. joined_offset: That record's offset; 0 if unknown.
        described_at, target_at, current_at: Times of the records in effect.
        event_id: Id of the event with its description.
        owned: The partitions that it may consume, or has yet to give up (``revoking``).
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
        """Return whether it still has any record."""
        return self.described_at is not None or self.current_at is not None


class RecordedGroup(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """The recorded state of one group.

    Attributes:
        epoch: The group epoch, as of ``epoch_at``. assignment_epoch: The target's epoch, as of ``assignment_at``.
        previous: The target before the current one.
        names: Topic names by id. patterns: The topics that each pattern matches. subtopologies: The topics of each.
        began_at: When the oldest undecided epoch began; None if all are decided.
        steps, departures: See ``EpochOutcome``; since the last outcome.
        waiting: Outcomes with topics whose names are still missing.
        is_first: None of its epochs was decided.
        incomplete: Some members may not have had a record since the group has been followed.
        is_deleted: The last record of the group itself was a tombstone.
        ids: Ids, by name, of the topics in decided targets.
        former, follows_unrecorded: See ``EpochOutcome``; for the current target.
        renamed, described_as: See ``EpochOutcome``; since the last outcome.
        continued: The epoch that continues after newer ones without effect, in its state when the first of them began.
        default_assignor: The broker's default, as shown by targets when members name none; None if not shown.
        metadata_since: When metadata of the cluster's topics was first observed.
        waits_until: When waiting outcomes are checked again; None if only new events make them be checked.
        release: The coordinator's release, of ``RELEASES``, if the last target could come only from an older one; else
            None.
        votes: How many members named each assignor, and the newest of them, when the epoch's target was computed, or
            else when it began; None in states of release 0.2.0.
    """

    protocol: RecordProtocol
    epoch: int | None = None
    epoch_at: int | None = None
    assignment_epoch: int | None = None
    assignment_at: int | None = None
    members: Mapping[str, RecordedMember] = msgspec.field(default_factory=dict)
    previous: Held = msgspec.field(default_factory=dict)
    names: Mapping[str, str] = msgspec.field(default_factory=dict)
    patterns: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    subtopologies: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    decided: int | None = None
    began_at: int | None = None
    steps: Sequence[tuple[int, Held]] = msgspec.field(default_factory=list)
    departures: Mapping[str, Departure] = msgspec.field(default_factory=dict)
    waiting: Sequence[EpochOutcome] = msgspec.field(default_factory=list)
    incomplete: bool = False
    is_first: bool = True
    is_deleted: bool = False
    ids: Mapping[str, str] = msgspec.field(default_factory=dict)
    former: Mapping[str, str] = msgspec.field(default_factory=dict)
    follows_unrecorded: bool = False
    renamed: Sequence[tuple[int, str, str]] = msgspec.field(default_factory=list)
    continued: EpochOutcome | None = None
    default_assignor: str | None = None
    metadata_since: int | None = None
    waits_until: int | None = None
    release: str | None = None
    votes: tuple[Mapping[str, int], str | None] | None = None
    described_as: Mapping[str, MemberInfo] = msgspec.field(default_factory=dict)

    @cached_property
    def present(self) -> dict[str, RecordedMember]:
        """Return the members in the order in which they joined; ``fold`` rebuilds it."""
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
        """Return the partitions of each of these members that has any, including those it has yet to give up."""
        some = (
            self.present
            if members is None
            else {member_id: self.present[member_id] for member_id in self.present.keys() & members}
        )
        held = {member_id: merged(member.owned, member.revoking) for member_id, member in some.items()}
        return {member_id: partitions for member_id, partitions in held.items() if partitions}

    def targets(self) -> Held:
        """Return the target of each member."""
        return {member_id: member.target for member_id, member in self.present.items()}

    def subscriptions_of(self, member: RecordedMember) -> tuple[str, ...]:
        """Return the topics that a member subscribes to, including those that its pattern matches."""
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
        """Return whether a streams group has members whose newest target contains no task.

        Source: kafka-group-coordinator 4.1 ``StreamsGroup#maybeUpdateGroupState``: its topology is not ready.
        """
        if self.protocol != "streams" or not self.present or self.assignment_epoch != self.epoch:
            return False
        return not any(member.target for member in self.present.values())

    def assignors(self) -> tuple[str, ...]:
        """Return the assignors of which one is the group's, likeliest first.

        It is the one that most members request, else the broker's default, which is not recorded and is assumed to be
        Kafka's default unless targets have shown another.

        Source: kafka-group-coordinator 4.1 ``ConsumerGroup#computePreferredServerAssignor``,
        ``GroupCoordinatorConfig#CONSUMER_GROUP_ASSIGNORS_DEFAULT``.
        """
        if not self.present:
            return ()
        votes, newest = self.votes or self._votes_now()
        if not votes:
            return tuple(dict.fromkeys((self.default_assignor or DEFAULT_ASSIGNOR, *BUILT_IN_ASSIGNORS)))
        return tuple(_SERVER_SIDE + name for name in preferred_assignors(votes, newest))

    def names_assignor(self) -> bool:
        """Return whether some member names an assignor."""
        return bool((self.votes or self._votes_now())[0])

    def _votes_now(self) -> tuple[dict[str, int], str | None]:
        infos = [
            member.info
            for member in self.present.values()
            if member.info is not None and member.classic_strategies is None
        ]
        named = [info.strategies[0].removeprefix(_SERVER_SIDE) for info in infos if info.strategies]
        return dict(Counter(named)), named[-1] if named else None

    def note_votes(self) -> None:
        """Record which assignors members name now; what they name later has no part in this epoch's target."""
        assign(self, votes=self._votes_now())

    def strategy(self) -> str | None:
        """Return the assignor that is most likely the group's; None if it has no members."""
        return next(iter(self.assignors()), None)

    def note_target(self, release: str | None, assignor: str | None) -> None:
        """Record the Kafka release, and the broker's default assignor, that only the newest target shows."""
        assign(self, release=release or self.release, default_assignor=assignor or self.default_assignor)

    @property
    def has_unnamed(self) -> bool:
        """Return whether the id of some topic still serves as its name."""
        return any(topic_id == name for topic_id, name in self.names.items())

    def note_metadata(self, at: int) -> None:
        """Record that metadata of the cluster's topics has arrived."""
        assign(self, metadata_since=at)

    def note_wait(self, until: int | None) -> None:
        """Record when waiting outcomes are checked again."""
        assign(self, waits_until=until)

    @property
    def has_converged(self) -> bool:
        """Return whether every member has, and acknowledged, its part of the newest epoch's target."""
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
        """Return the members that are not at the epoch of the group's target; None if there are too many.

        Args:
            sessions: Members with open sessions; until an epoch is decided, some may no longer have a record.
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
        """Return all members while the group assigns or reconciles; None if it does not, or if there are too many.

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
        """Return partitions by topic name (several ids may share a name), or tasks by subtopology."""
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
        """Return whether the newest epoch's outcome is not decided yet."""
        return self.epoch is not None and (self.decided is None or self.epoch > self.decided)

    def finish_epoch(self, outcome: EpochOutcome) -> None:
        """Queue an outcome to be decided; later records belong to the next epoch."""
        if self.continued is not None:
            since = self.former if self.assignment_epoch == outcome.epoch else None
            outcome = continued(self.continued, outcome, since)
        waiting, decided = [*self.waiting, outcome], outcome.epoch if outcome.until is None else outcome.until
        assign(self, waiting=waiting, decided=decided, began_at=None, steps=[], departures={}, continued=None)
        assign(self, renamed=[], described_as={})

    @property
    def awaits_effect(self) -> bool:
        """Return whether the newest epoch may have no effect, so that the previous one may continue."""
        return self.is_overtaking and bool(self.present) and self.assignment_epoch != self.epoch

    @property
    def is_overtaking(self) -> bool:
        """Return whether the newest epoch overtook that of the newest waiting outcome."""
        return bool(self.waiting) and self.waiting[-1].overtaken == self.epoch

    def resume_epoch(self, members: Collection[MemberInfo], counts: Mapping[str, int]) -> None:
        """Resume the epoch that the newest one overtook if that has no effect, judging by its target if it gets one.

        Args:
            members: The current members. counts: The former number of queues of each topic that members subscribed to.
        """
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
        departures = {departure.member_id: departure for departure in last.departures}
        assign(self, continued=last, waiting=self.waiting[:-1], began_at=last.began_at)
        assign(self, steps=[*last.steps, *self.steps], renamed=[*last.renamed, *self.renamed])
        described = {**last.described_as, **self.described_as}
        assign(self, described_as=described, departures={**departures, **self.departures})

    def _has_grown(self, targets: Held, counts: Mapping[str, int]) -> bool:
        """Return whether a target has queues that topics did not have before; topics new to the group do not count."""
        last = next((outcome for outcome in reversed(self.waiting) if outcome.target or not outcome.members), None)
        if last is not None:  # it is not among the counts yet
            counts = dict.fromkeys((topic for info in last.members for topic in info.subscriptions or ()), 0)
            counts |= self._sizes(last.target or {})
        return any(size > counts.get(topic, size) for topic, size in self._sizes(targets).items())

    def _sizes(self, targets: Held) -> dict[str, int]:
        """Return the number of queues of each topic that a target names, by name as far as that is known."""
        found: dict[str, int] = {}
        for topic_partitions in (some for partitions in targets.values() for some in partitions):
            name = self.names.get(topic_partitions.topic, topic_partitions.topic)
            found[name] = max(found.get(name, 0), 1 + max(topic_partitions.partitions, default=-1))
        return found

    def note_ids(self, ids: Mapping[str, str]) -> None:
        """Record which topics a target names; ids of other topics stay as long as members subscribe to these."""
        wanted = self.topics()
        kept = {name: topic_id for name, topic_id in self.ids.items() if name in wanted}
        assign(self, ids={**kept, **ids})

    def note_decided(self) -> None:
        """Record that one of its epochs was decided."""
        assign(self, is_first=False)

    def take_waiting(self, count: int) -> Sequence[EpochOutcome]:
        """Remove and return the oldest waiting outcomes."""
        taken = self.waiting[:count]
        assign(self, waiting=self.waiting[count:])
        return taken

    @property
    def state(self) -> str:
        """Return the group's state as Kafka shows it.

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
