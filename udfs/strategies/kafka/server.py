"""Core: a group as Kafka's server-side assignors see it: topic ids, members in map order, the target. No I/O."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, permutations, product
from typing import NamedTuple

from udfs.jvm.collections import (
    INITIAL_CAPACITY,
    LOAD_DENOMINATOR,
    LOAD_NUMERATOR,
    TREEIFY_THRESHOLD,
    hash_map_order,
    hashed_order,
    sorted_strings,
    table_size_for,
)
from udfs.jvm.timeline_map import timeline_map_order
from udfs.model.errors import StrategyError
from udfs.model.events import QueueRef
from udfs.strategies.kafka.client_library import by_member
from udfs.strategies.problem import Assignment, Participant, Problem, Topic
from udfs.strategies.subscriptions import kinds_of

# HashMap mixes the upper 16 bits of a hash into the lower ones, so smaller numbers do not change.
_UNSPREAD = 1 << 16


# At most this many orders of members that share a slot are tried, and this many doublings of the coordinator's own
# table.
_MAX_ORDERS = 24
_MAX_DOUBLINGS = 3


class MembersPut(NamedTuple):
    """Members in the order in which the coordinator puts them into its assignor's map, and the slots of that map."""

    members: list[str]
    slots: int = INITIAL_CAPACITY


def coordinator_orders(joined: Sequence[str], newest: Sequence[str] = ()) -> Iterator[MembersPut]:
    """Return the ways in which the coordinator may put members into its assignor's map, likeliest first.

    It iterates its own map of members, and puts the member whose request it handles last. The most members it ever had
    is not recorded, so its table may be larger than these members need. A member that takes a static member's place is
    put before the old one is removed, so a full map has grown. After the coordinator was reloaded, members in one slot
    are in any order: as many orders are tried as the assignor can distinguish.

    Args:
        joined: All members, in the order in which the coordinator added them.
        newest: Members that joined at the time of the assignment; one of them may have sent the request. Source:
    kafka-group-coordinator 4.1 ``TargetAssignmentBuilder#build``.

    Example:
        >>> [put.members for put in coordinator_orders(["Aa", "BB", "c"])]
        [['c', 'BB', 'Aa'], ['Aa', 'BB', 'c']]
    """
    within_slots = map(MembersPut, islice(_orders_within_slots(joined), _MAX_ORDERS))
    puts = chain(_likely_orders(joined, newest), within_slots)
    # The first order is nearly always right; the others are computed only when they are needed.
    first = next(puts)
    yield first
    yielded = {_as_iterated(first)}
    for put in puts:
        iterated = _as_iterated(put)
        if iterated not in yielded:
            yielded.add(iterated)
            yield put


def _as_iterated(put: MembersPut) -> tuple[str, ...]:
    return tuple(hash_map_order(put.members, put.slots))


def _likely_orders(joined: Sequence[str], newest: Sequence[str]) -> Iterator[MembersPut]:
    grown = _slots_once_full(len(joined))
    for doublings in range(_MAX_DOUBLINGS + 1):
        for requesting in dict.fromkeys([*reversed(newest), None, *joined[-1:]]):
            others = [member_id for member_id in joined if member_id != requesting]
            put = timeline_map_order(others, len(others) << doublings)
            if requesting is None:
                yield MembersPut(put)
                continue
            yield MembersPut([*put, requesting])
            if grown is not None:
                yield MembersPut([*put, requesting], grown)


def _slots_once_full(count: int) -> int | None:
    """Return the slots of a map that this many members fill, after one more was put; None if they do not fill it."""
    slots = INITIAL_CAPACITY
    while slots * LOAD_NUMERATOR < count * LOAD_DENOMINATOR:
        slots *= 2
    return 2 * slots if slots * LOAD_NUMERATOR == count * LOAD_DENOMINATOR else None


def _orders_within_slots(member_ids: Sequence[str]) -> Iterator[list[str]]:
    order, reverse = hash_map_order(member_ids), hash_map_order(member_ids[::-1])
    slots: list[list[str]] = []
    open_slot: set[str] = set()
    for member_id, other in zip(order, reverse, strict=True):
        if not open_slot:
            slots.append([])
        slots[-1].append(member_id)
        open_slot ^= {member_id}
        open_slot ^= {other}
    orders = (islice(permutations(slot), _MAX_ORDERS) for slot in slots)
    yield from ([member_id for slot in found for member_id in slot] for found in product(*orders))


def copied_set_table(size: int) -> int:
    """Return the slots of ``new HashSet<>(collection)``."""
    return table_size_for(max(int(size / 0.75) + 1, 16))


def integers_in_set_order(numbers: Sequence[int]) -> list[int]:
    """Return the order in which ``new HashSet<>(numbers)`` iterates."""
    distinct = list(dict.fromkeys(numbers))
    table = copied_set_table(len(numbers))
    largest = max(distinct, default=0)
    if largest < table:
        return sorted(distinct)
    mask = table - 1
    if largest < _UNSPREAD and (
        len(distinct) <= TREEIFY_THRESHOLD or len({number & mask for number in distinct}) == len(distinct)
    ):
        return sorted(distinct, key=mask.__and__)
    return [distinct[place] for place in hashed_order(distinct, table)]


class ServerGroup:
    """A group as ``GroupSpec`` and ``SubscribedTopicDescriber`` show it.

    Attributes:
        members: In the order of the coordinator's ``HashMap``.
        owned: Each member's previous target, as reported.
        topics: Existing topics by name; ``ids`` are their UUIDs as 128-bit numbers, ``counts`` their partitions.
        subscriptions: The existing topics that each member subscribes to; equal lists may be one object.
        homogeneous: Whether all members name the same topics, existing or not, or all have the same pattern: if they
            subscribe to the same topics by other patterns, or some by name, they count as differently subscribed.
            Source: kafka-group-coordinator 4.1 ``ConsumerGroup#subscriptionType``.
    """

    def __init__(self, problem: Problem) -> None:
        by_id = {member.member_id: member for member in problem.members}
        self._problem = problem
        order = hash_map_order(list(by_id), problem.member_slots or INITIAL_CAPACITY)
        self.members: list[Participant] = [by_id[member_id] for member_id in order]
        self.owned = _reported_before(problem, self.members)
        topics = problem.topics
        self.topics: list[Topic] = [topics[name] for name in sorted_strings(topics) if topics[name].queues]
        # A topic without an id is ordered by its position among the names.
        texts = [topic.topic_id for topic in self.topics]
        self.ids = [place if text is None else _uuid(text) for place, text in enumerate(texts)]
        self._hashes = uuid_hashes(self.ids)
        self.queues = [topic.by_queue_id for topic in self.topics]
        self.counts = [len(queues) for queues in self.queues]
        self._places = {topic.name: place for place, topic in enumerate(self.topics)}
        lists, kinds = kinds_of(self.members)
        sets = list(map(frozenset, lists))
        self.homogeneous = len(set(sets)) <= 1 and len({member.pattern for member in self.members}) <= 1
        self._first_names = lists[kinds[0]]
        existing = [frozenset(map(self._places.__getitem__, names & self._places.keys())) for names in sets]
        self.subscriptions = list(map(existing.__getitem__, kinds))

    def target(self, member: int) -> dict[int, list[int]]:
        """Return a member's previous target: partitions by topic, both in the order of Java's maps."""
        by_topic: dict[int, list[int]] = {}
        topic, numbers = None, None
        for queue in self.owned[member]:
            if queue.topic != topic:
                topic = queue.topic
                place = self._places.get(topic)
                numbers = None if place is None else by_topic.setdefault(place, [])
            if numbers is not None:
                numbers.append(queue.queue_id)
        return {topic: integers_in_set_order(by_topic[topic]) for topic in self._hashed(list(by_topic))}

    def first_topics(self) -> list[int]:
        """Return the first member's topics in the order of a ``HashSet<Uuid>`` copied from its set."""
        names = hash_map_order(self._first_names, copied_set_table(len(self._first_names)))
        existing = [self._places[name] for name in names if name in self._places]
        return self._hashed(existing, copied_set_table(len(names)))

    def _hashed(self, topics: list[int], table: int = INITIAL_CAPACITY) -> list[int]:
        if len(topics) <= 1:
            return topics
        order = hashed_order(list(map(self._hashes.__getitem__, topics)), table)
        return list(map(topics.__getitem__, order))

    def as_joined(self, held: Iterable[list[QueueRef]]) -> Assignment:
        """Return each member's partitions, in the order in which members joined."""
        return by_member(self._problem, self.members, held)


def _reported_before(problem: Problem, members: Sequence[Participant]) -> list[tuple[QueueRef, ...]]:
    if problem.previous is None:
        return [member.owned or () for member in members]
    return [problem.previous.get(member.member_id, ()) for member in members]


def uuid_hashes(uuids: Sequence[int]) -> list[int]:
    """Return ``Uuid.hashCode`` of each, unsigned."""
    return [((folded := uuid ^ uuid >> 64) ^ folded >> 32) & 0xFFFFFFFF for uuid in uuids]


def uuid_order(uuid: int) -> tuple[int, int]:
    """Return a sort key with the order of ``Uuid.compareTo``: two signed longs."""
    return (_signed_long(uuid >> 64), _signed_long(uuid & 0xFFFFFFFFFFFFFFFF))


def _signed_long(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _uuid(text: str) -> int:
    """Return the number of a UUID in Kafka's base64 text, or in the usual hexadecimal one."""
    try:
        if len(text) == 36:
            return int(text.replace("-", ""), 16)
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (ValueError, binascii.Error) as error:
        raise StrategyError("illegal_argument", f"{text!r} is not a topic id") from error
    if len(raw) != 16:
        raise StrategyError("illegal_argument", f"{text!r} is not a topic id")
    return int.from_bytes(raw, "big")
