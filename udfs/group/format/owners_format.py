"""Core: compact encoding of queue owners and of other values per queue. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from udfs.group.state.group import Owners, Queue, by_place, queue_order
from udfs.model.events import MAX_QUEUE_COUNT

# More queues than this in one group mean a damaged state.
_MOST_QUEUES: Final = 10 * MAX_QUEUE_COUNT


class SharedValues:
    """A table of values that occur more than once, each referred to by its number."""

    def __init__(self, values: list[Any] | None = None) -> None:
        self.values: list[Any] = values or []
        self._numbers: dict[Any, int] = {}

    def number(self, key: Any, value: Any) -> int:
        """Return the number under which a value is written."""
        if key not in self._numbers:
            self._numbers[key] = len(self.values)
            self.values.append(value)
        return self._numbers[key]


# ---- owners: for each topic and broker, runs of (gap before, length, owners)


def pack_owners(owners: Owners, names: list[str], table: SharedValues) -> list[Any]:
    """Encode owners as runs; members are numbered by their position among the names."""
    if not owners:
        return []
    numbers = {member_id: number for number, member_id in enumerate(names)}
    packed: list[Any] = []
    for topic, broker, of_place in by_place(owners):
        runs: list[Any] = []
        next_id = 0
        last_holders: tuple[str, ...] = ()
        for queue_id in sorted(of_place):
            holders = of_place[queue_id]
            if queue_id == next_id and holders == last_holders:
                runs[-2] += 1
            else:
                now = numbers[holders[0]] if len(holders) == 1 else [numbers[holder] for holder in holders]
                runs += [queue_id - next_id, 1, now]
            next_id, last_holders = queue_id + 1, holders
        packed.append([table.number(topic, topic), None if broker is None else table.number(broker, broker), runs])
    return packed


def unpack_owners(packed: list[Any], names: list[str], values: list[Any]) -> Owners:
    """Return what ``pack_owners`` packed."""
    owners: dict[Queue, tuple[str, ...]] = {}
    if sum(max(0, length) for _, _, runs in packed for length in runs[1::3]) > _MOST_QUEUES:
        raise ValueError("a group has more queues than possible")
    alone = [(name,) for name in names]  # one object for all queues of a member: see ``owners_of``
    for topic, broker, runs in packed:
        name, place, next_id = values[topic], None if broker is None else values[broker], 0
        for gap, length, holder in zip(runs[::3], runs[1::3], runs[2::3], strict=True):
            held = alone[holder] if isinstance(holder, int) else tuple(names[number] for number in holder)
            next_id += gap
            for queue_id in range(next_id, next_id + length):
                owners[(name, place, queue_id)] = held
            next_id += length
    return owners


def pack_by_queue(by_queue: Mapping[Queue, Any], table: SharedValues) -> list[Any]:
    """Encode one value per queue: for each topic and broker, queue ids and values alternate."""
    packed: list[Any] = []
    place: tuple[str, str | None] | None = None
    for queue in sorted(by_queue, key=queue_order):
        topic, broker, queue_id = queue
        if (topic, broker) != place:
            place = (topic, broker)
            packed.append([table.number(topic, topic), None if broker is None else table.number(broker, broker), []])
        packed[-1][2] += [queue_id, by_queue[queue]]
    return packed


def unpack_by_queue(packed: list[Any], values: list[Any]) -> Iterator[tuple[Queue, Any]]:
    """Return what ``pack_by_queue`` packed."""
    for topic, broker, run in packed:
        place = None if broker is None else values[broker]
        for start in range(0, len(run), 2):
            yield (values[topic], place, run[start]), run[start + 1]
