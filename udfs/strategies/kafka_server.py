"""Core: a group as Kafka's server-side assignors see it: topic ids, members in map order, the target. No I/O."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence

from udfs.errors import StrategyError
from udfs.events import QueueRef
from udfs.java import TREEIFY_THRESHOLD, hash_map_order, hashed_order, sorted_strings, table_size_for
from udfs.strategies.kafka_clients import by_member
from udfs.strategies.problem import Assignment, Participant, Problem, Topic
from udfs.strategies.subscriptions import kinds_of

# HashMap mixes the upper 16 bits of a hash into the lower ones: smaller numbers stay what they are.
_UNSPREAD = 1 << 16


def copied_set_table(size: int) -> int:
    """Answer the slots of ``new HashSet<>(collection)``."""
    return table_size_for(max(int(size / 0.75) + 1, 16))


def integers_in_set_order(numbers: Sequence[int]) -> list[int]:
    """Answer the order in which ``new HashSet<>(numbers)`` iterates."""
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
        topics: Existing topics by name; ``ids`` are their UUIDs as 128-bit numbers, ``counts`` their partitions.
        subscriptions: For each member the existing topics that it subscribes to, in the order of its set.
        homogeneous: Whether all members name the same topics, existing or not.
    """

    def __init__(self, problem: Problem) -> None:
        by_id = {member.member_id: member for member in problem.members}
        self._problem = problem
        self.members: list[Participant] = [by_id[member_id] for member_id in hash_map_order(list(by_id))]
        self.topics: list[Topic] = [problem.topics[name] for name in sorted_strings(problem.topics)]
        self.topics = [topic for topic in self.topics if topic.queues]
        self.ids = [_uuid(topic.topic_id, place) for place, topic in enumerate(self.topics)]
        self.queues = [topic.by_queue_id for topic in self.topics]
        self.counts = [len(queues) for queues in self.queues]
        self._places = {topic.name: place for place, topic in enumerate(self.topics)}
        self._names, kinds = kinds_of(self.members)
        self._first_kind = kinds[0]
        self.homogeneous = len({frozenset(names) for names in self._names}) <= 1
        topics_of_kind = []
        for names in self._names:
            order = hash_map_order(names, copied_set_table(len(names)))
            topics_of_kind.append([self._places[name] for name in order if name in self._places])
        self.subscriptions: list[list[int]] = [topics_of_kind[kind] for kind in kinds]

    def owned(self, member: int) -> tuple[QueueRef, ...]:
        """Answer what a member was to hold before, as it was told."""
        previous, asked = self._problem.previous, self.members[member]
        return (asked.owned or ()) if previous is None else previous.get(asked.member_id, ())

    def target(self, member: int) -> dict[int, list[int]]:
        """Answer what a member was to hold before: partitions by topic, both in the order of Java's maps."""
        by_topic: dict[int, list[int]] = {}
        topic, numbers = None, None
        for queue in self.owned(member):
            if queue.topic != topic:
                topic = queue.topic
                place = self._places.get(topic)
                numbers = None if place is None else by_topic.setdefault(place, [])
            if numbers is not None:
                numbers.append(queue.queue_id)
        places = list(by_topic)
        order = hashed_order([uuid_hash(self.ids[place]) for place in places])
        return {places[index]: integers_in_set_order(by_topic[places[index]]) for index in order}

    def topics_in_set_order(self, names: int, topics: Sequence[int]) -> list[int]:
        """Answer topics in the order of a ``HashSet<Uuid>`` copied from a set of so many names."""
        order = hashed_order([uuid_hash(self.ids[topic]) for topic in topics], copied_set_table(names))
        return [topics[index] for index in order]

    def first_names(self) -> int:
        """Answer how many topics the first member names."""
        return len(set(self._names[self._first_kind]))

    def answer(self, held: Sequence[dict[int, list[int]]]) -> Assignment:
        """Turn partitions by member and topic into queues, sorted."""
        return self.as_joined(map(self._named, held))

    def as_joined(self, held: Iterable[list[QueueRef]]) -> Assignment:
        """Answer what each member holds, members in the order in which they joined."""
        return by_member(self._problem, self.members, held)

    def _named(self, by_topic: dict[int, list[int]]) -> list[QueueRef]:
        return [self.queues[topic][number] for topic in sorted(by_topic) for number in sorted(by_topic[topic])]


def uuid_hash(uuid: int) -> int:
    """Answer ``Uuid.hashCode``, signed."""
    folded = (uuid >> 64) ^ (uuid & 0xFFFFFFFFFFFFFFFF)
    hashed = ((folded >> 32) ^ folded) & 0xFFFFFFFF
    return hashed - (1 << 32) if hashed >> 31 else hashed


def uuid_order(uuid: int) -> tuple[int, int]:
    """Answer a sort key with the order of ``Uuid.compareTo``: two signed longs."""
    return (_signed_long(uuid >> 64), _signed_long(uuid & 0xFFFFFFFFFFFFFFFF))


def _signed_long(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _uuid(text: str | None, place: int) -> int:
    """Read Kafka's base64 text or the usual hexadecimal one; without any, the topic's place by name stands in."""
    if text is None:
        return place
    try:
        if len(text) == 36:
            return int(text.replace("-", ""), 16)
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (ValueError, binascii.Error) as error:
        raise StrategyError("illegal_argument", f"{text!r} is no topic id") from error
    if len(raw) != 16:
        raise StrategyError("illegal_argument", f"{text!r} is no topic id")
    return int.from_bytes(raw, "big")
