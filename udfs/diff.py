"""Core: two assignments or two sizes of a topic compared, and one assignment judged. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from udfs.events import QueueInfo
from udfs.group_state import Owners, Queue, queue_order


class Moves(msgspec.Struct, frozen=True):
    """What became of the queues, counted over all owners of each.

    Attributes:
        kept: Still held by the same. moved: From one to another. assigned, revoked: Gained or lost an owner.
    """

    kept: int = 0
    assigned: int = 0
    revoked: int = 0
    moved: int = 0


class Balance(msgspec.Struct, frozen=True):
    """How an assignment lies.

    Attributes:
        idle: Members that subscribe to something and hold nothing. unassigned: Queues that nobody holds.
        spread: Most − fewest queues of a member that subscribes to something.
    """

    idle: int = 0
    unassigned: int = 0
    spread: int = 0


def count_moves(before: Owners, after: Owners) -> Moves:
    """Count what became of the queues.

    For each queue with owners O before and N after: |O∩N| kept, min(|O−N|, |N−O|) moved, the rest of N−O assigned,
    the rest of O−N revoked.

    Example:
        >>> before = {("t", None, 0): ("a",), ("t", None, 1): ("a",)}
        >>> count_moves(before, {("t", None, 0): ("b",), ("t", None, 2): ("b",)})
        Moves(kept=0, assigned=1, revoked=1, moved=1)
    """
    kept = assigned = revoked = moved = 0
    for queue in before.keys() | after.keys():
        old, new = before.get(queue, ()), after.get(queue, ())
        if old == new:
            kept += len(old)
            continue
        both = len(set(old) & set(new))
        lost, gained = len(old) - both, len(new) - both
        change = min(lost, gained)
        kept += both
        moved += change
        assigned += gained - change
        revoked += lost - change
    return Moves(kept, assigned, revoked, moved)


def judge_balance(owners: Owners, subscribers: Sequence[str], queues: Iterable[Queue], by_message: bool) -> Balance:
    """Judge how an assignment lies.

    Args:
        subscribers: Members that subscribe to something. queues: All queues of the topics they subscribe to.
        by_message: Queues are shared by message: nobody is idle and nothing unassigned.
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


def count_differing(left: Owners, right: Owners) -> int:
    """Count the queues that the two give to different members."""
    return sum(left.get(queue, ()) != right.get(queue, ()) for queue in left.keys() | right.keys())


def spans_between(before: Owners, after: Owners) -> tuple[list[tuple[Queue, str]], list[tuple[Queue, str]]]:
    """Answer which (queue, member) spans end and which begin, each in order."""
    ending: list[tuple[Queue, str]] = []
    beginning: list[tuple[Queue, str]] = []
    for queue in sorted(before.keys() | after.keys(), key=queue_order):
        old, new = before.get(queue, ()), after.get(queue, ())
        if old != new:
            ending += [(queue, member) for member in old if member not in new]
            beginning += [(queue, member) for member in new if member not in old]
    return ending, beginning


def by_owner(owners: Owners) -> dict[str, list[Queue]]:
    """Answer what each member holds, in order."""
    held: dict[str, list[Queue]] = {}
    for queue in sorted(owners, key=queue_order):
        for member in owners[queue]:
            held.setdefault(member, []).append(queue)
    return held


def owners_of(held: Mapping[str, Iterable[Queue]]) -> Owners:
    """Answer who holds each queue."""
    lists: dict[Queue, list[str]] = {}
    for member, queues in held.items():
        for queue in queues:
            lists.setdefault(queue, []).append(member)
    return {queue: tuple(sorted(set(members))) for queue, members in lists.items()}


def held_only_by(owners: Owners, members: Iterable[str]) -> Owners:
    """Answer the same, but held only by the members named."""
    staying = set(members)
    kept: Owners = {}
    for queue, holders in owners.items():
        left = tuple(member for member in holders if member in staying)
        if left:
            kept[queue] = left
    return kept


def resized(before: Sequence[QueueInfo] | None, after: Sequence[QueueInfo]) -> str:
    """Say how many queues a topic had and has; where it has as many, what else is new.

    Example:
        >>> resized((QueueInfo(0, "a"), QueueInfo(0, "b")), (QueueInfo(0, "a"), QueueInfo(1, "a")))
        '2 -> 2, 1 of them new'
    """
    said = f"{'unknown' if before is None else len(before)} -> {len(after)}"
    if before is None or len(before) != len(after):
        return said
    known = {(queue.broker, queue.queue_id) for queue in before}
    others = sum((queue.broker, queue.queue_id) not in known for queue in after)
    return f"{said}, {others} of them new" if others else f"{said}, other racks"
