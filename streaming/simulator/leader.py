"""Shell: the assignors of simulated Kafka groups, simple and independent of the monitor's own."""

from __future__ import annotations

from typing import TypeAlias

Partitions: TypeAlias = list[tuple[str, int]]
# member id, instance id, subscribed topics, current partitions
Member: TypeAlias = tuple[str, str | None, tuple[str, ...], Partitions]


def in_order(members: list[Member]) -> list[Member]:
    """Return static members by instance id, then the others by member id, in the order of Kafka's assignors."""
    return sorted(members, key=lambda member: (member[1] is None, member[1] or member[0]))


def assign_range(members: list[Member], counts: dict[str, int]) -> dict[str, Partitions]:
    """Assign each topic in contiguous pieces over its subscribers, the first ones one more."""
    assigned: dict[str, Partitions] = {member[0]: [] for member in members}
    for topic in sorted(counts):
        subscribers = [member[0] for member in in_order(members) if topic in member[2]]
        first = 0
        for place, member_id in enumerate(subscribers):
            size = counts[topic] // len(subscribers) + (place < counts[topic] % len(subscribers))
            assigned[member_id] += [(topic, number) for number in range(first, first + size)]
            first += size
    return assigned


def assign_roundrobin(members: list[Member], counts: dict[str, int]) -> dict[str, Partitions]:
    """Assign all partitions one by one over all members, skipping those that do not subscribe."""
    assigned: dict[str, Partitions] = {member[0]: [] for member in members}
    circle = in_order(members)
    place = 0
    for topic in sorted(counts):
        if not any(topic in member[2] for member in circle):
            continue
        for number in range(counts[topic]):
            while topic not in circle[place % len(circle)][2]:
                place += 1
            assigned[circle[place % len(circle)][0]].append((topic, number))
            place += 1
    return assigned


def cooperative(members: list[Member], counts: dict[str, int]) -> dict[str, Partitions]:
    """Leave partitions in place up to a fair share, then assign the free ones to the members with fewest.

    Only for equal subscriptions: Kafka's constrained sticky assignment (KIP-54, KIP-429).
    """
    topics = sorted({topic for member in members for topic in member[2]})
    everything = [(topic, number) for topic in topics for number in range(counts[topic])]
    if not members:
        return {}
    least, with_one_more = divmod(len(everything), len(members))
    assigned: dict[str, Partitions] = {}
    hungry: list[str] = []  # members below the least share
    content: list[str] = []  # members with exactly the least share, which may get one more
    richer = 0
    for member_id, _, _, held in sorted(members, key=lambda member: _place_in_a_java_map(member[0], len(members))):
        mine = sorted(
            (partition for partition in held if partition in set(everything)),
            key=lambda partition: (partition[1], partition[0]),
        )
        if len(mine) < least:
            assigned[member_id] = mine
            hungry.append(member_id)
        elif len(mine) > least and richer < with_one_more:
            assigned[member_id] = mine[: least + 1]
            richer += 1
        else:
            assigned[member_id] = mine[:least]
            content.append(member_id)
    taken = {partition for mine in assigned.values() for partition in mine}
    hungry.sort()
    # A member that reaches the least share only now comes after those that already had it.
    content.sort()
    place = 0
    for partition in everything:
        if partition in taken:
            continue
        if hungry:
            place %= len(hungry)
            member_id = hungry[place]
            assigned[member_id].append(partition)
            if len(assigned[member_id]) == least:
                content.append(hungry.pop(place))
            else:
                place += 1
        else:
            assigned[content.pop(0)].append(partition)
    return {name: sorted(held) for name, held in assigned.items()}


def _place_in_a_java_map(name: str, size: int) -> int:
    """Return the bucket of a key in a ``java.util.HashMap`` of this size: the iteration order of Kafka's leader."""
    code = 0
    for unit in name.encode("utf-16-be")[1::2]:  # ids here are ASCII
        code = (31 * code + unit) & 0xFFFFFFFF
    buckets = 16
    while size > buckets * 3 // 4:
        buckets *= 2
    return (code ^ code >> 16) & (buckets - 1)


def custom(members: list[Member], counts: dict[str, int]) -> dict[str, Partitions]:
    """Assign all queues of a topic to its first subscriber: a custom strategy that only the simulator has."""
    assigned: dict[str, Partitions] = {member[0]: [] for member in members}
    for topic in sorted(counts):
        for member in in_order(members):
            if topic in member[2]:
                assigned[member[0]] += [(topic, number) for number in range(counts[topic])]
                break
    return assigned
