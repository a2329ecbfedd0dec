"""Shell: how the leaders of simulated Kafka groups deal out partitions, plainly and apart from the monitor's own."""

from __future__ import annotations

from typing import TypeAlias

Partitions: TypeAlias = list[tuple[str, int]]
# member id, instance id, topics it subscribes to, what it holds
Member: TypeAlias = tuple[str, str | None, tuple[str, ...], Partitions]


def in_order(members: list[Member]) -> list[Member]:
    """Answer static members by instance id, then the others by member id, as Kafka's assignors take them."""
    return sorted(members, key=lambda member: (member[1] is None, member[1] or member[0]))


def deal_range(members: list[Member], counts: dict[str, int]) -> dict[str, Partitions]:
    """Deal each topic in contiguous pieces over its subscribers, the first ones one more."""
    dealt: dict[str, Partitions] = {member[0]: [] for member in members}
    for topic in sorted(counts):
        subscribers = [member[0] for member in in_order(members) if topic in member[2]]
        first = 0
        for place, member_id in enumerate(subscribers):
            size = counts[topic] // len(subscribers) + (place < counts[topic] % len(subscribers))
            dealt[member_id] += [(topic, number) for number in range(first, first + size)]
            first += size
    return dealt


def deal_roundrobin(members: list[Member], counts: dict[str, int]) -> dict[str, Partitions]:
    """Deal all partitions one by one over all members, passing over those that do not subscribe."""
    dealt: dict[str, Partitions] = {member[0]: [] for member in members}
    circle = in_order(members)
    place = 0
    for topic in sorted(counts):
        if not any(topic in member[2] for member in circle):
            continue
        for number in range(counts[topic]):
            while topic not in circle[place % len(circle)][2]:
                place += 1
            dealt[circle[place % len(circle)][0]].append((topic, number))
            place += 1
    return dealt


def cooperative(members: list[Member], counts: dict[str, int]) -> dict[str, Partitions]:
    """Leave partitions where they are, give free ones to who has fewest, then even out."""
    wants = {member[0]: set(member[2]) for member in members}
    dealt = {
        member[0]: [(topic, number) for topic, number in member[3] if topic in wants[member[0]]] for member in members
    }
    taken = {partition for held in dealt.values() for partition in held}
    for topic in sorted(counts):
        subscribers = sorted(name for name, topics in wants.items() if topic in topics)
        for number in range(counts[topic]):
            if subscribers and (topic, number) not in taken:
                dealt[min(subscribers, key=lambda name: len(dealt[name]))].append((topic, number))
    _even_out(dealt, wants)
    return {name: sorted(held) for name, held in dealt.items()}


def _even_out(dealt: dict[str, Partitions], wants: dict[str, set[str]]) -> None:
    for name in sorted(dealt):
        while True:
            rich = [
                (len(held), other)
                for other, held in sorted(dealt.items())
                if len(held) > len(dealt[name]) + 1 and any(topic in wants[name] for topic, _ in held)
            ]
            if not rich:
                break
            _, other = max(rich)
            moved = max(one for one in dealt[other] if one[0] in wants[name])
            dealt[other].remove(moved)
            dealt[name].append(moved)


def custom(members: list[Member], counts: dict[str, int]) -> dict[str, Partitions]:
    """Give everything of a topic to its first subscriber: a strategy that nobody else knows."""
    dealt: dict[str, Partitions] = {member[0]: [] for member in members}
    for topic in sorted(counts):
        for member in in_order(members):
            if topic in member[2]:
                dealt[member[0]] += [(topic, number) for number in range(counts[topic])]
                break
    return dealt
