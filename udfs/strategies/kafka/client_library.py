"""Core: what Kafka's assignors share, and what in them depends on the client library of the group's leader. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from udfs.jvm.collections import hash_map_order, string_order
from udfs.model.events import QueueRef
from udfs.strategies.problem import Assignment, Participant, Problem

# kafka-clients: MemberInfo (static members first) since 2.4, KIP-881 (racks in range) since 3.5.
_STATIC_FIRST_SINCE = (2, 4)
_RACKS_IN_RANGE_SINCE = (3, 5)
_JAVA = re.compile(r"java-([0-9]{1,9})(?:\.([0-9]{1,9}))?")


class Library(msgspec.Struct, frozen=True):
    """A client library as far as its assignors differ."""

    name: str
    version: tuple[int, int] | None = None

    @property
    def static_first(self) -> bool:
        """Return whether static members come before dynamic ones."""
        return self.version is None or self.version >= _STATIC_FIRST_SINCE

    @property
    def racks_in_range(self) -> bool:
        """Return whether ``range`` prefers queues with a replica in the member's rack."""
        return self.version is None or self.version >= _RACKS_IN_RANGE_SINCE


def leader_library(problem: Problem) -> Library:
    """Return the library that assigns: the setting ``library``, else the leader's, else kafka-clients of today.

    The leader is the one named, else the first member that joined.

    Example:
        >>> leader_library(Problem(group="g", members=(), topics={}, settings={"library": "java-2.2"}))
        Library(name='java', version=(2, 2))
    """
    name_or_none = problem.settings.get("library")
    if name_or_none is None:
        leaders = [member for member in problem.members if member.member_id == problem.leader]
        name_or_none = next((member.client_library for member in (*leaders, *problem.members[:1])), None)
    text = str(name_or_none or "")
    if text.startswith("librdkafka"):
        return Library(name="librdkafka")
    version = _JAVA.match(text)
    return Library(name="java", version=(int(version[1]), int(version[2] or 0)) if version else None)


def in_order(members: Sequence[Participant], library: Library) -> list[Participant]:
    """Return the members in the order of the library's ``range`` and ``roundrobin``.

    Source: kafka-clients 4.1 ``AbstractPartitionAssignor.MemberInfo``; librdkafka ``rd_kafka_group_member_cmp``,
    which compares instance ids only where both have one and is therefore no order: where static and dynamic members
    mix, what comes out depends on the steps of the C library's merge sort, which are taken one by one here.
    """
    if library.name == "librdkafka":
        if len({member.instance_id is None for member in members}) > 1:
            return _merge_sorted(list(members), _is_not_after)
        return sorted(members, key=lambda member: member.instance_id or member.member_id)
    if not library.static_first:
        return sorted(members, key=lambda member: string_order(member.member_id))
    instances = [member.instance_id for member in members if member.instance_id is not None]
    if len(set(instances)) < len(instances):
        # Equal ones keep the order in which the leader's HashMap has them.
        joined = {member.member_id: member for member in members}
        members = [joined[member_id] for member_id in hash_map_order(list(joined))]
    if not instances:
        return _sorted_as_java(members, [member.member_id for member in members])
    static = [member for member in members if member.instance_id is not None]
    dynamic = [member for member in members if member.instance_id is None]
    return [
        *_sorted_as_java(static, [member.instance_id or "" for member in static]),
        *_sorted_as_java(dynamic, [member.member_id for member in dynamic]),
    ]


def _sorted_as_java(members: Sequence[Participant], texts: Sequence[str]) -> list[Participant]:
    keys = texts if all(map(str.isascii, texts)) else list(map(string_order, texts))
    return [members[place] for place in sorted(range(len(keys)), key=keys.__getitem__)]


def _is_not_after(left: Participant, right: Participant) -> bool:
    if left.instance_id is not None and right.instance_id is not None:
        return left.instance_id <= right.instance_id
    return left.member_id <= right.member_id


def _merge_sorted(
    members: list[Participant], not_after: Callable[[Participant, Participant], bool]
) -> list[Participant]:
    """Return the members as a merge sort orders them: halves of n/2 and n − n/2, the left one first where equal.

    Source: glibc ``qsort`` as observed from librdkafka.
    """
    if len(members) <= 1:
        return members
    half = len(members) // 2
    left, right = _merge_sorted(members[:half], not_after), _merge_sorted(members[half:], not_after)
    merged = []
    i = j = 0
    while i < len(left) and j < len(right):
        if not_after(left[i], right[j]):
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return merged + left[i:] + right[j:]


def assign_blocks(queues: Sequence[QueueRef], takers: Sequence[int], held: Sequence[list[QueueRef]]) -> None:
    """Add blocks of neighbouring queues to what the takers hold, in their order; the first get one more where needed.

    Args:
        takers: Indexes into ``held``, which is added to.
    """
    size, extra = divmod(len(queues), len(takers))
    start = 0
    for place, member in enumerate(takers[: len(queues)]):
        end = start + size + (place < extra)
        held[member] += queues[start:end]
        start = end


def by_member(problem: Problem, members: Sequence[Participant], held: Iterable[list[QueueRef]]) -> Assignment:
    """Return what each of these members holds, members in the order in which they joined."""
    found = dict(zip([member.member_id for member in members], held, strict=True))
    return {member_id: found[member_id] for member_id in [member.member_id for member in problem.members]}
