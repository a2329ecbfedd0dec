"""Core: two assignments or two sizes of a topic compared, and the figures of one assignment. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from udfs.group.state.group import Owners, Queue, by_place
from udfs.model.events import QueueInfo

# A queue with its owners before and after, which differ.
Changed: TypeAlias = tuple[Queue, tuple[str, ...], tuple[str, ...]]


class Moves(msgspec.Struct, frozen=True):
    """How queues moved, counted over all owners of each queue.

    Attributes:
        kept: Same owner. moved: From one owner to another. assigned, revoked: Gained or lost an owner.
    """

    kept: int = 0
    assigned: int = 0
    revoked: int = 0
    moved: int = 0


class Balance(msgspec.Struct, frozen=True):
    """Figures of an assignment.

    Attributes:
        idle: Members with a subscription and without queues. unassigned: Queues without an owner.
        spread: Most − fewest queues of a member that subscribes to something.
    """

    idle: int = 0
    unassigned: int = 0
    spread: int = 0


def changed_queues(before: Owners, after: Owners) -> list[Changed]:
    """Return the queues whose owners differ, in order, with their owners before and after."""
    found: list[Changed] = []
    for queue, holders in after.items():
        former = before.get(queue, ())
        if former is not holders and former != holders:
            found.append((queue, former, holders))
    # The set reuses the hashes of the keys, which are costly to compute.
    found += [(queue, before[queue], ()) for queue in set(before).difference(after)]
    return found if len(found) < 2 else _in_queue_order(found)


def _in_queue_order(changed: Iterable[Changed]) -> list[Changed]:
    """Sort by topic, broker and id: ids alone are compared, because there are many of them."""
    places: dict[tuple[str, str | None], dict[int, Changed]] = {}
    place: tuple[str | None, str | None] = (None, None)
    for change in changed:
        topic, broker, queue_id = change[0]
        if topic is not place[0] or broker is not place[1]:
            place = (topic, broker)
            of_place = places.setdefault((topic, broker), {})
        of_place[queue_id] = change
    ordered: list[Changed] = []
    for place in sorted(places, key=lambda place: (place[0], place[1] or "")):
        by_id = places[place]
        ordered += [by_id[queue_id] for queue_id in sorted(by_id)]
    return ordered


def count_moves(before: Owners, changed: Iterable[Changed]) -> Moves:
    """Count how the queues of an assignment moved.

    For each queue with owners O before and N after: |O∩N| kept, min(|O−N|, |N−O|) moved, the rest of N−O assigned,
    the rest of O−N revoked.

    Args:
        changed: The result of ``changed_queues``.

    Example:
        >>> before = {("t", None, 0): ("a",), ("t", None, 1): ("a",)}
        >>> count_moves(before, changed_queues(before, {("t", None, 0): ("b",), ("t", None, 2): ("b",)}))
        Moves(kept=0, assigned=1, revoked=1, moved=1)
    """
    kept = sum(map(len, before.values()))
    assigned = revoked = moved = 0
    for _, old, new in changed:
        # single owners differ, or the queue has only one
        both = len(set(old) & set(new)) if len(old) > 1 or len(new) > 1 else 0
        lost, gained = len(old) - both, len(new) - both
        change = min(lost, gained)
        kept -= lost
        moved += change
        assigned += gained - change
        revoked += lost - change
    return Moves(kept, assigned, revoked, moved)


def measure_balance(owners: Owners, subscribers: Sequence[str], queues: Iterable[Queue], by_message: bool) -> Balance:
    """Return the figures of an assignment.

    Args:
        subscribers: Members that subscribe to something. queues: All queues of the topics they subscribe to.
        by_message: Queues are shared by message, so that no member is idle and no queue unassigned.
    """
    held = dict.fromkeys(subscribers, 0)
    for holders in owners.values():
        for member in holders:
            if member in held:
                held[member] += 1
    spread = max(held.values()) - min(held.values()) if held else 0
    if by_message:
        return Balance(0, 0, spread)
    idle = sum(not number for number in held.values())
    return Balance(idle, sum(queue not in owners for queue in queues), spread)


def by_owner(owners: Owners) -> dict[str, list[Queue]]:
    """Return the queues that each member holds, in order."""
    held: dict[str, list[Queue]] = {}
    for topic, broker, of_place in by_place(owners):
        for queue_id in sorted(of_place):
            for member in of_place[queue_id]:
                held.setdefault(member, []).append((topic, broker, queue_id))
    return held


def owners_of(held: Mapping[str, Iterable[Queue]]) -> Owners:
    """Return the owners of each queue, in the order in which members list the queues."""
    owners: dict[Queue, tuple[str, ...]] = {}
    shared: dict[Queue, set[str]] = {}
    for member, queues in held.items():
        alone = (member,)  # one object for all queues of a member, so that comparing owners mostly compares identities
        for queue in queues:
            owner = owners.setdefault(queue, alone)
            if owner is not alone:
                shared.setdefault(queue, {*owner}).add(member)
    owners.update({queue: tuple(sorted(members)) for queue, members in shared.items()})
    return owners


def held_only_by(owners: Owners, members: Iterable[str]) -> Owners:
    """Return the assignment restricted to these members."""
    staying = set(members)
    kept: dict[Queue, tuple[str, ...]] = {}
    for queue, holders in owners.items():
        left = tuple(member for member in holders if member in staying)
        if left:
            kept[queue] = left
    return kept


def without_topics(owners: Owners, topics: Collection[str]) -> Owners:
    """Return an assignment without the queues of some topics."""
    return {queue: holders for queue, holders in owners.items() if queue[0] not in topics} if topics else owners


def resized(before: Sequence[QueueInfo] | None, after: Sequence[QueueInfo]) -> str:
    """Describe a topic's old and new queue count or, for equal counts, what else changed.

    Example:
        >>> resized((QueueInfo(0, "a"), QueueInfo(0, "b")), (QueueInfo(0, "a"), QueueInfo(1, "a")))
        '2 -> 2, 1 of them new'
    """
    sizes = f"{'unknown' if before is None else len(before)} -> {len(after)}"
    if before is None or len(before) != len(after):
        return sizes
    former = {(queue.broker, queue.queue_id) for queue in before}
    others = sum((queue.broker, queue.queue_id) not in former for queue in after)
    return f"{sizes}, {others} of them new" if others else f"{sizes}, other racks"
