"""Core: a group in the form Kafka's sticky assignors use: numbered partitions, settled claims, racks. No I/O.

Source: KIP-54, KIP-881; kafka-clients 4.1 ``AbstractStickyAssignor``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, dropwhile

from udfs.jvm.collections import hash_map_order, sorted_strings
from udfs.model.events import QueueRef
from udfs.strategies.kafka.client_library import JAVA, Library
from udfs.strategies.kafka.range import replica_racks
from udfs.strategies.problem import Assignment, Participant, Problem
from udfs.strategies.subscriptions import kinds_of

_TODAY = Library(name=JAVA)
_NO_GENERATION = -1  # AbstractStickyAssignor.DEFAULT_GENERATION


class StickyGroup:
    """Members and partitions as numbers.

    Members are numbered in the order of the assignor's ``HashMap`` of owned partitions. Partitions are numbered by
    (topic, partition) from 0 to ``total`` − 1; claims of partitions that do not exist, but whose topic does, have
    numbers from ``total`` on, as the real class checks the topic alone.

    Attributes:
        claims, generations: The partitions that each member reports as owned (of existing topics), and when; −1 if not
            reported.
        owned: The claims after each contest: a later generation wins; within one generation no member does.
        contested: Partitions claimed twice in one generation.
        equal: Whether the assignor considers the subscriptions equal.
    """

    def __init__(self, problem: Problem, library: Library = _TODAY) -> None:
        is_java = library.name == JAVA
        self.library = library
        sort = sorted_strings if is_java else sorted
        self._problem = problem
        by_id = {member.member_id: member for member in problem.members}
        subscribed_order = hash_map_order(list(by_id)) if is_java else list(by_id)
        order = hash_map_order(subscribed_order) if is_java else subscribed_order
        self.members: list[Participant] = [by_id[member_id] for member_id in order]
        ranks = {member_id: rank for rank, member_id in enumerate(sort(order))}
        self.ranks = [ranks[member_id] for member_id in order]
        self.by_rank = [0] * len(order)
        for member, rank in enumerate(self.ranks):
            self.by_rank[rank] = member
        self._number_partitions(is_java=is_java)
        places = {member_id: place for place, member_id in enumerate(order)}
        # The assignor reads subscriptions in this order, which differs only where hash slots grow into trees.
        self.reading_order = [places[member_id] for member_id in subscribed_order]
        self.generations = [
            member.generation if member.generation is not None and member.generation >= 0 else _NO_GENERATION
            for member in self.members
        ]
        self.claims = [self._numbered(member.owned or ()) for member in self.members]
        self.equal = self._subscriptions_are_equal()
        # For each partition claimed in an older generation, even if also in a newer one: the member that claimed it
        # before.
        self.claimed_before: dict[int, int] = {}
        self.contested: set[int] = set()
        if is_java:
            self._settle_claims()
        else:
            self._settle_claims_in_order()
        self.racks = [(member.rack or None) if library.uses_racks else None for member in self.members]
        self._read_racks()

    def _number_partitions(self, *, is_java: bool) -> None:
        self.subscriptions, self.kinds = kinds_of(self.members)
        names = set().union(*self.subscriptions)
        topics = self._problem.topics
        self.topics = (sorted_strings if is_java else sorted)(
            name for name in names if name in topics and topics[name].queues
        )
        self.place_of_topic = {name: place for place, name in enumerate(self.topics)}
        self.first = []
        self.counts = []
        self.queues: list[QueueRef] = []
        self.topic_of: list[int] = []
        # Kafka's partitions are 0 to n − 1. If a source names others, these are their positions by topic.
        self._gapped: dict[int, dict[int, int]] = {}
        for place, name in enumerate(self.topics):
            refs = topics[name].by_queue_id
            self.first.append(len(self.queues))
            self.counts.append(len(refs))
            if refs[-1].queue_id != len(refs) - 1:
                self._gapped[place] = {ref.queue_id: number for number, ref in enumerate(refs)}
            self.queues += refs
            self.topic_of += [place] * len(refs)
        self.total = len(self.queues)

    def _numbered(self, owned: Sequence[QueueRef]) -> list[int]:
        numbers = []
        places, first, counts, gapped = self.place_of_topic, self.first, self.counts, self._gapped
        for queue in owned:
            place = places.get(queue.topic)
            if place is None:
                continue
            number = queue.queue_id
            if place in gapped:
                number = gapped[place].get(number, counts[place])
            if number < counts[place]:
                numbers.append(first[place] + number)
            else:
                numbers.append(self._number_missing(queue, place))
        return numbers

    def _number_missing(self, queue: QueueRef, place: int) -> int:
        for number in range(self.total, len(self.queues)):
            added = self.queues[number]
            if added.topic == queue.topic and added.queue_id == queue.queue_id:
                return number
        self.queues.append(QueueRef(topic=queue.topic, queue_id=queue.queue_id))
        self.topic_of.append(place)
        return len(self.queues) - 1

    def partition(self, number: int) -> int:
        """Return the partition's number within its topic."""
        return self.queues[number].queue_id

    def _subscriptions_are_equal(self) -> bool:
        kinds = map(self.kinds.__getitem__, self.reading_order)
        # Members without topics that are read before the first member with a topic do not count.
        counted = list(dropwhile(lambda kind: not self.subscriptions[kind], kinds))
        if not counted:
            return True
        wanted = frozenset(self.subscriptions[counted[0]])
        others = map(self.subscriptions.__getitem__, set(counted[1:]))
        return all(len(names) == len(wanted) and wanted.issuperset(names) for names in others)

    def _settle_claims(self) -> None:
        self._note_older_claims()
        if len(set(chain.from_iterable(self.claims))) == sum(map(len, self.claims)):
            self.owned = self.claims
            return
        # The last member with the newest generation so far, and whether no other has that generation.
        newest: dict[int, tuple[int, bool]] = {}
        for member in self.reading_order:
            for number in self.claims[member]:
                later = 1
                if number in newest:
                    later = self.generations[member] - self.generations[newest[number][0]]
                if later == 0:
                    self.contested.add(number)
                if later >= 0:
                    newest[number] = (member, later > 0)
        self.owned = [[] for _ in self.members]
        for number, (member, is_alone) in newest.items():
            if is_alone:
                self.owned[member].append(number)

    def _note_older_claims(self) -> None:
        """Fill ``claimed_before``: for partitions claimed in older generations, the member of the newest of those."""
        newest = max(self.generations)
        # Within one generation, the member that is read first counts.
        older = [member for member in self.reading_order if self.generations[member] < newest]
        older.sort(key=lambda member: -self.generations[member])
        for member in older:
            for number in self.claims[member]:
                self.claimed_before.setdefault(number, member)

    def _settle_claims_in_order(self) -> None:
        """Settle claims as in KIP-341: the latest generation wins, and within one the member that is read first."""
        by_generation: dict[int, dict[int, int]] = {}
        for member in self.reading_order:
            for number in self.claims[member]:
                by_generation.setdefault(number, {}).setdefault(self.generations[member], member)
        self.owned = [[] for _ in self.members]
        self.queues, self.topic_of = self.queues[: self.total], self.topic_of[: self.total]
        for number, claims in by_generation.items():
            if number >= self.total:
                continue  # it no longer exists
            latest, *older = sorted(claims, reverse=True)
            self.owned[claims[latest]].append(number)
            if older:
                self.claimed_before[number] = claims[older[0]]

    def _read_racks(self) -> None:
        """Fill ``partition_racks`` (empty if racks are unused) and ``rack_consumers`` (None without any rack)."""
        self.rack_consumers: list[int] | None = None
        self.partition_racks: list[frozenset[str]] = []
        members_in: dict[str, int] = {}
        for rack in self.racks:
            if rack:
                members_in[rack] = members_in.get(rack, 0) + 1
        if not members_in:
            return
        racks = []
        for name in self.topics:
            queues = sorted(self._problem.topics[name].queues, key=lambda queue: queue.queue_id)
            racks += [replica_racks(queue) for queue in queues]
        self.rack_consumers = [sum(members_in.get(rack, 0) for rack in of_partition) for of_partition in racks]
        all_racks: frozenset[str] = frozenset().union(*racks)
        if not all_racks.isdisjoint(members_in) and any(of_partition != all_racks for of_partition in racks):
            self.partition_racks = racks + [frozenset()] * (len(self.queues) - self.total)

    def mismatch(self, member: int, number: int) -> bool:
        """Return whether racks are used, the member has one, and no replica of the partition is in it."""
        rack = self.racks[member]
        return bool(self.partition_racks) and bool(rack) and rack not in self.partition_racks[number]

    def rest_after(self, assigned: Sequence[int], order: Sequence[int]) -> list[int]:
        """Return the partitions of ``order`` that are not among ``assigned``, with the real class's flaws.

        Args:
            assigned: Sorted as ``order`` is. After a partition that does not exist the real class finds none, and
                treats all later ones as unassigned.
        """
        found = set()
        for number in assigned:
            if number >= self.total or number in found:
                break
            found.add(number)
        return [number for number in order if number not in found]

    def assignment(self, held: Sequence[Sequence[int]]) -> Assignment:
        """Return the queues with given numbers, sorted by topic and partition."""
        queues = self.queues
        beyond = len(queues) > self.total
        found = {}
        for member, numbers in zip(self.members, held, strict=True):
            refs = list(map(queues.__getitem__, sorted(numbers)))
            if beyond:
                refs.sort(key=lambda ref: (self.place_of_topic[ref.topic], ref.queue_id))
            found[member.member_id] = refs
        return {member.member_id: found[member.member_id] for member in self._problem.members}
