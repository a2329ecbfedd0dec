"""Queues of a topic: in full, or as their count."""

import pytest

from udfs.model.events import QueueInfo, TopicQueues
from udfs.model.queues import queues_of, racks_of, shortened, spelled

PLAIN = tuple(QueueInfo(number) for number in range(3))


def event(**fields: object) -> TopicQueues:
    return TopicQueues(schema_version=1, event_time=1, system="kafka", cluster="c", topic="t", **fields)  # type: ignore[arg-type]


def test_queues_come_by_broker_and_id_and_a_count_alone_is_queues_from_zero() -> None:
    given = (QueueInfo(1, "b"), QueueInfo(10, "a"), QueueInfo(2, "a"), QueueInfo(5))
    assert queues_of(event(queues=given)) == (QueueInfo(5), QueueInfo(2, "a"), QueueInfo(10, "a"), QueueInfo(1, "b"))
    assert queues_of(event(queue_count=3)) == PLAIN
    assert queues_of(event(queue_count=0)) == queues_of(event()) == ()
    # An empty list says more than a count.
    assert queues_of(event(queues=(), queue_count=3)) == ()


@pytest.mark.parametrize(
    ("queue", "racks"),
    [
        (QueueInfo(0), ()),
        (QueueInfo(0, rack="r"), ("r",)),
        (QueueInfo(0, rack="r", racks=("s", "t")), ("s", "t")),
        (QueueInfo(0, rack="r", racks=()), ()),
    ],
)
def test_all_replicas_racks_go_before_the_one(queue: QueueInfo, racks: tuple[str, ...]) -> None:
    assert racks_of(queue) == racks


@pytest.mark.parametrize(
    "queues",
    [
        (QueueInfo(1), QueueInfo(0)),
        (QueueInfo(1),),
        (QueueInfo(0, "b"),),
        (QueueInfo(0, rack="r"),),
        (QueueInfo(0, racks=()),),
    ],
)
def test_only_queues_without_further_fields_are_stored_as_their_count(queues: tuple[QueueInfo, ...]) -> None:
    assert shortened(queues) == spelled(queues) == queues
    assert (shortened(PLAIN), spelled(3)) == (3, PLAIN)
    assert (shortened(()), spelled(0), spelled(None)) == (0, (), None)
