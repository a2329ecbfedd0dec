"""Core: the outcome of a consumer group's epoch by its records, including epochs resumed after newer ones. No I/O.

``recorded_group`` stores outcomes when epochs end; ``group_epochs`` decides them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from udfs.model.events import Departure, MemberInfo, TopicPartitions

Partitions: TypeAlias = tuple[TopicPartitions, ...]
# The partitions of each member.
Held: TypeAlias = Mapping[str, Partitions]


class EpochOutcome(msgspec.Struct, frozen=True, array_like=True):
    """The outcome of one group epoch, with topics by id.

    Attributes:
        at: When all members had converged or, for an overtaken epoch, when the next one began.
        began_at: When the epoch began. assigned_at: When its target was computed; None if it was not.
        overtaken: The newer epoch that began before its members converged.
        members: Members present then, with their subscriptions. described: Whether all of them have subscriptions.
        owned: Partitions by member. steps: The owners from each time on since the previous outcome, ascending.
        target: The target published for this epoch. previous: The target before it.
        departures: Members that departed since the previous outcome. event_ids: Ids of description events, by member.
        former: The ids for which the target was computed, for static members that have come back under other ids since.
        follows_unrecorded: Another target was computed at the same time, and this one from it.
        patterns: Patterns of members that subscribe by pattern.
        added: The members in the order in which the coordinator added them, static ones under their present ids.
        renamed: When static members came back under other ids since the previous outcome: time, former and new id.
        until: The newest epoch that began before this one's end and had no effect.
        assignors: Assignors of which one is the group's, likeliest first. names_assignor: Whether some member names
            one.
        described_as: Descriptions of static members under the ids from which they came back.
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
    steps: Sequence[tuple[int, Held]]
    target: Held | None
    previous: Held
    departures: tuple[Departure, ...] = ()
    event_ids: Mapping[str, str] = msgspec.field(default_factory=dict)
    former: Mapping[str, str] = msgspec.field(default_factory=dict)
    follows_unrecorded: bool = False
    patterns: Mapping[str, str] = msgspec.field(default_factory=dict)
    added: tuple[str, ...] = ()
    renamed: Sequence[tuple[int, str, str]] = msgspec.field(default_factory=list)
    until: int | None = None
    assignors: tuple[str, ...] = ()
    names_assignor: bool = True
    described_as: Mapping[str, MemberInfo] = msgspec.field(default_factory=dict)

    @property
    def size(self) -> int:
        """Return the number of members and partition lists in it."""
        return len(self.members) + sum(len(held) for _, held in self.steps) + len(self.owned)

    def topic_ids(self) -> set[str]:
        """Return the ids of the topics in it."""
        helds = [self.owned, self.target or {}, *(held for _, held in self.steps)]
        return {
            topic_partitions.topic for held in helds for partitions in held.values() for topic_partitions in partitions
        }


def continued(first: EpochOutcome, last: EpochOutcome, renamed: Mapping[str, str] | None) -> EpochOutcome:
    """Return the outcome of an epoch that continued after newer ones without effect.

    Args:
        first: The outcome when the first of them began. last: The outcome of the newest one.
        renamed: For static members that have come back since, by present id, the id for which the newest target was
            computed; None if the newest epoch has no target.
    """
    if first.target is None:  # the newest epoch computed the target that the first one required
        return msgspec.structs.replace(last, epoch=first.epoch, until=last.epoch)
    since = {former: member_id for member_id, former in (renamed or {}).items()}
    former = {since.get(member_id, member_id): former_id for member_id, former_id in first.former.items()}
    former |= {member_id: former_id for former_id, member_id in since.items() if member_id not in former}
    return msgspec.structs.replace(
        last,
        epoch=first.epoch,
        assigned_at=first.assigned_at,
        target=first.target if renamed is None else last.target,
        previous={since.get(member_id, member_id): held for member_id, held in first.previous.items()},
        former=former,
        follows_unrecorded=first.follows_unrecorded,
        until=last.epoch,
    )


def under_new_ids(outcome: EpochOutcome, renamed: Sequence[tuple[int, str, str]]) -> EpochOutcome:
    """Return an outcome with the ids under which static members have come back since."""
    ids: dict[str, str] = {}
    for _, former_id, member_id in renamed:
        ids[next((earlier_id for earlier_id, now in ids.items() if now == former_id), former_id)] = member_id
    if not ids:
        return outcome

    def named(held: Held) -> Held:
        return {ids.get(holder, holder): partitions for holder, partitions in held.items()}

    former = {ids.get(member_id, member_id): earlier_id for member_id, earlier_id in outcome.former.items()}
    return msgspec.structs.replace(
        outcome,
        members=tuple(
            msgspec.structs.replace(info, member_id=ids.get(info.member_id, info.member_id)) for info in outcome.members
        ),
        steps=[(at, named(held)) for at, held in outcome.steps],
        target=None if outcome.target is None else named(outcome.target),
        previous=named(outcome.previous),
        former={member_id: earlier_id for earlier_id, member_id in ids.items()} | former,
    )


def merged(first: Partitions, second: Partitions) -> Partitions:
    """Return the partitions of both, by topic."""
    if not second:
        return first
    held: dict[str, set[int]] = {}
    for topic_partitions in (*first, *second):
        held.setdefault(topic_partitions.topic, set()).update(topic_partitions.partitions)
    return tuple(TopicPartitions(topic, tuple(sorted(held[topic]))) for topic in sorted(held))
