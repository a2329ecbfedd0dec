"""Shell: the changes of a cluster's groups between two polls by admin calls, as events.

A snapshot has no generation: the core counts (``udfs/group/kafka/polled_generations.py``). It is written when a group
differs from the last snapshot, and after each poll that found the group in a rebalance.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping

import msgspec

from streaming.collectors.kafka.group_reader import DEAD, DescribedGroup, PolledGroups, PolledMember
from streaming.machine.logs import logger
from udfs.kafka.consumer_offsets import NOT_FOLLOWED, GroupPatterns, polled_member, unread_member
from udfs.kafka.consumer_protocol import read_assignment
from udfs.kafka.wire_reader import WireError
from udfs.model.events import (
    MAX_NAME_LENGTH,
    AnyEvent,
    GroupDeleted,
    GroupSnapshot,
    MemberInfo,
    QueueRef,
    event_fields,
)

_FOLLOWED_TYPES = ("consumer", "")
_UNDER_WAY = frozenset({"PreparingRebalance", "CompletingRebalance"})
# In new-protocol groups members may still hand over partitions. They are written when that is done, or takes this long.
_CONVERGING = frozenset({"Assigning", "Reconciling", "Unknown"})  # librdkafka has no names for these
_CONVERGES_WITHIN_MS = 30_000
# A group whose members changed while they were described is left for the next poll at most this often.
_TRIES = 2
_UNDER_WAY_MARK = "under way"
_log = logger("kafka")


class GroupDiff:
    """The reported groups, each by a digest, from which changes are found.

    A group that is missing, or dead, is reported as deleted after two complete polls show it so. A group that was only
    ever dead is of a kind that the calls do not describe, and is listed.
    """

    def __init__(self, cluster: str, patterns: GroupPatterns, memory: bytes | None = None) -> None:
        self._cluster = cluster
        self._patterns = patterns
        self._reported: dict[str, str] = {}
        self._missing: set[str] = set()
        self._dead: set[str] = set()
        self._tries: dict[str, int] = {}
        self._converging: dict[str, int] = {}
        if memory is not None:
            self._reported = msgspec.json.decode(memory, type=dict[str, str])

    def memory(self) -> bytes:
        """Return the state from which a new instance continues."""
        return msgspec.json.encode(self._reported, order="sorted")

    @property
    def reported(self) -> Collection[str]:
        """The groups as last reported."""
        return self._reported.keys()

    def to_describe(self, polled: PolledGroups) -> list[str]:
        """Return the classic groups that changed and have members, some of which may be static."""
        return sorted(
            name
            for name, group in polled.groups.items()
            if group.protocol == "classic"
            and group.members
            and group.state not in _UNDER_WAY
            and group.protocol_type in _FOLLOWED_TYPES
            and self._follows(name)
            and self._reported.get(name) != digest_of(group)
        )

    def diff(self, polled: PolledGroups, described: Mapping[str, DescribedGroup], time_ms: int) -> list[AnyEvent]:
        """Compare a poll with what was reported.

        Args:
            described: The groups of ``to_describe`` with instance ids, without those that could not be described.
        """
        events: list[AnyEvent] = []
        for name, group in sorted(polled.groups.items()):
            if not self._follows(name) or self._has_died(name, group):
                continue
            digest = _UNDER_WAY_MARK if group.state in _UNDER_WAY else digest_of(group)
            if self._reported.get(name) == digest or not self._is_settled(name, group, described.get(name), time_ms):
                continue
            event = self._snapshot(name, group, described.get(name), time_ms)
            if event is not None:
                events.append(event)
                self._reported[name] = digest
        return events + self._deleted(polled, time_ms)

    def _has_died(self, name: str, group: DescribedGroup) -> bool:
        """Return whether a dead group was previously reported in another state."""
        return group.state == DEAD and self._reported.get(name, digest_of(group)) != digest_of(group)

    def _follows(self, name: str) -> bool:
        return 0 < len(name) <= MAX_NAME_LENGTH and self._patterns.follow(name)

    def _is_settled(self, name: str, group: DescribedGroup, described: DescribedGroup | None, time_ms: int) -> bool:
        """Return whether a changed group can be reported now; otherwise the next poll shows more."""
        if group.state in _CONVERGING:
            return time_ms - self._converging.setdefault(name, time_ms) >= _CONVERGES_WITHIN_MS
        self._converging.pop(name, None)
        if group.state == DEAD:
            # A group that is dead in two polls is of a kind that these calls do not describe; in one, it is being
            # deleted.
            was_dead = name in self._dead
            self._dead ^= {name}
            return was_dead
        if group.protocol == "consumer" or not group.members or group.protocol_type not in _FOLLOWED_TYPES:
            return True
        if group.state in _UNDER_WAY or _are_the_same(group, described):
            self._tries.pop(name, None)
            return True
        self._tries[name] = self._tries.get(name, 0) + 1
        if self._tries[name] <= _TRIES:
            return False
        del self._tries[name]
        return True

    def _snapshot(
        self, name: str, group: DescribedGroup, described: DescribedGroup | None, time_ms: int
    ) -> GroupSnapshot | None:
        event = GroupSnapshot(
            **event_fields("kafka", self._cluster, time_ms),
            group=name,
            state=group.state,
            generation_source="counted",
        )
        if group.state == DEAD or group.protocol_type not in _FOLLOWED_TYPES:
            event.state, event.generation_source = NOT_FOLLOWED, None
            event.protocol, event.members = group.protocol_type or None, _unread(group)
            return event
        if group.state in _UNDER_WAY:
            return event
        instances = (
            {member.member_id: member.instance_id for member in described.members} if described is not None else {}
        )
        if group.members and group.strategy:
            # Assignors of brokers have names of their own.
            event.strategy = f"server.{group.strategy}" if group.protocol == "consumer" else group.strategy
        try:
            event.members = tuple(
                _described(member, group, instances.get(member.member_id)) for member in group.members
            )
            event.assignments = {member.member_id: _queues(member, group) for member in group.members} or None
        except WireError as error:
            _log.warning("a group cannot be decoded", cluster=self._cluster, group=name, detail=str(error))
            event.state, event.generation_source, event.members = NOT_FOLLOWED, None, _unread(group)
        return event

    def _deleted(self, polled: PolledGroups, time_ms: int) -> list[AnyEvent]:
        if not polled.is_whole:
            return []
        shown = {name for name, group in polled.groups.items() if not self._has_died(name, group)}
        missing = self._reported.keys() - shown - polled.unreadable
        absent, self._missing = sorted(missing & self._missing), missing - self._missing
        for name in absent:
            del self._reported[name]
        return [GroupDeleted(**event_fields("kafka", self._cluster, time_ms), group=name) for name in absent]


def digest_of(group: DescribedGroup) -> str:
    """Return a digest that distinguishes the states of a group."""
    return hashlib.blake2b(msgspec.msgpack.encode(group), digest_size=8).hexdigest()


def _are_the_same(group: DescribedGroup, described: DescribedGroup | None) -> bool:
    return described is not None and {member.member_id for member in group.members} == {
        member.member_id for member in described.members
    }


def _unread(group: DescribedGroup) -> tuple[MemberInfo, ...]:
    return tuple(
        unread_member(member.member_id, member.client_id, member.host, member.instance_id) for member in group.members
    )


def _described(member: PolledMember, group: DescribedGroup, instance_id: str | None) -> MemberInfo:
    if group.protocol == "consumer":
        return MemberInfo(
            member_id=member.member_id,
            client_id=member.client_id or None,
            host=member.host or None,
            instance_id=member.instance_id,
        )
    return polled_member(
        member.member_id, member.client_id, member.host, instance_id, member.metadata, group.strategy or None
    )


def _queues(member: PolledMember, group: DescribedGroup) -> tuple[QueueRef, ...]:
    return member.queues if group.protocol == "consumer" else read_assignment(member.assignment)
