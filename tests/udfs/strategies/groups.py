"""Groups for the tests of strategies, in few words."""

from collections.abc import Mapping, Sequence

import msgspec

from udfs.model.events import QueueInfo, QueueRef
from udfs.strategies.problem import Assignment, Participant, Problem, Strategy, Topic


def group(
    subscriptions: Mapping[str, Sequence[str]],
    topics: Mapping[str, int],
    *,
    owned: Mapping[str, Sequence[str]] | None = None,
    settings: Mapping[str, object] | None = None,
    broker: str | None = None,
) -> Problem:
    """Make a group: member -> topics, topic -> number of queues, member -> owned queues as ``t-0``.

    A member ``id#2`` is another connection of the client ``id``.
    """
    owned = owned or {}
    return Problem(
        group="g",
        members=tuple(
            Participant(
                member_id=member,
                name=member.split("#")[0],
                subscriptions=tuple(names),
                owned=tuple(map(queue, owned[member])) if member in owned else None,
                generation=1 if member in owned else None,
            )
            for member, names in subscriptions.items()
        ),
        topics={
            name: Topic(name=name, queues=tuple(QueueInfo(queue_id=number, broker=broker) for number in range(count)))
            for name, count in topics.items()
        },
        settings=settings or {},
    )


def in_racks(problem: Problem, racks: list[str | None], of_brokers: int) -> Problem:
    """Give members their racks, and each partition one replica: of partition p in the rack p mod the brokers."""
    members = (msgspec.structs.replace(member, rack=rack) for member, rack in zip(problem.members, racks, strict=True))
    topics = {
        name: Topic(
            name=name,
            queues=tuple(QueueInfo(info.queue_id, racks=(f"r{info.queue_id % of_brokers}",)) for info in topic.queues),
        )
        for name, topic in problem.topics.items()
    }
    return msgspec.structs.replace(problem, members=tuple(members), topics=topics)


def queue(text: str) -> QueueRef:
    """Read ``t-0``."""
    topic, number = text.rsplit("-", 1)
    return QueueRef(topic=topic, queue_id=int(number))


def as_text(assignment: Assignment) -> dict[str, str]:
    """Write an assignment as text: member -> ``t-0 t-1``."""
    return {
        member: " ".join(f"{held.topic}-{held.queue_id}" for held in queues) for member, queues in assignment.items()
    }


def claiming(members: Mapping[str, tuple[str, int | None, str]], topics: Mapping[str, int]) -> Problem:
    """Make a group: member -> its topics, its generation, what it claims; topic -> partitions."""
    return Problem(
        group="g",
        members=tuple(
            Participant(
                member_id=member,
                name=member,
                subscriptions=tuple(names.split()),
                generation=generation,
                owned=None if generation is None else tuple(map(queue, claims.split())),
            )
            for member, (names, generation, claims) in members.items()
        ),
        topics={
            name: Topic(name=name, queues=tuple(QueueInfo(queue_id=number) for number in range(count)))
            for name, count in topics.items()
        },
    )


ROOM_IDS = ("10.0.0.10@3", "10.0.0.1@1", "10.0.0.1@12", "10.0.0.2@2")


def shares_of_two_rooms(strategy: Strategy, settings: Mapping[str, object]) -> list[str]:
    """Return what four clients get of queues a0–a5 of broker room1@broker-a and b0–b5 of room2@broker-b."""
    brokers = {"a": "room1@broker-a", "b": "room2@broker-b"}
    queues = tuple(QueueInfo(queue_id=number, broker=broker) for broker in brokers.values() for number in range(6))
    problem = Problem(
        group="g",
        members=tuple(
            Participant(member_id=member_id, name=member_id, subscriptions=("TopicA",)) for member_id in ROOM_IDS
        ),
        topics={"TopicA": Topic(name="TopicA", queues=queues)},
        settings=settings,
    )
    letters = {broker: letter for letter, broker in brokers.items()}
    held = strategy(problem)
    shares = [
        sorted(f"{letters[queue.broker or '']}{queue.queue_id}" for queue in held[member_id]) for member_id in ROOM_IDS
    ]
    return list(map(" ".join, shares))
