"""Core: RocketMQ's two strategies with machine rooms. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from udfs.jvm.collections import string_order
from udfs.model.errors import StrategyError
from udfs.model.events import QueueInfo, QueueRef
from udfs.strategies.problem import Assignment, Participant, Problem, Strategy, Topic
from udfs.strategies.rocketmq.all_members import TopicAllocation, allocate_each_topic
from udfs.strategies.rocketmq.averagely import averagely, by_circle
from udfs.strategies.rocketmq.config import configured
from udfs.strategies.rocketmq.consistent_hash import consistent_hash
from udfs.strategies.rocketmq.pinned import pinned
from udfs.strategies.settings import text, text_map, texts
from udfs.strategies.subscriptions import distinct_queues


def rocketmq_machine_room(problem: Problem) -> Assignment:
    """Return the queues of the brokers in the rooms ``rooms`` over all ids; the others have no owner.

    A broker's room is the part before the ``@`` of its name; a name that does not have two parts is in no room. Each id
    gets a block of neighbours, and the first ids get one each of the remaining queues at the end. Each topic is even to
    within one queue. Known imbalance: the same first ids get one more of every topic, and brokers in rooms that are not
    named have no reader.

    Rolling restart: as with ``AVG``.

    Source: rocketmq-client 4.9 and 5.5 ``AllocateMessageQueueByMachineRoom``. Without ``rooms`` the real class fails
    at the first broker that is in a room, and so does this one.

    Example: queues a0–a5 of broker room1@broker-a and b0–b5 of room2@broker-b, rooms ["room1"], four ids: a0, a4 / a1,
        a5 / a2 / a3.
    """
    return allocate_each_topic(problem, machine_room(problem.settings))


def machine_room(settings: Mapping[str, object]) -> TopicAllocation:
    """Return the allocation of one topic under these settings.

    Raises:
        StrategyError: ``illegal_setting``; from the allocation ``null_pointer``.
    """
    configured_rooms = texts(settings, "rooms")
    rooms = None if configured_rooms is None else set(configured_rooms)

    def allocate(queues: Sequence[QueueRef], ids: Sequence[str]) -> dict[str, list[QueueRef]]:
        kept = [queue for queue in queues if _is_in(rooms, queue.broker or "")]
        size, extra = divmod(len(kept), len(ids))
        shares: dict[str, list[QueueRef]] = {}
        for place, name in enumerate(ids):
            if name not in shares:
                shares[name] = kept[place * size : (place + 1) * size]
                if place < extra:
                    shares[name].append(kept[size * len(ids) + place])
        return shares

    return allocate


def _is_in(rooms: set[str] | None, broker: str) -> bool:
    # Java's split drops empty parts at the end.
    parts = broker.rstrip("@").split("@")
    if len(parts) != 2:
        return False
    if rooms is None:
        raise StrategyError("null_pointer", f"rooms is not set, and broker {broker!r} is in one")
    return parts[0] in rooms


def rocketmq_machine_room_nearby(problem: Problem, find: Callable[[str], Strategy]) -> Assignment:
    """Return each room's queues, allocated by the strategy ``inner`` over the ids of the same room.

    The queues of rooms without any id are allocated over all ids, room by room. Rooms come from ``broker_rooms``
    and ``member_rooms``; without such a map a name's room is the part before its first ``@``, else the whole name.
    A map that lacks a name, and an empty room, are errors.

    Each room is as even as the inner strategy; known imbalance: a room with few members and many queues.

    Rolling restart: queues move within the room only; when a room's last member leaves, all ids get its queues.

    ``find`` returns a custom strategy by its name, or raises ``StrategyError``.

    Source: rocketmq-client 4.9 and 5.5 ``AllocateMachineRoomNearby``.

    Example: the same queues by ``AVG``, the first three ids in room1, the fourth in room3: a0, a1, b0, b1 / a2,
        a3, b2, b3 / a4, a5, b4 / b5: room2 has no id, and all get its queues.
    """
    return allocate_each_topic(problem, machine_room_nearby(problem, find))


def machine_room_nearby(problem: Problem, find: Callable[[str], Strategy]) -> TopicAllocation:
    """Return the allocation of one topic under the problem's settings.

    Raises:
        StrategyError: ``illegal_setting``, ``unknown_strategy``; from the allocation ``illegal_argument`` if a room is
            missing, and the inner strategy's own errors.
    """
    inner = _inner(problem, text(problem.settings, "inner", "rocketmq.AVG"), find)
    room_of_broker = _rooms(problem.settings, "broker_rooms")
    room_of_member = _rooms(problem.settings, "member_rooms")
    askers: dict[str, set[str]] = {}
    for member in problem.members:
        for topic in member.subscriptions:
            askers.setdefault(topic, set()).add(member.name)

    def allocate(queues: Sequence[QueueRef], ids: Sequence[str]) -> dict[str, list[QueueRef]]:
        queues_by_room: dict[str, list[QueueRef]] = {}
        for queue in queues:
            broker = queue.broker or ""
            room = room_of_broker(broker)
            if not room:
                raise StrategyError("illegal_argument", f"broker {broker!r} of topic {queue.topic!r} is in no room")
            queues_by_room.setdefault(room, []).append(queue)
        ids_by_room: dict[str, list[str]] = {}
        for name in ids:
            room = room_of_member(name)
            if not room:
                raise StrategyError("illegal_argument", f"member {name!r} is in no room")
            ids_by_room.setdefault(room, []).append(name)
        shares: dict[str, list[QueueRef]] = {name: [] for name in ids}
        for room, own in ids_by_room.items():
            # The inner strategy fails only if a client calls it.
            if room in queues_by_room and not askers[queues[0].topic].isdisjoint(own):
                _add(shares, inner(queues_by_room[room], own))
        for room in sorted(queues_by_room, key=string_order):
            if room not in ids_by_room:
                _add(shares, inner(queues_by_room[room], ids))
        return {name: distinct_queues(share) for name, share in shares.items()}

    return allocate


def _add(shares: dict[str, list[QueueRef]], more: Mapping[str, Sequence[QueueRef]]) -> None:
    for name, queues in more.items():
        shares[name] += queues


def _rooms(settings: Mapping[str, object], name: str) -> Callable[[str], str | None]:
    rooms = text_map(settings, name)
    if rooms is None:
        return lambda of: of.split("@", 1)[0]
    return rooms.get


_NEARBY = "rocketmq.MACHINE_ROOM_NEARBY"
# AllocateMachineRoomNearby#getName returns its own name and the inner strategy's.
NEARBY_OF = f"{_NEARBY}-"

# RocketMQ's own strategies as allocations of one topic.
_ALLOCATIONS: dict[str, Callable[[Problem], TopicAllocation]] = {
    "rocketmq.AVG": lambda _problem: averagely,
    "rocketmq.AVG_BY_CIRCLE": lambda _problem: by_circle,
    "rocketmq.CONFIG": lambda problem: configured(problem.settings),
    "rocketmq.CONSISTENT_HASH": lambda problem: consistent_hash(problem.settings),
    "rocketmq.MACHINE_ROOM": lambda problem: machine_room(problem.settings),
    "rocketmq.PINNED": lambda problem: pinned(problem.settings),
}


def _qualified(name: str) -> str:
    return name if name.startswith("rocketmq.") else f"rocketmq.{name}"


def _inner(problem: Problem, name: str, find: Callable[[str], Strategy]) -> TopicAllocation:
    qualified = _qualified(name)
    # A nested one gets one room at a time, and so allocates as its own inner strategy does.
    while qualified.startswith(NEARBY_OF):
        qualified = _qualified(qualified.removeprefix(NEARBY_OF))
    if qualified in _ALLOCATIONS:
        return _ALLOCATIONS[qualified](problem)
    if qualified == _NEARBY:
        raise StrategyError("illegal_setting", "inner must not be MACHINE_ROOM_NEARBY itself")
    return _as_allocation(problem, find(name if qualified == _qualified(name) else qualified))


def _as_allocation(problem: Problem, function: Strategy) -> TopicAllocation:
    def allocate(queues: Sequence[QueueRef], ids: Sequence[str]) -> dict[str, list[QueueRef]]:
        topic = queues[0].topic
        members = tuple(Participant(member_id=name, name=name, subscriptions=(topic,)) for name in dict.fromkeys(ids))
        infos = tuple(QueueInfo(queue_id=queue.queue_id, broker=queue.broker) for queue in queues)
        of_topic = msgspec.structs.replace(problem, members=members, topics={topic: Topic(name=topic, queues=infos)})
        return function(of_topic)

    return allocate
