"""Core: the common parts of Kafka's assignors, and how they depend on the leader's client library. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, groupby

import msgspec

from udfs.jvm.collections import hash_map_order, string_order
from udfs.model.events import QueueRef
from udfs.strategies.problem import Assignment, Participant, Problem

# kafka-clients: MemberInfo (static members first) since 2.4, KIP-881 (racks in range and sticky) since 3.5, KAFKA-9987
# (sticky's path for equal subscriptions) since 2.6; it sorts what members own since 3.7.1.
_STATIC_FIRST_SINCE = (2, 4)
_RACKS_SINCE = (3, 5)
_CONSTRAINED_SINCE = (2, 6)
_SORTED_SINCE = (3, 7, 1)
# librdkafka 2.2: KIP-881. kafka-python 2.3: KIP-345, before that members by id alone. sarama 1.34.1 and 1.28: range and
# roundrobin as in kafka-clients, before that members by a hash, topic by topic.
_RDKAFKA_RACKS_SINCE = (2, 2)
_PYTHON_STATIC_SINCE = (2, 3)
_SARAMA_BLOCKS_SINCE = (1, 34, 1)
_SARAMA_ALTERNATES_SINCE = (1, 28)
_VERSION = re.compile(r"-([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:\.([0-9]{1,9}))?")
JAVA = "java"
LIBRDKAFKA = "librdkafka"
KAFKA_PYTHON = "kafka-python"
AIOKAFKA = "aiokafka"
FRANZ_GO = "franz-go"
SARAMA = "sarama"
_OTHERS = (LIBRDKAFKA, KAFKA_PYTHON, AIOKAFKA, FRANZ_GO, SARAMA)
# Among several possible libraries, the likeliest comes first.
ALTERNATIVES = "|"
# Suffix for a library name: members sent the same topics in different orders. kafka-python and aiokafka compare lists
# of topics as members sent them, and Python's sets have any order.
LISTS_DIFFER = ", lists differ"
# Suffix for a library name: the leader assigns without racks, though its version would take them into account.
RACKS_IGNORED = ", racks ignored"
# Suffix for a library name, to show whether the result depends on which of several partitions sticky takes back first:
# kafka-python and aiokafka take the first of a Python set, whose order differs between processes.
ANY_TAKEN_BACK = ", any taken back"
_FNV_OFFSET, _FNV_PRIME, _FNV_MASK = 2166136261, 16777619, 0xFFFFFFFF


class Library(msgspec.Struct, frozen=True):
    """A client library, described by the differences between its assignors.

    Attributes:
        version: Its numbers, two or three; None for the newest.
        lists_differ: Members sent the same topics in different orders, see ``LISTS_DIFFER``.
        racks_ignored: See ``RACKS_IGNORED``. any_taken_back: See ``ANY_TAKEN_BACK``.
    """

    name: str
    version: tuple[int, ...] | None = None
    lists_differ: bool = False
    racks_ignored: bool = False
    any_taken_back: bool = False

    @property
    def static_first(self) -> bool:
        """Return whether static members come before dynamic ones."""
        return self.version is None or self.version >= _STATIC_FIRST_SINCE

    @property
    def uses_racks(self) -> bool:
        """Return whether ``range`` and the sticky assignors prefer queues with a replica in the member's rack."""
        if self.name == LIBRDKAFKA:
            return not self.racks_ignored and self.is_since(_RDKAFKA_RACKS_SINCE)
        return self._is_java_since(_RACKS_SINCE)

    @property
    def has_constrained_path(self) -> bool:
        """Return whether the sticky assignors have a separate path for equal subscriptions."""
        return self._is_java_since(_CONSTRAINED_SINCE)

    @property
    def sorts_owned(self) -> bool:
        """Return whether that path sorts a member's owned partitions, instead of using the order as sent."""
        return self._is_java_since(_SORTED_SINCE)

    @property
    def ranges_by_hash(self) -> bool:
        """Return whether ``range`` is that of sarama before 1.34.1."""
        return self.name == SARAMA and not self.is_since(_SARAMA_BLOCKS_SINCE)

    @property
    def alternates_by_hash(self) -> bool:
        """Return whether ``roundrobin`` is that of sarama before 1.28."""
        return self.name == SARAMA and not self.is_since(_SARAMA_ALTERNATES_SINCE)

    def is_since(self, version: tuple[int, ...]) -> bool:
        """Return whether it is that version or a later one; without a version it is the newest."""
        return self.version is None or self.version >= version

    def _is_java_since(self, version: tuple[int, ...]) -> bool:
        return self.name == JAVA and self.is_since(version)


def library_of(text: str) -> Library:
    """Return the library with a given name; unknown names mean the current kafka-clients.

    Example:
        >>> library_of("librdkafka").name, library_of("java-2.2").version, library_of("java-3.7.1").version
        ('librdkafka', (2, 2), (3, 7, 1))
    """
    for name in (*_OTHERS, JAVA):
        if text.startswith(name):
            version = _VERSION.match(text, len(name))
            return Library(
                name=name,
                version=_numbers(version) if version else None,
                lists_differ=text.endswith(LISTS_DIFFER),
                racks_ignored=text.endswith(RACKS_IGNORED),
                any_taken_back=text.endswith(ANY_TAKEN_BACK),
            )
    return Library(name=JAVA)


def _numbers(version: re.Match[str]) -> tuple[int, ...]:
    """Return the numbers of a version; without a patch number it is the first of its line."""
    return (int(version[1]), int(version[2] or 0), *(() if version[3] is None else (int(version[3]),)))


# A label covers several versions whose assignments may differ, because their records do not distinguish them.
_VERSIONS = {
    "java-2.4+": ("java-2.8", "java-2.4"),
    "java-3.2+": ("java-3.2",),
    "java-3.4+": ("java-4.1", "java-3.7", "java-3.4"),
    LIBRDKAFKA: (LIBRDKAFKA, LIBRDKAFKA + RACKS_IGNORED),
    KAFKA_PYTHON: (KAFKA_PYTHON, KAFKA_PYTHON + LISTS_DIFFER, KAFKA_PYTHON + ANY_TAKEN_BACK, "kafka-python-2.2"),
    AIOKAFKA: (AIOKAFKA, AIOKAFKA + LISTS_DIFFER, AIOKAFKA + ANY_TAKEN_BACK),
    SARAMA: (SARAMA, "sarama-1.33", "sarama-1.27"),
}


def variants(text: str) -> tuple[str, ...]:
    """Return the names of all versions that assign differently under one reported name, the newest first.

    Example:
        >>> variants("java-3.2+"), variants("aiokafka")
        (('java-3.2',), ('aiokafka', 'aiokafka, lists differ', 'aiokafka, any taken back'))
    """
    return _VERSIONS.get(text, (text,))


def possible_libraries(problem: Problem) -> list[str]:
    """Return the libraries that may have assigned, likeliest first: the setting ``library``, else the leader's.

    If no leader is named, it may be any member. An unreported library is assumed to be the current kafka-clients.

    Example:
        >>> possible_libraries(Problem(group="g", members=(), topics={}, settings={"library": "kafka-python|aiokafka"}))
        ['kafka-python', 'aiokafka']
    """
    named = problem.settings.get("library")
    if named is None:
        leaders = [member for member in problem.members if member.member_id == problem.leader] or problem.members
        named = ALTERNATIVES.join(dict.fromkeys(member.client_library or JAVA for member in leaders))
    return list(dict.fromkeys(str(named or JAVA).split(ALTERNATIVES)))


def leader_library(problem: Problem) -> Library:
    """Return the library that assigns, the likeliest if several are possible.

    Example:
        >>> leader_library(Problem(group="g", members=(), topics={}, settings={"library": "java-2.2"})).version
        (2, 2)
    """
    return library_of(possible_libraries(problem)[0])


def in_order(members: Sequence[Participant], library: Library) -> list[Participant]:
    """Return the members in the order of the library's ``range`` and ``roundrobin``; some of them may be left out.

    Source: kafka-clients 4.1 ``AbstractPartitionAssignor.MemberInfo``; librdkafka ``rd_kafka_group_member_cmp``, which
    compares instance ids only if both have one and is therefore not an order: if static and dynamic members mix, the
    result depends on the steps of the C library's merge sort, which are followed one by one here. The other versions:
    kafka-python 3.0.12, aiokafka 0.14.0, franz-go 1.22.2, sarama 1.61.1.
    """
    if library.name == LIBRDKAFKA:
        if len({member.instance_id is None for member in members}) > 1:
            return _merge_sorted(list(members), _is_not_after)
        return sorted(members, key=lambda member: member.instance_id or member.member_id)
    is_by_id = library.name == KAFKA_PYTHON and not library.is_since(_PYTHON_STATIC_SINCE)
    if is_by_id or library.name in (AIOKAFKA, SARAMA):
        return sorted(members, key=lambda member: member.member_id)
    if library.name == KAFKA_PYTHON:
        members = _last_runs(members)
    if library.name != JAVA:
        return sorted(members, key=lambda member: (member.instance_id is None, member.instance_id or member.member_id))
    if not library.static_first:
        return sorted(members, key=lambda member: string_order(member.member_id))
    instances = [member.instance_id for member in members if member.instance_id is not None]
    if len(set(instances)) < len(instances):
        # Members with equal ids keep the order of the leader's HashMap.
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


def by_hash(members: Sequence[Participant], topic: str) -> list[Participant]:
    """Return a topic's subscribers in the order of sarama before 1.34.1: by an FNV-1a hash of topic and member id.

    Source: sarama 1.34.0 ``balanceStrategyHashValue``, which hashes characters, not bytes.
    """
    return sorted(members, key=lambda member: _fnv(topic + member.member_id))


def _fnv(text: str) -> int:
    value = _FNV_OFFSET
    for character in text:
        value = ((value ^ ord(character)) * _FNV_PRIME) & _FNV_MASK
    return value


def _last_runs(members: Sequence[Participant]) -> list[Participant]:
    """Return the last consecutive run of static members, and of dynamic ones; other members get nothing."""
    runs = [list(run) for _, run in groupby(members, key=lambda member: member.instance_id is None)]
    return list(chain.from_iterable(runs[-2:]))


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
    """Return the members as a merge sort orders them: halves of n/2 and n − n/2, the left one first if equal.

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
    """Add blocks of neighbouring queues to the takers' queues, in order; the first takers get one more if needed.

    Args:
        takers: Indexes into ``held``, which is extended.
    """
    size, extra = divmod(len(queues), len(takers))
    start = 0
    for place, member in enumerate(takers[: len(queues)]):
        end = start + size + (place < extra)
        held[member] += queues[start:end]
        start = end


def by_member(problem: Problem, members: Sequence[Participant], held: Iterable[list[QueueRef]]) -> Assignment:
    """Return each member's queues, in the order in which members joined; a member that is left out holds nothing."""
    found = dict(zip([member.member_id for member in members], held, strict=True))
    return {member.member_id: found.get(member.member_id, []) for member in problem.members}
