"""Groups for the tests of strategies, in few words."""

from collections.abc import Mapping, Sequence

from udfs.model.events import QueueInfo, QueueRef
from udfs.strategies.problem import Assignment, Participant, Problem, Topic


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


def queue(text: str) -> QueueRef:
    """Read ``t-0``."""
    topic, number = text.rsplit("-", 1)
    return QueueRef(topic=topic, queue_id=int(number))


def told(assignment: Assignment) -> dict[str, str]:
    """Write an assignment as text: member -> ``t-0 t-1``."""
    return {
        member: " ".join(f"{held.topic}-{held.queue_id}" for held in queues) for member, queues in assignment.items()
    }
